//! Results as artifacts, for clients that know A2A alone.

use serde_json::{Value, json};

use super::way::{Way, Wish, state, text};
use super::{Said, URI};
use crate::scene::Scene;

/// The ids of a task's artifacts, and the text of each.
fn artifacts(task: &Value) -> Vec<(String, String)> {
    let all = task.get("artifacts").and_then(Value::as_array);
    let one = |artifact: &Value| (artifact["artifactId"].as_str().unwrap().to_owned(), text(artifact));
    all.into_iter().flatten().map(one).collect()
}

#[test]
fn the_answer_and_the_changes_of_a_turn_are_artifacts() {
    let scene = Scene::bare();
    let served = scene.a2a(&[]);
    let http = &served.http;
    for way in Way::ALL {
        let asked = way.result(http, &Wish::Send(Said::text("write hello to a.txt")));
        assert_eq!((state(&asked).as_str(), artifacts(&asked).len()), ("input-required", 0), "{way:?}: {asked:#}");
        let task = asked["id"].as_str().unwrap().to_owned();
        let done = way.result(http, &Wish::Send(Said::text("proceed_once").task(&task)));
        assert_eq!(state(&done), "completed", "{way:?}: {done:#}");
        let made = artifacts(&done);
        let [(answer, said), (changes, _)] = made.as_slice() else { panic!("{way:?}: {done:#}") };
        assert_eq!((answer.as_str(), said), ("answer", &text(&done["status"]["message"])), "{way:?}");
        assert!(changes.starts_with("changes-"), "{way:?}: {changes}");
        assert_eq!(done["artifacts"][1]["name"], "a.txt", "{way:?}");
        let file = done["artifacts"][1]["parts"][0].to_string();
        assert!(file.contains("aGVsbG8K") && file.contains("a.txt"), "{way:?}: a new file as it is: {file}");
        // However the task is looked at, and after a restart too.
        assert_eq!(artifacts(&way.result(http, &Wish::Get(task.clone(), Some(0)))), made, "{way:?}");
        if way != Way::Rpc03 {
            let listed = served.listed(way, &[("pageSize", "1"), ("includeArtifacts", "true")]);
            assert_eq!(artifacts(&listed["tasks"][0]), made, "{way:?}");
            assert!(artifacts(&served.listed(way, &[("pageSize", "1")])["tasks"][0]).is_empty(), "{way:?}");
        }
        std::fs::remove_file(scene.scratch.path("a.txt")).unwrap();
    }
    let last = served.listed(Way::Rpc10, &[("pageSize", "1")])["tasks"][0]["id"].clone();
    served.stop(&scene);
    let served = scene.a2a(&[]);
    let stored = served.task(last.as_str().unwrap());
    assert_eq!(artifacts(&stored).len(), 2, "{stored:#}");
    served.stop(&scene);
}

/// A stream of 1.0 ends with them. One of 0.3 has none: its clients join messages and artifacts to one answer.
#[test]
fn a_stream_of_1_0_has_the_results_before_its_last_frame() {
    let scene = Scene::bare();
    let served = scene.a2a(&["--approval-mode", "auto-all"]);
    std::fs::write(scene.scratch.path("a.txt"), "one\n").unwrap();
    for (way, turn) in [(Way::Rpc10, "edit a.txt: one => two"), (Way::Rest10, "edit a.txt: two => three")] {
        let items = way.stream(&served.http, &Wish::Stream(Said::text(turn)));
        let [.., answer, changes, last] = items.as_slice() else { panic!("{items:#?}") };
        assert_eq!(last.state(), "completed", "{way:?}");
        for item in [answer, changes] {
            assert_eq!((item.cursor.as_str(), &item.json["lastChunk"]), ("", &json!(true)), "{way:?}: {item:#?}");
        }
        assert_eq!(answer.json["artifact"]["artifactId"], "answer", "{way:?}");
        let diff = text(&changes.json["artifact"]);
        assert!(diff.contains("-") && diff.contains("+t"), "{way:?}: {diff}");
        assert_eq!(changes.json["artifact"]["parts"][0]["mediaType"], "text/x-diff");
        let others = &items[..items.len() - 3];
        assert!(others.iter().all(|item| item.json.get("artifact").is_none()), "{items:#?}");
    }
    for way in [Way::Rpc03, Way::Rest03] {
        let items = way.stream(&served.http, &Wish::Stream(Said::text("hello")));
        assert!(items.iter().all(|item| item.json.get("artifact").is_none()), "{way:?}: {items:#?}");
    }
    let items = Way::Rest10.stream(&served.http, &Wish::Stream(Said::text("fail on purpose")));
    assert!(items.iter().all(|item| item.json.get("artifact").is_none()), "{items:#?}");
    served.stop(&scene);
}

/// Clients of the extension have the same in tool calls and messages: they would show it twice.
#[test]
fn clients_of_the_extension_get_no_artifacts() {
    let scene = Scene::bare();
    let mut served = scene.a2a(&["--approval-mode", "auto-all"]);
    let by_settings = served.send(&Said::text("write hello to a.txt").dev());
    assert!(artifacts(&by_settings).is_empty(), "{by_settings:#}");
    assert!(artifacts(&served.task(by_settings["id"].as_str().unwrap())).is_empty());
    let core = served.send(&Said::text("write hello to b.txt"));
    assert_eq!(artifacts(&core).len(), 2, "{core:#}");
    served.http = served.http.clone().with("X-A2A-Extensions", URI);
    let by_header = served.send(&Said::text("write hello to c.txt"));
    assert!(artifacts(&by_header).is_empty(), "{by_header:#}");
    assert!(artifacts(&served.task(core["id"].as_str().unwrap())).is_empty(), "whoever looks decides");
    let listed = served.result("ListTasks", &json!({ "includeArtifacts": true }));
    assert!(listed["tasks"].as_array().unwrap().iter().all(|task| artifacts(task).is_empty()), "{listed:#}");
    served.stop(&scene);
}
