//! Questions: which keys answer them, and which do not.

use super::*;

fn ask(screen: &mut Screen, id: &str) {
    let options = json!([
        { "id": "proceed_once", "name": "Allow once", "kind": "allowOnce" },
        { "id": "cancel", "name": "Deny", "kind": "rejectOnce" },
    ]);
    let details = json!({ "type": "command", "command": "rm", "directory": "/" });
    let edits = json!(["newContent"]);
    let question = json!({ "questionId": id, "title": "rm", "options": options, "details": details, "edits": edits });
    screen.tell("permissionAsked", &question);
}

fn settle(screen: &mut Screen, id: &str) {
    let by = json!({ "client": "ann", "door": "terminal" });
    let settled = json!({ "questionId": id, "selectedOptionId": "proceed_once", "kind": "allowOnce", "settledBy": by, "at": Timestamp::from_millis(0), "edited": false });
    screen.tell("permissionSettled", &settled);
}

#[test]
fn a_key_answers_only_what_could_be_read() {
    let mut screen = Screen::new(AgentType::Builtin);
    for question in ["q1", "q2"] {
        ask(&mut screen, question);
        for key in ["1", "<enter>", "<esc>", "<^g>"] {
            assert_eq!(screen.keys(key), [], "{key}");
        }
        update(&mut screen.model, Msg::Ripe);
        assert!(matches!(screen.keys("1")[..], [Effect::Decide(_)]));
        settle(&mut screen, question);
    }
}

#[test]
fn what_cannot_be_read_is_not_allowed() {
    let mut screen = Screen::new(AgentType::Builtin);
    ask(&mut screen, "q1");
    update(&mut screen.model, Msg::Ripe);
    update(&mut screen.model, Msg::Resized { columns: 10, rows: 3 });
    assert_eq!(screen.keys("1<enter>y"), []);
    assert!(matches!(screen.keys("<esc>")[..], [Effect::Decide(_)]), "a no is always possible");
    update(&mut screen.model, Msg::Resized { columns: 80, rows: 24 });
    assert!(matches!(screen.keys("1")[..], [Effect::Decide(_)]));
}

#[test]
fn an_editor_in_a_question_is_for_what_is_asked_about() {
    let mut screen = Screen::new(AgentType::Builtin);
    ask(&mut screen, "q1");
    update(&mut screen.model, Msg::Ripe);
    let effects = screen.keys("<tab>carefully<^g>");
    let [Effect::Edit { what: Edited::Answer(decide), text }] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!((text.as_str(), decide.feedback.as_deref()), ("rm", Some("carefully")));
}

#[test]
fn who_types_on_answers_nothing() {
    let mut screen = Screen::new(AgentType::Builtin);
    ask(&mut screen, "q1");
    screen.keys("fi");
    update(&mut screen.model, Msg::Ripe);
    assert_eq!(screen.keys("x any tests, dear friend<enter>"), [], "letters and Enter are the rest of it");
    assert_eq!(screen.keys("1"), [], "a figure chooses");
    assert!(matches!(screen.keys("1")[..], [Effect::Decide(_)]), "and then answers");
    settle(&mut screen, "q1");
    ask(&mut screen, "q2");
    update(&mut screen.model, Msg::Paste("some words".to_owned()));
    update(&mut screen.model, Msg::Ripe);
    assert_eq!(screen.keys("<enter>y"), []);
}

#[test]
fn what_was_asked_where_events_are_lost_is_seen_all_the_same() {
    let mut screen = Screen::new(AgentType::Builtin);
    let mut elsewhere = Screen::new(AgentType::Builtin);
    elsewhere.tell("turnStarted", &json!({ "turnId": "t" }));
    ask(&mut elsewhere, "q1");
    assert_eq!(update(&mut screen.model, Msg::Gap { after: 2, next: 9 }), [Effect::Snapshot]);
    update(&mut screen.model, Msg::Snapshot(Box::new(elsewhere.model.state.clone())));
    assert!(screen.model.asking.is_some());
}
