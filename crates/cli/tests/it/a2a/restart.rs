//! The host ends, by a signal or for good, and another takes its place.

use multitap_testkit::fake::Fake;
use serde_json::json;

use super::{Frame, Said, Served, answer, asked, ids, words};
use crate::scene::Scene;

/// Ends it so that it cannot say good-bye.
fn kill(mut served: Served, scene: &Scene) {
    served.live.kill();
    served.live.wait();
    scene.nothing_left();
}

#[test]
fn what_was_said_is_there_after_a_restart_and_the_task_goes_on() {
    let scene = Scene::bare();
    let mut served = scene.a2a(&[]);
    let mut frames = served.stream(&Said::text("write hello to a.txt").dev());
    let (task, context) = ids(&frames);
    frames.extend(served.stream(&Said::data(&answer(asked(&frames), "proceed_once")).task(&task)));
    for end in [Served::stop as fn(Served, &Scene), kill] {
        let before = served.task(&task);
        end(served, &scene);
        served = scene.a2a(&[]);
        assert_eq!(served.task(&task), before);
        // What was missed is there although nobody took the session up; then the stream ends.
        let missed = served.resume(&task, &frames[2].cursor).rest();
        assert_eq!(missed[..frames.len() - 3], frames[3..]);
        let next = served.stream(&Said::text("read a.txt").task(&task));
        assert_eq!(ids(&next), (task.clone(), context.clone()));
        assert_eq!(next.last().unwrap().word(), "STATE_CHANGE completed final");
        assert!(next.iter().any(|frame| frame.said().contains("hello")), "{next:#?}");
        // Live again, and still to the letter.
        let mut resumed = served.resume(&task, &frames[0].cursor);
        for frame in &frames[1..] {
            assert_eq!(resumed.next(), *frame);
        }
        let again = resumed.until(|frame| frame.cursor == next[next.len() - 1].cursor);
        assert_eq!(again[again.len() - next.len()..], next);
    }
    served.stop(&scene);
}

#[test]
fn a_turn_that_was_cut_off_is_over() {
    let scene = Scene::bare();
    // Who is asked to end cancels what runs; who is killed cannot.
    for (end, state) in [(Served::stop as fn(Served, &Scene), "canceled"), (kill, "failed")] {
        let served = scene.a2a(&[]);
        let mut running = served.open("message/stream", &Said::text("slow 100").0);
        let (turn, turns_context) = ids(&running.until(|frame| frame.kind() == "TEXT_CONTENT"));
        let frames = served.stream(&Said::text("write hello to a.txt").dev());
        let (task, _) = ids(&frames);
        drop(running);
        end(served, &scene);
        let served = scene.a2a(&[]);
        assert_eq!((served.state(&turn).as_str(), served.state(&task).as_str()), (state, state));
        let wanted = format!("TASK_STATE_{}", state.to_uppercase());
        let listed = served.result("ListTasks", &json!({ "status": wanted }));
        let over: Vec<&str> =
            listed["tasks"].as_array().unwrap().iter().map(|task| task["id"].as_str().unwrap()).collect();
        assert!(over.contains(&turn.as_str()) && over.contains(&task.as_str()), "{over:?}");
        // Nothing is asked any more, and nothing is done.
        let late = served.refusal("message/send", &Said::data(&answer(asked(&frames), "proceed_once")).task(&task).0);
        assert_eq!(late.0, -32602, "{late:?}");
        assert_eq!(scene.file("a.txt"), None);
        // What became of it is told to those who come back.
        let missed = served.resume(&task, &frames[frames.len() - 1].cursor).until(Frame::is_final);
        let last = format!("STATE_CHANGE {state} final");
        let expected = ["TOOL_CALL_UPDATE PENDING", "TOOL_CALL_UPDATE CANCELLED", last.as_str()];
        assert_eq!(words(&missed), expected);
        assert_eq!(served.send(&Said::text("hello").task(&task))["status"]["state"], "completed");
        assert_eq!(served.send(&Said::text("hello").context(&turns_context))["status"]["state"], "completed");
        served.stop(&scene);
    }
}

#[test]
fn a_prompt_that_waited_runs_when_its_session_is_taken_up() {
    let scene = Scene::bare();
    let served = scene.a2a(&[]);
    let mut running = served.open("message/stream", &Said::text("slow 100").0);
    let (turn, context) = ids(&running.until(|frame| frame.kind() == "TEXT_CONTENT"));
    let waiting = served.send(&Said::text("write hello to a.txt").context(&context).at_once());
    assert_eq!(waiting["status"]["state"], "submitted");
    let waiting = waiting["id"].as_str().unwrap();
    kill(served, &scene);
    let served = scene.a2a(&[]);
    assert_eq!((served.state(&turn).as_str(), served.state(waiting).as_str()), ("failed", "submitted"));
    // The next message takes the session up; what waited comes first.
    let next = served.send(&Said::text("hello").context(&context).at_once());
    let mut stream = served.open("tasks/resubscribe", &json!({ "id": waiting }));
    let mut frames = vec![stream.next()];
    if !frames[0].json["status"]["message"]["parts"][0]["data"]["confirmation_request"].is_object() {
        frames = stream.until(Frame::is_asking);
    }
    let call = frames[frames.len() - 1].data();
    served.send(&Said::data(&answer(call, "proceed_once")).task(waiting));
    assert_eq!(scene.file("a.txt").as_deref(), Some("hello\n"));
    let mut stream = served.resume(next["id"].as_str().unwrap(), "0");
    stream.until(|frame| frame.word() == "STATE_CHANGE completed final");
    served.stop(&scene);
}

#[test]
fn the_shipped_spelling_is_remembered() {
    let scene = Scene::bare();
    let served = scene.a2a(&[]);
    let settings = json!({ "kind": "agent-settings" });
    let (task, context) = ids(&served.stream(&Said::text("hello").set("coderAgent", settings)));
    kill(served, &scene);
    let served = scene.a2a(&[]);
    let frames = served.stream(&Said::text("hello").context(&context));
    assert_eq!(frames.last().unwrap().state(), "input-required");
    assert_eq!(served.state(&task), "input-required");
    served.stop(&scene);
}

/// What a host leaves out is said to whoever prompts, also after the session was resumed: by a prompt that names its
/// context or its task, or before by a request that prompts nothing.
#[test]
fn a_resumed_session_says_what_is_left_out() {
    let fake = Fake::claude().says("one").says("two").build().unwrap();
    let scene = Scene::with(&fake);
    scene.scratch.write(".claude/settings.json", r#"{"hooks": {"SessionStart": []}}"#).unwrap();
    let notices =
        |frames: &[Frame]| frames.iter().filter(|frame| frame.json.to_string().contains("not trusted")).count();
    let claude = ["--agent", "claude"];
    let served = scene.a2a_with(&claude);
    let frames = served.stream(&Said::text("hi").dev());
    let (task, context) = ids(&frames);
    let at_first = notices(&frames);
    assert!(at_first > 0, "{frames:#?}");
    let again = served.stream(&Said::text("again").context(&context).dev());
    assert_eq!(notices(&again), 0, "said once: {again:#?}");
    served.stop(&scene);
    let by_context = Said::text("hi").context(&context).dev();
    let by_task = Said::text("hi").task(&task).dev();
    for (said, lists_first) in [(&by_context, false), (&by_task, false), (&by_context, true)] {
        let served = scene.a2a_with(&claude);
        if lists_first {
            served.result("commands/get", &json!({ "contextId": context }));
        }
        let frames = served.stream(said);
        assert_eq!(notices(&frames), at_first, "{frames:#?}");
        served.stop(&scene);
    }
}
