//! Somebody types a line that begins with `!`, with every agent: it runs, the agent hears of it, and Esc ends it.

use multitap_testkit::interop;
use multitap_testkit::model::Reply;
use multitap_testkit::wait::{marked, until_blocking};

use super::agent::{Agent, Api};
use super::seat::{leave, place, rests, show};
use super::stage::{PATIENCE, Place};

#[test]
fn claude() {
    check(Agent::Claude);
}

#[test]
fn codex() {
    check(Agent::Codex);
}

#[test]
fn gemini() {
    check(Agent::Gemini);
}

#[test]
fn acp() {
    check(Agent::Acp);
}

#[test]
fn builtin() {
    check(Agent::Builtin(Api::Anthropic));
}

const SLEEP: &str = "sleep 987";

fn check(agent: Agent) {
    if agent.program().is_none() || interop::tmux().is_none() {
        return; // said loudly, and counted
    }
    let place = place(agent);
    let terminal = show(&place, &[]);
    // The shell puts it together, so that what was typed is not taken for it.
    let line = "!echo pine$((40 + 2))apple";
    terminal.enter(line).unwrap();
    terminal.shows("pine42apple").unwrap();
    rests(&terminal);
    assert!(place.model.conversation().is_empty(), "nobody asks the model");

    place.model.push(Reply::text("A kind of fruit."));
    terminal.enter("what did I see?").unwrap();
    terminal.shows("A kind of fruit.").unwrap();
    rests(&terminal);
    let heard = place.model.conversation().pop().unwrap().body.to_string();
    assert!(heard.contains("pine42apple") && heard.contains("what did I see?"), "{heard}");

    terminal.enter(&format!("!{SLEEP}")).unwrap();
    until_blocking("the line to run", PATIENCE, || (sleepers(&place) > 0).then_some(())).unwrap();
    terminal.shows("type to queue").unwrap();
    terminal.press(&["Escape"]).unwrap();
    rests(&terminal);
    assert_eq!(sleepers(&place), 0);

    place.model.push(Reply::text("Good morning."));
    terminal.enter("wake up").unwrap();
    terminal.shows("Good morning.").unwrap();
    rests(&terminal);
    let log = leave(&place, &terminal);
    let all = |kind: &str, field: &str| -> Vec<String> {
        let found = log.iter().filter(|event| event["type"] == kind);
        found.map(|event| event[field].as_str().unwrap_or_default().to_owned()).collect()
    };
    assert_eq!(all("userMessage", "content"), [line, "what did I see?", &format!("!{SLEEP}"), "wake up"]);
    assert_eq!(all("turnCompleted", "status"), ["completed", "completed", "cancelled", "completed"]);
    assert_eq!(all("toolCompleted", "outcome"), ["completed", "cancelled"]);
}

/// How many run of what would not end by itself.
fn sleepers(place: &Place) -> usize {
    marked(&place.scratch).into_iter().filter(|process| process.command == SLEEP).count()
}
