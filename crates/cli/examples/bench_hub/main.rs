//! What a kept session costs, on this machine, now: `cargo xtask bench hub [PART…] [--seconds N] [--events N]`.
//!
//! A hub over a real log, and clients in this process:
//!
//! - `fan-out`: one burst of events to 1, 10, 100 and 1000 clients; deliveries a second, and CPU for each.
//! - `latency`: 200 events a second, each in the log on its way to a client; from the agent's end of the link, and from a
//!   line that a real process writes to its stdout.
//! - `stalled`: 31 clients that read and one that does not, at 5000 events a second, and the memory of that one.
//! - `history`: a session of a million events beside one of ten thousand, and how long it takes to open it.
//!
//! Goals, not gates: whatever the figures, it succeeds, unless an event is lost. What needs a process of its own, an agent
//! or one whose memory is measured, is this program once more, with a first word that nobody else says.

#![expect(clippy::print_stdout, reason = "what it measured")]

mod agent;
mod fan_out;
mod history;
mod latency;
mod report;
mod stage;
mod stalled;

use std::error::Error;

use multitap_process::{Keeper, Line, Program, StdinMode, spawn};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const PARTS: [&str; 4] = ["fan-out", "latency", "stalled", "history"];

/// What is to be measured, and how thoroughly.
struct Plan {
    parts: Vec<String>,
    seconds: u64,
    events: u64,
}

impl Plan {
    fn read(mut args: impl Iterator<Item = String>) -> Outcome<Self> {
        let mut plan = Self { parts: Vec::new(), seconds: 20, events: 1_000_000 };
        while let Some(arg) = args.next() {
            let mut number = || Outcome::Ok(args.next().ok_or("a number is missing")?.parse::<u64>()?.max(1));
            match arg.as_str() {
                "--seconds" => plan.seconds = number()?,
                "--events" => plan.events = number()?,
                part if PARTS.contains(&part) => plan.parts.push(arg),
                other => return Err(format!("{other}? There are {}, --seconds N, --events N", PARTS.join(", ")).into()),
            }
        }
        Ok(plan)
    }

    fn has(&self, part: &str) -> bool {
        self.parts.is_empty() || self.parts.iter().any(|chosen| chosen == part)
    }
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Outcome<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words[..] {
        [agent::WORD, count, ..] => return agent::run(count.parse()?),
        [stalled::WORD, seconds, idle] => return stalled::run(seconds.parse()?, idle.parse()?).await,
        [history::WORD, folder, events] => return history::fill(folder.as_ref(), events.parse()?).await,
        _ => {}
    }
    let plan = Plan::read(args.into_iter())?;
    if plan.has("fan-out") {
        fan_out::measure().await?;
    }
    if plan.has("latency") {
        latency::measure(plan.seconds).await?;
    }
    if plan.has("stalled") {
        stalled::measure(plan.seconds).await?;
    }
    if plan.has("history") {
        history::measure(plan.events).await?;
    }
    Ok(())
}

/// This program once more.
fn itself(args: &[&str], stdin: StdinMode) -> Outcome<Program> {
    let (program, args) = (std::env::current_exe()?, args.iter().map(Into::into).collect());
    Ok(Program { program, args, env: Vec::new(), env_remove: Vec::new(), cwd: None, stdin })
}

/// Runs it and gives what it printed: numbers, one a line.
async fn again<const N: usize>(args: [&str; N]) -> Outcome<Vec<u64>> {
    let mut child = spawn(itself(&args, StdinMode::Null)?, &Keeper::Group).await?;
    let mut told = Vec::new();
    while let Some(Line::Text(line)) = child.stdout.next().await? {
        told.push(line.trim().parse()?);
    }
    let exit = child.wait().await;
    if exit.success() { Ok(told) } else { Err(format!("{exit}: {}", exit.stderr_tail).into()) }
}
