//! Files that cannot be used, and what is said of them.

use std::fs;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::time::Duration;

use multitap_hub::{Filter, Flush, Journal as _, JournalError};
use multitap_store::{Store, StoreLimits};

use crate::scene::{File, Place as _, after, all, batch, begin, said, some};

#[cfg(unix)]
#[tokio::test]
async fn the_log_is_for_its_user_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let file = File::new();
    let store = file.store();
    begin(&store).await;
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(file.path().parent().unwrap()), 0o700);
    for entry in fs::read_dir(file.path().parent().unwrap()).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
}

#[tokio::test]
async fn a_full_disk_is_said_so_and_passes() {
    let file = File::new();
    let store = Store::open_within(file.path(), StoreLimits { bytes: Some(400_000) }).unwrap();
    let (claim, other) = (begin(&store).await, begin(&store).await);
    let id = &claim.record.id;
    let mut kept = 0;
    let error = loop {
        let entries = (kept + 1..=kept + 20).map(|seq| said(id, seq, &"x".repeat(1000))).collect();
        match store.append(batch(id, &claim.owner, entries)).await {
            Ok(()) => kept += 20,
            Err(error) => break error,
        }
        assert!(kept < 1000, "the limit does not hold");
    };
    assert_eq!(error, JournalError::Full);
    assert!(kept > 100);
    assert_eq!(all(&store, id).await.len() as u64, kept, "nothing of a batch that failed is there");
    // It can be tried again, and fails again.
    let entries: Vec<_> = (kept + 1..=kept + 20).map(|seq| said(id, seq, &"x".repeat(1000))).collect();
    let again = store.append(batch(id, &claim.owner, entries.clone())).await;
    assert_eq!(again.unwrap_err(), JournalError::Full);
    // There is room again: it goes on where it stopped.
    let other_id = other.record.id;
    store.release(other_id.clone(), other.owner, 0).await.unwrap();
    store.close().await;
    let store = file.store();
    let taken = store.claim(id.clone()).await.unwrap();
    assert_eq!(taken.record.last_seq, kept);
    store.append(batch(id, &taken.owner, entries)).await.unwrap();
    assert_eq!(all(&store, id).await.len() as u64, kept + 20);
}

#[tokio::test]
async fn one_that_finds_no_room_does_not_hurt_those_beside_it() {
    let file = File::new();
    let store = Store::open_within(file.path(), StoreLimits { bytes: Some(300_000) }).unwrap();
    let (large, small) = (begin(&store).await, begin(&store).await);
    let (large_id, small_id) = (&large.record.id, &small.record.id);
    for round in 1..=10 {
        let too_much = batch(large_id, &large.owner, vec![said(large_id, 1, &"x".repeat(1_000_000))]);
        let little = batch(small_id, &small.owner, some(small_id, round..=round));
        let (one, other) = tokio::join!(store.append(too_much), store.append(little));
        assert_eq!(one.unwrap_err(), JournalError::Full);
        other.unwrap();
    }
    assert_eq!(all(&store, small_id).await.len(), 10);
    assert_eq!(all(&store, large_id).await, []);
}

#[tokio::test]
async fn a_locked_file_is_said_so_and_passes() {
    let file = File::new();
    let store = file.store();
    let claim = begin(&store).await;
    let id = &claim.record.id;
    let locker = file.sqlite();
    locker.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let error = store.append(batch(id, &claim.owner, some(id, 1..=1))).await.unwrap_err();
    assert_eq!(error, JournalError::Locked);
    assert_eq!(all(&store, id).await, [], "reading goes on");
    locker.execute_batch("ROLLBACK").unwrap();
    store.append(batch(id, &claim.owner, some(id, 1..=1))).await.unwrap();
    assert_eq!(all(&store, id).await.len(), 1);
}

/// A log that could not be written to the end, however its process came to an end.
#[tokio::test]
async fn what_was_told_and_not_kept_is_another_epoch() {
    for killed in [false, true] {
        let file = File::new();
        let store = file.store();
        let claim = begin(&store).await;
        let id = &claim.record.id;
        store.append(batch(id, &claim.owner, some(id, 1..=2))).await.unwrap();
        let locker = file.sqlite();
        locker.execute_batch("BEGIN EXCLUSIVE").unwrap();
        let error = store.append(batch(id, &claim.owner, some(id, 3..=9))).await.unwrap_err();
        assert_eq!(error, JournalError::Locked);
        assert_eq!(file.notes(), [format!("log.db-unkept-{}", claim.owner.0)], "noted before anybody hears of it");
        locker.execute_batch("ROLLBACK").unwrap();
        if killed {
            // As if this process were another one now.
            file.sqlite().execute("UPDATE logs SET pid = 4000000", []).unwrap();
        } else {
            store.close().await;
        }
        let next = file.store();
        let taken = next.claim(id.clone()).await.unwrap();
        assert_eq!((taken.record.last_seq, taken.record.epoch), (2, 2), "killed: {killed}");
        assert_eq!(file.notes(), [] as [String; 0], "killed: {killed}");
        next.release(id.clone(), taken.owner, 2).await.unwrap();
        assert_eq!(next.claim(id.clone()).await.unwrap().record.epoch, 2, "once is enough");
    }
}

/// It could not be written for a while, and then it was.
#[tokio::test]
async fn what_was_kept_in_the_end_is_no_other_epoch() {
    let file = File::new();
    let store = file.store();
    let claim = begin(&store).await;
    let id = &claim.record.id;
    let locker = file.sqlite();
    locker.execute_batch("BEGIN EXCLUSIVE").unwrap();
    store.append(batch(id, &claim.owner, some(id, 1..=3))).await.unwrap_err();
    locker.execute_batch("ROLLBACK").unwrap();
    store.append(batch(id, &claim.owner, some(id, 1..=4))).await.unwrap();
    store.release(id.clone(), claim.owner, 4).await.unwrap();
    assert_eq!(file.notes(), [] as [String; 0]);
    assert_eq!(store.claim(id.clone()).await.unwrap().record.epoch, 1);
}

/// Nobody has the session any more, only that could not be written.
#[tokio::test]
async fn a_log_that_could_not_be_given_back_can_be_taken_up_again() {
    let file = File::new();
    let store = file.store();
    let claim = begin(&store).await;
    let id = &claim.record.id;
    store.append(batch(id, &claim.owner, some(id, 1..=2))).await.unwrap();
    let locker = file.sqlite();
    locker.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let error = store.release(id.clone(), claim.owner.clone(), 5).await.unwrap_err();
    assert_eq!(error, JournalError::Locked);
    locker.execute_batch("ROLLBACK").unwrap();
    let taken = store.claim(id.clone()).await.unwrap();
    assert_eq!((taken.record.last_seq, taken.record.epoch), (2, 2));
    assert_eq!(store.claim(id.clone()).await.unwrap_err(), JournalError::LiveHere(id.clone()));
    store.append(batch(id, &taken.owner, some(id, 3..=3))).await.unwrap();
}

#[tokio::test]
async fn a_short_lock_is_waited_for() {
    let file = File::new();
    let store = file.store();
    let claim = begin(&store).await;
    let id = &claim.record.id;
    let locker = file.sqlite();
    locker.execute_batch("BEGIN IMMEDIATE").unwrap();
    let release = tokio::task::spawn_blocking(move || {
        std::thread::sleep(Duration::from_millis(300));
        locker.execute_batch("ROLLBACK").unwrap();
    });
    store.append(batch(id, &claim.owner, some(id, 1..=1))).await.unwrap();
    release.await.unwrap();
}

#[tokio::test]
async fn a_file_that_another_program_has_for_itself_is_locked() {
    let file = File::new();
    file.store().close().await;
    let locker = file.sqlite();
    locker.execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE").unwrap();
    let error = Store::open(file.path()).unwrap_err();
    assert_eq!(error, JournalError::Locked);
}

#[test]
fn a_file_that_is_no_database_is_damaged() {
    let file = File::new();
    fs::create_dir_all(file.path().parent().unwrap()).unwrap();
    fs::write(file.path(), "once upon a time ".repeat(1000)).unwrap();
    let error = Store::open(file.path()).unwrap_err();
    let JournalError::Damaged(why) = &error else { panic!("{error:?}") };
    assert_eq!(*why, format!("{}: file is not a database", file.path().display()));
    assert_eq!(fs::read_to_string(file.path()).unwrap().len(), 17_000, "and is left alone");
}

/// Writes garbage over the middle of the file, which nobody has open.
fn spoil(file: &File) {
    let length = fs::metadata(file.path()).unwrap().len();
    let mut raw = fs::OpenOptions::new().write(true).open(file.path()).unwrap();
    raw.seek(SeekFrom::Start(length / 3)).unwrap();
    raw.write_all(&vec![0xa5; usize::try_from(length / 3).unwrap()]).unwrap();
}

#[tokio::test]
async fn garbage_in_the_middle_is_damage_where_it_is_met() {
    let file = File::new();
    let store = file.store();
    let claim = begin(&store).await;
    let id = &claim.record.id;
    for first in (1..=2000).step_by(100) {
        store.append(batch(id, &claim.owner, some(id, first..first + 100))).await.unwrap();
    }
    store.close().await;
    drop(store);
    spoil(&file);
    // The file opens, and what is whole can be used.
    let store = file.store();
    assert_eq!(store.list(Filter::default()).await.unwrap().len(), 1);
    let error = store.page(id.clone(), after(0, 2000)).await.unwrap_err();
    let JournalError::Damaged(why) = error else { panic!("{error:?}") };
    assert!(why.starts_with(&file.path().display().to_string()), "{why}");
    assert!(why.contains("malformed"), "{why}");
    // And a new session beside the damage, or a clear word.
    match store.create(crate::scene::new_session()).await {
        Ok(_) | Err(JournalError::Damaged(_)) => {}
        Err(other) => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_newer_form_is_refused_and_left_alone() {
    let file = File::new();
    let store = file.store();
    let claim = begin(&store).await;
    store.close().await;
    file.sqlite().pragma_update(None, "user_version", 7).unwrap();
    let error = Store::open(file.path()).unwrap_err();
    assert_eq!(error, JournalError::Newer { found: 7, known: 4 });
    let said = error.to_string();
    assert_eq!(
        said,
        "the log was written by a newer multitap (schema version 7, this version supports 4): update multitap"
    );
    file.sqlite().pragma_update(None, "user_version", 4).unwrap();
    assert_eq!(file.open().find(claim.record.id.to_string()).await.unwrap().len(), 1);
}

#[test]
fn another_programs_database_is_left_alone() {
    let file = File::new();
    fs::create_dir_all(file.path().parent().unwrap()).unwrap();
    file.sqlite().execute_batch("CREATE TABLE recipes (name TEXT)").unwrap();
    let error = Store::open(file.path()).unwrap_err();
    let why = format!("{} is another program's database", file.path().display());
    assert_eq!(error, JournalError::Other(why));
    let tables: i64 = file.sqlite().query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).unwrap();
    assert_eq!(tables, 1);
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let file = File::new();
    fs::write(file.folder.path().join("home"), "a file").unwrap();
    let error = Store::open(file.path()).unwrap_err();
    let JournalError::Other(why) = &error else { panic!("{error:?}") };
    assert!(why.starts_with(&file.path().display().to_string()), "{why}");
}

#[tokio::test]
async fn a_removed_session_leaves_nothing_in_the_file() {
    let file = File::new();
    let store = file.store();
    let claim = begin(&store).await;
    let id = &claim.record.id;
    for first in (1..=3000).step_by(1000) {
        store.append(batch(id, &claim.owner, some(id, first..first + 1000))).await.unwrap();
    }
    store.release(id.clone(), claim.owner, 0).await.unwrap();
    store.remove(id.clone()).await.unwrap();
    // It is swept while nothing else is to do; whoever writes meanwhile does not wait for it.
    let other = begin(&store).await;
    let other_id = &other.record.id;
    let flushed = multitap_hub::Batch { flush: Flush::Now, ..batch(other_id, &other.owner, some(other_id, 1..=1)) };
    store.append(flushed).await.unwrap();
    let left = |table: &str| -> i64 {
        file.sqlite().query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
    };
    let end = std::time::Instant::now() + Duration::from_secs(20);
    while left("events") > 1 || left("removed") > 0 {
        assert!(std::time::Instant::now() < end, "{} events are left", left("events"));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(all(&store, other_id).await.len(), 1);
    assert_eq!(left("logs"), 1);
}
