//! Prompts that wait: shown once, above what is typed, and in the transcript when they are handed over.

use crossterm::event::KeyCode;
use multitap_event::{ClientRef, Door, Prompt};
use serde_json::{Value, json};

use super::Play;
use crate::effect::Effect;
use crate::msg::Msg;

fn phone() -> Value {
    json!({ "client": "phone", "door": "a2a", "clientId": "x" })
}

fn queued(id: &str, text: &str, from: &Value) -> Value {
    json!({ "type": "promptQueued", "prompt": { "text": text, "promptId": id }, "from": from })
}

fn mine(id: &str) -> Prompt {
    Prompt { prompt_id: Some(id.into()), ..Prompt::text("mine") }
}

fn busy() -> Play {
    let mut play = Play::new(60, 16);
    play.tell(&json!({ "type": "turnStarted", "turnId": "t" }));
    play
}

#[track_caller]
fn once(play: &Play, words: &str) {
    let screen = play.screen();
    assert_eq!(screen.matches(words).count(), 1, "{words}:\n{screen}");
}

#[test]
fn a_prompt_is_shown_where_it_waits_and_then_where_it_was_sent() {
    for (from, name) in [(json!(busy().model.session.me), ""), (phone(), "[A2A] phone: ")] {
        let mut play = busy();
        play.tell(&queued("p", "fix the tests", &from));
        once(&play, &format!("queued: {name}fix the tests"));
        once(&play, "fix the tests");
        play.tell(&json!({ "type": "turnCompleted", "turnId": "t", "status": "completed" }));
        play.tell(&json!({ "type": "userMessage", "content": "fix the tests", "promptId": "p", "from": from }));
        once(&play, &format!("\n> {name}fix the tests\n"));
        once(&play, "fix the tests");
    }
}

#[test]
fn whoever_joins_late_sees_what_waits_once() {
    let mut play = busy();
    play.tell(&queued("p", "fix the tests", &phone()));
    let mut late = Play::new(60, 16);
    late.seq = play.seq;
    late.model.begin(play.model.session.state.clone());
    once(&late, "queued: [A2A] phone: fix the tests");
    // What came before is read, and it is still the same prompt.
    let event = play.event(serde_json::from_value(queued("p", "fix the tests", &phone())).unwrap());
    late.on(Msg::Fetched(Ok(vec![event])));
    once(&late, "fix the tests");
    late.tell(&json!({ "type": "promptWithdrawn", "promptId": "p", "by": phone() }));
    once(&late, "· [A2A] phone withdrew: fix the tests\n");
    once(&late, "fix the tests");
}

#[test]
fn what_others_take_back_is_told_and_what_one_takes_back_oneself_is_typed_again() {
    let mut play = busy();
    let me = json!(play.model.session.me);
    play.tell(&queued("p1", "fix the tests\nall of them", &me));
    play.tell(&queued("p2", "mine", &me));
    play.tell(&json!({ "type": "promptWithdrawn", "promptId": "p1", "by": phone() }));
    once(&play, "· [A2A] phone withdrew: fix the tests …\n");
    assert_eq!(play.press(KeyCode::Up), [Effect::Withdraw(mine("p2"))]);
    play.tell(&json!({ "type": "promptWithdrawn", "promptId": "p2", "by": me }));
    once(&play, "> mine");
    assert!(!play.screen().contains("withdrew: mine"), "{}", play.screen());
}

#[test]
fn a_prompt_that_is_not_withdrawn_is_not_sent_twice() {
    let mut play = busy();
    play.tell(&queued("p", "mine", &json!(play.model.session.me)));
    play.press(KeyCode::Up);
    play.on(Msg::NotWithdrawn { prompt: mine("p"), why: Some("an observer may not".to_owned()) });
    once(&play, "not withdrawn: an observer may not");
    assert_eq!(play.press(KeyCode::Enter), []);
    // What is no longer the same is not thrown away.
    play.press(KeyCode::Up);
    play.write(" too");
    play.on(Msg::NotWithdrawn { prompt: mine("p"), why: None });
    once(&play, "already sent");
    assert_eq!(play.model.prompt.composer.text(), "mine too");
}

#[test]
fn a_prompt_is_still_ones_own_after_a_lost_connection() {
    let mut play = busy();
    play.tell(&queued("p1", "mine", &json!(play.model.session.me)));
    play.tell(&queued("p2", "theirs", &phone()));
    play.on(Msg::ConnectionLost("reset".to_owned()));
    let me = ClientRef { client_id: Some("me again".into()), ..ClientRef::new("terminal", Door::Terminal) };
    play.on(Msg::Reconnected(me));
    once(&play, "queued: mine");
    assert_eq!(play.press(KeyCode::Up), [Effect::Withdraw(mine("p1"))]);
    assert_eq!(play.model.prompt.composer.text(), "mine");
}

#[test]
fn taking_back_is_offered_only_to_whoever_has_something_to_take_back() {
    let mut play = busy();
    play.tell(&queued("p1", "theirs", &phone()));
    assert!(!play.screen().contains("Up takes"), "{}", play.screen());
    assert_eq!(play.press(KeyCode::Up), []);
    play.tell(&queued("p2", "mine", &json!(play.model.session.me)));
    once(&play, "Up withdraws your last one");
}

#[test]
fn pictures_wait_with_their_prompt() {
    let mut play = busy();
    let image = json!({ "mediaType": "image/png", "data": "AA==" });
    let prompt = json!({ "text": "what is this?", "promptId": "p", "images": [image, image] });
    play.tell(&json!({ "type": "promptQueued", "prompt": prompt, "from": phone() }));
    once(&play, "queued: [A2A] phone: what is this? [2 images]");
}
