//! Sits between the owner of a session and its agent: records how many agents each prompt has passed through before
//! the agent gets it, and each cancelled turn, and holds what the remote agents need until the session ends.

use std::future::pending;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use multitap_event::{AgentEnd, AgentLink, Command, Draft, link as new_link};
use tokio::sync::mpsc;
use tokio_util::sync::DropGuard;
use tokio_util::task::TaskTracker;

use super::folder::PrivateFolder;

/// Where the bridge reads the hop count of the current prompt, and how many turns were cancelled.
#[derive(Debug)]
pub(super) enum HopRecord {
    /// The bridge is another process.
    File(PrivateFolder),
    /// The bridge is in this process, and ends when this is dropped.
    Shared { hops: Arc<AtomicU32>, _ended: DropGuard },
}

impl HopRecord {
    fn set(&self, progress: Progress) -> io::Result<()> {
        match self {
            Self::File(folder) => folder.write("hops", &format!("{} {}", progress.hops, progress.cancelled)).map(drop),
            // The built-in agent cancels the calls of a cancelled turn itself.
            Self::Shared { hops, .. } => {
                hops.store(progress.hops, Ordering::Release);
                Ok(())
            }
        }
    }
}

/// What the bridge learns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Progress {
    hops: u32,
    /// Number of turns that were cancelled.
    cancelled: u32,
}

/// Wraps an agent so that the hop counts of its prompts are recorded, and its cancelled turns.
pub(super) fn relay(link: AgentLink, records: Vec<HopRecord>, tasks: &TaskTracker) -> AgentLink {
    let AgentLink { events, commands, steers, reviews } = link;
    let (owners, end) = new_link();
    tasks.spawn(run(end, events, commands, records));
    AgentLink { steers, reviews, ..owners }
}

/// Runs until the agent is gone, or its events have no receiver. Neither direction waits for the other.
async fn run(
    owner: AgentEnd,
    mut events: mpsc::Receiver<Draft>,
    agent: mpsc::Sender<Command>,
    records: Vec<HopRecord>,
) {
    let AgentEnd { events: reported, mut commands, .. } = owner;
    let outward = async move {
        while let Some(draft) = events.recv().await {
            if reported.send(draft).await.is_err() {
                return;
            }
        }
    };
    let inward = async move {
        let mut current = Progress::default();
        while let Some(command) = commands.recv().await {
            current = report(&records, current, Progress { hops: hops(&command, current.hops), ..current });
            let is_cancel = command == Command::Cancel;
            if agent.send(command).await.is_err() {
                break;
            }
            if is_cancel {
                // After the agent: it must not take the end of its call for an answer.
                current = report(&records, current, Progress { cancelled: current.cancelled + 1, ..current });
            }
        }
        // Ends the agent; its last events still pass. It may hang, and tokens must not stay on disk until it ends.
        drop((agent, records));
        pending::<()>().await;
    };
    tokio::select! {
        () = outward => {}
        () = inward => {}
    }
}

/// Returns what the bridges know afterwards.
fn report(records: &[HopRecord], current: Progress, progress: Progress) -> Progress {
    if progress == current {
        return current;
    }
    match records.iter().try_for_each(|record| record.set(progress)) {
        Ok(()) => progress,
        Err(error) => {
            tracing::error!(%error, "loops between agents may not be recognised, nor cancelled turns");
            current
        }
    }
}

/// The hop count while the agent works on a command. A prompt that joins a running turn never lowers it.
fn hops(command: &Command, current: u32) -> u32 {
    match command {
        Command::Prompt(prompt) => prompt.hops,
        Command::Steer(prompt) => prompt.hops.max(current),
        Command::Decide(_)
        | Command::Cancel
        | Command::SetMode { .. }
        | Command::SetModel { .. }
        | Command::SetThinking { .. }
        | Command::SetThinkingLevel { .. }
        | Command::Query { .. } => current,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use multitap_event::{EventKind, Prompt, Timestamp};
    use multitap_testkit::wait::until;

    use super::*;

    fn prompt(hops: u32) -> Prompt {
        Prompt { hops, ..Prompt::text("hello") }
    }

    #[tokio::test]
    async fn the_number_is_there_before_the_agent_gets_the_prompt() {
        let (data, tasks) = (tempfile::tempdir().unwrap(), TaskTracker::new());
        let folder = PrivateFolder::make(Some(data.path())).unwrap();
        let file = folder.path("hops");
        let (link, mut agent) = new_link();
        let owner = relay(link, vec![HopRecord::File(folder)], &tasks);
        let read = || fs::read_to_string(&file).ok();
        for (command, expected) in [
            (Command::Prompt(prompt(0)), None),
            (Command::Prompt(prompt(2)), Some("2 0")),
            (Command::Steer(prompt(1)), Some("2 0")),
            (Command::Steer(prompt(3)), Some("3 0")),
            (Command::Cancel, None),
            (Command::Prompt(prompt(0)), Some("0 1")),
            (Command::Cancel, None),
        ] {
            owner.commands.send(command.clone()).await.unwrap();
            assert_eq!(agent.commands.recv().await.as_ref(), Some(&command));
            // A cancelled turn is reported later.
            assert!(command == Command::Cancel || read().as_deref() == expected, "{command:?}: {:?}", read());
        }
        let is_reported = || (read().as_deref() == Some("0 2")).then_some(());
        until("the cancelled turn to be reported", Duration::from_secs(30), is_reported).await.unwrap();
        // The agent is asked to go, and nothing waits for one that hangs but its last events.
        let AgentLink { commands, mut events, .. } = owner;
        drop(commands);
        assert_eq!(agent.commands.recv().await, None);
        let folder = file.parent().unwrap();
        until("the folder to be removed", Duration::from_secs(30), || (!folder.exists()).then_some(())).await.unwrap();
        let last = EventKind::RawDelta { native_type: None };
        agent.events.send(Draft::new(Timestamp::now(), last)).await.unwrap();
        drop(agent);
        assert!(events.recv().await.is_some());
        assert!(events.recv().await.is_none());
        tasks.close();
        tasks.wait().await;
    }
}
