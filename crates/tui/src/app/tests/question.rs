//! Questions: which keys answer them, and which do not; and what was written for one that somebody else answered.

use super::*;
use crate::transcript::{Scroll, Shape};

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
    settle_by(screen, id, &json!(me()));
}

fn settle_by(screen: &mut Screen, id: &str, by: &Value) {
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
        screen.on(Msg::QuestionSeen);
        assert!(matches!(screen.keys("1")[..], [Effect::Decide(_)]));
        settle(&mut screen, question);
    }
}

#[test]
fn a_key_for_a_question_that_somebody_else_answered_does_nothing_else() {
    let mut screen = Screen::new(AgentType::Builtin);
    screen.tell("turnStarted", &json!({ "turnId": "t" }));
    screen.keys("half a thou");
    let open = |screen: &mut Screen, id| {
        ask(screen, id);
        screen.on(Msg::QuestionSeen);
    };
    open(&mut screen, "q1");
    settle_by(&mut screen, "q1", &phone());
    for key in ["1", "<enter>", "<esc>"] {
        assert_eq!(screen.keys(key), [], "{key}");
        assert!(screen.model.status.notice.as_ref().unwrap().contains("question was closed"), "{key}");
    }
    assert_eq!(screen.typed(), "half a thou");
    screen.keys("ght");
    assert_eq!(screen.typed(), "half a thought", "letters are typed as ever");
    screen.on(Msg::QuestionSeen);
    assert_eq!(screen.keys("<esc>"), [Effect::Cancel]);
    assert!(matches!(screen.keys("<enter>")[..], [_, Effect::Prompt(_)]));
    // One's own answer is no surprise.
    open(&mut screen, "q2");
    settle(&mut screen, "q2");
    assert_eq!(screen.keys("<esc>"), [Effect::Cancel]);
    // Figures may be the rest of words that were typed for it.
    open(&mut screen, "q3");
    screen.keys("<tab>port ");
    settle_by(&mut screen, "q3", &phone());
    screen.keys("80");
    assert_eq!(screen.typed(), "port 80");
}

#[test]
fn what_cannot_be_read_is_not_allowed() {
    let mut screen = Screen::new(AgentType::Builtin);
    ask(&mut screen, "q1");
    screen.on(Msg::QuestionSeen);
    screen.on(Msg::Resized(Size::new(10, 3)));
    assert_eq!(screen.keys("1<enter>y"), []);
    assert!(matches!(screen.keys("<esc>")[..], [Effect::Decide(_)]), "a no is always possible");
    screen.on(Msg::Resized(Size::new(80, 24)));
    assert!(matches!(screen.keys("1")[..], [Effect::Decide(_)]));
}

#[test]
fn an_editor_in_a_question_is_for_what_is_asked_about() {
    let mut screen = Screen::new(AgentType::Builtin);
    ask(&mut screen, "q1");
    screen.on(Msg::QuestionSeen);
    let effects = screen.keys("<tab>carefully<^g>");
    let [Effect::Edit { what, text }] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!(text, "rm");
    screen.on(Msg::Edited { what: what.clone(), text: "rm -i".to_owned() });
    screen.on(Msg::QuestionSeen);
    let effects = screen.keys("<up><enter>");
    let [Effect::Decide(decide)] = &effects[..] else { panic!("{effects:?}") };
    let sent = (decide.option_id.as_str(), decide.new_content.as_deref(), decide.feedback.as_deref());
    assert_eq!(sent, ("proceed_once", Some("rm -i"), Some("carefully")));
    let effects = screen.keys("<down><enter>");
    assert!(matches!(&effects[..], [Effect::Decide(decide)] if decide.new_content.is_none()), "{effects:?}");
}

#[test]
fn who_types_on_answers_nothing() {
    let mut screen = Screen::new(AgentType::Builtin);
    ask(&mut screen, "q1");
    screen.keys("fi");
    screen.on(Msg::QuestionSeen);
    assert_eq!(screen.keys("x any tests, dear friend<enter>"), [], "letters and Enter are the rest of it");
    assert_eq!(screen.keys("1"), [], "a figure chooses");
    assert!(matches!(screen.keys("1")[..], [Effect::Decide(_)]), "and then answers");
    settle(&mut screen, "q1");
    ask(&mut screen, "q2");
    screen.on(Msg::Paste("some words".to_owned()));
    screen.on(Msg::QuestionSeen);
    assert_eq!(screen.keys("<enter>y"), []);
}

#[test]
fn what_was_asked_where_events_are_lost_is_seen_all_the_same() {
    let mut screen = Screen::new(AgentType::Builtin);
    let mut elsewhere = Screen::new(AgentType::Builtin);
    elsewhere.tell("turnStarted", &json!({ "turnId": "t" }));
    ask(&mut elsewhere, "q1");
    assert_eq!(screen.on(Msg::Gap { after: 2, next: 9 }), [Effect::Snapshot]);
    screen.on(Msg::Snapshot(Box::new(elsewhere.model.session.state.clone())));
    assert!(screen.model.questions.shown.is_some());
}

fn phone() -> Value {
    json!({ "client": "phone", "door": "a2a", "clientId": "x" })
}

/// Everything that the transcript says, and a notice.
fn told(screen: &Screen) -> String {
    let shape = Shape { columns: 200, rows: 100, theme: screen.model.theme };
    let lines = screen.model.scrollback.transcript.visible(Scroll::Latest, shape);
    let notice = screen.model.status.notice.iter().cloned();
    lines.iter().map(ToString::to_string).chain(notice).collect::<Vec<_>>().join("\n")
}

/// A question whose command is in an editor, and what the editor is for.
fn editing() -> (Screen, Edited) {
    let mut screen = Screen::new(AgentType::Builtin);
    ask(&mut screen, "q1");
    screen.on(Msg::QuestionSeen);
    let mut effects = screen.keys("<^g>");
    let Some(Effect::Edit { what, text }) = effects.pop() else { panic!("no editor") };
    assert_eq!(text, "rm");
    (screen, what)
}

#[test]
fn what_was_written_in_an_editor_outlives_the_question() {
    let why = unsent::NO_ANSWER.to_owned();
    let keep = [Effect::SaveText { text: "rm -i".to_owned(), why: why.clone() }];
    // Somebody else answers while the edit is looked at, or after it was sent.
    let (mut screen, what) = editing();
    screen.on(Msg::Edited { what, text: "rm -i".to_owned() });
    let settled = json!({ "questionId": "q1", "selectedOptionId": "proceed_once", "kind": "allowOnce", "settledBy": phone(), "at": Timestamp::from_millis(0), "edited": false });
    assert_eq!(screen.tell("permissionSettled", &settled), keep);
    let mut decide = multitap_event::Decide::new(&"q1".into(), "proceed_once");
    decide.new_content = Some("rm -i".to_owned());
    assert_eq!(screen.on(Msg::NotDecided { decide, why: why.clone() }), keep);
    // While the editor is open.
    let (mut screen, what) = editing();
    settle_by(&mut screen, "q1", &phone());
    assert_eq!(screen.on(Msg::Edited { what, text: "rm -i".to_owned() }), keep);
    let kept = |file| Msg::TextSaved { text: "rm -i".to_owned(), why: why.clone(), file };
    screen.on(kept(Ok("/tmp/kept.md".into())));
    assert!(
        told(&screen).contains("question was closed: what you wrote is saved in /tmp/kept.md"),
        "{}",
        told(&screen)
    );
    screen.keys("x");
    assert!(told(&screen).contains("· what you wrote is saved in /tmp/kept.md"), "still there:\n{}", told(&screen));
    // Where no file can be written.
    screen.on(kept(Err("disk full".to_owned())));
    assert!(told(&screen).contains("Up restores what you wrote"), "{}", told(&screen));
    screen.keys("<up>");
    assert_eq!(screen.typed(), "rm -i");
    screen.keys("<down>");
    assert_eq!(screen.typed(), "x", "and what was typed is not lost by it");
}

#[test]
fn nothing_is_kept_where_nothing_was_written() {
    let (mut screen, what) = editing();
    settle_by(&mut screen, "q1", &phone());
    assert_eq!(screen.on(Msg::Edited { what, text: "rm".to_owned() }), []);
    assert!(screen.model.status.notice.as_ref().unwrap().contains("question was closed"));
    let decide = multitap_event::Decide::new(&"q1".into(), "proceed_once");
    assert_eq!(screen.on(Msg::NotDecided { decide, why: "too late".to_owned() }), []);
    assert_eq!(screen.model.status.notice.as_deref(), Some("too late"));
}

#[test]
fn words_for_a_question_that_somebody_else_answered_are_typed_on_and_not_sent_by_accident() {
    let mut screen = Screen::new(AgentType::Builtin);
    screen.model.agent.commands = Some(Vec::new());
    ask(&mut screen, "q1");
    screen.on(Msg::QuestionSeen);
    screen.keys("<tab>use cargo");
    settle_by(&mut screen, "q1", &phone());
    assert_eq!(screen.keys(" clean<enter>"), [], "the key was to answer");
    assert_eq!(screen.typed(), "use cargo clean");
    assert!(screen.model.status.notice.as_ref().unwrap().contains("Enter again sends"));
    let sent = screen.keys("<enter>");
    assert_eq!(sent, [remembered("use cargo clean"), Effect::Prompt(Prompt::text("use cargo clean"))]);
    // What is typed after it was cleared is a prompt like any other.
    ask(&mut screen, "q2");
    screen.on(Msg::QuestionSeen);
    screen.keys("<tab>no");
    settle_by(&mut screen, "q2", &phone());
    screen.on(Msg::QuestionSeen);
    screen.keys("<^c>");
    assert!(matches!(screen.keys("hi<enter>")[..], [_, Effect::Prompt(_)]));
}

#[test]
fn whoever_types_a_word_means_that() {
    for (typed, is_sent) in [("<enter>", false), ("y<enter>", false), ("go<enter>", true)] {
        let mut screen = Screen::new(AgentType::Builtin);
        screen.model.agent.commands = Some(Vec::new());
        screen.keys("draft ");
        ask(&mut screen, "q1");
        screen.on(Msg::QuestionSeen);
        settle_by(&mut screen, "q1", &phone());
        let effects = screen.keys(typed);
        assert_eq!(effects.iter().any(|effect| matches!(effect, Effect::Prompt(_))), is_sent, "{typed}: {effects:?}");
    }
}

#[test]
fn only_words_for_a_question_are_asked_about_before_they_are_sent() {
    let left_over = || {
        let mut screen = Screen::new(AgentType::Builtin);
        screen.model.agent.commands = Some(Vec::new());
        screen.keys("hello<enter>");
        ask(&mut screen, "q1");
        screen.on(Msg::QuestionSeen);
        screen.keys("<tab>use cargo");
        settle_by(&mut screen, "q1", &phone());
        screen.on(Msg::QuestionSeen);
        screen
    };
    let is_sent = |effects: &[Effect]| effects.iter().any(|effect| matches!(effect, Effect::Prompt(_)));
    // Something else has taken their place.
    assert!(is_sent(&left_over().keys("<up><enter>")));
    assert!(is_sent(&left_over().keys("<^r>hel<enter><enter>")));
    let mut screen = left_over();
    screen.on(Msg::Edited { what: Edited::Composer, text: "quite another thing".to_owned() });
    assert!(is_sent(&screen.keys("<enter>")));
    // They are back, or have another end.
    assert!(!is_sent(&left_over().keys("<up><down><enter>")));
    assert!(!is_sent(&left_over().keys("<back><back>ts<enter>")));
}

#[test]
fn words_for_a_question_do_not_mix_with_what_was_typed_before_it_came() {
    let mut screen = Screen::new(AgentType::Builtin);
    screen.keys("and then");
    for id in ["q1", "q2"] {
        ask(&mut screen, id);
        screen.on(Msg::QuestionSeen);
    }
    screen.keys("1<tab>slowly");
    // It is not on the screen when somebody answers it.
    screen.on(Msg::Key(KeyEvent::new(KeyCode::Char('2'), KeyModifiers::ALT)));
    settle_by(&mut screen, "q1", &phone());
    settle_by(&mut screen, "q2", &phone());
    assert_eq!(screen.typed(), "and then");
    assert!(told(&screen).contains("· Up restores what you wrote"), "{}", told(&screen));
    screen.keys("<up>");
    assert_eq!(screen.typed(), "slowly");
}

#[test]
fn words_that_went_with_the_answer_are_not_left_over() {
    let mut screen = Screen::new(AgentType::Builtin);
    ask(&mut screen, "q1");
    screen.on(Msg::QuestionSeen);
    let effects = screen.keys("<tab>slowly<enter>");
    assert!(matches!(&effects[..], [Effect::Decide(decide)] if decide.feedback.as_deref() == Some("slowly")));
    settle(&mut screen, "q1");
    assert_eq!((screen.typed(), screen.model.status.notice.as_deref()), ("", None));
}

#[test]
fn an_editor_that_is_left_without_a_change_allows_nothing() {
    for left in ["rm", "rm\n"] {
        let (mut screen, what) = editing();
        assert_eq!(screen.on(Msg::Edited { what, text: left.to_owned() }), [], "{left:?}");
        assert!(
            screen.model.questions.shown.is_some() && told(&screen).contains("nothing was changed"),
            "{}",
            told(&screen)
        );
    }
    let (mut screen, _) = editing();
    assert_eq!(screen.on(Msg::NotEdited("vi ended with exit status: 1".to_owned())), []);
    assert!(screen.model.questions.shown.is_some());
}

#[test]
fn what_was_edited_is_shown_and_asked_about_again() {
    let (mut screen, what) = editing();
    assert_eq!(screen.on(Msg::Edited { what, text: "rm -i\n".to_owned() }), [], "nothing is allowed yet");
    assert_eq!(screen.keys("<enter>1"), [], "nobody can have read it");
    screen.on(Msg::QuestionSeen);
    let effects = screen.keys("<enter>");
    let [Effect::Decide(decide)] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!((decide.new_content.as_deref(), decide.option_id.as_str()), (Some("rm -i"), "proceed_once"));
    // Refused: the question is still there, with the edit.
    let why = "the edited command is blocked".to_owned();
    assert_eq!(screen.on(Msg::NotDecided { decide: decide.clone(), why: why.clone() }), []);
    assert!(told(&screen).contains(&why), "{}", told(&screen));
    let mut effects = screen.keys("<^g>");
    let Some(Effect::Edit { what, text }) = effects.pop() else { panic!("no editor") };
    assert_eq!(text, "rm -i", "the edit goes on");
    // Back to what it was: then it is no edit.
    screen.on(Msg::Edited { what, text: "rm".to_owned() });
    screen.on(Msg::QuestionSeen);
    let effects = screen.keys("<enter>");
    assert!(matches!(&effects[..], [Effect::Decide(decide)] if decide.new_content.is_none()), "{effects:?}");
    let effects = screen.keys("<esc>");
    assert!(matches!(&effects[..], [Effect::Decide(decide)] if decide.option_id.as_str() == "cancel"), "{effects:?}");
}

/// An edited answer allows once: options that make a rule would be refused.
#[test]
fn an_edit_is_not_offered_options_that_make_a_rule() {
    let mut screen = Screen::new(AgentType::Builtin);
    let options = json!([
        { "id": "proceed_once", "name": "Allow once", "kind": "allowOnce" },
        { "id": "proceed_always", "name": "Always", "kind": "allowAlways" },
        { "id": "proceed_always_and_save", "name": "Always, and save", "kind": "allowAlways", "ownerOnly": true },
        { "id": "cancel", "name": "Deny", "kind": "rejectOnce" },
    ]);
    let details = json!({ "type": "command", "command": "rm", "directory": "/" });
    let question =
        json!({ "questionId": "q", "title": "rm", "options": options, "details": details, "edits": ["newContent"] });
    screen.tell("permissionAsked", &question);
    screen.on(Msg::QuestionSeen);
    screen.keys("<down><down><down>");
    for (text, expected) in [
        ("rm -i", vec!["Allow once", "Deny"]),
        // Back to what it was: then it is no edit.
        ("rm", vec!["Allow once", "Always", "Always, and save", "Deny"]),
    ] {
        let mut effects = screen.keys("<^g>");
        let Some(Effect::Edit { what, .. }) = effects.pop() else { panic!("no editor") };
        screen.on(Msg::Edited { what, text: text.to_owned() });
        screen.on(Msg::QuestionSeen);
        let asking = screen.model.questions.shown.as_ref().unwrap();
        assert_eq!((asking.names(), asking.chosen), (expected, Some(0)), "{text}");
    }
}

#[test]
fn words_go_with_the_option_that_the_line_names() {
    let mut screen = Screen::new(AgentType::Builtin);
    ask(&mut screen, "q1");
    screen.on(Msg::QuestionSeen);
    let effects = screen.keys("<tab>not this one<enter>");
    let option = |effects: &[Effect]| match effects {
        [Effect::Decide(decide)] => decide.option_id.to_string(),
        other => panic!("{other:?}"),
    };
    assert_eq!(option(&effects), "cancel", "nobody chose to allow it");
    screen.keys("<esc>");
    assert_eq!(option(&screen.keys("<tab>go on<up><enter>")), "proceed_once", "somebody chose it now");
}

/// An option that would be refused is not shown; an owner sees it.
#[test]
fn options_of_the_owner_are_shown_to_owners_alone() {
    for (role, expected) in [
        (Some(multitap_event::ClientRole::Controller), vec!["Allow once", "Deny"]),
        (Some(multitap_event::ClientRole::Owner), vec!["Allow once", "Always, and save", "Deny"]),
        (None, vec!["Allow once", "Always, and save", "Deny"]),
    ] {
        let mut screen = Screen::new(AgentType::Builtin);
        screen.model.session.me.role = role;
        let options = json!([
            { "id": "proceed_once", "name": "Allow once", "kind": "allowOnce" },
            { "id": "proceed_always_and_save", "name": "Always, and save", "kind": "allowAlways", "ownerOnly": true },
            { "id": "cancel", "name": "Deny", "kind": "rejectOnce" },
        ]);
        let details = json!({ "type": "command", "command": "rm", "directory": "/" });
        screen.tell(
            "permissionAsked",
            &json!({ "questionId": "q", "title": "rm", "options": options, "details": details }),
        );
        assert_eq!(screen.model.questions.shown.as_ref().unwrap().names(), expected, "{role:?}");
    }
}
