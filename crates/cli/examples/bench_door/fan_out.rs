//! One session, many web sockets.

use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use crate::client::{Server, Socket};
use crate::{Outcome, least, mib, note, row, server};

/// A burst to some number of clients.
struct Burst {
    /// Deliveries a second.
    rate: f64,
    /// Processor time for one of them, in microseconds.
    each: f64,
    /// Memory that the clients cost, in KiB for each.
    memory: f64,
}

impl Burst {
    async fn of(word: &str, clients: usize, events: usize) -> Outcome<Self> {
        let server = Server::start(word).await?;
        server.stream(10).await?;
        let resting = server.memory()?;
        let mut sockets = Vec::new();
        for _ in 0..clients {
            sockets.push(Socket::open(&server).await?);
        }
        let (before, began) = (server.cpu()?, Instant::now());
        let stream = server.stream(events);
        let mut readers: JoinSet<_> = sockets.into_iter().map(|socket| socket.read(events)).collect();
        stream.await?;
        while let Some(read) = readers.join_next().await {
            read??;
        }
        let (took, spent) = (began.elapsed().as_secs_f64(), (server.cpu()? - before).as_secs_f64());
        let deliveries = (events * clients) as f64;
        let memory = server.memory()?.saturating_sub(resting) as f64 / clients as f64 / 1024.0;
        Ok(Self { rate: deliveries / took, each: spent * 1e6 / deliveries, memory })
    }
}

pub(crate) async fn fan_out() -> Outcome<()> {
    println!("fan-out: a burst to web sockets");
    for clients in [1, 10, 100, 1000] {
        let events = 200_000 / clients.max(10);
        let ours = Burst::of(server::WORD, clients, events).await?;
        let least = Burst::of(least::SOCKETS, clients, events).await?;
        let shown = |burst: &Burst| format!("{:.0}   {:.2}", burst.rate, burst.each);
        note(&format!("{clients} clients, deliveries/s and CPU µs each"), &shown(&ours));
        note("  from a server that writes frames once", &shown(&least));
        let ratio = ours.each / least.each;
        row("  ours beside it, CPU", &format!("{ratio:.1}x"), "<= 2x", ratio <= 2.0);
        if clients >= 100 {
            row("  memory for each", &format!("{:.1} KiB", ours.memory), "<= 25 KiB", ours.memory <= 25.0);
        }
    }
    Ok(())
}

/// Ten sockets that read, and one that does not.
pub(crate) async fn stalled() -> Outcome<()> {
    const READERS: usize = 10;
    const EVENTS: usize = 60_000;
    println!("stalled: {READERS} web sockets that read {EVENTS} events, and one that reads none");
    let mut peaks = Vec::new();
    for idle in [0, 1] {
        let server = Server::start(server::WORD).await?;
        server.stream(1000).await?;
        let mut sockets = Vec::new();
        for _ in 0..READERS {
            sockets.push(Socket::open(&server).await?);
        }
        let mut unread = Vec::new();
        for _ in 0..idle {
            unread.push(Socket::open(&server).await?);
        }
        let mut readers: JoinSet<_> = sockets.into_iter().map(|socket| socket.read(EVENTS)).collect();
        server.stream(EVENTS).await?;
        // Each of them got everything, or this fails.
        while let Some(read) = readers.join_next().await {
            read??;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        peaks.push(server.most_memory()?);
    }
    let added = mib(peaks[1].saturating_sub(peaks[0]));
    note("memory at most, without it and with it", &format!("{:.1}, {:.1} MiB", mib(peaks[0]), mib(peaks[1])));
    row("memory that it adds", &format!("{added:.1} MiB"), "<= 4 MiB", added <= 4.0);
    Ok(())
}
