//! One burst of events to many clients.

use std::time::Instant;

use multitap_hub::JoinFrom;
use tokio::task::JoinSet;

use crate::Outcome;
use crate::report::{cpu, heading, note};
use crate::stage::{Stage, read, text};

const CLIENTS: [usize; 4] = [1, 10, 100, 1000];
/// How many deliveries a burst makes, about.
const DELIVERIES: usize = 1_000_000;

pub(crate) async fn measure() -> Outcome<()> {
    heading("fan-out: a burst to clients in this process");
    for clients in CLIENTS {
        burst(clients).await?;
    }
    Ok(())
}

async fn burst(clients: usize) -> Outcome<()> {
    let folder = tempfile::tempdir()?;
    let stage = Stage::begin(folder.path()).await?;
    let events = (DELIVERIES / clients).clamp(1000, 20_000);
    let last = stage.session.last() + events as u64;
    let mut readers = JoinSet::new();
    for _ in 0..clients {
        let feed = stage.join(JoinFrom::Now, None).await?;
        readers.spawn(read(feed, last));
    }
    let (began, cpu_before) = (Instant::now(), cpu()?);
    for _ in 0..events {
        stage.tell(text()).await?;
    }
    while let Some(read) = readers.join_next().await {
        read??;
    }
    let (took, spent) = (began.elapsed(), cpu()?.saturating_sub(cpu_before));
    let deliveries = (events * clients) as f64;
    let rate = deliveries / took.as_secs_f64();
    let each = spent.as_secs_f64() * 1e6 / deliveries;
    note(&format!("{clients} clients, deliveries/s and CPU µs each"), &format!("{rate:.0}   {each:.2}"));
    stage.close().await;
    Ok(())
}
