//! The output of a session without a screen: events, one object, or the answer as text. `plain` formats the text.
//!
//! Pure: event in, text for stdout and lines for stderr out.

mod plain;
#[cfg(test)]
mod tests;

use multitap_client::SessionOutcome;
use multitap_event::{Event, TurnStatus};

use self::plain::Plain;
pub(super) use self::plain::with_native;
use crate::args::OutputFormat;
use crate::words::json_line;

/// One of the output formats, with its state.
#[derive(Debug)]
pub(super) enum Show {
    Text(Plain),
    Json(Box<SessionOutcome>),
    Stream,
}

/// The output for one event.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Shown {
    pub(super) stdout: String,
    pub(super) stderr: Vec<String>,
}

impl Show {
    /// `to_terminal`: the answer goes to a screen, which must not obey control characters of an agent.
    pub(super) fn new(format: OutputFormat, to_terminal: bool) -> Self {
        match format {
            OutputFormat::Text => Self::Text(Plain::new(to_terminal)),
            OutputFormat::Json => Self::Json(Box::default()),
            OutputFormat::StreamJson => Self::Stream,
        }
    }

    pub(super) fn event(&mut self, event: &Event) -> Shown {
        match self {
            Self::Text(plain) => plain.event(event),
            Self::Json(outcome) => {
                outcome.apply(event);
                outcome.session_id.get_or_insert_with(|| event.session_id.clone());
                Shown::default()
            }
            Self::Stream => Shown { stdout: line(event), stderr: Vec::new() },
        }
    }

    /// The output that is left when the session is over.
    pub(super) fn end(&mut self) -> String {
        match self {
            Self::Text(plain) => plain.end_line(),
            Self::Json(outcome) => {
                if outcome.status.is_none() && outcome.error.is_some() {
                    outcome.status = Some(TurnStatus::Failed);
                }
                line(outcome)
            }
            Self::Stream => String::new(),
        }
    }
}

fn line(value: &impl serde::Serialize) -> String {
    json_line(value).unwrap_or_else(|error| {
        tracing::error!(%error, "an event cannot be written as JSON");
        String::new()
    })
}
