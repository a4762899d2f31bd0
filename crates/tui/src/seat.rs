//! The place at a terminal, for longer than one session: while another session takes the place of the one on the
//! screen, the screen stays taken, and what is typed meanwhile waits for the next one, in its order.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::time::Duration;

use crossterm::event::{Event as Input, EventStream};
use futures_util::StreamExt as _;
use ratatui::text::Line;
use ratatui::widgets::Paragraph;
use tokio::time::{Instant, sleep_until};

use crate::keys::{self, Action};
use crate::preferences::Preferences;
use crate::terminal::Screen;

/// How much is kept of what is typed between two sessions.
const TYPED: usize = 10_000;
/// How long nothing is said while one waits.
const QUIET: Duration = Duration::from_millis(300);
const WAITING: &str = "the session is being changed · what you type goes to the next one · Ctrl+C quits";

/// A terminal that sessions are shown on, one after the other. Dropping it gives the screen back.
#[derive(Default)]
pub struct Seat {
    taken: Option<Taken>,
}

impl fmt::Debug for Seat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seat").field("is_taken", &self.is_taken()).finish_non_exhaustive()
    }
}

/// A screen that is ours, and what is typed at it.
pub(crate) struct Taken {
    pub(crate) screen: Screen,
    pub(crate) input: EventStream,
    /// What was typed before there was somebody to take it.
    pub(crate) typed: VecDeque<Input>,
}

/// Nobody waits any longer: Ctrl+C was pressed, or the terminal is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("nobody waits any longer")]
pub struct GaveUp;

impl Seat {
    pub fn is_taken(&self) -> bool {
        self.taken.is_some()
    }

    /// Gives the screen back to whoever had it before.
    pub fn give_back(&mut self) {
        self.taken = None;
    }

    /// Takes the screen over, if that was not done before.
    pub(crate) fn take(&mut self, preferences: Preferences) -> io::Result<&mut Taken> {
        let taken = match self.taken.take() {
            Some(taken) => taken,
            None => Taken { screen: Screen::take(preferences)?, input: EventStream::new(), typed: VecDeque::new() },
        };
        Ok(self.taken.insert(taken))
    }

    /// Waits for what has to be done between two sessions. What is typed meanwhile is kept for the next one.
    pub async fn wait<T>(&mut self, work: impl Future<Output = T>) -> Result<T, GaveUp> {
        let Some(taken) = &mut self.taken else { return Ok(work.await) };
        let mut work = std::pin::pin!(work);
        let (told_at, mut is_told) = (Instant::now() + QUIET, false);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return Ok(done),
                read = taken.input.next() => match read {
                    Some(Ok(Input::Key(key))) if keys::action(key) == Action::Leave => return Err(GaveUp),
                    Some(Ok(read)) if taken.typed.len() < TYPED => taken.typed.push_back(read),
                    Some(Ok(_)) => {}
                    Some(Err(_)) | None => return Err(GaveUp),
                },
                () = sleep_until(told_at), if !is_told => {
                    is_told = true;
                    taken.say(WAITING);
                }
            }
        }
    }
}

impl Taken {
    fn say(&mut self, words: &'static str) {
        let drawn =
            self.screen.draw("multitap", |frame| frame.render_widget(Paragraph::new(Line::raw(words)), frame.area()));
        if let Err(error) = drawn {
            tracing::warn!(%error, "the screen cannot be drawn");
        }
    }
}
