//! The memory of a door, and how soon it is there.

use std::time::{Duration, Instant};

use crate::client::Server;
use crate::{Outcome, mib, note, row, server};

pub(crate) async fn after_load() -> Outcome<()> {
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

pub(crate) async fn idle() -> Outcome<()> {
    const STREAMS: usize = 1000;
    println!("idle: a door that nobody uses");
    let mut times = Vec::new();
    for _ in 0..9 {
        let began = Instant::now();
        let server = Server::start(server::WORD).await?;
        server.card().await?;
        times.push(began.elapsed());
    }
    times.sort();
    let start = times[times.len() / 2];
    let millis = start.as_secs_f64() * 1e3;
    row("start to the first card", &format!("{millis:.1} ms"), "<= 15 ms", start <= Duration::from_millis(15));
    let server = Server::start(server::WORD).await?;
    server.card().await?;
    let empty = server.memory()?;
    row("memory", &format!("{:.1} MiB", mib(empty)), "<= 12 MiB", mib(empty) <= 12.0);
    server.stream(10).await?;
    let before = server.memory()?;
    let mut open = Vec::new();
    for _ in 0..STREAMS {
        open.push(server.subscribe().await?);
    }
    let each = (server.memory()?.saturating_sub(before)) as f64 / open.len() as f64 / 1024.0;
    row("memory of an open stream, of 1000", &format!("{each:.1} KiB"), "<= 30 KiB", each <= 30.0);
    Ok(())
}
