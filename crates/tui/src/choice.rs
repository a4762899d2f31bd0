//! A question before a session starts: a few lines, and answers to choose from.

use std::io;
use std::time::Duration;

use crossterm::event::{Event as Input, KeyCode, KeyEventKind};
use futures_util::StreamExt as _;
use ratatui::style::Modifier;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Wrap};
use tokio::time::{Instant, sleep_until};

use crate::keys::{self, Action};
use crate::lease::{LeasedTerminal, TerminalLease};
use crate::preferences::TerminalPreferences;

/// For how long keys are ignored: they may have been meant for the program before.
const IGNORED: Duration = Duration::from_millis(500);

/// The question. All text is shown as it is: text of others must be clean already.
#[derive(Debug, Clone)]
pub struct ChoiceDialog {
    pub title: String,
    pub lines: Vec<String>,
    pub answers: Vec<String>,
    /// The answer that is selected at first, and that Esc gives.
    pub safe: usize,
}

/// Asks in the terminal. Returns the number of the answer, or `None` if the user quits with Ctrl+C or Ctrl+D or the
/// terminal is gone. The screen is released unless the lease held it before.
pub async fn choose(
    lease: &mut TerminalLease,
    preferences: TerminalPreferences,
    dialog: &ChoiceDialog,
) -> io::Result<Option<usize>> {
    let was_held = lease.is_held();
    let chosen = ask(lease.acquire(preferences)?, dialog).await;
    if !was_held {
        lease.release();
    }
    chosen
}

async fn ask(terminal: &mut LeasedTerminal, dialog: &ChoiceDialog) -> io::Result<Option<usize>> {
    let mut selected = dialog.safe;
    let ready_at = Instant::now() + IGNORED;
    let mut is_ready = false;
    loop {
        let shown = lines(dialog, selected, is_ready);
        let paragraph = Paragraph::new(shown).wrap(Wrap { trim: false });
        terminal.screen.draw("multitap", |frame| frame.render_widget(paragraph, frame.area()))?;
        let read = tokio::select! {
            read = terminal.input.next() => read,
            () = sleep_until(ready_at), if !is_ready => {
                is_ready = true;
                continue;
            }
        };
        let key = match read {
            Some(Ok(Input::Key(key))) if key.kind != KeyEventKind::Release => key,
            Some(Ok(_)) => continue,
            Some(Err(_)) | None => return Ok(None),
        };
        if matches!(keys::action(key), Action::Leave | Action::LeaveIfEmpty) {
            return Ok(None);
        }
        if !is_ready {
            continue;
        }
        match key.code {
            KeyCode::Up => selected = selected.saturating_sub(1),
            KeyCode::Down => selected = (selected + 1).min(dialog.answers.len().saturating_sub(1)),
            KeyCode::Enter => return Ok(Some(selected)),
            KeyCode::Esc => return Ok(Some(dialog.safe)),
            KeyCode::Char(digit @ '1'..='9') => {
                let answer = digit as usize - '1' as usize;
                if answer < dialog.answers.len() {
                    return Ok(Some(answer));
                }
            }
            _ => {}
        }
    }
}

fn lines(dialog: &ChoiceDialog, selected: usize, is_ready: bool) -> Vec<Line<'_>> {
    let mut lines = vec![Line::from(Span::raw(dialog.title.as_str()).style(Modifier::BOLD)), Line::raw("")];
    lines.extend(dialog.lines.iter().map(|line| Line::raw(line.as_str())));
    lines.push(Line::raw(""));
    for (at, answer) in dialog.answers.iter().enumerate() {
        let (mark, style) = if at == selected { ('>', Modifier::BOLD) } else { (' ', Modifier::empty()) };
        lines.push(Line::from(Span::raw(format!("{mark} {}. {answer}", at + 1)).style(style)));
    }
    lines.push(Line::raw(""));
    let hint = format!("1-{} or ↑ ↓ Enter answers · Esc {} · Ctrl+C quits", dialog.answers.len(), dialog.safe + 1);
    lines.push(Line::raw(if is_ready { hint } else { "…".to_owned() }));
    lines
}
