//! Questions on the screen: answered by a key, turned through, and filled in.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::{Value, json};

use super::Play;
use super::screens::{asked, check, settled};
use crate::effect::Effect;
use crate::msg::Msg;

#[test]
fn several_questions_are_turned_through() {
    check("several_questions", 20, |play| {
        play.tell(&asked("one", "ls"));
        play.tell(&asked("two", "rm -rf build"));
        play.press(KeyCode::Right);
    });
    let mut play = Play::new(80, 20);
    play.tell(&asked("one", "ls"));
    play.tell(&asked("two", "make"));
    assert!(play.screen().contains("1 of 2 · Allow the agent to run ls?"), "{}", play.screen());
    play.press(KeyCode::Left);
    assert!(play.screen().contains("2 of 2 · Allow the agent to run make?"), "{}", play.screen());
    let effects = play.press(KeyCode::Char('d'));
    assert!(
        matches!(&effects[..], [Effect::Decide(decide)] if decide.question_id == "two".into() && decide.option_id == "cancel".into()),
        "{effects:?}"
    );
    // Two options begin with this letter: one is chosen, none is answered.
    assert_eq!(play.press(KeyCode::Char('a')), []);
    let effects = play.press(KeyCode::Enter);
    assert!(
        matches!(&effects[..], [Effect::Decide(decide)] if decide.option_id == "proceed_always".into()),
        "{effects:?}"
    );
}

/// Three things an agent wants to know: one of some, some of some, and words.
fn form(id: &str) -> Value {
    json!({
        "type": "permissionAsked", "questionId": id, "title": "Which colour should it have?",
        "options": [
            { "id": "proceed_once", "name": "Answer", "kind": "allowOnce" },
            { "id": "cancel", "name": "Do not answer", "kind": "rejectOnce" },
        ],
        "details": { "type": "input", "questions": [
            { "question": "Which colour should it have?", "header": "Colour", "labels": ["Red", "Blue"] },
            { "question": "Where should it be shown?", "header": "Places", "labels": ["Terminal", "Web", "Phone"], "multiSelect": true },
            { "question": "What should it be called?", "header": "Name" },
        ] },
    })
}

#[test]
fn a_form_is_filled_in_part_by_part() {
    let filled = |play: &mut Play| {
        play.tell(&form("f"));
        play.write("2");
        play.write("13");
        play.press(KeyCode::Enter);
        play.write("Lamp");
        play.press(KeyCode::Enter);
    };
    check("form", 16, |play| drop(play.tell(&form("f"))));
    check("form_several", 16, |play| {
        play.tell(&form("f"));
        play.press(KeyCode::Enter);
        play.write("2");
        play.press(KeyCode::Down);
    });
    check("form_words", 16, |play| {
        play.tell(&form("f"));
        play.press(KeyCode::Right);
        play.press(KeyCode::Right);
        play.write("Lam");
    });
    check("form_answers", 18, filled);
    check("form_not_answered", 18, |play| {
        play.tell(&form("f"));
        play.write("1");
        play.press(KeyCode::Right);
        play.press(KeyCode::Enter);
    });
    let mut play = Play::new(80, 20);
    filled(&mut play);
    // Back to the first, which is answered in other words.
    for _ in 0..3 {
        play.press(KeyCode::Left);
    }
    assert!(play.screen().contains("2. Blue ✓"), "{}", play.screen());
    play.press(KeyCode::Tab);
    play.write("green");
    play.press(KeyCode::Enter);
    let answers = json!({
        "Which colour should it have?": "green", "Where should it be shown?": ["Terminal", "Phone"],
        "What should it be called?": "Lamp",
    });
    assert_eq!(
        sent(&play.press(KeyCode::Enter)),
        json!({ "questionId": "f", "optionId": "proceed_once", "answers": answers })
    );
    // What was filled in is not thrown away by one key.
    play.press(KeyCode::Left);
    assert_eq!(play.press(KeyCode::Esc), [], "{}", play.screen());
    for no in [KeyCode::Enter, KeyCode::Esc] {
        assert_eq!(sent(&play.press(no)), json!({ "questionId": "f", "optionId": "cancel" }));
    }
}

/// The answer that was given.
#[track_caller]
fn sent(effects: &[Effect]) -> Value {
    let [Effect::Decide(decide)] = effects else { panic!("{effects:?}") };
    serde_json::to_value(decide).unwrap()
}

#[test]
fn a_form_is_sent_when_nothing_is_missing() {
    let mut play = Play::new(80, 20);
    play.tell(&form("f"));
    for _ in 0..3 {
        play.press(KeyCode::Right);
    }
    assert_eq!(play.press(KeyCode::Enter), []);
    assert!(play.screen().contains("part 1 of 3") && play.screen().contains("no answer yet"), "{}", play.screen());
    play.press(KeyCode::Enter);
    // Nothing is picked: what the cursor is at is meant.
    play.press(KeyCode::Down);
    play.press(KeyCode::Enter);
    play.press(KeyCode::Enter);
    assert!(play.screen().contains("(left empty)"), "{}", play.screen());
    let answers = json!({ "Which colour should it have?": "Red", "Where should it be shown?": ["Web"], "What should it be called?": "" });
    assert_eq!(sent(&play.press(KeyCode::Enter))["answers"], answers);
}

#[test]
fn one_question_is_answered_by_its_option_or_in_own_words() {
    let one = |labels: Value| {
        json!({
            "type": "permissionAsked", "questionId": "q", "title": "Which?",
            "options": [{ "id": "answer_1", "name": "Red", "kind": "allowOnce" }, { "id": "cancel", "name": "No", "kind": "rejectOnce" }],
            "details": { "type": "input", "questions": [{ "question": "Which?", "labels": labels }] },
        })
    };
    let mut play = Play::new(80, 20);
    play.tell(&one(json!(["Red"])));
    assert_eq!(sent(&play.press(KeyCode::Enter)), json!({ "questionId": "q", "optionId": "answer_1" }));
    assert_eq!(sent(&play.press(KeyCode::Char('n'))), json!({ "questionId": "q", "optionId": "cancel" }));
    play.press(KeyCode::Char('2'));
    play.write("mauve");
    let own = json!({ "questionId": "q", "optionId": "answer_1", "answers": { "Which?": "mauve" } });
    assert_eq!(sent(&play.press(KeyCode::Enter)), own);
    let mut play = Play::new(80, 20);
    play.tell(&one(json!([])));
    assert_eq!(play.press(KeyCode::Enter), [], "nothing is no answer");
    play.write("mauve");
    assert_eq!(sent(&play.press(KeyCode::Enter)), own);
    let mut typing = Play::new(80, 20);
    typing.write("and then");
    typing.tell(&one(json!([])));
    typing.write(" more");
    assert_eq!(typing.press(KeyCode::Enter), [], "that was meant for the prompt");
}

#[test]
fn a_long_list_of_questions_goes_with_the_one_that_is_shown() {
    for rows in 10..26 {
        let mut play = Play::new(80, rows);
        for number in 1..=12 {
            play.tell(&asked(&number.to_string(), &format!("make {number}")));
        }
        for number in 1..=12 {
            let screen = play.screen();
            assert!(
                screen.contains(&format!("┌ {number} of 12 · Allow the agent to run make {number}? ")),
                "{rows} rows:\n{screen}"
            );
            if screen.contains('›') || screen.contains(" of 12 ──") {
                assert!(screen.contains(&format!("│› {number} Run make {number} ")), "{rows} rows:\n{screen}");
            }
            if rows >= 20 {
                let last = (number + 1).clamp(4, 12);
                let list = format!("── {} to {last} of 12 ──", last - 3);
                assert!(screen.contains(&list), "{list}, {rows} rows:\n{screen}");
                let next = format!("  {} Run make", number + 1);
                assert!(number == 12 || screen.contains(&next), "{next}, {rows} rows:\n{screen}");
            }
            play.press(KeyCode::Right);
        }
    }
}

#[test]
fn questions_that_wait_are_listed_and_kept_as_they_were_left() {
    let several = |play: &mut Play| {
        play.tell(&asked("one", "ls"));
        play.tell(&form("two"));
        for number in 3..=6 {
            play.tell(&asked(&number.to_string(), &format!("cargo test --package {number}")));
        }
    };
    check("question_list", 24, several);
    check("question_list_end", 24, |play| {
        several(play);
        play.press(KeyCode::Left);
    });
    let mut play = Play::new(80, 24);
    several(&mut play);
    let alt = |digit| Msg::Key(KeyEvent::new(KeyCode::Char(digit), KeyModifiers::ALT));
    play.on(alt('2'));
    play.write("1");
    assert!(play.screen().contains("part 2 of 3"), "{}", play.screen());
    play.on(alt('5'));
    assert!(play.screen().contains("5 of 6 · Allow the agent to run cargo test --package 5?"), "{}", play.screen());
    play.on(alt('9'));
    play.on(alt('2'));
    assert!(play.screen().contains("part 2 of 3"), "{}", play.screen());
    play.press(KeyCode::Left);
    assert!(play.screen().contains("1. Red ✓"), "{}", play.screen());
    // Before the first part is the question before.
    play.press(KeyCode::Left);
    assert!(play.screen().contains("1 of 6 · Allow the agent to run ls?"), "{}", play.screen());
    play.tell(&settled("one", &json!({ "client": "phone", "door": "a2a", "clientId": "x" })));
    assert!(play.screen().contains("1 of 5") && play.screen().contains("1. Red ✓"), "{}", play.screen());
}

#[test]
fn a_key_that_was_meant_for_a_prompt_answers_nothing() {
    check("asked_while_typing", 20, |play| {
        play.write("and then ru");
        play.tell(&asked("q", "rm -rf build"));
    });
    for key in [KeyCode::Enter, KeyCode::Char('1'), KeyCode::Char('y'), KeyCode::Char('d'), KeyCode::Char('n')] {
        let mut play = Play::new(80, 20);
        play.write("and then ru");
        play.tell(&asked("q", "rm -rf build"));
        assert_eq!(play.press(key), [], "{key}");
    }
}

#[test]
fn enter_and_yes_allow_once_whatever_comes_first() {
    let mut question = asked("q", "ls");
    question["options"].as_array_mut().unwrap().swap(0, 1);
    for key in [KeyCode::Enter, KeyCode::Char('y')] {
        let mut play = Play::new(80, 20);
        play.tell(&question);
        let effects = play.press(key);
        assert!(
            matches!(&effects[..], [Effect::Decide(decide)] if decide.option_id == "proceed_once".into()),
            "{key}: {effects:?}"
        );
    }
}

#[test]
fn what_is_asked_about_can_be_long() {
    let command: String = (1..=40).map(|number| format!("echo line {number}\n")).collect();
    check("long_question", 20, |play| {
        play.tell(&asked("q", &command));
        play.press(KeyCode::PageDown);
    });
    let mut play = Play::new(80, 20);
    play.tell(&asked("q", &command));
    assert!(play.screen().contains("echo line 1\n") || play.screen().contains("echo line 1 "), "{}", play.screen());
    for _ in 0..20 {
        play.press(KeyCode::PageDown);
    }
    assert!(play.screen().contains("in /work"), "the end is reached:\n{}", play.screen());
    play.press(KeyCode::PageUp);
    assert!(play.screen().contains("more lines"), "and left again:\n{}", play.screen());
}

#[test]
fn a_question_says_who_asks_and_why() {
    let start = json!({ "type": "sessionStarted", "agentType": "codex", "config": { "workingDirectory": "/work" } });
    check("asked_with_reason", 16, |play| {
        play.tell(&start);
        let mut question = asked("q", "npm install");
        question["reason"] = "command failed; retry without sandbox?".into();
        // In another order than that of other agents.
        let options = question["options"].as_array_mut().unwrap();
        options.reverse();
        options.insert(1, json!({ "id": "cancel_always", "name": "Always deny", "kind": "rejectAlways" }));
        play.tell(&question);
    });
    let mut play = Play::new(80, 20);
    play.tell(&start);
    let mut question = asked("q", "ls");
    question["title"] = "Edit /work/src/main.rs and 2 more files".into();
    question["details"] = json!({ "type": "fileEdit", "filePath": "/work/src/main.rs", "before": "a", "diff": "@@ -1 +1,2 @@\n-a\n+b\n+c\n" });
    play.tell(&question);
    assert!(
        play.screen().contains("┌ Allow Codex to edit src/main.rs and 2 more files? (+2 −1) ─"),
        "{}",
        play.screen()
    );
    // A long reason must not push the command out of sight.
    let mut question = asked("r", "touch /tmp/x");
    question["reason"] = "because it is so\n".repeat(30).into();
    let mut play = Play::new(80, 20);
    play.tell(&question);
    assert!(play.screen().contains("│touch /tmp/x"), "{}", play.screen());
}

#[test]
fn escape_denies_once_where_an_agent_also_offers_to_deny_for_good() {
    let mut play = Play::new(80, 20);
    let mut question = asked("q", "ls");
    let always = json!({ "id": "cancel_always", "name": "Always deny", "kind": "rejectAlways" });
    question["options"].as_array_mut().unwrap().insert(0, always);
    play.tell(&question);
    assert_eq!(sent(&play.press(KeyCode::Esc))["optionId"], "cancel");
}

#[test]
fn options_say_what_the_agent_says_about_them() {
    check("form_described", 16, |play| {
        let mut asked = form("f");
        asked["details"]["questions"][0]["descriptions"] =
            json!(["warm, and seen from far away by everybody who looks", ""]);
        play.tell(&asked);
    });
}

#[test]
fn a_long_diff_is_as_high_as_the_screen_and_read_by_pages() {
    let diff: String = (1..=60).map(|number| format!("+line {number}\n")).collect();
    let mut question = asked("q", "ls");
    question["details"] =
        json!({ "type": "fileEdit", "filePath": "a.txt", "diff": format!("@@ -0,0 +1,60 @@\n{diff}") });
    let mut play = Play::new(80, 30);
    play.tell(&question);
    let last = |play: &Play| {
        let lines = |screen: &str| {
            screen
                .lines()
                .filter_map(|line| line.split_once("+line ")?.1.split(' ').next()?.parse::<u32>().ok())
                .collect::<Vec<_>>()
        };
        *lines(&play.screen()).last().unwrap()
    };
    let page = last(&play);
    assert!(page >= 18, "{page} lines:\n{}", play.screen());
    play.press(KeyCode::PageDown);
    assert!((2 * page - 2..=2 * page).contains(&last(&play)), "{}", play.screen());
    (0..3).for_each(|_| drop(play.press(KeyCode::PageDown)));
    assert_eq!(last(&play), 60, "{}", play.screen());
}

#[test]
fn a_question_of_a_sub_agent_says_so() {
    let mut play = Play::new(80, 20);
    let tool = |id: &str, parent: Option<&str>, title: &str| {
        let mut tool = json!({ "type": "toolStarted", "toolId": id, "toolName": "Task", "toolKind": "agent", "title": title, "arguments": {} });
        if let Some(parent) = parent {
            tool["parentToolId"] = parent.into();
        }
        tool
    };
    play.tell(&tool("outer", None, "look into the tests"));
    play.tell(&tool("inner", Some("outer"), "ls"));
    let mut question = asked("q", "ls");
    question["toolId"] = "inner".into();
    play.tell(&question);
    assert!(play.screen().contains("for the sub-agent: look into the tests"), "{}", play.screen());
    assert!(play.screen().contains("\n  ? Agent ls"), "{}", play.screen());
}

#[test]
fn a_key_that_was_meant_for_a_question_that_is_gone_answers_no_other() {
    let phone = json!({ "client": "phone", "door": "a2a", "clientId": "x" });
    // Just looked at, and in the middle of words that go with the answer.
    for words in [false, true] {
        for key in [KeyCode::Enter, KeyCode::Char('1'), KeyCode::Char('y'), KeyCode::Char('d'), KeyCode::Char('n')] {
            let mut play = Play::new(80, 20);
            play.tell(&asked("one", "ls"));
            if words {
                play.press(KeyCode::Tab);
                play.write("not to");
            }
            play.tell(&asked("two", "rm -rf build"));
            play.tell_now(&settled("one", &phone));
            assert!(play.screen().contains("to run rm -rf build?"), "{}", play.screen());
            assert_eq!(play.press(key), [], "{key}");
        }
    }
    // Whoever has read it may answer it.
    let mut play = Play::new(80, 20);
    play.tell(&asked("one", "ls"));
    play.tell(&asked("two", "make"));
    let me = json!({ "client": "terminal", "door": "terminal", "clientId": "me" });
    for id in ["one", "two"] {
        let effects = play.press(KeyCode::Enter);
        assert!(matches!(&effects[..], [Effect::Decide(decide)] if decide.question_id == id.into()), "{effects:?}");
        play.tell(&settled(id, &me));
    }
}

#[test]
fn what_is_to_be_allowed_is_seen_on_any_screen_that_takes_an_answer() {
    for columns in [20, 24, 40, 80] {
        for rows in 8..14 {
            let mut play = Play::new(columns, rows);
            play.tell(&asked("q", &format!("{} evil", "a b ".repeat(30))));
            let screen = play.screen();
            assert!(screen.contains("a b a b"), "{columns}x{rows}:\n{screen}");
            assert!(screen.contains("1. Allow once"), "{columns}x{rows}:\n{screen}");
        }
    }
}

#[test]
fn a_figure_is_a_number_also_where_names_begin_with_one() {
    let mut question = asked("q", "indent");
    for (at, name) in ["2 spaces", "4 spaces"].into_iter().enumerate() {
        question["options"][at]["name"] = name.into();
    }
    let mut play = Play::new(80, 20);
    play.tell(&question);
    let second = question["options"][1]["id"].clone();
    let effects = play.press(KeyCode::Char('2'));
    assert!(matches!(&effects[..], [Effect::Decide(decide)] if json!(decide.option_id) == second), "{effects:?}");
}

#[test]
fn an_edit_is_shown_as_what_would_be_done() {
    let edited = |details: Value, text: &str| {
        let mut question = asked("q", "make");
        question["details"] = details;
        question["edits"] = json!(["newContent"]);
        let mut play = Play::new(60, 24);
        play.tell(&question);
        let mut effects = play.control('g');
        let Some(Effect::Edit { what, .. }) = effects.pop() else { panic!("no editor") };
        play.on(Msg::Edited { what, text: text.to_owned() });
        play.on(Msg::QuestionSeen);
        play.press(KeyCode::Null);
        play.screen()
    };
    let command = edited(json!({ "type": "command", "command": "make all" }), "make clean\u{1b}]");
    let file = json!({ "type": "fileEdit", "filePath": "a.rs", "before": "one\ntwo\n", "after": "one\n2\n", "diff": "@@ -1,2 +1,2 @@\n one\n-two\n+2\n" });
    let file = edited(file, "one\nthree\n");
    insta::assert_snapshot!("edited_question", format!("{}\n{}", command.trim_start(), file.trim_start()));
}
