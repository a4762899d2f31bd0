//! Coming back with a cursor: exactly what was missed, to the letter.

use serde_json::json;

use super::{Frame, Said, Served, answer, asked, ids, words};
use crate::scene::Scene;

/// A task with a thought, a question, its answer and a second turn: all frames, and the task.
fn busy_task(served: &Served) -> (Vec<Frame>, String) {
    let mut frames = served.stream(&Said::text("think about tea then write hello to a.txt").dev());
    let (task, _) = ids(&frames);
    let decision = answer(asked(&frames), "proceed_once");
    frames.extend(served.stream(&Said::data(&decision).task(&task)));
    frames.extend(served.stream(&Said::text("read a.txt then plan A; B").task(&task)));
    (frames, task)
}

/// After each frame the others follow, as they were.
#[track_caller]
pub(super) fn is_the_same_after_any(served: &Served, task: &str, frames: &[Frame]) {
    for (at, frame) in frames[..frames.len() - 1].iter().enumerate() {
        let mut resumed = served.resume(task, &frame.cursor);
        for missed in &frames[at + 1..] {
            assert_eq!(resumed.next(), *missed, "after {}", frame.cursor);
        }
    }
}

#[test]
fn a_cursor_gives_exactly_what_was_missed() {
    let scene = Scene::bare();
    let served = scene.a2a(&[]);
    let (frames, task) = busy_task(&served);
    assert!(frames.iter().all(|frame| !frame.cursor.is_empty()), "every frame has one");
    for frame in &frames {
        assert_eq!(frame.json["metadata"][super::OURS]["cursor"], frame.cursor);
    }
    is_the_same_after_any(&served, &task, &frames);
    served.stop(&scene);
}

#[test]
fn a_break_in_a_running_turn_loses_nothing() {
    let scene = Scene::bare();
    let served = scene.a2a(&[]);
    let mut whole = served.open("message/stream", &Said::text("slow 8").dev().0);
    let mut expected = vec![whole.next()];
    let (task, _) = ids(&expected);
    // One that leaves again and again while the other reads on.
    let mut seen = vec![expected[0].clone()];
    while !seen[seen.len() - 1].is_final() {
        let mut broken = served.resume(&task, &seen[seen.len() - 1].cursor);
        seen.push(broken.next());
        if !seen[seen.len() - 1].is_final() {
            seen.push(broken.next());
        }
    }
    expected.extend(whole.rest());
    assert_eq!(seen, expected);
    served.stop(&scene);
}

#[test]
fn resubscribing_shows_the_task_first_and_lasts_across_turns() {
    let scene = Scene::bare();
    let served = scene.a2a(&[]);
    let done = served.send(&Said::text("hello").dev());
    let task = done["id"].as_str().unwrap();
    let mut watch = served.open("tasks/resubscribe", &json!({ "id": task }));
    let snapshot = watch.next();
    assert_eq!(snapshot.word(), "Task completed");
    assert_eq!(snapshot.json["history"], done["history"]);
    for _ in 0..2 {
        served.send(&Said::text("hello again").task(task));
        let frames = watch.until(Frame::is_final);
        let expected =
            ["Task submitted", "STATE_CHANGE working", "TEXT_CONTENT working", "STATE_CHANGE completed final"];
        assert_eq!(words(&frames), expected);
    }
    // The snapshot's own cursor is a place to go on from.
    let cursor = snapshot.json["metadata"][super::OURS]["cursor"].as_str().unwrap();
    let mut resumed = served.resume(task, cursor);
    assert_eq!(resumed.next().word(), "Task submitted");
    served.stop(&scene);
}

#[test]
fn a_place_that_there_is_not_is_told() {
    let scene = Scene::bare();
    let served = scene.a2a(&[]);
    let done = served.send(&Said::text("hello").dev());
    let task = done["id"].as_str().unwrap();
    let mut ahead = served.resume(task, "999999");
    let snapshot = ahead.next();
    assert_eq!(snapshot.json["metadata"][super::OURS]["replayGap"]["asked"], "999999");
    assert_eq!(snapshot.word(), "Task completed");
    // The task of one turn has an end, and who has seen it is not kept waiting.
    let frames = served.stream(&Said::text("hello"));
    let (turn, _) = ids(&frames);
    let missed = served.resume(&turn, &frames[frames.len() - 2].cursor).rest();
    assert_eq!(missed, frames[frames.len() - 1..]);
    let http = served.http.clone().with("Last-Event-ID", &frames[frames.len() - 1].cursor);
    let over = http.answer("tasks/resubscribe", &json!({ "id": turn })).unwrap();
    assert_eq!(over["error"]["code"], -32004, "{over}");
    served.stop(&scene);
}
