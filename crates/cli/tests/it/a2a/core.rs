//! Clients that know nothing of the extension: A2A's own rules, and lists of tasks.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::{Said, ids, words};
use crate::scene::Scene;

#[test]
fn each_turn_is_a_task_and_one_that_is_over_takes_no_more() {
    let scene = Scene::bare();
    let served = scene.a2a(&[]);
    let first = served.send(&Said::text("good morning"));
    let (task, context) = (first["id"].as_str().unwrap(), first["contextId"].as_str().unwrap());
    let refused = served.refusal("message/send", &Said::text("again").task(task).0);
    assert_eq!(refused.0, -32004, "{refused:?}");
    assert!(refused.1.contains("context"), "it says what to do: {refused:?}");
    assert_eq!(served.refusal("tasks/resubscribe", &json!({ "id": task })).0, -32004);
    assert_eq!(served.refusal("SubscribeToTask", &json!({ "id": task })).0, -32004);
    let second = served.send(&Said::text("hello").context(context));
    assert_ne!(second["id"], task);
    assert_eq!(second["contextId"], context);
    // Each shows its own part of what was said.
    let said = |task: &Value| task["history"][0]["parts"][0]["text"].as_str().unwrap().to_owned();
    assert_eq!((said(&served.task(task)), said(&second)), ("good morning".to_owned(), "hello".to_owned()));
    served.stop(&scene);
}

#[test]
fn a_question_is_answered_by_an_options_own_word() {
    let scene = Scene::bare();
    let served = scene.a2a(&[]);
    let frames = served.stream(&Said::text("write hello to a.txt"));
    assert_eq!(words(&frames).last().unwrap(), "STATE_CHANGE input-required final");
    let (task, _) = ids(&frames);
    for word in ["yes", "PROCEED_ONCE", "proceed_once please", "false"] {
        let refused = served.refusal("message/send", &Said::text(word).task(&task).0);
        assert!(refused.0 == -32602 && refused.1.contains("proceed_once"), "{word}: {refused:?}");
    }
    assert_eq!(scene.file("a.txt"), None);
    assert_eq!(served.send(&Said::text("proceed_once").task(&task))["status"]["state"], "completed");
    assert_eq!(scene.file("a.txt").as_deref(), Some("hello\n"));
    served.stop(&scene);
}

#[test]
fn the_extension_is_in_use_by_a_header_too_and_echoed() {
    let scene = Scene::bare();
    let mut served = scene.a2a(&[]);
    for header in ["X-A2A-Extensions", "A2A-Extensions"] {
        let http = served.http.clone();
        served.http = http.clone().with(header, super::URI);
        let response = served.http.call("message/send", &Said::text("hello").0).unwrap();
        assert_eq!(response.header(header), Some(super::URI));
        let task = response.json().unwrap()["result"]["id"].as_str().unwrap().to_owned();
        assert_eq!(served.send(&Said::text("again").task(&task))["status"]["state"], "completed", "{header}");
        served.http = http;
    }
    served.stop(&scene);
}

#[test]
fn tasks_are_listed_page_by_page_newest_first() {
    let scene = Scene::bare();
    let served = scene.a2a(&[]);
    let first = served.send(&Said::text("hello"));
    let context = first["contextId"].as_str().unwrap();
    let mut made: Vec<Value> = vec![first["id"].clone()];
    for _ in 0..4 {
        made.push(served.send(&Said::text("hello").context(context))["id"].clone());
    }
    let other = served.send(&Said::text("write hello to a.txt").dev());
    made.push(other["id"].clone());
    made.reverse();
    let mut listed = Vec::new();
    let mut token = json!("");
    loop {
        let page = served.result("ListTasks", &json!({ "pageSize": 4, "pageToken": token }));
        assert_eq!((&page["totalSize"], &page["pageSize"]), (&json!(6), &json!(4)));
        let tasks = page["tasks"].as_array().unwrap();
        assert!(tasks.iter().all(|task| task.get("history").is_none()), "{page}");
        listed.extend(tasks.iter().map(|task| task["id"].clone()));
        token = page["nextPageToken"].clone();
        if token == "" {
            break;
        }
    }
    assert_eq!(listed, made);
    assert_eq!(listed.iter().map(Value::to_string).collect::<HashSet<_>>().len(), 6);
    let of_context = served.result("ListTasks", &json!({ "contextId": context, "historyLength": 1 }));
    assert_eq!(of_context["totalSize"], 5);
    assert_eq!(of_context["tasks"][0]["history"].as_array().unwrap().len(), 1);
    let waiting = served.result("ListTasks", &json!({ "status": "TASK_STATE_INPUT_REQUIRED" }));
    assert_eq!((&waiting["tasks"][0]["id"], &waiting["totalSize"]), (&other["id"], &json!(1)));
    served.stop(&scene);
}
