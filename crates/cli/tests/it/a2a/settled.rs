//! A question that is settled, and how its task looks to those who ask for it afterwards.

use serde_json::{Value, json};

use super::{Said, Served, answer, asked, ids};
use crate::scene::Scene;

/// Checks every way to ask for a task, in both dialects: nothing waits for an answer, and the call has its last status.
#[track_caller]
fn is_settled(served: &Served, task: &str, state: &str, call: &str) {
    let listed = served.result("ListTasks", &json!({ "historyLength": 50 }));
    let listed = listed["tasks"].as_array().unwrap().iter().find(|listed| listed["id"] == *task).unwrap().clone();
    let ways = [
        ("tasks/get", served.task(task)),
        ("GetTask", served.result("GetTask", &json!({ "id": task }))),
        ("ListTasks", listed),
    ];
    for (way, shown) in ways {
        check(way, &shown, state, call);
    }
}

#[track_caller]
fn check(way: &str, task: &Value, state: &str, call: &str) {
    let is_state = |word: &Value| *word == state || *word == format!("TASK_STATE_{}", state.to_uppercase());
    assert!(is_state(&task["status"]["state"]), "{way}: {task:#}");
    assert!(!task.to_string().contains("confirmation_request"), "{way}: {task:#}");
    let messages = task["history"].as_array().unwrap().iter().chain([&task["status"]["message"]]);
    let calls: Vec<&Value> = messages.map(|message| &message["parts"][0]["data"]).collect();
    let statuses: Vec<&Value> = calls.iter().filter_map(|data| data.get("status")).collect();
    assert!(!statuses.is_empty() && statuses.iter().all(|status| **status == call), "{way}: {task:#}");
}

/// R000-2.
#[test]
fn a_cancelled_question_waits_for_nobody() {
    let scene = Scene::bare();
    let mut tasks = Vec::new();
    let served = scene.a2a(&[]);
    // A turn that is a task of its own, and a session that is one task.
    for said in [Said::text("write hello to a.txt"), Said::text("write hello to a.txt").dev()] {
        let frames = served.stream(&said);
        let (task, _) = ids(&frames);
        assert!(served.task(&task).to_string().contains("confirmation_request"));
        check("tasks/cancel", &served.result("tasks/cancel", &json!({ "id": task })), "canceled", "CANCELLED");
        is_settled(&served, &task, "canceled", "CANCELLED");
        tasks.push(task);
    }
    let first = served.open("tasks/resubscribe", &json!({ "id": tasks[1] })).next();
    check("tasks/resubscribe", &first.json, "canceled", "CANCELLED");
    served.stop(&scene);
    // From the log alone.
    let served = scene.a2a(&[]);
    for task in &tasks {
        is_settled(&served, task, "canceled", "CANCELLED");
    }
    served.stop(&scene);
}

/// R000-2: whoever is killed cannot say that nobody is asked any more.
#[test]
fn a_question_of_a_killed_host_waits_for_nobody() {
    let scene = Scene::bare();
    let mut served = scene.a2a(&[]);
    let tasks = [Said::text("write hello to a.txt"), Said::text("write hello to a.txt").dev()].map(|said| {
        let frames = served.stream(&said);
        asked(&frames);
        ids(&frames).0
    });
    served.live.kill();
    served.live.wait();
    scene.nothing_left();
    let served = scene.a2a(&[]);
    for task in &tasks {
        is_settled(&served, task, "failed", "CANCELLED");
    }
    served.stop(&scene);
}

/// R000-42: a client that answers the wrong call learns which one waits.
#[test]
fn an_answer_to_an_unknown_call_names_what_is_open() {
    let scene = Scene::bare();
    let served = scene.a2a(&[]);
    let frames = served.stream(&Said::text("write hello to a.txt").dev());
    let (task, _) = ids(&frames);
    let call = asked(&frames)["tool_call_id"].as_str().unwrap();
    let owners = "proceed_always_and_save";
    assert!(asked(&frames).to_string().contains(owners), "{}", asked(&frames));
    let wrong = answer(&json!({ "tool_call_id": "nope" }), "proceed_once");
    let mut quoting = wrong.clone();
    quoting["correlationId"] = "some-question".into();
    let mut confirm = wrong.clone();
    confirm["taskId"] = task.as_str().into();
    for (method, params) in [
        ("message/send", Said::data(&wrong).task(&task).0),
        ("message/send", Said::data(&quoting).task(&task).0),
        ("SendMessage", Said::data(&wrong).task(&task).v1()),
        ("toolCall/confirm", confirm.clone()),
    ] {
        let (code, why) = served.refusal(method, &params);
        assert_eq!(code, -32602, "{why}");
        for named in ["\"nope\"", call, "proceed_once", "cancel"] {
            assert!(why.contains(named), "{method}: {named} in {why}");
        }
        assert!(!why.contains(owners), "{method}: this client may not choose that: {why}");
    }
    assert_eq!((served.state(&task).as_str(), scene.file("a.txt")), ("input-required", None));
    served.result("tasks/cancel", &json!({ "id": task }));
    let (_, why) = served.refusal("toolCall/confirm", &confirm);
    assert!(why.contains("no question is open"), "{why}");
    served.stop(&scene);
}
