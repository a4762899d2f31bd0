//! The terminal, held for longer than one session: while one session follows another the screen stays ours, and what is
//! typed meanwhile goes to the next session.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::time::Duration;

use crossterm::event::{Event as Input, EventStream};
use futures_util::StreamExt as _;
use tokio::time::{Instant, sleep_until};

use crate::keys::{self, Action};
use crate::preferences::TerminalPreferences;
use crate::terminal::Screen;

/// How many keys are stored between two sessions.
const TYPED: usize = 10_000;
/// A wait shorter than this shows no message.
const QUIET: Duration = Duration::from_millis(300);
const WAITING: &str = "opening the next session · what you type goes to it · Ctrl+C quits";

/// A terminal that shows one session after another. Dropping it restores the terminal.
#[derive(Default)]
pub struct TerminalLease {
    terminal: Option<LeasedTerminal>,
}

impl fmt::Debug for TerminalLease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TerminalLease").field("is_held", &self.is_held()).finish_non_exhaustive()
    }
}

pub(crate) struct LeasedTerminal {
    pub(crate) screen: Screen,
    pub(crate) input: EventStream,
    /// Input from before the session.
    pub(crate) typed: VecDeque<Input>,
}

/// The user pressed Ctrl+C, or the terminal is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("interrupted while waiting for a session")]
pub struct WaitInterrupted;

impl TerminalLease {
    pub fn is_held(&self) -> bool {
        self.terminal.is_some()
    }

    /// Restores the terminal.
    pub fn release(&mut self) {
        self.terminal = None;
    }

    /// Takes over the screen, unless it is held already.
    pub(crate) fn acquire(&mut self, preferences: TerminalPreferences) -> io::Result<&mut LeasedTerminal> {
        let terminal = match self.terminal.take() {
            Some(terminal) => terminal,
            None => {
                let screen = Screen::take(preferences)?;
                LeasedTerminal { screen, input: EventStream::new(), typed: VecDeque::new() }
            }
        };
        Ok(self.terminal.insert(terminal))
    }

    /// Waits for work between two sessions, and stores what is typed meanwhile.
    pub async fn wait<T>(&mut self, work: impl Future<Output = T>) -> Result<T, WaitInterrupted> {
        let Some(terminal) = &mut self.terminal else { return Ok(work.await) };
        let mut work = std::pin::pin!(work);
        let (message_at, mut has_message) = (Instant::now() + QUIET, false);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return Ok(done),
                read = terminal.input.next() => match read {
                    Some(Ok(Input::Key(key))) if keys::action(key) == Action::Leave => return Err(WaitInterrupted),
                    Some(Ok(read)) if terminal.typed.len() < TYPED => terminal.typed.push_back(read),
                    Some(Ok(_)) => {}
                    Some(Err(_)) | None => return Err(WaitInterrupted),
                },
                () = sleep_until(message_at), if !has_message => {
                    has_message = true;
                    let drawn = terminal.screen.draw("multitap", |frame| frame.render_widget(WAITING, frame.area()));
                    if let Err(error) = drawn {
                        tracing::warn!(%error, "the screen cannot be drawn");
                    }
                }
            }
        }
    }
}
