//! The slash commands of whichever agent is behind the door.

use multitap_testkit::http::HttpClient;
use multitap_testkit::model::Reply;
use serde_json::{Value, json};

use super::cast::Cast;
use super::host::Host;
use crate::interop::agent::Agent;
use crate::interop::stage::Place;

/// R000-44, R000-45, R000-48, R000-50: without a context they are those of the agent that a session would have; a
/// sub-command is a path or a name with spaces; what the agent does not list never reaches its model.
pub(super) fn the_agents_own_commands_are_listed_and_run(cast: Cast) {
    let place = Place::new(cast.agent(), []);
    let host = Host::start(&place, cast, &[]);
    let http = HttpClient::to(host.port);
    let result = |method: &str, params: &Value| {
        let answer = http.answer(method, params).unwrap();
        answer.get("result").unwrap_or_else(|| panic!("{method}: {answer:#}")).clone()
    };
    let listed = result("commands/get", &json!({}));
    let find = |list: &Value, name: &str| list.as_array().unwrap().iter().find(|it| it["name"] == name).cloned();
    let (command, sub) = match cast.agent() {
        Agent::Claude | Agent::Acp => ("context", None),
        Agent::Codex => ("compact", None),
        Agent::Gemini | Agent::Builtin(_) => ("memory", Some("show")),
    };
    let found = find(&listed["commands"], command).unwrap_or_else(|| panic!("{command} in {listed:#}"));
    if let Some(sub) = sub {
        assert!(find(&found["sub_commands"], sub).is_some(), "{found:#}");
    }
    let shipped = http.get("/listCommands").unwrap().json().unwrap();
    assert!(find(&shipped["commands"], command).is_some(), "{shipped:#}");
    assert!(place.model.conversation().is_empty(), "listing asks no model");

    let words: Vec<&str> = std::iter::once(command).chain(sub).collect();
    if cast.agent() == Agent::Codex {
        // It sums up by its model.
        place.model.push(Reply::text("summed up"));
    }
    for path in [json!(words), json!([words.join(" ")])] {
        let ran = result("command/execute", &json!({ "command_path": path, "args": "" }));
        assert_eq!(ran["status"], "STARTED", "{path}: {ran}");
        if cast.agent() == Agent::Codex {
            break;
        }
        let body = json!({ "command": words.join(" "), "args": [] });
        let ran = http.post("/executeCommand", &body).unwrap().json().unwrap();
        assert!(ran["data"].as_str().is_some_and(|said| !said.trim().is_empty()), "{ran}");
    }
    let asked = place.model.conversation().len();
    assert!(asked == 0 || cast.agent() == Agent::Codex, "{asked}");
    for path in [json!(["no-such-command"]), json!([command, "no-such-part"]), json!(["no such command"])] {
        let failed = result("command/execute", &json!({ "command_path": path, "args": "" }));
        assert_eq!(failed["status"], "FAILED_TO_START", "{path}: {failed}");
        assert!(failed["message"].as_str().unwrap().contains("there is no command"), "{failed}");
    }
    let refused = http.post("/executeCommand", &json!({ "command": "no-such-command" })).unwrap();
    assert_eq!(refused.status, 404);
    assert_eq!(place.model.conversation().len(), asked, "unknown commands ask no model");
    host.stop();
}
