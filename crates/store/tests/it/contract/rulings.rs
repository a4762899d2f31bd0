//! What every journal owes those who ask who ruled on what.

use multitap_event::{EventKind, Ruling};
use multitap_hub::Entry;

use crate::scene::{Place, all, batch, begin, entry, question, ruling};

pub(super) async fn rulings_are_kept_in_order(place: &impl Place) {
    let journal = place.open();
    let (claim, other) = (begin(&*journal).await, begin(&*journal).await);
    let id = &claim.record.id;
    // The agent uses an id again; one question is never answered; one was asked where we did not see it.
    let (first, second, third) = (ruling("q1", "ide"), ruling("q1", "phone"), ruling("q9", "bot"));
    let kinds = [
        EventKind::PermissionAsked(question("q1")),
        EventKind::PermissionSettled(first.clone()),
        EventKind::PermissionAsked(question("q2")),
        EventKind::PermissionAsked(question("q1")),
        EventKind::PermissionSettled(second.clone()),
        EventKind::PermissionSettled(third.clone()),
    ];
    for (seq, kind) in (1..).zip(kinds) {
        journal.append(batch(id, &claim.owner, vec![entry(id, seq, kind)])).await.unwrap();
    }
    assert_eq!(journal.rulings(id.clone()).await.unwrap(), [first, second, third]);
    assert_eq!(journal.rulings(other.record.id).await.unwrap(), []);
}

pub(super) async fn a_copied_ruling_is_not_made_again(place: &impl Place) {
    let journal = place.open();
    let claim = begin(&*journal).await;
    let id = &claim.record.id;
    let own = ruling("q1", "phone");
    let kinds = [
        EventKind::PermissionAsked(question("q1")),
        EventKind::PermissionSettled(ruling("q1", "ide")),
        EventKind::PermissionAsked(question("q1")),
        EventKind::PermissionSettled(own.clone()),
    ];
    let mut entries: Vec<Entry> = (1..).zip(kinds).map(|(seq, kind)| entry(id, seq, kind)).collect();
    for copied in &mut entries[..2] {
        *copied = Entry::copy(copied.event().unwrap().clone());
    }
    journal.append(batch(id, &claim.owner, entries.clone())).await.unwrap();
    assert_eq!(all(&*journal, id).await, entries);
    assert_eq!(journal.rulings(id.clone()).await.unwrap(), [own]);
}

pub(super) async fn who_ruled_outlives_the_session(place: &impl Place) {
    let journal = place.open();
    let claim = begin(&*journal).await;
    let id = &claim.record.id;
    let made = ruling("q1", "ide");
    let kinds = [EventKind::PermissionAsked(question("q1")), EventKind::PermissionSettled(made.clone())];
    let entries = (1..).zip(kinds).map(|(seq, kind)| entry(id, seq, kind)).collect();
    journal.append(batch(id, &claim.owner, entries)).await.unwrap();
    journal.release(id.clone(), claim.owner, 0).await.unwrap();
    journal.remove(id.clone()).await.unwrap();
    let kept = journal.rulings(id.clone()).await.unwrap();
    assert_eq!(kept, [Ruling { feedback: None, ..made.without_edit() }], "who and what stays, words go");
}
