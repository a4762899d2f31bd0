//! Which key does what: for the screen, its help and the documents.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::composer::{Erase, Move};

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
    /// Goes to one of the open questions.
    GoToQuestion(usize),
    Nothing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Copied {
    Answer,
    Code,
}

/// Keys and what they do, for the help and the documents.
pub(crate) const BINDINGS: &[(&str, &str)] = &[
    ("Enter", "send"),
    ("Shift+Enter, Alt+Enter, Ctrl+J", "new line"),
    ("Esc", "interrupt the turn; twice: clear the input, or recall the last prompt"),
    ("Ctrl+C", "interrupt or clear; twice: quit"),
    ("Ctrl+D", "quit, when the input is empty"),
    ("Ctrl+Z", "suspend, unless others are connected; fg in the shell continues"),
    ("Shift+Tab", "next approval mode"),
    ("Up, Down", "previous prompts; Up withdraws your queued prompt, to edit it"),
    ("Ctrl+R", "search previous prompts"),
    ("@, /", "mention a file, run a command; Tab or Enter accepts a completion, Esc closes the list"),
    ("Ctrl+V", "paste an image or text from the clipboard"),
    ("PageUp, PageDown", "scroll; in a question: scroll its details"),
    ("Ctrl+Home, Ctrl+End", "go to the first loaded line (again: load older ones), to the end"),
    ("Ctrl+F", "search; Enter or Up: previous match, Down: next match, Esc: close (also / when scrolled up)"),
    ("Ctrl+O", "expand or collapse reasoning and output"),
    ("Alt+C, Alt+X", "copy the last answer, the last code block"),
    ("Ctrl+G", "write in your editor; in a question: edit the command or file, review the change, then answer"),
    ("Ctrl+A, Ctrl+E", "start and end of the line"),
    (
        "Ctrl+W, Ctrl+U, Ctrl+K, Ctrl+Y",
        "cut the previous word, the line before or after the cursor; insert the last cut",
    ),
    ("1-9, Up, Down, Enter", "answer a question; also an option's first letter"),
    ("Left, Right, Alt+1-9", "in a question: previous or next part or question; question 1-9"),
    ("Tab", "in a question: add a comment, or answer in your own words"),
    ("Space", "in a multi-select question: toggle an option"),
    ("?", "this help, when the input is empty"),
];

/// The effect of a key where text is typed.
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
