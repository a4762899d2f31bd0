//! What the doors cost, on this machine, now: `cargo xtask bench door [PART…]`.
//!
//! The door is a process of its own, over a hub with a real log and an agent that says as much as it is asked for; beside
//! it the least that could be done: a server that writes the same frames and keeps nothing.
//!
//! - `stream`: processor time for an event, streams a second and the time to the first event, at 10 and at 1000 events a
//!   stream, beside the least; and at 100 000 beside 1000.
//! - `instructions`: instructions for an event and for a stream, beside the least, as callgrind counts them.
//! - `peers`: the same streams from the servers of the official SDKs, where they are installed.
//! - `acp`: an ACP client of the session, beside an A2A stream.
//! - `fan-out`: one burst of events to 1 to 1000 web sockets, beside a server that writes each frame once and for all.
//! - `stalled`: a web socket that reads nothing, beside ten that do.
//! - `push`: a stream while a webhook is notified that never answers, beside none.
//! - `resume`: a client that comes back far behind in a log of a million events, after a restart.
//! - `after-load`: the memory of a door once readers that never read are gone.
//! - `idle`: from the start to the first card, and the memory of a door that nobody uses, and of each open stream.
//!
//! Goals, not gates: whatever the figures, it succeeds, unless a frame is lost.

#![expect(clippy::print_stdout, reason = "what it measured")]

mod client;
mod fan_out;
mod instructions;
mod least;
mod memory;
mod resume;
mod server;
mod stream;

use std::error::Error;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const PARTS: [&str; 10] =
    ["stream", "instructions", "peers", "acp", "fan-out", "stalled", "push", "resume", "after-load", "idle"];

/// The allocator of the product: how much of freed memory goes back to the system is its business.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Outcome<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.first().map(String::as_str) {
        Some(server::WORD) => return server::run(args.get(1).map(String::as_str)).await,
        Some(least::WORD) => return least::run().await,
        Some(least::SOCKETS) => return least::run_sockets().await,
        _ => {}
    }
    if let Some(unknown) = args.iter().find(|arg| !PARTS.contains(&arg.as_str())) {
        return Err(format!("{unknown}? There are {}", PARTS.join(", ")).into());
    }
    for part in PARTS {
        if !args.is_empty() && !args.iter().any(|arg| arg == part) {
            continue;
        }
        match part {
            "stream" => stream::streams().await?,
            "instructions" => instructions::instructions().await?,
            "peers" => stream::peers().await?,
            "acp" => stream::acp().await?,
            "fan-out" => fan_out::fan_out().await?,
            "stalled" => fan_out::stalled().await?,
            "push" => stream::push().await?,
            "resume" => resume::resume().await?,
            "after-load" => memory::after_load().await?,
            _ => memory::idle().await?,
        }
    }
    Ok(())
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / 1024.0 / 1024.0
}

/// A figure that has a goal.
fn row(what: &str, value: &str, goal: &str, met: bool) {
    println!("  {what:<48} {value:>26}   {goal:<12} {}", if met { "met" } else { "missed" });
}

/// A figure to know.
fn note(what: &str, value: &str) {
    println!("  {what:<48} {value:>26}");
}
