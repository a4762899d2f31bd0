//! Whatever is appended in whatever pieces, is read back in whatever pieces.

use std::sync::Arc;

use multitap_event::SessionId;
use multitap_hub::{Batch, Edge, Entry, Flush, Journal, Part};
use proptest::prelude::*;
use tokio::task::JoinSet;

use crate::scene::{File, Place as _, batch, begin, said};

/// One step of a script.
#[derive(Debug, Clone)]
struct Step {
    session: usize,
    texts: Vec<String>,
    flush: Flush,
}

fn step() -> impl Strategy<Value = Step> {
    let texts = prop::collection::vec(".{0,60}", 1..12);
    (0..4_usize, texts, prop_oneof![9 => Just(Flush::Soon), 1 => Just(Flush::Now)])
        .prop_map(|(session, texts, flush)| Step { session, texts, flush })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn logs_come_back_as_they_were_written(
        script in prop::collection::vec(step(), 0..30),
        limits in prop::collection::vec((1..9_usize, 1..4_000_usize), 1..6),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(check(script, &limits))?;
    }
}

/// Each session writes in its own time; all of them at once.
async fn check(script: Vec<Step>, limits: &[(usize, usize)]) -> Result<(), TestCaseError> {
    let file = File::new();
    let journal = file.open();
    let mut writing = JoinSet::new();
    for session in 0..4 {
        let steps: Vec<Step> = script.iter().filter(|step| step.session == session).cloned().collect();
        let claim = begin(&*journal).await;
        let journal = Arc::clone(&journal);
        writing.spawn(async move {
            let id = claim.record.id;
            let mut written = Vec::new();
            for Step { texts, flush, .. } in steps {
                let first = written.len() as u64 + 1;
                let entries: Vec<_> = (first..).zip(&texts).map(|(seq, text)| said(&id, seq, text)).collect();
                written.extend(entries.iter().cloned());
                journal.append(Batch { flush, ..batch(&id, &claim.owner, entries) }).await.unwrap();
            }
            (id, written)
        });
    }
    while let Some(done) = writing.join_next().await {
        let (id, written) = done.unwrap();
        prop_assert_eq!(&forward(&*journal, &id, limits).await, &written);
        prop_assert_eq!(&backward(&*journal, &id, limits).await, &written);
    }
    Ok(())
}

async fn forward(journal: &dyn Journal, id: &SessionId, limits: &[(usize, usize)]) -> Vec<Entry> {
    let mut read: Vec<Entry> = Vec::new();
    for &(limit, bytes) in limits.iter().cycle() {
        let edge = Edge::After(read.last().map_or(0, Entry::seq));
        let page = journal.page(id.clone(), Part { edge, limit, bytes }).await.unwrap();
        if page.entries.is_empty() {
            assert_eq!(page.last_seq, read.len() as u64);
            break;
        }
        read.extend(page.entries);
    }
    read
}

async fn backward(journal: &dyn Journal, id: &SessionId, limits: &[(usize, usize)]) -> Vec<Entry> {
    let mut read: Vec<Entry> = Vec::new();
    for &(limit, bytes) in limits.iter().cycle() {
        let edge = Edge::Before(read.first().map_or(u64::MAX, Entry::seq));
        let page = journal.page(id.clone(), Part { edge, limit, bytes }).await.unwrap();
        if page.entries.is_empty() {
            break;
        }
        read.splice(0..0, page.entries);
    }
    read
}
