//! What the log costs, on this machine, now.
//!
//! `cargo xtask bench log [EVENTS [ROUNDS]]` (a million events and 12 rounds
//! unless told otherwise; about 1 GB beside the system's other temporary files). Three questions:
//!
//! - *Flat in history*: does the millionth event cost what the ten-thousandth did, to append and to read?
//! - *Opening*: how long until a program that starts has the last page of a long log, after a clean end and after a
//!   crash?
//! - *Durable before acknowledged*: 64 producers, each with a session of its own, each waiting for the disk before it
//!   goes on; against a plain file that 64 producers append to and that is flushed once for all who wait. The two take
//!   turns in short rounds, since a shared machine is never the same twice; what counts is their ratio.
//!
//! # What was chosen by measuring
//!
//! One row an event, its id the global order, with an index on session and number. In November 2026 on two shared cores
//! (580 bytes an event, 16 sessions in turn, `NORMAL`, microseconds of CPU; two runs):
//!
//! | batch | append, row an event | append, row a batch | last 100, row an event | last 100, row a batch |
//! |---|---|---|---|---|
//! | 1 | 23.8 / 22.9 | 19.2 / 22.6 | 85 / 79 | 87 / 98 |
//! | 16 | 5.5 / 5.2 | 3.3 / 3.3 | 34 / 58 | 31 / 36 |
//! | 256 | 3.7 / 3.9 | 1.9 / 2.0 | 48 / 58 | 66 / 72 |
//!
//! A row a batch halves the append where batches are large, which they are only when history is imported; live, an agent
//! says one thing at a time and the two are the same. A row an event keeps every question to the log a plain one.
//!
//! With 64 sessions at once, medians of 12 rounds on the same cores, which others kept busy: rows ordered by session
//! instead of an index (`session << 32 | seq` as the row id) made 12 500 events/s where the index made 15 600. Flushing
//! on a thread of its own while the next group is written made 15 600 where flushing in line made 24 200. Flushing 64 KiB
//! took 0.25 ms by `fdatasync` and 0.29 by `fsync` at the end of a file, 0.09 and 0.14 within it, as in a write-ahead log
//! that is used again (the best of 12 medians each); so SQLite is built to call the first (`.cargo/config.toml`).
//!
//! What this program said there, three runs under heavy load (one of them of 300 000 events): append and pages at the
//! end 0.8 to 1.7 times what they cost at ten thousand (the spread is the machine's: in the quietest run 0.84 and 0.99);
//! open to the last page in 1.4 to 11 ms, after a crash in 4 to 48 ms; durable before acknowledged 0.68 to 1.02 of the
//! plain file's events/s, p50 1.0 to 4.4 times, p99 0.9 to 1.3 times its. The quieter the machine, the further the file is
//! ahead: at a load of 3 to 4, six runs, events/s 0.47 to 0.79 of its (mostly 0.5), p50 1.6 to 2.3 times, p99 1.5 to 3.0.
//! Counted by `strace`: some 52 writes for each flush, the keeper's among them, where the file has one. Likely why: a
//! commit of many sessions changes a leaf of the index for each, and SQLite writes a page with two calls. Not tried yet:
//! fewer pages a commit.

#![expect(clippy::print_stdout, reason = "what it measured")]

use std::error::Error;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use multitap_event::{AgentKind, Draft, EventKind, SessionId, Timestamp};
use multitap_hub::{Batch, Claim, Edge, Entry, Flush, Journal as _, NewSession, Part};
use multitap_store::Store;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const PRODUCERS: usize = 64;
const ROUND: Duration = Duration::from_millis(400);
const SHORT_LOG: u64 = 10_000;
const PAGE: usize = 100;

#[tokio::main]
async fn main() -> Outcome<()> {
    let mut args = std::env::args().skip(1);
    let events = args.next().map_or(Ok(1_000_000), |text| text.parse())?;
    let rounds = args.next().map_or(Ok(12), |text| text.parse())?;
    history(events).await?;
    durable(rounds).await
}

/// Costs at the two ends of a long log, then opening it.
async fn history(events: u64) -> Outcome<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("log.db");
    let store = Store::open(&path)?;
    let mut claim = begin(&store).await?;
    grow(&store, &mut claim, SHORT_LOG).await?;
    let short = costs(&store, &mut claim).await?;
    let filling = Instant::now();
    let from = claim.record.last_seq;
    grow(&store, &mut claim, events).await?;
    let rate = (claim.record.last_seq - from) as f64 / filling.elapsed().as_secs_f64();
    let long = costs(&store, &mut claim).await?;
    println!("flat in history       at {SHORT_LOG:>9}   at {events:>9}   ratio");
    for (what, short, long) in [
        ("append, µs an event", short.append, long.append),
        ("last page, µs", short.last_page, long.last_page),
        ("any page, µs", short.any_page, long.any_page),
    ] {
        println!("{what:<20} {short:>13.1} {long:>14.1} {:>7.2}", long / short);
    }
    println!("filling, batches of 256: {rate:.0} events/s\n");
    // As a crash would leave it: copied while it is open, and while nothing moves in it.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let crashed = folder.path().join("crashed.db");
    std::fs::copy(&path, &crashed)?;
    std::fs::copy(path.with_extension("db-wal"), crashed.with_extension("db-wal"))?;
    store.close().await;
    drop(store);
    println!("opening to the last {PAGE} of {events}: {:.1} ms clean", open(&path, &claim).await?);
    println!("opening to the last {PAGE} of {events}: {:.1} ms after a crash\n", open(&crashed, &claim).await?);
    Ok(())
}

struct Costs {
    append: f64,
    last_page: f64,
    any_page: f64,
}

/// Medians, in microseconds.
async fn costs(store: &Store, claim: &mut Claim) -> Outcome<Costs> {
    let mut append = Vec::new();
    for _ in 0..500 {
        let batch = batch(claim, 16, Flush::Soon);
        let start = Instant::now();
        store.append(batch).await?;
        append.push(micros(start) / 16.0);
    }
    let (mut last_page, mut any_page) = (Vec::new(), Vec::new());
    let mut seed = 7_u64;
    for _ in 0..500 {
        let edge = Edge::Before(u64::MAX);
        let start = Instant::now();
        page(store, claim, edge).await?;
        last_page.push(micros(start));
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let edge = Edge::After((seed >> 33) % (claim.record.last_seq - PAGE as u64));
        let start = Instant::now();
        page(store, claim, edge).await?;
        any_page.push(micros(start));
    }
    Ok(Costs { append: median(append), last_page: median(last_page), any_page: median(any_page) })
}

async fn grow(store: &Store, claim: &mut Claim, to: u64) -> Outcome<()> {
    while claim.record.last_seq < to {
        store.append(batch(claim, 256, Flush::Soon)).await?;
    }
    Ok(())
}

async fn open(path: &Path, claim: &Claim) -> Outcome<f64> {
    let start = Instant::now();
    let store = Store::open(path)?;
    page(&store, claim, Edge::Before(u64::MAX)).await?;
    let took = micros(start) / 1e3;
    store.close().await;
    Ok(took)
}

async fn page(store: &Store, claim: &Claim, edge: Edge) -> Outcome<()> {
    let part = Part { edge, limit: PAGE, bytes: usize::MAX };
    let page = store.page(claim.record.id.clone(), part).await?;
    if page.entries.len() == PAGE { Ok(()) } else { Err("the page is not full".into()) }
}

/// What producers saw in one round.
struct Round {
    rate: f64,
    p50: f64,
    p99: f64,
}

async fn durable(rounds: usize) -> Outcome<()> {
    let folder = tempfile::tempdir()?;
    let (mut ours, mut plain) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        plain.push(plain_file(&folder.path().join(format!("plain-{round}"))).await?);
        ours.push(through_store(&folder.path().join(format!("log-{round}.db"))).await?);
    }
    println!("durable before acknowledged, {PRODUCERS} producers, medians of {rounds} rounds");
    println!("                      events/s   p50 ms   p99 ms");
    let column = |rounds: &[Round], of: fn(&Round) -> f64| median(rounds.iter().map(of).collect());
    let row = |rounds: &[Round]| [column(rounds, |r| r.rate), column(rounds, |r| r.p50), column(rounds, |r| r.p99)];
    for (what, [rate, p50, p99]) in [("file and fdatasync", row(&plain)), ("store", row(&ours))] {
        println!("{what:<20} {rate:>9.0} {p50:>8.2} {p99:>8.2}");
    }
    let ratio = |of: fn(&Round) -> f64| median(ours.iter().zip(&plain).map(|(a, b)| of(a) / of(b)).collect());
    let (rate, p50, p99) = (ratio(|r| r.rate), ratio(|r| r.p50), ratio(|r| r.p99));
    println!("ratio, round by round {rate:>8.2} {p50:>8.2} {p99:>8.2}");
    println!("goal                  >=  0.70 <=  1.50 <=  2.00");
    let met = |met: bool| if met { "met" } else { "missed" };
    println!("{:>30} {:>8} {:>8}", met(rate >= 0.7), met(p50 <= 1.5), met(p99 <= 2.0));
    Ok(())
}

async fn through_store(path: &Path) -> Outcome<Round> {
    let store = Arc::new(Store::open(path)?);
    let mut producers = JoinSet::new();
    let mut claims = Vec::new();
    for _ in 0..PRODUCERS {
        claims.push(begin(&store).await?);
    }
    let end = Instant::now() + ROUND;
    for mut claim in claims {
        let store = Arc::clone(&store);
        producers.spawn(async move {
            let mut waited = Vec::new();
            while Instant::now() < end {
                let batch = batch(&mut claim, 1, Flush::Now);
                let start = Instant::now();
                store.append(batch).await?;
                waited.push(micros(start) / 1e3);
            }
            Outcome::Ok(waited)
        });
    }
    let round = gather(producers).await?;
    store.close().await;
    Ok(round)
}

/// The same with no database: lines to a file, one flush for all who wait.
async fn plain_file(path: &Path) -> Outcome<Round> {
    let (tx, mut queue) = mpsc::channel::<(Entry, oneshot::Sender<()>)>(1024);
    let mut file = File::create(path)?;
    let writer = std::thread::spawn(move || -> std::io::Result<()> {
        let (mut group, mut lines) = (Vec::new(), Vec::new());
        while queue.blocking_recv_many(&mut group, 1024) > 0 {
            lines.clear();
            for (entry, _) in &group {
                lines.extend_from_slice(entry.json().as_bytes());
                lines.push(b'\n');
            }
            file.write_all(&lines)?;
            file.sync_data()?;
            for (_, reply) in group.drain(..) {
                // A producer whose time is up does not wait.
                reply.send(()).ok();
            }
        }
        Ok(())
    });
    let mut producers = JoinSet::new();
    let end = Instant::now() + ROUND;
    for _ in 0..PRODUCERS {
        let tx = tx.clone();
        producers.spawn(async move {
            let id = SessionId::fresh();
            let mut waited = Vec::new();
            for seq in 1.. {
                if Instant::now() >= end {
                    break;
                }
                let entry = entry(&id, seq);
                let start = Instant::now();
                let (reply, written) = oneshot::channel();
                tx.send((entry, reply)).await?;
                written.await?;
                waited.push(micros(start) / 1e3);
            }
            Outcome::Ok(waited)
        });
    }
    drop(tx);
    let round = gather(producers).await?;
    writer.join().map_err(|_| "the writer panicked")??;
    Ok(round)
}

async fn gather(mut producers: JoinSet<Outcome<Vec<f64>>>) -> Outcome<Round> {
    let start = Instant::now();
    let mut waited = Vec::new();
    while let Some(one) = producers.join_next().await {
        waited.extend(one??);
    }
    let rate = waited.len() as f64 / start.elapsed().as_secs_f64();
    waited.sort_by(f64::total_cmp);
    let at = |part: f64| waited.get((waited.len() as f64 * part) as usize).copied().unwrap_or_default();
    Ok(Round { rate, p50: at(0.5), p99: at(0.99) })
}

async fn begin(store: &Store) -> Outcome<Claim> {
    let new = NewSession {
        id: SessionId::fresh(),
        agent: AgentKind::Claude,
        folder: Some("/work".into()),
        created: Timestamp::now(),
        forked_from: None,
        config: serde_json::Map::new(),
    };
    Ok(store.create(new).await?)
}

/// The next so many entries of a log; the claim keeps count.
fn batch(claim: &mut Claim, count: u64, flush: Flush) -> Batch {
    let first = claim.record.last_seq + 1;
    claim.record.last_seq += count;
    let session = claim.record.id.clone();
    let entries = (first..first + count).map(|seq| entry(&session, seq)).collect();
    Batch { session, owner: claim.owner.clone(), entries, flush, checkpoint: None, about: None }
}

/// Some 600 bytes, as an event of a tool is.
fn entry(session: &SessionId, seq: u64) -> Entry {
    let kind = EventKind::Unrecognized { line: "0123456789".repeat(40), reason: "a bench".into(), bytes: None };
    Entry::new(Draft::new(Timestamp::now(), kind).stamp(session.clone(), seq))
}

fn micros(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e6
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}
