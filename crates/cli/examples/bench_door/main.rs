//! What the doors cost, on this machine, now: `cargo xtask bench door [PART…]`.
//!
//! The door is a process of its own, over a hub with a real log and an agent that says as much as it is asked for; beside
//! it the least that could be done: a server that writes the same frames and keeps nothing.
//!
//! - `stream`: processor time for an event of a stream of 1000, beside the least; and of 100 000 beside 1000.
//! - `acp`: the same for an ACP client of the session, beside an A2A stream.
//! - `fan-out`: one burst of events to 1, 10 and 100 web sockets; deliveries a second, and processor time for each.
//! - `push`: processor time for an event of a stream while a webhook is notified that never answers, beside none.
//! - `after-load`: the memory of a door once readers that never read are gone.
//! - `idle`: from the start to the first card, and the memory of a door that nobody uses, and of each open stream.
//!
//! Goals, not gates: whatever the figures, it succeeds, unless a frame is lost.

#![expect(clippy::print_stdout, reason = "what it measured")]

mod client;
mod least;
mod server;

use std::error::Error;
use std::time::{Duration, Instant};

use tokio::net::TcpListener;
use tokio::task::JoinSet;

use self::client::{AcpClient, Server, Socket};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const PARTS: [&str; 6] = ["stream", "acp", "fan-out", "push", "after-load", "idle"];

/// The allocator of the product: how much of freed memory goes back to the system is its business.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Outcome<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.first().map(String::as_str) {
        Some(server::WORD) => return server::run().await,
        Some(least::WORD) => return least::run().await,
        _ => {}
    }
    if let Some(unknown) = args.iter().find(|arg| !PARTS.contains(&arg.as_str())) {
        return Err(format!("{unknown}? There are {}", PARTS.join(", ")).into());
    }
    let has = |part: &str| args.is_empty() || args.iter().any(|arg| arg == part);
    if has("stream") {
        stream().await?;
    }
    if has("acp") {
        acp().await?;
    }
    if has("fan-out") {
        fan_out().await?;
    }
    if has("push") {
        push().await?;
    }
    if has("after-load") {
        after_load().await?;
    }
    if has("idle") {
        idle().await?;
    }
    Ok(())
}

async fn stream() -> Outcome<()> {
    println!("stream: processor time of the server for an event");
    let (door, least) = (Server::start(server::WORD).await?, Server::start(least::WORD).await?);
    // The first few find their places in memory.
    cost(&door, 1000, 3).await?;
    cost(&least, 1000, 3).await?;
    let ours = cost(&door, 1000, 60).await?;
    let theirs = cost(&least, 1000, 60).await?;
    let long = cost(&door, 100_000, 2).await?;
    note("1000 events a stream, µs each", &format!("{ours:.1}"));
    note("the same from a server that keeps nothing", &format!("{theirs:.1}"));
    row("ours beside it", &format!("{:.2}x", ours / theirs), "<= 1.5x", ours <= 1.5 * theirs);
    row("100 000 events a stream beside 1000", &format!("{:.2}x", long / ours), "<= 1.1x", long <= 1.1 * ours);
    Ok(())
}

async fn acp() -> Outcome<()> {
    const EVENTS: usize = 1000;
    const PROMPTS: usize = 60;
    println!("acp: processor time of the server for an event");
    // Each on a door of its own: every client of a session is sent everything.
    let (door, other) = (Server::start(server::WORD).await?, Server::start(server::WORD).await?);
    cost(&door, EVENTS, 3).await?;
    let a2a = cost(&door, EVENTS, PROMPTS).await?;
    let mut client = AcpClient::open(&other).await?;
    for _ in 0..3 {
        client.prompt(EVENTS).await?;
    }
    let before = other.cpu()?;
    for _ in 0..PROMPTS {
        let told = client.prompt(EVENTS).await?;
        if told < EVENTS {
            return Err(format!("{told} of {EVENTS} events came").into());
        }
    }
    let acp = (other.cpu()? - before).as_secs_f64() * 1e6 / (EVENTS * PROMPTS) as f64;
    note("an A2A stream, µs each", &format!("{a2a:.1}"));
    note("an ACP client, µs each", &format!("{acp:.1}"));
    row("ACP beside A2A", &format!("{:.2}x", acp / a2a), "<= 1.0x", acp <= a2a);
    Ok(())
}

/// The processor time for an event, in microseconds.
async fn cost(server: &Server, events: usize, streams: usize) -> Outcome<f64> {
    let before = server.cpu()?;
    for _ in 0..streams {
        let told = server.stream(events).await?;
        if told < events {
            return Err(format!("{told} of {events} events came").into());
        }
    }
    Ok((server.cpu()? - before).as_secs_f64() * 1e6 / (events * streams) as f64)
}

async fn fan_out() -> Outcome<()> {
    println!("fan-out: a burst to WebSockets");
    for clients in [1, 10, 100] {
        let server = Server::start(server::WORD).await?;
        let events = 200_000 / clients.max(10);
        let mut sockets = Vec::new();
        for _ in 0..clients {
            sockets.push(Socket::open(&server).await?);
        }
        let (before, began) = (server.cpu()?, Instant::now());
        let told = server.stream(events);
        let mut readers: JoinSet<_> = sockets.into_iter().map(|socket| socket.read(events)).collect();
        told.await?;
        while let Some(read) = readers.join_next().await {
            read??;
        }
        let (took, spent) = (began.elapsed().as_secs_f64(), (server.cpu()? - before).as_secs_f64());
        let deliveries = (events * clients) as f64;
        let figures = format!("{:.0}   {:.2}", deliveries / took, spent * 1e6 / deliveries);
        note(&format!("{clients} clients, deliveries/s and CPU µs each"), &figures);
    }
    Ok(())
}

async fn push() -> Outcome<()> {
    println!("push: a webhook that never answers");
    let (plain, hooked) = (Server::start(server::WORD).await?, Server::start(server::WORD).await?);
    // The system accepts its connections, and nobody reads them.
    let silent = TcpListener::bind("127.0.0.1:0").await?;
    hooked.hook(&format!("http://{}/", silent.local_addr()?)).await?;
    for server in [&plain, &hooked] {
        cost(server, 1000, 3).await?;
    }
    // Alternately: the machine may become slower or faster meanwhile.
    let (mut without, mut with) = (0.0, 0.0);
    for _ in 0..10 {
        without += cost(&plain, 1000, 6).await? / 10.0;
        with += cost(&hooked, 1000, 6).await? / 10.0;
    }
    note("1000 events a stream, µs each", &format!("{without:.1}"));
    note("the same with it", &format!("{with:.1}"));
    row("with it, beside without", &format!("{:.2}x", with / without), "<= 1.05x", with <= 1.05 * without);
    Ok(())
}

async fn after_load() -> Outcome<()> {
    const READERS: usize = 700;
    println!("after-load: {READERS} readers that never read");
    let server = Server::start(server::WORD).await?;
    server.stream(1000).await?;
    let before = server.memory()?;
    let mut unread = Vec::new();
    for _ in 0..READERS {
        unread.push(server.subscribe().await?);
    }
    server.stream(20_000).await?;
    let during = server.memory()?;
    drop(unread);
    tokio::time::sleep(Duration::from_secs(15)).await;
    let left = server.memory()?.saturating_sub(before);
    note("memory while they are there", &format!("{:.1} MiB", mib(during)));
    row("memory that stays when they are gone", &format!("{:.1} MiB", mib(left)), "<= 32 MiB", mib(left) <= 32.0);
    Ok(())
}

async fn idle() -> Outcome<()> {
    println!("idle: a door that nobody uses");
    let mut times = Vec::new();
    for _ in 0..5 {
        let began = Instant::now();
        let server = Server::start(server::WORD).await?;
        server.card().await?;
        times.push(began.elapsed());
    }
    times.sort();
    let start = times[times.len() / 2];
    row(
        "start to the first card",
        &format!("{:.1} ms", start.as_secs_f64() * 1e3),
        "<= 15 ms",
        start <= Duration::from_millis(15),
    );
    let server = Server::start(server::WORD).await?;
    server.card().await?;
    let empty = server.memory()?;
    row("memory", &format!("{:.1} MiB", mib(empty)), "<= 12 MiB", mib(empty) <= 12.0);
    server.stream(10).await?;
    let before = server.memory()?;
    let mut open = Vec::new();
    for _ in 0..200 {
        open.push(server.subscribe().await?);
    }
    let each = (server.memory()?.saturating_sub(before)) as f64 / open.len() as f64 / 1024.0;
    row("memory of an open stream", &format!("{each:.1} KiB"), "<= 30 KiB", each <= 30.0);
    Ok(())
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / 1024.0 / 1024.0
}

/// A figure that has a goal.
fn row(what: &str, value: &str, goal: &str, met: bool) {
    println!("  {what:<44} {value:>22}   {goal:<12} {}", if met { "met" } else { "missed" });
}

/// A figure to know.
fn note(what: &str, value: &str) {
    println!("  {what:<44} {value:>22}");
}
