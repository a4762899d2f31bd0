//! What holds for every run, whatever the agent and the scenario.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::stage::Run;

/// The types that the printed schema of the three CLIs knows.
const EIGHT: [&str; 8] = [
    "sessionStarted",
    "textChunk",
    "toolStarted",
    "toolProgress",
    "toolCompleted",
    "fileChanged",
    "turnCompleted",
    "sessionEnded",
];

const PRINTED: &str = include_str!("../../../../event/tests/it/unified-event.schema.json");

/// R002-8, R002-101, R002-102, R002-106, R002-108, R002-109, R002-122, R002-123.
#[track_caller]
pub(crate) fn check(run: &Run) {
    let story = run.story();
    let printed = jsonschema::draft7::options().build(&serde_json::from_str(PRINTED).unwrap()).unwrap();
    let ours = jsonschema::draft202012::options().build(&multitap_event::schema()).unwrap();
    let mut tools: HashMap<&str, u32> = HashMap::new();
    let mut questions: HashSet<&str> = HashSet::new();
    let mut turns = 0;
    let mut ids = HashSet::new();
    for (index, event) in run.events.iter().enumerate() {
        let kind = event["type"].as_str().unwrap();
        // A session that is taken up goes on in its log.
        let first = run.events[0]["seq"].as_u64().unwrap();
        assert_eq!(event["seq"], first + index as u64, "seq has a gap: {event}\n{story}");
        assert!(ids.insert(event["id"].as_str().unwrap()), "an id twice: {event}");
        assert_eq!(event["sessionId"], run.events[0]["sessionId"], "{event}");
        assert!(ours.is_valid(event), "not in our schema: {event}");
        // Of an agent that the printed schema does not know, its name is all that does not fit.
        let unnamed = kind == "sessionStarted" && (event["agentType"] == "acp" || event["agentType"] == "builtin");
        let fits = !EIGHT.contains(&kind) || unnamed || printed.is_valid(event);
        assert!(fits, "not in the printed schema: {event}");
        assert!(!has_null(event) || kind == "toolCompleted" || kind == "system", "null in {event}");
        match kind {
            "toolStarted" => {
                assert!(tools.insert(text(event, "toolId"), 0).is_none(), "started twice: {event}\n{story}")
            }
            "toolCompleted" => {
                let ends = tools.get_mut(text(event, "toolId"));
                let ends = ends.unwrap_or_else(|| panic!("never started: {event}\n{story}"));
                *ends += 1;
                assert_eq!(*ends, 1, "completed twice: {event}\n{story}");
            }
            "turnStarted" => {
                assert_eq!(turns, 0, "a turn within a turn: {event}\n{story}");
                turns += 1;
            }
            "turnCompleted" => turns -= 1,
            "permissionAsked" => assert!(questions.insert(text(event, "questionId")), "asked twice: {event}"),
            "permissionSettled" | "permissionWithdrawn" => {
                assert!(questions.remove(text(event, "questionId")), "closed twice, or never asked: {event}\n{story}");
            }
            _ => {}
        }
    }
    assert!(tools.values().all(|ends| *ends == 1), "a tool never ended: {tools:?}\n{story}");
    assert!(questions.is_empty(), "a question was left open: {questions:?}\n{story}");
    assert_eq!(turns, 0, "a turn never ended\n{story}");
    let ends = run.all("sessionEnded");
    assert_eq!(ends.len(), 1, "{story}");
    assert_eq!(run.events.last(), Some(ends[0]), "{story}");
    assert!(run.all("sessionStarted").len() <= 1, "{story}");
    assert!(run.all("unrecognized").is_empty(), "a line of the pinned CLI was not understood\n{story}");
}

fn text<'a>(event: &'a Value, key: &str) -> &'a str {
    event[key].as_str().unwrap_or_else(|| panic!("no {key} in {event}"))
}

fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.iter().any(has_null),
        Value::Object(map) => map.values().any(has_null),
        _ => false,
    }
}
