//! A running shell command and its events: the same turn and tool call as the built-in agent's.

use std::future::{pending, ready};
use std::pin::Pin;

use multitap_event::{EventKind, Timestamp, ToolId, ToolKind, ToolStarted, TurnEnd, TurnId, TurnStatus};
use serde_json::Map;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::job::Job;
use crate::policy::{Consent, Policy};
use crate::tool::{Outcome, Progress, ToolContext};
use crate::tools::shell::{NAME, Shell};

const PIECES: usize = 64;

/// A running shell command. It only makes progress while [`news`] is polled.
pub(super) struct RunningCommand {
    pub(super) command: String,
    /// The status its turn will end with.
    pub(super) status: TurnStatus,
    turn_id: TurnId,
    tool_id: ToolId,
    began: Timestamp,
    stop: CancellationToken,
    progress: mpsc::Receiver<Progress>,
    run: Pin<Box<dyn Future<Output = Outcome> + Send>>,
}

pub(super) enum CommandReport {
    Told(EventKind),
    Done(Outcome),
}

/// The next report, if a command runs. Cancel safe.
pub(super) async fn news(line: &mut Option<RunningCommand>) -> CommandReport {
    let Some(line) = line else { return pending().await };
    tokio::select! {
        biased;
        Some(progress) = line.progress.recv() => CommandReport::Told(line.reported(progress)),
        outcome = &mut line.run => CommandReport::Done(outcome),
    }
}

impl RunningCommand {
    /// Starts the command if the policy approves it. Returns the events to emit.
    pub(super) fn begin(command: &str, shell: &Shell, policy: &Policy) -> (Self, [EventKind; 2]) {
        let (to_us, progress) = mpsc::channel(PIECES);
        let stop = CancellationToken::new();
        let context = ToolContext { progress: to_us, stop: stop.clone() };
        let prepared = shell.line(command);
        let title = prepared.as_ref().ok().map(|ready| ready.title());
        let approved = prepared.map(|ready| policy.approve(NAME, Job::Shell(ready), Consent::Given));
        let run: Pin<Box<dyn Future<Output = Outcome> + Send>> = match approved {
            Ok(Ok(line)) => {
                let shell = shell.clone();
                Box::pin(async move { shell.run_line(line, context).await })
            }
            Ok(Err(why)) => Box::pin(ready(Outcome::denied(why))),
            Err(why) => Box::pin(ready(Outcome::failed(why.to_string()))),
        };
        let id = || uuid::Uuid::now_v7().to_string();
        let line = Self {
            command: command.to_owned(),
            status: TurnStatus::Completed,
            turn_id: TurnId::from(id()),
            tool_id: ToolId::from(id()),
            began: Timestamp::now(),
            stop,
            progress,
            run,
        };
        let began = ToolStarted {
            tool_id: line.tool_id.clone(),
            tool_name: NAME.to_owned(),
            tool_kind: ToolKind::Shell,
            title,
            arguments: Map::from_iter([("command".to_owned(), command.into())]),
            server: None,
            parent_tool_id: None,
        };
        let reported = [EventKind::TurnStarted { turn_id: line.turn_id.clone() }, EventKind::ToolStarted(began)];
        (line, reported)
    }

    fn reported(&self, progress: Progress) -> EventKind {
        progress.event(self.tool_id.clone(), self.elapsed())
    }

    fn elapsed(&self) -> u64 {
        Timestamp::now().millis_since(self.began)
    }

    /// Stops the command; the first reason wins. Its output so far is still reported.
    pub(super) fn stop(&mut self, status: TurnStatus) {
        if self.status == TurnStatus::Completed {
            self.status = status;
            self.stop.cancel();
        }
    }

    pub(super) fn end(mut self, outcome: Outcome) -> Vec<EventKind> {
        let mut reported = Vec::new();
        // The last output may have come with the end.
        while let Ok(progress) = self.progress.try_recv() {
            reported.push(self.reported(progress));
        }
        let elapsed = self.elapsed();
        reported.push(outcome.completed(self.tool_id, elapsed));
        reported.push(EventKind::TurnCompleted(TurnEnd {
            turn_id: Some(self.turn_id),
            duration_ms: Some(elapsed),
            text: Some(outcome.text),
            num_turns: Some(0),
            ..TurnEnd::of(self.status)
        }));
        reported
    }

    /// Ends the command when nobody receives its events any more, and waits until all its processes have ended.
    pub(super) async fn abandon(self) {
        drop(self.progress);
        self.stop.cancel();
        self.run.await;
    }
}
