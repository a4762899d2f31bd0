//! What every journal owes those who look for sessions in it, or want one gone.

use std::path::Path;

use multitap_event::{SessionId, Timestamp};
use multitap_hub::{About, Batch, Filter, JournalError, NewSession, SessionRecord};

use super::seqs;
use crate::scene::{File, Place, after, all, batch, begin, new_session, some};

fn ids(records: &[SessionRecord]) -> Vec<SessionId> {
    records.iter().map(|record| record.id.clone()).collect()
}

pub(super) async fn lists_are_newest_first(place: &impl Place) {
    let journal = place.open();
    let mut claims = Vec::new();
    for _ in 0..3 {
        claims.push(begin(&*journal).await);
    }
    let [a, b, c] = [&claims[0], &claims[1], &claims[2]].map(|claim| claim.record.id.clone());
    assert_eq!(ids(&journal.list(Filter::default()).await.unwrap()), [c.clone(), b.clone(), a.clone()]);
    journal.append(batch(&b, &claims[1].owner, some(&b, 1..=1))).await.unwrap();
    let listed = journal.list(Filter::default()).await.unwrap();
    assert_eq!(ids(&listed), [b.clone(), c.clone(), a]);
    assert!(listed[0].updated <= Timestamp::now());
    let two = journal.list(Filter { limit: Some(2), ..Filter::default() }).await.unwrap();
    assert_eq!(ids(&two), [b, c]);
}

pub(super) async fn lists_can_be_of_one_folder(place: &impl Place) {
    let journal = place.open();
    let mut made = Vec::new();
    for folder in [Some("/a"), Some("/a/b"), None, Some("/a")] {
        let new = NewSession { folder: folder.map(Into::into), ..new_session() };
        made.push(new.id.clone());
        journal.create(new).await.unwrap();
    }
    let listed = journal.list(Filter { folder: Some("/a".into()), ..Filter::default() }).await.unwrap();
    assert_eq!(ids(&listed), [made[3].clone(), made[0].clone()]);
    assert!(listed.iter().all(|record| record.folder.as_deref() == Some(Path::new("/a"))));
    assert_eq!(ids(&journal.list(Filter { folder: Some("/c".into()), ..Filter::default() }).await.unwrap()), []);
}

pub(super) async fn lists_can_be_of_those_interrupted(place: &impl Place) {
    let journal = place.open();
    let mut claims = Vec::new();
    for open in [true, true, false] {
        let claim = begin(&*journal).await;
        let id = &claim.record.id;
        let about = Some(About { open, ..About::default() });
        journal.append(Batch { about, ..batch(id, &claim.owner, some(id, 1..=1)) }).await.unwrap();
        claims.push(claim);
    }
    let interrupted = Filter { interrupted: true, ..Filter::default() };
    assert_eq!(ids(&journal.list(interrupted.clone()).await.unwrap()), [], "all of them are live");
    journal.release(claims[0].record.id.clone(), claims[0].owner.clone(), 0).await.unwrap();
    journal.release(claims[2].record.id.clone(), claims[2].owner.clone(), 0).await.unwrap();
    assert_eq!(ids(&journal.list(interrupted).await.unwrap()), [claims[0].record.id.clone()]);
}

pub(super) async fn sessions_are_found_by_id_prefix_and_native_id(place: &impl Place) {
    let journal = place.open();
    for id in ["0190aa-1", "0190aa-12", "0190bb", "0191%_*"] {
        let claim = journal.create(NewSession { id: id.into(), ..new_session() }).await.unwrap();
        let about = Some(About { native_id: Some(format!("native of {id}")), ..About::default() });
        let told = Batch { about, ..batch(&id.into(), &claim.owner, some(&id.into(), 1..=1)) };
        journal.append(told).await.unwrap();
    }
    let cases: [(&str, &[&str]); 9] = [
        ("0190aa-1", &["0190aa-1"]),
        ("0190aa", &["0190aa-1", "0190aa-12"]),
        ("0190", &["0190aa-1", "0190aa-12", "0190bb"]),
        ("0191%_*", &["0191%_*"]),
        ("0191%", &["0191%_*"]),
        ("01%", &[]),
        ("native of 0190bb", &["0190bb"]),
        ("native of", &[]),
        ("", &[]),
    ];
    for (name, expected) in cases {
        let mut found = ids(&journal.find(name.to_owned()).await.unwrap());
        found.sort();
        assert_eq!(found, expected.iter().map(|id| SessionId::from(*id)).collect::<Vec<_>>(), "{name}");
    }
}

pub(super) async fn a_live_session_is_not_removed(place: &impl Place) {
    let journal = place.open();
    let claim = begin(&*journal).await;
    let id = &claim.record.id;
    let error = place.open().remove(id.clone()).await.unwrap_err();
    assert_eq!(error, JournalError::LiveHere(id.clone()));
    journal.append(batch(id, &claim.owner, some(id, 1..=1))).await.unwrap();
}

pub(super) async fn a_removed_session_is_gone(place: &impl Place) {
    let journal = place.open();
    let (one, other) = (begin(&*journal).await, begin(&*journal).await);
    for claim in [&one, &other] {
        let id = &claim.record.id;
        journal.append(batch(id, &claim.owner, some(id, 1..=3))).await.unwrap();
        journal.release(id.clone(), claim.owner.clone(), 0).await.unwrap();
    }
    let id = &one.record.id;
    journal.remove(id.clone()).await.unwrap();
    assert_eq!(journal.claim(id.clone()).await.unwrap_err(), JournalError::NoSuchSession(id.clone()));
    assert_eq!(journal.page(id.clone(), after(0, 9)).await.unwrap_err(), JournalError::NoSuchSession(id.clone()));
    assert_eq!(ids(&journal.find(id.to_string()).await.unwrap()), []);
    let listed = journal.list(Filter::default()).await.unwrap();
    assert_eq!(ids(&listed), ids(std::slice::from_ref(&other.record)));
    assert_eq!(seqs(&all(&*journal, &other.record.id).await), [1, 2, 3]);
    // Nothing of it comes back with a new one of the same name.
    let again = journal.create(NewSession { id: id.clone(), ..new_session() }).await.unwrap();
    assert_eq!(again.record.last_seq, 0);
    assert_eq!(all(&*journal, id).await, []);
    journal.append(batch(id, &again.owner, some(id, 1..=1))).await.unwrap();
    assert_eq!(seqs(&all(&*journal, id).await), [1]);
}

/// Only unix has paths that are no text.
#[cfg(unix)]
#[tokio::test]
async fn a_folder_need_not_be_text() {
    use std::os::unix::ffi::OsStrExt as _;
    let file = File::new();
    let journal = file.open();
    let folder = Path::new(std::ffi::OsStr::from_bytes(b"/odd/\xff\xfe")).to_owned();
    journal.create(NewSession { folder: Some(folder.clone()), ..new_session() }).await.unwrap();
    let listed = journal.list(Filter { folder: Some(folder.clone()), ..Filter::default() }).await.unwrap();
    assert_eq!(listed[0].folder, Some(folder));
}
