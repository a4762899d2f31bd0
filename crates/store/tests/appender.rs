//! Another process that has logs: it appends until it is ended.
//!
//! `appender FILE SESSION…` takes up those sessions, or begins them where they are not there, says `ready`, and appends
//! to all of them at once; each acknowledged batch is told as `acked SESSION SEQ`. `appender FILE --hold SESSION…` only
//! has them. It ends with its stdin.

use std::error::Error;
use std::io::{self, Write as _};
use std::sync::Arc;

use multitap_event::{AgentKind, Draft, EventKind, SessionId, Timestamp};
use multitap_hub::{About, Batch, Checkpoint, Claim, Entry, Flush, Journal, JournalError, NewSession};
use multitap_store::Store;
use tokio::task::JoinSet;

type Outcome = Result<(), Box<dyn Error + Send + Sync>>;

fn main() -> Outcome {
    let mut args = std::env::args().skip(1).peekable();
    let store = Store::open(args.next().ok_or("usage: appender FILE [--hold] SESSION…")?)?;
    let hold = args.next_if(|arg| arg == "--hold").is_some();
    let sessions: Vec<SessionId> = args.map(SessionId::from).collect();
    tokio::runtime::Builder::new_current_thread().build()?.block_on(serve(Arc::new(store), sessions, hold))
}

async fn serve(store: Arc<Store>, sessions: Vec<SessionId>, hold: bool) -> Outcome {
    let mut claims = Vec::new();
    for session in sessions {
        claims.push(take(&store, session).await?);
    }
    say("ready")?;
    let mut writing = JoinSet::new();
    if !hold {
        for (number, claim) in claims.into_iter().enumerate() {
            let seed = u64::from(std::process::id()) + number as u64;
            writing.spawn(append(Arc::clone(&store), claim, seed));
        }
    }
    // On a thread that nobody waits for: stdin may stay open when this ends for another reason.
    let (end, ended) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || end.send(io::copy(&mut io::stdin(), &mut io::sink())));
    writing.spawn(async move {
        ended.await??;
        Ok(())
    });
    // Whichever ends first: stdin, or somebody's trouble.
    let first = writing.join_next().await.ok_or("nothing to do")??;
    writing.shutdown().await;
    store.close().await;
    first
}

async fn take(store: &Store, session: SessionId) -> Result<Claim, JournalError> {
    let new = NewSession {
        id: session.clone(),
        agent: AgentKind::Codex,
        folder: None,
        created: Timestamp::now(),
        forked_from: None,
        config: serde_json::Map::new(),
    };
    match store.claim(session).await {
        Err(JournalError::NoSuchSession(_)) => store.create(new).await,
        other => other,
    }
}

async fn append(store: Arc<Store>, claim: Claim, mut seed: u64) -> Outcome {
    let id = claim.record.id;
    let mut seq = claim.record.last_seq;
    loop {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let count = (seed >> 33) % 8 + 1;
        let entries: Vec<Entry> = (seq + 1..=seq + count).map(|seq| entry(&id, seq)).collect();
        seq += count;
        let flush = if (seed >> 40).is_multiple_of(4) { Flush::Now } else { Flush::Soon };
        let checkpoint = (count == 8).then(|| Checkpoint { seq, state: seq.to_string() });
        let about = Some(About { open: true, ..About::default() });
        let (session, owner) = (id.clone(), claim.owner.clone());
        store.append(Batch { session, owner, entries, flush, checkpoint, about }).await?;
        say(&format!("acked {id} {seq}"))?;
    }
}

fn entry(session: &SessionId, seq: u64) -> Entry {
    let line = format!("{seq} ").repeat(1 + usize::try_from(seq % 200).unwrap_or(0));
    let kind = EventKind::Unrecognized { line, reason: "a test".to_owned(), bytes: None };
    Entry::new(Draft::new(Timestamp::now(), kind).stamp(session.clone(), seq))
}

fn say(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}
