//! A client that does not read, beside others that do: what it costs, and whether it catches up.
//!
//! Memory is that of a process that does nothing else, at its most: also when the client that stalled catches up. Two
//! such processes, with and without that client, take turns, and their medians are compared. In one process, one run
//! after the other, they cannot be: the second has what the first leaves behind.

use std::time::Duration;

use multitap_hub::{FeedEnd, JoinFrom, STUCK, Told};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

use crate::report::{heading, median, memory, mib, note, row};
use crate::stage::{Stage, read, text};
use crate::{Outcome, again};

/// The word that makes this program such a process.
pub(crate) const WORD: &str = "as-stalled";

const HEALTHY: usize = 31;
/// Events a second.
const FLOOD: u64 = 5000;
const ROUNDS: usize = 3;
/// In MiB.
const GOAL: f64 = 4.0;

pub(crate) async fn measure(seconds: u64) -> Outcome<()> {
    heading(&format!(
        "a stalled client: {HEALTHY} that read at {FLOOD} events/s for {seconds} s, and one that does not"
    ));
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        for (idle, most) in [("false", &mut without), ("true", &mut with)] {
            let told = again([WORD, &seconds.to_string(), idle]).await?;
            most.push(told.iter().copied().max().unwrap_or_default() as f64);
        }
    }
    let (without, with) = (mib(median(&mut without)), mib(median(&mut with)));
    note("memory without it, with it", &format!("{without:.1}, {with:.1} MiB"));
    let added = with - without;
    row("memory that it adds", &format!("{added:+.1} MiB"), "<= 4 MiB", added <= GOAL);
    // Else there would have been an error.
    row("events that anybody missed, also the one", "0", "0", true);
    Ok(())
}

/// Prints the memory second by second, and at the end when the idle one has caught up.
pub(crate) async fn run(seconds: u64, with_idle: bool) -> Outcome<()> {
    let folder = tempfile::tempdir()?;
    let stage = Stage::begin(folder.path()).await?;
    let last = stage.session.last() + seconds * FLOOD;
    let mut readers = JoinSet::new();
    for _ in 0..HEALTHY {
        readers.spawn(read(stage.join(JoinFrom::Now, Some(STUCK)).await?, last));
    }
    let idle = if with_idle { Some(stage.join(JoinFrom::Now, Some(STUCK)).await?) } else { None };
    let mut tick = interval(Duration::from_millis(10));
    tick.set_missed_tick_behavior(MissedTickBehavior::Burst);
    for round in 1..=seconds * 100 {
        tick.tick().await;
        for _ in 0..FLOOD / 100 {
            stage.tell(text()).await?;
        }
        if round % 100 == 0 {
            println!("{}", memory()?);
        }
    }
    while let Some(read) = readers.join_next().await {
        read??;
    }
    if let Some(mut idle) = idle {
        // It reads what it had, and comes back for the rest if it was cut off.
        let mut seen = idle.last();
        while seen < last
            && let Some(Told::Event(entry)) = idle.next().await
        {
            if entry.seq() != seen + 1 {
                return Err(format!("{} follows {seen}", entry.seq()).into());
            }
            seen = entry.seq();
        }
        if let FeedEnd::CutOff { last: seen } = idle.end() {
            read(stage.join(JoinFrom::After { seq: seen, epoch: None }, None).await?, last).await?;
        } else if seen < last {
            return Err(format!("it ended at {seen} of {last}").into());
        }
        println!("{}", memory()?);
    }
    stage.close().await;
    Ok(())
}
