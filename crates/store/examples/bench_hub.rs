//! What a kept session costs its clients, on this machine, now.
//!
//! `cargo run --release -p multitap-store --example bench_hub [-- SECONDS]` (10 unless told otherwise), or
//! `cargo xtask bench hub`. A hub over a real log, a scripted agent, clients in this process:
//!
//! - *Fan-out*: one burst of events to 1, 10, 100 and 1000 clients; deliveries a second, and CPU for each.
//! - *Latency*: 200 events a second, from the agent's end of the link to a client, each in the log on the way. Goal: p99
//!   under 2 ms.
//! - *A stalled client*: 31 that read and one that does not, at 5000 events a second. Goals: the 31 get all, the memory of
//!   the process grows by at most 4 MiB for the one, and it catches up without a gap.
//!
//! Goals, not gates: whatever the figures, it succeeds, unless an event is lost.

#![expect(clippy::print_stdout, reason = "what it measured")]

use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use multitap_event::{
    AgentEnd, AgentKind, AgentType, ClientRef, Door, Draft, EventKind, SessionConfig, SessionStart, TextChunk,
    Timestamp, link,
};
use multitap_hub::{Feed, FeedEnd, Hub, Join, JoinFrom, Launch, Launching, Open, STUCK, Session, Told};
use multitap_store::Store;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const CLIENTS: [usize; 4] = [1, 10, 100, 1000];
/// How many deliveries a burst makes, about.
const DELIVERIES: usize = 1_000_000;
const RATE: u64 = 200;
const HEALTHY: usize = 31;
const FLOOD: u64 = 5000;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Outcome<()> {
    let seconds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(10);
    println!("fan-out              deliveries/s   CPU µs each");
    for clients in CLIENTS {
        fan_out(clients).await?;
    }
    latency(seconds).await?;
    stalled(seconds).await
}

/// Starts one agent, whose other end is ours.
#[derive(Debug)]
struct Scripted {
    end: mpsc::Sender<AgentEnd>,
}

impl Launch for Scripted {
    fn launch(&self, _: SessionConfig) -> Launching {
        let ours = self.end.clone();
        Box::pin(async move {
            let (link, end) = link();
            let start = SessionStart {
                agent_type: AgentType::Builtin,
                config: None,
                native_session_id: Some("bench".into()),
                native_mode: None,
                agent_version: None,
                transport: None,
            };
            end.events.send(Draft::new(Timestamp::now(), EventKind::SessionStarted(start))).await.ok();
            ours.send(end).await.ok();
            Ok(link)
        })
    }

    fn all_gone(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async {})
    }
}

/// A session in a log of its own, and the agent's end of it.
struct Stage {
    session: Session,
    agent: AgentEnd,
    store: Arc<Store>,
    _folder: tempfile::TempDir,
}

impl Stage {
    async fn new() -> Outcome<Self> {
        let folder = tempfile::tempdir()?;
        let store = Arc::new(Store::open(folder.path().join("log.db"))?);
        let (end, mut ends) = mpsc::channel(1);
        let hub = Hub::new(store.clone(), Arc::new(Scripted { end }));
        let config = SessionConfig::new(AgentKind::Builtin);
        let session = hub.open(Open::new(config, ClientRef::new("bench", Door::Host))).await?;
        let agent = ends.recv().await.ok_or("no agent")?;
        Ok(Self { session, agent, store, _folder: folder })
    }

    async fn join(&self, from: JoinFrom, patience: Option<Duration>) -> Outcome<Feed> {
        let join = Join { patience, announce: false, ..Join::new(ClientRef::new("client", Door::A2a)).from(from) };
        Ok(self.session.join(join).await?.feed)
    }

    async fn tell(&self, bytes: usize) -> Outcome<()> {
        let content = "x".repeat(bytes);
        let chunk = TextChunk { content, is_partial: true, role: None, message_id: None, parent_tool_id: None };
        Ok(self.agent.events.send(Draft::new(Timestamp::now(), EventKind::TextChunk(chunk))).await?)
    }

    async fn close(self) {
        drop(self.agent);
        self.session.over().await;
        self.store.close().await;
    }
}

/// Reads until the event of that number; an error if one is missing on the way.
async fn read(mut feed: Feed, last: u64) -> Outcome<Feed> {
    while feed.last() < last {
        let before = feed.last();
        match feed.next().await {
            Some(Told::Event(entry)) if entry.seq() == before + 1 => {}
            other => return Err(format!("after {before}: {other:?}, {:?}", feed.end()).into()),
        }
    }
    Ok(feed)
}

async fn fan_out(clients: usize) -> Outcome<()> {
    let stage = Stage::new().await?;
    let events = (DELIVERIES / clients).clamp(1000, 20_000);
    let last = stage.session.last() + events as u64;
    let mut readers = JoinSet::new();
    for _ in 0..clients {
        let feed = stage.join(JoinFrom::Now, None).await?;
        readers.spawn(read(feed, last));
    }
    let (began, cpu) = (Instant::now(), cpu()?);
    for _ in 0..events {
        stage.tell(400).await?;
    }
    while let Some(read) = readers.join_next().await {
        read??;
    }
    let (took, spent) = (began.elapsed(), self::cpu()?.saturating_sub(cpu));
    let deliveries = (events * clients) as f64;
    let each = spent.as_secs_f64() * 1e6 / deliveries;
    println!("  {clients:>4} clients      {:>12.0}  {each:>12.2}", deliveries / took.as_secs_f64());
    stage.close().await;
    Ok(())
}

async fn latency(seconds: u64) -> Outcome<()> {
    let stage = Stage::new().await?;
    let mut feed = stage.join(JoinFrom::Now, None).await?;
    let (sent, mut times) = mpsc::channel(1024);
    let reader = async {
        let mut took = Vec::new();
        while let Some(sent) = times.recv().await {
            feed.next().await.ok_or("the feed ended")?;
            took.push(Instant::now().duration_since(sent));
        }
        Outcome::Ok(took)
    };
    let writer = async {
        let mut tick = interval(Duration::from_millis(1000 / RATE));
        for _ in 0..seconds * RATE {
            tick.tick().await;
            sent.send(Instant::now()).await?;
            stage.tell(400).await?;
        }
        drop(sent);
        Outcome::Ok(())
    };
    let (took, told) = tokio::join!(reader, writer);
    told?;
    let mut took = took?;
    took.sort_unstable();
    let part = |percent: usize| took[(took.len() - 1) * percent / 100].as_secs_f64() * 1e3;
    println!("latency, {RATE}/s        p50 {:.2} ms   p99 {:.2} ms   (goal: p99 under 2)", part(50), part(99));
    stage.close().await;
    Ok(())
}

async fn stalled(seconds: u64) -> Outcome<()> {
    let mut grown = Vec::new();
    for with_stalled in [false, true] {
        let stage = Stage::new().await?;
        let first = stage.session.last();
        let last = first + seconds * FLOOD;
        let mut readers = JoinSet::new();
        for _ in 0..HEALTHY {
            readers.spawn(read(stage.join(JoinFrom::Now, Some(STUCK)).await?, last));
        }
        let idle = if with_stalled { Some(stage.join(JoinFrom::Now, Some(STUCK)).await?) } else { None };
        // What the first second takes is there in both runs.
        let mut tick = interval(Duration::from_millis(10));
        tick.set_missed_tick_behavior(MissedTickBehavior::Burst);
        let mut before = 0;
        for round in 0..seconds * 100 {
            tick.tick().await;
            if round == 100 {
                before = memory()?;
            }
            for _ in 0..FLOOD / 100 {
                stage.tell(400).await?;
            }
        }
        while let Some(read) = readers.join_next().await {
            read??;
        }
        grown.push(memory()? as f64 - before as f64);
        if let Some(mut idle) = idle {
            // It reads what it had, and comes back for the rest if it was cut off.
            while let Some(Told::Event(_)) = idle.next().await {
                if idle.last() == last {
                    break;
                }
            }
            if let FeedEnd::CutOff { last: seen } = idle.end() {
                read(stage.join(JoinFrom::After { seq: seen, epoch: None }, None).await?, last).await?;
            }
        }
        sleep(Duration::from_millis(100)).await;
        stage.close().await;
    }
    let mib = (grown[1] - grown[0]) / 1024.0 / 1024.0;
    println!(
        "a stalled client     {mib:+.1} MiB beside {HEALTHY} that read at {FLOOD}/s   (goal: at most 4); none lost an event"
    );
    Ok(())
}

/// The processor time of this process so far.
fn cpu() -> Outcome<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks: u64 = fields[11].parse::<u64>()? + fields[12].parse::<u64>()?;
    Ok(Duration::from_millis(ticks * 10))
}

/// The memory of this process now, in bytes.
fn memory() -> Outcome<u64> {
    let pages = std::fs::read_to_string("/proc/self/statm")?;
    Ok(pages.split_whitespace().nth(1).unwrap_or_default().parse::<u64>()? * 4096)
}
