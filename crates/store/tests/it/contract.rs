//! What every journal owes the hub, whatever it is made of.

mod rulings;
mod sessions;
mod tasks;

use multitap_event::{AgentKind, EventKind, SessionId};
use multitap_hub::{About, Batch, Checkpoint, Edge, Entry, Filter, Flush, JournalError, NewSession, Owner, Part};

use self::rulings::{a_copied_ruling_is_not_made_again, rulings_are_kept_in_order, who_ruled_outlives_the_session};
use self::sessions::{
    a_live_session_is_not_removed, a_removed_session_is_gone, lists_are_newest_first, lists_can_be_of_one_folder,
    lists_can_be_of_those_interrupted, sessions_are_found_by_id_prefix_and_native_id,
};
use self::tasks::{
    a_task_begins_once, a_task_comes_back_as_it_was_last_kept, a_task_needs_its_session,
    a_task_without_a_session_does_not_hurt_others, pages_of_tasks_have_each_once,
    tasks_are_listed_by_session_state_and_time, tasks_are_listed_by_when_they_changed, tasks_go_with_their_session,
};
use crate::scene::{Place, after, all, batch, before, begin, entry, new_session, question, ruling, said, some};

/// Runs each of these for a kind of journal.
macro_rules! contract {
    ($kind:ident, $place:expr, [$($case:ident),* $(,)?]) => {
        mod $kind {
            $(#[tokio::test]
            async fn $case() {
                super::$case(&$place).await;
            })*
        }
    };
}

contract!(
    sqlite,
    crate::scene::File::new(),
    [
        a_new_session_is_known_as_it_was_begun,
        a_session_begins_once,
        what_was_appended_is_read_back,
        pages_go_both_ways,
        pages_are_bounded_by_bytes,
        an_unknown_session_is_named,
        a_batch_must_follow_the_last,
        a_batch_with_a_hole_is_refused_whole,
        what_is_kept_already_is_not_kept_twice,
        one_bad_batch_does_not_hurt_others,
        a_log_has_one_writer,
        a_released_log_can_be_claimed,
        a_log_that_lacks_what_was_told_has_a_new_epoch,
        a_claim_brings_the_latest_checkpoint,
        what_is_known_of_a_session_stays_known,
        a_batch_may_bring_no_entry,
        lists_are_newest_first,
        lists_can_be_of_one_folder,
        lists_can_be_of_those_interrupted,
        sessions_are_found_by_id_prefix_and_native_id,
        a_live_session_is_not_removed,
        a_removed_session_is_gone,
        rulings_are_kept_in_order,
        a_copied_ruling_is_not_made_again,
        who_ruled_outlives_the_session,
        entries_of_any_size_and_text_come_back,
        a_task_comes_back_as_it_was_last_kept,
        a_task_begins_once,
        a_task_needs_its_session,
        a_task_without_a_session_does_not_hurt_others,
        tasks_are_listed_by_when_they_changed,
        tasks_are_listed_by_session_state_and_time,
        pages_of_tasks_have_each_once,
        tasks_go_with_their_session,
    ]
);

fn seqs(entries: &[Entry]) -> Vec<u64> {
    entries.iter().map(Entry::seq).collect()
}

async fn a_new_session_is_known_as_it_was_begun(place: &impl Place) {
    let journal = place.open();
    let new = NewSession {
        agent: AgentKind::Acp { command: "goose acp".to_owned() },
        forked_from: Some("parent".into()),
        ..new_session()
    };
    let claim = journal.create(new.clone()).await.unwrap();
    assert_eq!(claim.checkpoint, None);
    let listed = journal.list(Filter::default()).await.unwrap().remove(0);
    for record in [claim.record, listed] {
        assert_eq!(record.id, new.id);
        assert_eq!(record.agent, new.agent);
        assert_eq!(record.folder, new.folder);
        assert_eq!(record.created, new.created);
        assert_eq!(record.updated, new.created);
        assert_eq!(record.forked_from, new.forked_from);
        assert_eq!(record.config, new.config);
        assert_eq!(record.about, About::default());
        assert_eq!((record.last_seq, record.epoch), (0, 1));
        assert_eq!(record.live.unwrap().pid, std::process::id());
    }
}

async fn a_session_begins_once(place: &impl Place) {
    let journal = place.open();
    let new = new_session();
    journal.create(new.clone()).await.unwrap();
    let error = journal.create(new.clone()).await.unwrap_err();
    assert_eq!(error, JournalError::Other(format!("there is a session {} already", new.id)));
}

async fn what_was_appended_is_read_back(place: &impl Place) {
    let journal = place.open();
    let claim = begin(&*journal).await;
    let id = &claim.record.id;
    let entries = some(id, 1..=5);
    journal.append(batch(id, &claim.owner, entries[..2].to_vec())).await.unwrap();
    let flushed = Batch { flush: Flush::Now, ..batch(id, &claim.owner, entries[2..].to_vec()) };
    journal.append(flushed).await.unwrap();
    let page = journal.page(id.clone(), after(0, 100)).await.unwrap();
    assert_eq!(page.entries, entries);
    assert_eq!(page.last_seq, 5);
    assert_eq!(page.entries[3].event(), entries[3].event());
    // And by whoever opens it next.
    assert_eq!(all(&*place.open(), id).await, entries);
}

async fn pages_go_both_ways(place: &impl Place) {
    let journal = place.open();
    let claim = begin(&*journal).await;
    let id = &claim.record.id;
    journal.append(batch(id, &claim.owner, some(id, 1..=10))).await.unwrap();
    let cases = [
        (after(0, 3), vec![1, 2, 3]),
        (after(3, 3), vec![4, 5, 6]),
        (after(8, 9), vec![9, 10]),
        (after(10, 9), vec![]),
        (after(u64::MAX, 9), vec![]),
        (before(u64::MAX, 3), vec![8, 9, 10]),
        (before(11, 3), vec![8, 9, 10]),
        (before(8, 3), vec![5, 6, 7]),
        (before(3, 9), vec![1, 2]),
        (before(1, 9), vec![]),
        (before(0, 9), vec![]),
        (after(0, 0), vec![]),
    ];
    for (part, expected) in cases {
        let page = journal.page(id.clone(), part).await.unwrap();
        assert_eq!(seqs(&page.entries), expected, "{part:?}");
        assert_eq!(page.last_seq, 10, "{part:?}");
    }
}

async fn pages_are_bounded_by_bytes(place: &impl Place) {
    let journal = place.open();
    let claim = begin(&*journal).await;
    let id = &claim.record.id;
    let entries: Vec<_> = (1..=6).map(|seq| said(id, seq, &"x".repeat(1000))).collect();
    let size = entries[0].json().len();
    journal.append(batch(id, &claim.owner, entries)).await.unwrap();
    let cases = [
        (Edge::After(0), 3 * size, vec![1, 2, 3]),
        (Edge::After(0), 3 * size - 1, vec![1, 2]),
        (Edge::After(0), 1, vec![1]),
        (Edge::Before(7), 2 * size, vec![5, 6]),
        (Edge::Before(7), 0, vec![6]),
    ];
    for (edge, bytes, expected) in cases {
        let page = journal.page(id.clone(), Part { edge, limit: 100, bytes }).await.unwrap();
        assert_eq!(seqs(&page.entries), expected, "{edge:?} {bytes}");
    }
}

async fn an_unknown_session_is_named(place: &impl Place) {
    let journal = place.open();
    let id = SessionId::from("nobody");
    let unknown = JournalError::NoSuchSession(id.clone());
    let owner = Owner("me".to_owned());
    assert_eq!(journal.claim(id.clone()).await.unwrap_err(), unknown);
    assert_eq!(journal.append(batch(&id, &owner, some(&id, 1..=1))).await.unwrap_err(), unknown);
    assert_eq!(journal.page(id.clone(), after(0, 1)).await.unwrap_err(), unknown);
    assert_eq!(journal.release(id.clone(), owner, 0).await.unwrap_err(), unknown);
    assert_eq!(journal.remove(id.clone()).await.unwrap_err(), unknown);
    assert_eq!(journal.rulings(id).await.unwrap(), []);
}

async fn a_batch_must_follow_the_last(place: &impl Place) {
    let journal = place.open();
    let claim = begin(&*journal).await;
    let id = &claim.record.id;
    journal.append(batch(id, &claim.owner, some(id, 1..=3))).await.unwrap();
    for first in [5, 50] {
        let error = journal.append(batch(id, &claim.owner, some(id, first..=first + 1))).await.unwrap_err();
        assert_eq!(
            error,
            JournalError::Other(format!("entry {first} of session {id} does not follow its last one, 3"))
        );
    }
    journal.append(batch(id, &claim.owner, some(id, 4..=4))).await.unwrap();
    assert_eq!(seqs(&all(&*journal, id).await), [1, 2, 3, 4]);
}

async fn a_batch_with_a_hole_is_refused_whole(place: &impl Place) {
    let journal = place.open();
    let claim = begin(&*journal).await;
    let id = &claim.record.id;
    for seqs in [vec![1, 3], vec![1, 1], vec![2, 1]] {
        let error = journal.append(batch(id, &claim.owner, some(id, seqs))).await.unwrap_err();
        assert!(matches!(error, JournalError::Other(_)), "{error:?}");
    }
    assert_eq!(all(&*journal, id).await, []);
}

/// Whoever cannot know what became of a batch hands it in again, perhaps with more.
async fn what_is_kept_already_is_not_kept_twice(place: &impl Place) {
    let journal = place.open();
    let claim = begin(&*journal).await;
    let id = &claim.record.id;
    let mut entries = vec![
        entry(id, 1, EventKind::PermissionAsked(question("q"))),
        entry(id, 2, EventKind::PermissionSettled(ruling("q", "ann"))),
    ];
    entries.extend(some(id, 3..=6));
    for range in [0..3, 0..3, 1..2, 1..5, 0..6, 3..6] {
        journal.append(batch(id, &claim.owner, entries[range.clone()].to_vec())).await.unwrap();
        let kept = all(&*journal, id).await;
        assert_eq!(kept, entries[..kept.len()], "{range:?}");
        assert!(kept.len() >= range.end, "{range:?}");
    }
    assert_eq!(journal.rulings(id.clone()).await.unwrap().len(), 1, "nor is a ruling");
    // Another event under a number that is taken.
    for seqs in [2..=2, 2..=7, 6..=9] {
        let taken = *seqs.start();
        let other = seqs.map(|seq| said(id, seq, "something else")).collect();
        let error = journal.append(batch(id, &claim.owner, other)).await.unwrap_err();
        let why = format!("entry {taken} of session {id} is already stored, with other content");
        assert_eq!(error, JournalError::Other(why));
    }
    assert_eq!(all(&*journal, id).await, entries);
    let stranger = Owner("somebody".to_owned());
    let error = journal.append(batch(id, &stranger, entries[..2].to_vec())).await.unwrap_err();
    assert_eq!(error, JournalError::Lost(id.clone()), "not even what is there is a stranger's to write");
}

async fn one_bad_batch_does_not_hurt_others(place: &impl Place) {
    let journal = place.open();
    let mut claims = Vec::new();
    for _ in 0..8 {
        claims.push(begin(&*journal).await);
    }
    // All at once, so that they are likely to share a commit.
    let mut writing = tokio::task::JoinSet::new();
    for (number, claim) in claims.iter().enumerate() {
        let id = claim.record.id.clone();
        let first = if number % 2 == 0 { 1 } else { 7 };
        let batch = batch(&id, &claim.owner, some(&id, first..first + 4));
        let journal = std::sync::Arc::clone(&journal);
        writing.spawn(async move { (number, journal.append(batch).await) });
    }
    while let Some(written) = writing.join_next().await {
        let (number, result) = written.unwrap();
        assert_eq!(result.is_ok(), number % 2 == 0, "{result:?}");
    }
    for (number, claim) in claims.iter().enumerate() {
        let expected = if number % 2 == 0 { 4 } else { 0 };
        assert_eq!(all(&*journal, &claim.record.id).await.len(), expected);
    }
}

async fn a_log_has_one_writer(place: &impl Place) {
    let journal = place.open();
    let other = place.open();
    let claim = begin(&*journal).await;
    let id = &claim.record.id;
    for journal in [&journal, &other] {
        let error = journal.claim(id.clone()).await.unwrap_err();
        assert_eq!(error, JournalError::LiveHere(id.clone()));
        assert_eq!(error.to_string(), format!("session {id} is live in this process already"));
    }
    let stranger = Owner("somebody".to_owned());
    let lost = JournalError::Lost(id.clone());
    assert_eq!(other.append(batch(id, &stranger, some(id, 1..=1))).await.unwrap_err(), lost);
    assert_eq!(other.release(id.clone(), stranger, 0).await.unwrap_err(), lost);
    assert_eq!(other.list(Filter::default()).await.unwrap()[0].live, claim.record.live);
    journal.append(batch(id, &claim.owner, some(id, 1..=1))).await.unwrap();
}

async fn a_released_log_can_be_claimed(place: &impl Place) {
    let journal = place.open();
    let claim = begin(&*journal).await;
    let id = &claim.record.id;
    journal.append(batch(id, &claim.owner, some(id, 1..=2))).await.unwrap();
    journal.release(id.clone(), claim.owner.clone(), 0).await.unwrap();
    assert_eq!(journal.list(Filter::default()).await.unwrap()[0].live, None);
    let other = place.open();
    let taken = other.claim(id.clone()).await.unwrap();
    assert_ne!(taken.owner, claim.owner);
    assert_eq!((taken.record.last_seq, taken.record.epoch), (2, 1));
    // The old right is worth nothing now.
    let lost = JournalError::Lost(id.clone());
    assert_eq!(journal.append(batch(id, &claim.owner, some(id, 3..=3))).await.unwrap_err(), lost);
    other.append(batch(id, &taken.owner, some(id, 3..=3))).await.unwrap();
    assert_eq!(seqs(&all(&*journal, id).await), [1, 2, 3]);
}

/// Those numbers will be used again, so nobody may take a place of that time for one of today.
async fn a_log_that_lacks_what_was_told_has_a_new_epoch(place: &impl Place) {
    let journal = place.open();
    let claim = begin(&*journal).await;
    let id = &claim.record.id;
    journal.append(batch(id, &claim.owner, some(id, 1..=2))).await.unwrap();
    let mut owner = claim.owner;
    for (told, epoch) in [(0, 1), (2, 1), (3, 2), (2, 2), (900, 3)] {
        journal.release(id.clone(), owner, told).await.unwrap();
        let taken = journal.claim(id.clone()).await.unwrap();
        assert_eq!((taken.record.epoch, taken.record.last_seq), (epoch, 2), "told {told}");
        owner = taken.owner;
    }
}

async fn a_claim_brings_the_latest_checkpoint(place: &impl Place) {
    let journal = place.open();
    let claim = begin(&*journal).await;
    let id = &claim.record.id;
    for seq in 1..=3 {
        let checkpoint = Some(Checkpoint { seq, state: format!("{{\"turns\":{seq}}}") });
        let entries = some(id, seq..=seq);
        journal.append(Batch { checkpoint, ..batch(id, &claim.owner, entries) }).await.unwrap();
    }
    journal.append(batch(id, &claim.owner, some(id, 4..=4))).await.unwrap();
    journal.release(id.clone(), claim.owner, 0).await.unwrap();
    let taken = journal.claim(id.clone()).await.unwrap();
    assert_eq!(taken.checkpoint, Some(Checkpoint { seq: 3, state: "{\"turns\":3}".to_owned() }));
    assert_eq!(taken.record.last_seq, 4);
}

async fn what_is_known_of_a_session_stays_known(place: &impl Place) {
    let journal = place.open();
    let claim = begin(&*journal).await;
    let id = &claim.record.id;
    let about = About { title: Some("Fix it".into()), native_id: Some("n1".into()), model: None, open: true };
    let told = Batch { about: Some(about), ..batch(id, &claim.owner, some(id, 1..=1)) };
    journal.append(told).await.unwrap();
    let about = About { title: None, native_id: Some("n2".into()), model: Some("opus".into()), open: false };
    let told = Batch { about: Some(about), ..batch(id, &claim.owner, some(id, 2..=2)) };
    journal.append(told).await.unwrap();
    journal.append(batch(id, &claim.owner, some(id, 3..=3))).await.unwrap();
    let record = journal.find(id.to_string()).await.unwrap().remove(0);
    let expected =
        About { title: Some("Fix it".into()), native_id: Some("n2".into()), model: Some("opus".into()), open: false };
    assert_eq!(record.about, expected);
    assert_eq!(record.last_seq, 3);
    assert!(record.updated > record.created);
}

async fn a_batch_may_bring_no_entry(place: &impl Place) {
    let journal = place.open();
    let claim = begin(&*journal).await;
    let id = &claim.record.id;
    journal.append(batch(id, &claim.owner, some(id, 1..=2))).await.unwrap();
    let about = About { open: true, ..About::default() };
    journal.append(Batch { about: Some(about), ..batch(id, &claim.owner, Vec::new()) }).await.unwrap();
    let record = journal.find(id.to_string()).await.unwrap().remove(0);
    assert!(record.about.open);
    assert_eq!(record.last_seq, 2);
}

async fn entries_of_any_size_and_text_come_back(place: &impl Place) {
    let journal = place.open();
    let claim = begin(&*journal).await;
    let id = &claim.record.id;
    let texts =
        ["", "\0\u{1}\u{1f}", "a\nb\r\n", "🙂\u{10ffff}", &"long ".repeat(1_000_000), "'; DROP TABLE events; --"];
    let entries: Vec<_> = (1..).zip(texts).map(|(seq, text)| said(id, seq, text)).collect();
    journal.append(batch(id, &claim.owner, entries.clone())).await.unwrap();
    assert_eq!(all(&*journal, id).await, entries);
}
