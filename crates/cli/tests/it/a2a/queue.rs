//! Several clients of one task: who gets which frames, who may go, what can be cancelled.

use serde_json::json;

use super::{Said, answer, asked, ids, words};
use crate::scene::Scene;

#[test]
fn a_second_message_waits_its_turn_and_steals_nothing() {
    let scene = Scene::bare();
    let served = scene.a2a(&[]);
    let mut first = served.open("message/stream", &Said::text("slow 8").dev().0);
    let begun = first.until(|frame| frame.kind() == "TEXT_CONTENT");
    let (task, _) = ids(&begun);
    let mut second = served.open("message/stream", &Said::text("hello").task(&task).0);
    // At once, while the other runs.
    let queued = second.next();
    assert_eq!(queued.word(), "Task submitted");
    assert_eq!(queued.json["metadata"][super::OURS]["queued"], true);
    assert_eq!(served.state(&task), "working");
    let rest = first.rest();
    assert_eq!(words(&rest), ["TEXT_CONTENT working", "STATE_CHANGE completed final"]);
    let said: String = rest.iter().map(super::Frame::said).collect();
    assert!(said.contains("8 ") && !said.contains("hello"), "{said}");
    let second = second.rest();
    assert_eq!(words(&second), ["STATE_CHANGE working", "TEXT_CONTENT working", "STATE_CHANGE completed final"]);
    assert!(second[1].said().contains("hello"), "{second:#?}");
    served.stop(&scene);
}

#[test]
fn whoever_asked_may_leave_and_the_question_stays() {
    let scene = Scene::bare();
    let served = scene.a2a(&[]);
    let mut stream = served.open("message/stream", &Said::text("write hello to a.txt").dev().0);
    let frames = stream.until(super::Frame::is_asking);
    drop(stream);
    let mut running = served.open("message/stream", &Said::text("slow 6").dev().0);
    let slow = running.until(|frame| frame.kind() == "TEXT_CONTENT");
    drop(running);
    let (task, _) = ids(&frames);
    // The other turn goes on to its end; meanwhile nothing happened to the question.
    let mut watch = served.open("tasks/resubscribe", &json!({ "id": ids(&slow).0 }));
    watch.until(|frame| frame.state() == "completed");
    assert_eq!(served.state(&task), "input-required");
    served.stream(&Said::data(&answer(asked(&frames), "proceed_once")).task(&task));
    assert_eq!(scene.file("a.txt").as_deref(), Some("hello\n"));
    served.stop(&scene);
}

#[test]
fn the_first_answer_counts_and_later_ones_hear_whose_it_was() {
    let scene = Scene::bare();
    let served = scene.a2a(&[]);
    let frames = served.stream(&Said::text("write hello to a.txt").dev());
    let (task, _) = ids(&frames);
    let call = asked(&frames).clone();
    served.stream(&Said::data(&answer(&call, "proceed_once")).task(&task));
    for method in ["message/send", "message/stream"] {
        let late = served.http.answer(method, &Said::data(&answer(&call, "cancel")).task(&task).0).unwrap();
        assert_eq!(late["error"]["code"], -32011, "{late}");
        let data = &late["error"]["data"];
        assert_eq!((&data["selectedOptionId"], &data["settledBy"]["door"]), (&json!("proceed_once"), &json!("a2a")));
    }
    let late = served.http.answer("SendMessage", &Said::data(&answer(&call, "cancel")).task(&task).v1()).unwrap();
    assert_eq!(late["error"]["data"][0]["reason"], "QUESTION_SETTLED", "{late}");
    served.stop(&scene);
}

#[test]
fn what_runs_or_waits_can_be_cancelled_and_nothing_else() {
    let scene = Scene::bare();
    let served = scene.a2a(&[]);
    let mut stream = served.open("message/stream", &Said::text("slow 100").dev().0);
    let (task, _) = ids(&stream.until(|frame| frame.kind() == "TEXT_CONTENT"));
    let cancelled = served.result("tasks/cancel", &json!({ "id": task }));
    assert_eq!(cancelled["status"]["state"], "canceled");
    let last = stream.rest().pop().unwrap();
    assert_eq!((last.state(), last.is_final()), ("canceled", true));
    assert_eq!(served.refusal("tasks/cancel", &json!({ "id": task })).0, -32002);
    // A question that is open goes with its turn.
    let frames = served.stream(&Said::text("run: touch made").task(&task));
    assert_eq!(served.result("tasks/cancel", &json!({ "id": task }))["status"]["state"], "canceled");
    let late = served.refusal("message/send", &Said::data(&answer(asked(&frames), "proceed_once")).task(&task).0);
    assert_eq!(late.0, -32602, "{late:?}");
    assert!(scene.file("made").is_none());
    // Without the extension a turn that waits is a task of its own.
    let mut stream = served.open("message/stream", &Said::text("slow 100").0);
    let (running, context) = ids(&stream.until(|frame| frame.kind() == "TEXT_CONTENT"));
    let mut waiting = served.open("message/stream", &Said::text("later").context(&context).0);
    let queued = ids(&[waiting.next()]).0;
    assert_eq!(served.result("tasks/cancel", &json!({ "id": queued }))["status"]["state"], "canceled");
    assert_eq!(words(&waiting.rest()), ["STATE_CHANGE canceled final"]);
    assert_eq!(served.state(&running), "working", "the other one runs on");
    assert_eq!(served.result("CancelTask", &json!({ "id": running }))["status"]["state"], "TASK_STATE_CANCELED");
    served.stop(&scene);
}

#[test]
fn sending_waits_until_the_task_rests_unless_told_not_to() {
    let scene = Scene::bare();
    let served = scene.a2a(&[]);
    let done = served.send(&Said::text("slow 3").dev());
    assert_eq!(done["status"]["state"], "completed");
    let task = done["id"].as_str().unwrap();
    let at_once = served.send(&Said::text("slow 5").task(task).at_once());
    assert!(["submitted", "working"].contains(&at_once["status"]["state"].as_str().unwrap()), "{at_once}");
    let mut params = Said::text("hello").task(task).v1();
    params["configuration"] = json!({ "returnImmediately": true, "historyLength": 0 });
    let queued = served.result("SendMessage", &params)["task"].clone();
    assert_eq!(queued.get("history"), None, "{queued}");
    // It rests as well when it asks.
    let asking = served.send(&Said::text("write hello to a.txt").task(task));
    assert_eq!(asking["status"]["state"], "input-required");
    let call = &asking["status"]["message"]["parts"][0]["data"];
    assert!(call["confirmation_request"]["options"].is_array(), "{asking}");
    let done = served.send(&Said::data(&answer(call, "proceed_once")).task(task));
    assert_eq!(done["status"]["state"], "completed");
    served.stop(&scene);
}
