//! Whose log it is when its process is gone.

use multitap_hub::{Filter, Journal as _, JournalError};

use crate::neighbour::Neighbour;
use crate::scene::{File, batch, begin, some};

#[tokio::test]
async fn a_log_is_taken_over_from_a_process_that_died() {
    let file = File::new();
    let neighbour = Neighbour::start(&file.path(), &["--hold", "theirs"]);
    let store = file.store();
    assert!(store.claim("theirs".into()).await.is_err());
    neighbour.kill();
    assert_eq!(store.find("theirs".to_owned()).await.unwrap()[0].live, None);
    let claim = store.claim("theirs".into()).await.unwrap();
    assert_eq!(claim.record.live.unwrap().pid, std::process::id());
    assert_eq!(claim.record.epoch, 1, "the machine did not go down: nothing is lost");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_dead_process_that_nobody_asked_after_is_dead() {
    let file = File::new();
    let mut neighbour = Neighbour::start(&file.path(), &["--hold", "theirs"]);
    let store = file.store();
    neighbour.kill_and_leave();
    store.claim("theirs".into()).await.unwrap();
}

#[tokio::test]
async fn what_a_dead_process_left_open_is_interrupted() {
    let file = File::new();
    let neighbour = Neighbour::start(&file.path(), &["open"]);
    let store = file.store();
    let interrupted = || Filter { interrupted: true, ..Filter::default() };
    let mut line = String::new();
    let mut neighbour = neighbour;
    std::io::BufRead::read_line(&mut neighbour.lines, &mut line).unwrap();
    assert!(line.starts_with("acked open "), "{line}");
    assert!(store.list(interrupted()).await.unwrap().is_empty(), "its process lives");
    neighbour.kill();
    assert_eq!(store.list(interrupted()).await.unwrap()[0].id.as_str(), "open");
}

/// Changes what a lease says, as if it had been written elsewhere.
fn tamper(file: &File, change: &str) {
    assert_eq!(file.sqlite().execute(&format!("UPDATE logs SET {change}"), []).unwrap(), 1);
}

#[tokio::test]
async fn the_epoch_changes_when_the_machine_went_down() {
    let file = File::new();
    let store = file.store();
    let claim = begin(&store).await;
    let id = &claim.record.id;
    store.append(batch(id, &claim.owner, some(id, 1..=2))).await.unwrap();
    tamper(&file, "boot = 'an earlier one'");
    let taken = store.claim(id.clone()).await.unwrap();
    assert_eq!((taken.record.epoch, taken.record.last_seq), (2, 2));
    let lost = store.append(batch(id, &claim.owner, some(id, 3..=3))).await.unwrap_err();
    assert_eq!(lost, JournalError::Lost(id.clone()));
    // Given back: whatever machine comes next, nothing is missing.
    store.release(id.clone(), taken.owner, 0).await.unwrap();
    assert_eq!(store.claim(id.clone()).await.unwrap().record.epoch, 2);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_pid_that_was_given_away_again_does_not_keep_a_log() {
    let file = File::new();
    let store = file.store();
    let claim = begin(&store).await;
    tamper(&file, "started = started - 1");
    store.claim(claim.record.id).await.unwrap();
}

#[tokio::test]
async fn out_of_sight_a_lease_counts_while_it_is_renewed() {
    let file = File::new();
    let store = file.store();
    let claim = begin(&store).await;
    let id = &claim.record.id;
    tamper(&file, "namespace = 'a container', pid = 4000000");
    assert!(matches!(store.claim(id.clone()).await.unwrap_err(), JournalError::LiveElsewhere { .. }));
    tamper(&file, "until = 1");
    let taken = store.claim(id.clone()).await.unwrap();
    assert_eq!(taken.record.epoch, 1);
}

#[tokio::test]
async fn a_store_that_goes_gives_back_what_it_had() {
    let file = File::new();
    let store = file.store();
    let claim = begin(&store).await;
    let id = &claim.record.id;
    store.append(batch(id, &claim.owner, some(id, 1..=2))).await.unwrap();
    store.close().await;
    let error = store.append(batch(id, &claim.owner, some(id, 3..=3))).await.unwrap_err();
    assert_eq!(error, JournalError::Other("the log was closed".to_owned()));
    let wal = file.path().with_extension("db-wal");
    assert!(std::fs::metadata(wal).map_or(0, |wal| wal.len()) == 0, "all of it is in the file");
    let next = file.store();
    let taken = next.claim(id.clone()).await.unwrap();
    assert_eq!((taken.record.last_seq, taken.record.epoch), (2, 1));
}
