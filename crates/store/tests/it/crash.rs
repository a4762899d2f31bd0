//! `kill -9` at any moment loses nothing that was acknowledged.

use std::collections::BTreeMap;
use std::time::Duration;

use multitap_event::SessionId;
use multitap_hub::Journal as _;

use crate::neighbour::Neighbour;
use crate::scene::{File, all};

/// Rounds by default, and with `MULTITAP_SOAK` set.
const ROUNDS: u64 = 20;
const SOAK_ROUNDS: u64 = 200;

const SESSIONS: [&str; 3] = ["one", "two", "three"];

#[tokio::test]
async fn what_was_acknowledged_outlives_a_kill() {
    let file = File::new();
    let soak = std::env::var_os("MULTITAP_SOAK").is_some();
    let rounds = if soak { SOAK_ROUNDS } else { ROUNDS };
    let mut acked = BTreeMap::<String, u64>::new();
    let mut seed = u64::from(std::process::id());
    for round in 0..rounds {
        let neighbour = Neighbour::start(&file.path(), &SESSIONS);
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        std::thread::sleep(Duration::from_micros((seed >> 33) % 40_000));
        note(&mut acked, &neighbour.kill());
        let epochs = check(&file, &acked, round).await;
        assert_eq!(epochs, [1; SESSIONS.len()], "nothing was lost, so every place in the log is still good");
    }
    assert!(acked.values().sum::<u64>() > rounds, "too little was written to show anything: {acked:?}");
}

#[cfg(unix)]
#[tokio::test]
async fn a_write_that_fails_in_the_middle_leaves_the_log_whole() {
    let file = File::new();
    let mut acked = BTreeMap::new();
    let mut before = [1; SESSIONS.len()];
    for round in 0..4 {
        let neighbour = Neighbour::start_in_little_room(&file.path(), &SESSIONS, 500 + 300 * round);
        let (said, why) = neighbour.give_up();
        assert_eq!(why, "Error: Full\n");
        note(&mut acked, &said);
        let epochs = check(&file, &acked, u64::from(round)).await;
        assert!(epochs > before, "whoever goes on without the log uses numbers that are used again: {epochs:?}");
        before = epochs;
    }
    assert_eq!(file.notes(), [] as [String; 0], "the log itself says so now");
    assert!(acked.values().sum::<u64>() > 50, "too little was written to show anything: {acked:?}");
}

/// Takes down what was acknowledged. A line that was cut off was not told whole, so it was told to nobody.
fn note(acked: &mut BTreeMap<String, u64>, said: &str) {
    for line in said.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
        let words: Vec<&str> = line.split(' ').collect();
        let ["acked", session, seq] = words[..] else { panic!("{line}") };
        acked.insert(session.to_owned(), seq.parse().unwrap());
    }
}

/// All that was acknowledged is there. Tells the logs' epochs.
async fn check(file: &File, acked: &BTreeMap<String, u64>, round: u64) -> [u64; SESSIONS.len()] {
    let store = file.store();
    let mut epochs = [0; SESSIONS.len()];
    for (session, known) in SESSIONS.iter().zip(&mut epochs) {
        let (kept, epoch) = resume(&store, session).await;
        let told = acked.get(*session).copied().unwrap_or(0);
        assert!(kept >= told, "round {round}: {session} was acknowledged to {told}, kept to {kept}");
        *known = epoch;
    }
    store.close().await;
    epochs
}

/// The log is whole, and can be taken up. Tells how long it is, and its epoch.
async fn resume(store: &multitap_store::Store, session: &str) -> (u64, u64) {
    let id = SessionId::from(session);
    let claim = store.claim(id.clone()).await.unwrap();
    let entries = all(store, &id).await;
    for (seq, entry) in (1..).zip(&entries) {
        let event = entry.event().unwrap();
        assert_eq!((entry.seq(), event.seq, &event.session_id), (seq, seq, &id));
    }
    assert_eq!(claim.record.last_seq, entries.len() as u64);
    if let Some(checkpoint) = claim.checkpoint {
        assert!(checkpoint.seq <= claim.record.last_seq);
        assert_eq!(checkpoint.state, checkpoint.seq.to_string());
    }
    store.release(id, claim.owner, 0).await.unwrap();
    (claim.record.last_seq, claim.record.epoch)
}
