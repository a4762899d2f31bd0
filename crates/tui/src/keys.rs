//! Which key does what: for the screen, its help and the documents.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::composer::{Erase, Move};

/// What a key does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Send,
    Newline,
    Insert(char),
    Go(Move),
    Erase(Erase),
    Yank,
    Interrupt,
    Leave,
    LeaveIfEmpty,
    NextMode,
    Unfold,
    PageUp,
    PageDown,
    Top,
    Bottom,
    Search,
    Copy(Copied),
    Editor,
    Complete,
    Recall,
    Suspend,
    /// From the clipboard of the desktop: terminals hand over text only.
    Paste,
    /// That one of the open questions.
    GoToQuestion(usize),
    Nothing,
}

/// What is copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Copied {
    Answer,
    Code,
}

/// Keys and what they do, for the help and the documents.
pub(crate) const BINDINGS: &[(&str, &str)] = &[
    ("Enter", "send"),
    ("Shift+Enter, Alt+Enter, Ctrl+J", "new line"),
    ("Esc", "interrupt the turn; twice: clear what is typed or bring back what was sent"),
    ("Ctrl+C", "interrupt or clear; twice: quit"),
    ("Ctrl+D", "quit, when nothing is typed"),
    ("Ctrl+Z", "stop for now, when nobody else is connected; the shell's fg goes on"),
    ("Shift+Tab", "next approval mode"),
    ("Up, Down", "what was typed before; Up takes back a prompt that waits"),
    ("Ctrl+R", "search what was typed before"),
    ("@, /", "mention a file, give a command; Tab or Enter takes what is offered, Esc closes it"),
    ("Ctrl+V", "paste the picture in the clipboard, or its text"),
    ("PageUp, PageDown", "scroll; in a question: through what is asked about"),
    ("Ctrl+Home, Ctrl+End", "to the first line that was read, and again further back; to the latest"),
    ("Ctrl+F", "search; Enter and Up: earlier, Down: later, Esc: done (/ too, when scrolled up)"),
    ("Ctrl+O", "show thoughts and output whole, or fold them again"),
    ("Alt+C, Alt+X", "copy the last answer, the last code"),
    ("Ctrl+G", "write in your editor; in a question: edit it, review the change, then answer"),
    ("Ctrl+A, Ctrl+E", "beginning and end of the line"),
    ("Ctrl+W, Ctrl+U, Ctrl+K, Ctrl+Y", "cut a word, to the beginning, to the end; put it back"),
    ("1-9, Up, Down, Enter", "answer a question; the first letter of an option does too"),
    ("Left, Right, Alt+1-9", "in a question: the part or the question before, the next, that one of the list"),
    ("Tab", "in a question: comment on the option that the line names, or answer in your own words"),
    ("Space", "in a question of which several answers are true: pick one, or take it back"),
    ("?", "this help, when nothing is typed"),
];

/// What a key does where text is typed.
pub(crate) fn action(key: KeyEvent) -> Action {
    let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
    let alt = key.modifiers.contains(KeyModifiers::ALT);
    let shift = key.modifiers.contains(KeyModifiers::SHIFT);
    match key.code {
        KeyCode::Enter if shift || alt || ctrl => Action::Newline,
        KeyCode::Enter => Action::Send,
        KeyCode::Esc => Action::Interrupt,
        KeyCode::Tab => Action::Complete,
        KeyCode::BackTab => Action::NextMode,
        KeyCode::Backspace if ctrl || alt => Action::Erase(Erase::WordBack),
        KeyCode::Backspace => Action::Erase(Erase::Back),
        KeyCode::Delete if ctrl || alt => Action::Erase(Erase::WordForward),
        KeyCode::Delete => Action::Erase(Erase::Forward),
        KeyCode::Left if ctrl || alt => Action::Go(Move::WordLeft),
        KeyCode::Right if ctrl || alt => Action::Go(Move::WordRight),
        KeyCode::Left => Action::Go(Move::Left),
        KeyCode::Right => Action::Go(Move::Right),
        KeyCode::Up => Action::Go(Move::Up),
        KeyCode::Down => Action::Go(Move::Down),
        KeyCode::Home if ctrl => Action::Top,
        KeyCode::End if ctrl => Action::Bottom,
        KeyCode::Home => Action::Go(Move::LineStart),
        KeyCode::End => Action::Go(Move::LineEnd),
        KeyCode::PageUp => Action::PageUp,
        KeyCode::PageDown => Action::PageDown,
        KeyCode::Char(letter) if ctrl => control(letter),
        KeyCode::Char(letter) if alt => match letter {
            'b' => Action::Go(Move::WordLeft),
            'f' => Action::Go(Move::WordRight),
            'd' => Action::Erase(Erase::WordForward),
            'c' => Action::Copy(Copied::Answer),
            'x' => Action::Copy(Copied::Code),
            digit @ '1'..='9' => Action::GoToQuestion(digit as usize - '1' as usize),
            _ => Action::Nothing,
        },
        KeyCode::Char(letter) => Action::Insert(letter),
        _ => Action::Nothing,
    }
}

fn control(letter: char) -> Action {
    match letter {
        'j' => Action::Newline,
        'c' => Action::Leave,
        'd' => Action::LeaveIfEmpty,
        'a' => Action::Go(Move::LineStart),
        'e' => Action::Go(Move::LineEnd),
        'b' => Action::Go(Move::Left),
        'f' => Action::Search,
        'p' => Action::Go(Move::Up),
        'n' => Action::Go(Move::Down),
        'w' => Action::Erase(Erase::WordBack),
        'u' => Action::Erase(Erase::ToLineStart),
        'k' => Action::Erase(Erase::ToLineEnd),
        'h' => Action::Erase(Erase::Back),
        'y' => Action::Yank,
        'o' => Action::Unfold,
        'g' => Action::Editor,
        'r' => Action::Recall,
        'z' => Action::Suspend,
        'v' => Action::Paste,
        _ => Action::Nothing,
    }
}
