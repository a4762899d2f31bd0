//! The start of a process that lives as long as its session: greets it, and reads until it is ready.

use std::collections::VecDeque;
use std::time::Duration;

use multitap_event::{AgentError, AgentErrorKind, EventKind, LaunchError, Timestamp};
use multitap_process::{Child, Line, MAX_LINE, Patience};
use tokio::time::{Instant, timeout, timeout_at};

use super::{AFTER_STDOUT, Pump};
use crate::codec::{Codec, End};

/// Maximum number of events before the agent is ready. Some agents report a whole conversation that they resume.
const EARLY_EVENTS: usize = 65_536;
/// Maximum number of bytes that the agent may write before it is ready.
const EARLY_BYTES: usize = 2 * MAX_LINE;
/// How many of its last lines are quoted when it wrote more than that.
const QUOTED_LINES: usize = 3;
/// Maximum number of quoted characters of each line.
const QUOTED_CHARS: usize = 120;

impl<C: Codec> Pump<C> {
    /// Greets the agent and reads until it is ready.
    pub(crate) async fn greet(&mut self, child: &mut Child) -> Result<(), LaunchError> {
        let deadline = Instant::now() + self.start_timeout;
        let step = self.codec.begin(Timestamp::now());
        let mut ready = step.ready;
        self.early = self.write(child, step, None).await;
        let mut bytes = 0_usize;
        let mut last = VecDeque::new();
        while !ready {
            let line = match timeout_at(deadline, child.stdout.next()).await {
                Ok(Ok(Some(line))) => line,
                Ok(Ok(None) | Err(_)) => return Err(self.died_at_start(child).await.into()),
                Err(_) => return Err(self.timed_out(child).await.into()),
            };
            let (Line::Text(kept) | Line::TooLong { head: kept, .. }) = &line;
            bytes = bytes.saturating_add(kept.len());
            last.truncate(QUOTED_LINES - 1);
            last.push_front(kept.chars().take(QUOTED_CHARS).collect::<String>());
            let (step, text) = self.decode(line);
            ready = step.ready;
            let (give_up, unsupported) = (step.give_up, step.unsupported.clone());
            let drafts = self.write(child, step, text.as_deref()).await;
            self.early.extend(drafts);
            if give_up {
                let error = self.gave_up(child).await;
                return Err(unsupported.map_or_else(|| error.into(), LaunchError::Unsupported));
            }
            if !ready && (self.early.len() >= EARLY_EVENTS || bytes > EARLY_BYTES) {
                return Err(self.flooded(child, &last).await.into());
            }
        }
        tracing::debug!(agent = %self.agent, pid = child.pid(), "ready");
        // An agent may report something before it begins the session.
        let start = self.early.iter().position(|draft| matches!(draft.kind, EventKind::SessionStarted(_)));
        if let Some(at) = start {
            self.early[..=at].rotate_right(1);
        }
        Ok(())
    }

    async fn timed_out(&mut self, child: &mut Child) -> AgentError {
        let exit = child.stop(Patience::default()).await;
        tracing::debug!(agent = %self.agent, code = exit.code, "start timed out");
        let patience = self.start_timeout.as_secs_f32();
        let mut message = format!("{} did not start within {patience} s and was stopped", self.agent);
        if let Some(error) = self.last_early_error() {
            message = format!("{message}; it said: {}", error.message);
        }
        self.error(AgentErrorKind::Timeout, message, &exit)
    }

    /// The agent runs, but the session cannot begin.
    async fn gave_up(&mut self, child: &mut Child) -> AgentError {
        let exit = child.stop(Patience::default()).await;
        tracing::debug!(agent = %self.agent, code = exit.code, "start refused");
        self.last_early_error().unwrap_or_else(|| {
            let message = format!("{} could not begin the session", self.agent);
            self.error(AgentErrorKind::ProtocolError, message, &exit)
        })
    }

    /// The agent writes without end, and is not ready.
    async fn flooded(&mut self, child: &mut Child, last: &VecDeque<String>) -> AgentError {
        let exit = child.stop(Patience { after_eof: Duration::ZERO, ..Patience::default() }).await;
        self.early = Vec::new();
        tracing::debug!(agent = %self.agent, code = exit.code, "start flooded");
        let last = last.iter().rev().map(|line| format!("{line:?}")).collect::<Vec<_>>().join(", ");
        let message =
            format!("{} wrote too much before it started and was stopped; its last lines are {last}", self.agent);
        self.error(AgentErrorKind::ProtocolError, message, &exit)
    }

    fn last_early_error(&mut self) -> Option<AgentError> {
        std::mem::take(&mut self.early).into_iter().rev().find_map(|draft| error_of(draft.kind))
    }

    async fn died_at_start(&mut self, child: &mut Child) -> AgentError {
        let Ok(exit) = timeout(AFTER_STDOUT, child.wait()).await else {
            let exit = child.stop(Patience::default()).await;
            let message = format!("{} closed its output during the start and was stopped", self.agent);
            return self.error(AgentErrorKind::ProtocolError, message, &exit);
        };
        // The codec may know what an early end means, such as a session that does not exist.
        let step = self.codec.end(&End::Exited(exit.clone()), Timestamp::now());
        let reported = std::mem::take(&mut self.early).into_iter().map(|draft| draft.kind).chain(step.events);
        let mut errors = reported.filter_map(error_of);
        let known = errors.find(|error| error.kind != AgentErrorKind::ProcessExitError);
        known.map(|error| error.exited(exit.code)).unwrap_or_else(|| {
            let message = format!("{} ended during the start with {exit}", self.agent);
            self.error(AgentErrorKind::ProcessExitError, message, &exit)
        })
    }
}

fn error_of(kind: EventKind) -> Option<AgentError> {
    if let EventKind::Error(error) = kind { Some(error) } else { None }
}
