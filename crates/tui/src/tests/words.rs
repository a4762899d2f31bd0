//! What is typed, and what becomes of it: nothing of it is lost without a word.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use multitap_event::{Image, Prompt};
use serde_json::json;

use super::Play;
use crate::complete::{Wanted, What};
use crate::effect::{Edited, Effect};
use crate::msg::Msg;

fn image() -> Image {
    Image { media_type: "image/png".to_owned(), data: "iVBORwE=".to_owned() }
}

fn with_image(text: &str) -> Prompt {
    Prompt { images: vec![image()], ..Prompt::text(text) }
}

fn read(name: &str) -> Msg {
    Msg::Picture { name: name.to_owned(), image: Ok(image()), pasted: None }
}

/// The prompt among the effects.
fn sent(effects: Vec<Effect>) -> Option<Prompt> {
    effects.into_iter().find_map(|effect| if let Effect::Prompt(prompt) = effect { Some(prompt) } else { None })
}

#[test]
fn a_picture_outlives_the_editor() {
    let mut play = Play::new(60, 12);
    play.write("see ");
    play.on(read("cat.png"));
    let text = "see [Image #1: cat.png]";
    assert_eq!(play.control('g'), [Effect::Edit { what: Edited::Composer, text: text.to_owned() }]);
    play.on(Msg::Edited { what: Edited::Composer, text: format!("{text} closely\n") });
    let effects = play.press(KeyCode::Enter);
    assert_eq!(effects[0], Effect::Remember("see closely".to_owned()), "no other session has the picture");
    assert_eq!(sent(effects), Some(with_image("see [Image #1: cat.png] closely")));
    play.press(KeyCode::Up);
    assert_eq!(sent(play.press(KeyCode::Enter)), Some(with_image("see [Image #1: cat.png] closely")));
}

#[test]
fn a_prompt_that_waited_comes_back_with_its_picture() {
    let mut play = Play::new(60, 12);
    play.tell(&json!({ "type": "turnStarted", "turnId": "t" }));
    let prompt = json!({ "text": "see [Image #1: cat.png]", "promptId": "p", "images": [image()] });
    play.tell(&json!({ "type": "promptQueued", "prompt": prompt, "from": play.model.session.me }));
    assert_eq!(play.press(KeyCode::Up), [Effect::Withdraw(serde_json::from_value(prompt).unwrap())]);
    assert_eq!(sent(play.press(KeyCode::Enter)), Some(with_image("see [Image #1: cat.png]")));
}

#[test]
fn half_a_block_is_never_sent() {
    let mut play = Play::new(60, 12);
    let long = "line\n".repeat(40);
    play.on(Msg::Paste(long.clone()));
    play.control('w');
    assert_eq!(play.press(KeyCode::Enter), []);
    play.control('y');
    assert_eq!(sent(play.press(KeyCode::Enter)), Some(Prompt::text(long)));
}

#[test]
fn what_is_refused_comes_back() {
    let mut play = Play::new(60, 12);
    play.on(read("cat.png"));
    let prompt = sent(play.press(KeyCode::Enter)).unwrap();
    play.on(Msg::NotSent { prompt: prompt.clone(), why: "the connection is lost".to_owned() });
    assert_eq!(play.model.prompt.composer.prompt(), prompt);
    assert!(play.screen().contains("the connection is lost"), "{}", play.screen());
    play.press(KeyCode::Enter);
    play.write("by now something else");
    play.on(Msg::NotSent { prompt: prompt.clone(), why: "the connection is lost".to_owned() });
    assert_eq!(play.model.prompt.composer.text(), "by now something else");
    assert!(play.screen().contains("Up restores your prompt: the connection is lost"), "{}", play.screen());
    play.press(KeyCode::Up);
    assert_eq!(play.model.prompt.composer.prompt(), prompt);
    play.press(KeyCode::Down);
    assert_eq!(play.model.prompt.composer.text(), "by now something else");
}

#[test]
fn when_all_is_over_what_is_typed_stays_and_commands_still_work() {
    let mut play = Play::new(60, 12);
    play.on(Msg::Over("the session is over".to_owned()));
    play.write("one more");
    assert_eq!(play.press(KeyCode::Enter), []);
    assert_eq!(play.model.prompt.composer.text(), "one more");
    assert!(play.screen().contains("the session is over"), "{}", play.screen());
    play.control('u');
    play.write("/agents");
    assert!(play.press(KeyCode::Enter).contains(&Effect::Agents));
}

#[test]
fn what_came_before_can_be_had_after_something_was_sent() {
    let mut play = Play::new(60, 12);
    play.seq = 2000;
    play.tell(&json!({ "type": "userMessage", "content": "less than a screen" }));
    play.write("hi");
    let effects = play.press(KeyCode::Enter);
    assert_eq!(effects[0], Effect::Fetch { before: 2001 }, "{effects:?}");
    let kind = serde_json::from_value(json!({ "type": "userMessage", "content": "older" })).unwrap();
    play.seq = 1999;
    let older = play.event(kind);
    play.on(Msg::Fetched(Ok(vec![older])));
    assert_eq!(play.press(KeyCode::PageUp), [Effect::Fetch { before: 2000 }]);
}

#[test]
fn a_picture_is_named_with_the_words_that_are_for_the_prompt() {
    let mut play = Play::new(60, 12);
    for (typed, path, words) in [
        ("/image cat.png", "cat.png", "[Image #1: it.png]"),
        ("/image cat.png what is it?", "cat.png", "what is it? [Image #1: it.png]"),
        ("/image 'a cat.png' see", "a cat.png", "see [Image #1: it.png]"),
        ("/image a\\ cat.png see", "a cat.png", "see [Image #1: it.png]"),
    ] {
        play.write(typed);
        let effects = play.press(KeyCode::Enter);
        let expected = Effect::Picture { path: path.to_owned(), pasted: None };
        assert!(effects.contains(&expected), "{typed}: {effects:?}");
        play.on(read("it.png"));
        assert_eq!(sent(play.press(KeyCode::Enter)), Some(with_image(words)), "{typed}");
    }
}

#[test]
fn a_path_that_is_typed_in_full_needs_one_enter() {
    let mut play = Play::new(60, 12);
    play.write("/image cat.png");
    let wanted = Wanted { from: 7, query: "cat.png".to_owned(), what: What::Path };
    play.on(Msg::Found { wanted, paths: vec!["src/cat.png".to_owned(), "cat.png".to_owned()] });
    assert!(play.model.prompt.completion.is_some());
    let effects = play.press(KeyCode::Enter);
    assert!(effects.contains(&Effect::Picture { path: "cat.png".to_owned(), pasted: None }), "{effects:?}");
}

#[test]
fn both_copies_say_what_they_did() {
    let mut play = Play::new(60, 12);
    play.tell(&json!({ "type": "textChunk", "content": "Done." }));
    let copied = Effect::Copy("Done.".to_owned());
    assert_eq!(play.on(Msg::Key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::ALT))), [copied]);
    assert!(play.screen().contains("asked the terminal to copy the last answer"), "{}", play.screen());
    play.write("/copy");
    assert!(play.press(KeyCode::Enter).contains(&Effect::Copy("Done.".to_owned())));
    assert!(play.screen().contains("asked the terminal to copy the last answer"), "{}", play.screen());
}
