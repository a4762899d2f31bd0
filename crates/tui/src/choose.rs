//! One question before a session: a few lines, and answers to choose from. Nothing is chosen by itself.

use std::io;
use std::time::Duration;

use crossterm::event::{Event as Input, KeyCode, KeyEvent, KeyEventKind};
use futures_util::StreamExt as _;
use ratatui::style::Modifier;
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Paragraph, Wrap};
use tokio::time::{Instant, sleep_until};

use crate::keys::{self, Action};
use crate::preferences::Preferences;
use crate::seat::{Seat, Taken};

/// For how long keys are ignored: they were meant for whatever had the terminal before.
const DEAF: Duration = Duration::from_millis(500);

/// What is asked. All text is shown as it is: text of others must be clean already.
#[derive(Debug, Clone)]
pub struct Choosing {
    pub title: String,
    pub lines: Vec<String>,
    pub answers: Vec<String>,
    /// The answer that Enter gives at first, and Esc always.
    pub safe: usize,
}

/// Asks on the terminal. Returns the number of the answer; nothing if somebody left with Ctrl+C or Ctrl+D, or the
/// terminal is gone. The screen is given back unless it was taken before.
pub async fn choose(seat: &mut Seat, preferences: Preferences, asked: &Choosing) -> io::Result<Option<usize>> {
    let was_taken = seat.is_taken();
    let chosen = ask(seat.take(preferences)?, asked).await;
    if !was_taken {
        seat.give_back();
    }
    chosen
}

async fn ask(taken: &mut Taken, asked: &Choosing) -> io::Result<Option<usize>> {
    let mut at = asked.safe;
    let hears_at = Instant::now() + DEAF;
    let mut hears = false;
    loop {
        taken.screen.draw("multitap", |frame| frame.render_widget(drawn(asked, at, hears), frame.area()))?;
        let read = tokio::select! {
            read = taken.input.next() => read,
            () = sleep_until(hears_at), if !hears => {
                hears = true;
                continue;
            }
        };
        let key = match read {
            Some(Ok(Input::Key(key))) if key.kind != KeyEventKind::Release => key,
            Some(Ok(_)) => continue,
            Some(Err(_)) | None => return Ok(None),
        };
        if matches!(keys::action(key), Action::Leave) || is_control(key, 'c') || is_control(key, 'd') {
            return Ok(None);
        }
        if !hears {
            continue;
        }
        let last = asked.answers.len().saturating_sub(1);
        match key.code {
            KeyCode::Up => at = at.saturating_sub(1),
            KeyCode::Down => at = (at + 1).min(last),
            KeyCode::Enter => return Ok(Some(at)),
            KeyCode::Esc => return Ok(Some(asked.safe)),
            KeyCode::Char(digit) => {
                let number = digit.to_digit(10).and_then(|digit| usize::try_from(digit).ok());
                if let Some(number) = number.filter(|number| (1..=asked.answers.len()).contains(number)) {
                    return Ok(Some(number - 1));
                }
            }
            _ => {}
        }
    }
}

fn is_control(key: KeyEvent, letter: char) -> bool {
    key.modifiers.contains(crossterm::event::KeyModifiers::CONTROL) && key.code == KeyCode::Char(letter)
}

fn drawn(asked: &Choosing, at: usize, hears: bool) -> Paragraph<'_> {
    let mut lines = vec![Line::from(Span::raw(asked.title.as_str()).style(Modifier::BOLD)), Line::raw("")];
    lines.extend(asked.lines.iter().map(|line| Line::raw(line.as_str())));
    lines.push(Line::raw(""));
    for (number, answer) in asked.answers.iter().enumerate() {
        let mark = if number == at { '>' } else { ' ' };
        let style = if number == at { Modifier::BOLD } else { Modifier::empty() };
        lines.push(Line::from(Span::raw(format!("{mark} {}. {answer}", number + 1)).style(style)));
    }
    lines.push(Line::raw(""));
    let hint = format!("1-{} or ↑ ↓ Enter answers · Esc {} · Ctrl+C quits", asked.answers.len(), asked.safe + 1);
    lines.push(if hears { Line::raw(hint) } else { Line::raw("…") });
    Paragraph::new(Text::from(lines)).wrap(Wrap { trim: false })
}
