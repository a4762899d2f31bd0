//! What goes in as a prompt and comes out as text.

use multitap_testkit::model::Reply;
use serde_json::json;

use crate::interop::agent::Agent;
use crate::interop::stage::Place;

/// R002-1, R002-13, R002-19, R002-110.
pub(crate) fn plain_text(agent: Agent) {
    let place = Place::new(agent, Reply::text("Hello from the model.").usage(123, 45));
    let mut stage = place.open(&[]);
    let end = stage.ask("say hello");
    assert_eq!(end["status"], "completed");
    assert_eq!(end["usage"]["inputTokens"], 123);
    assert_eq!(end["usage"]["outputTokens"], 45);
    assert_eq!(end["usage"]["totalTokens"], 168);
    assert_eq!((end["costUsd"].is_number(), end["modelUsage"].is_object()), agent.counts(), "{end:#}");
    let run = stage.finish();
    run.exits(0);
    assert_eq!(run.text(), "Hello from the model.");
    let started = run.one("sessionStarted");
    assert_eq!(started["agentType"], agent.word());
    assert!(started["nativeSessionId"].is_string(), "{started}");
    assert_eq!(run.one("userMessage")["content"], "say hello");
    assert_eq!(run.one("userMessage")["from"]["door"], "headless");
    assert_eq!(run.one("sessionEnded")["reason"], "completed");
    assert_eq!(run.one("sessionEnded")["finalUsage"]["totalTokens"], 168);
    assert!(place.model.conversation()[0].last_user_text().contains("say hello"));
}

/// R002-16, R002-103.
pub(crate) fn deltas_come_once(agent: Agent) {
    let place = Place::new(agent, Reply::chunks(["one ", "two ", "three"]));
    let mut stage = place.open(&[]);
    stage.ask("count");
    let run = stage.finish();
    run.exits(0);
    let partial = run.all("textChunk").iter().filter(|event| event["isPartial"] == true).count();
    assert!(partial >= 2, "streamed, not in one piece:\n{}", run.story());
    assert_eq!(run.text(), "one two three");
    assert_eq!(run.one("turnCompleted")["text"], "one two three");
}

pub(crate) fn thinking_is_told(agent: Agent) {
    let place = Place::new(agent, Reply::think("let me see").then_text("done"));
    let mut stage = place.open(&[]);
    stage.ask("think");
    let run = stage.finish();
    assert_eq!(run.thoughts(), "let me see", "{}", run.story());
    assert_eq!(run.text(), "done");
}

/// R001-2.
pub(crate) fn chinese_text_and_emoji_pass_unharmed(agent: Agent) {
    let said = "多人同时连接 👩‍👩‍👧‍👦 — ñ";
    let place = Place::new(agent, Reply::chunks(said.chars().map(String::from)));
    let mut stage = place.open(&[]);
    stage.ask("请说 👋");
    let run = stage.finish();
    assert_eq!(run.text(), said);
    assert_eq!(run.one("userMessage")["content"], "请说 👋");
    assert!(place.model.conversation()[0].last_user_text().contains("请说 👋"));
}

/// One red pixel, as PNG.
pub(crate) const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";

/// R002-59 for the agents that take pictures.
pub(crate) fn a_picture_reaches_the_model(agent: Agent) {
    let place = Place::new(agent, [Reply::text("a pixel"), Reply::text("again")]);
    let mut stage = place.open(&[]);
    stage.send(&json!({"type": "prompt", "text": "look", "images": [{"mediaType": "image/png", "data": PIXEL}]}));
    assert_eq!(stage.turn()["status"], "completed");
    let run = stage.finish();
    run.exits(0);
    assert_eq!(place.model.conversation()[0].images().len(), 1);

    // And from a file, on the command line.
    let bytes = base64(PIXEL);
    std::fs::write(place.scratch.path("pixel.png"), bytes).unwrap();
    place.once("look again", &["--image", "pixel.png"]).exits(0);
    assert_eq!(place.model.conversation().last().unwrap().images().len(), 1);
}

pub(crate) fn base64(text: &str) -> Vec<u8> {
    let digit = |byte: u8| match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let digits: Vec<u8> = text.bytes().filter(|byte| *byte != b'=').map(digit).collect();
    let mut bytes: Vec<u8> = Vec::new();
    for group in digits.chunks(4) {
        let value =
            group.iter().fold(0_u32, |value, digit| (value << 6) | u32::from(*digit)) << (6 * (4 - group.len()));
        bytes.extend(value.to_be_bytes()[1..].iter().take(group.len() - 1));
    }
    bytes
}

/// R002-18.
pub(crate) fn the_system_prompt_is_ours_to_choose(agent: Agent) {
    let place = Place::new(agent, [Reply::text("aye"), Reply::text("aye aye")]);
    place.once("hello", &["--append-system-prompt", "Talk like a sailor."]).exits(0);
    let system = place.model.conversation()[0].system().to_owned();
    assert!(system.contains("Talk like a sailor."));
    place.once("hello", &["--system-prompt", "You are a parrot."]).exits(0);
    let system = place.model.conversation().last().unwrap().system().to_owned();
    assert!(system.contains("You are a parrot.") && !system.contains("sailor"));
}

/// R002-18, R002-34.
pub(crate) fn the_answer_fits_a_schema(agent: Agent) {
    let schema = json!({"type": "object", "properties": {"colour": {"type": "string"}}, "required": ["colour"],
        "additionalProperties": false});
    let place = Place::new(agent, agent.structured_answer(&json!({"colour": "red"})));
    place.scratch.write("schema.json", &schema.to_string()).unwrap();
    let run = place.once("which colour?", &["--output-schema", "schema.json"]);
    run.exits(0);
    assert_eq!(run.one("turnCompleted")["structuredOutput"], json!({"colour": "red"}), "{}", run.story());
}
