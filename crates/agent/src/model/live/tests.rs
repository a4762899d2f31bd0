//! The same conversations with every API, against the scripted model. When something goes wrong: `trouble`.

mod trouble;

use multitap_event::{Image, TokenUsage, ToolKind};
use multitap_testkit::model::{ModelServer, Reply as Scripted, Request as Asked, Tool};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::*;
use crate::conversation::{Answer, Call, UserText};
use crate::model::choice::{Choice, Providers};
use crate::model::{Delta, Reply};
use crate::tool::Spec;

const KEY: &str = "sk-secret-0123456789";

/// A model for each API.
const MODELS: [&str; 4] =
    ["anthropic/claude-opus-5-5", "openai/gpt-6.1-sol", "openai/local-model", "gemini/gemini-3.8-flash"];

fn live(url: &str, model: &str) -> Live {
    let local = model == "openai/local-model";
    let providers = Providers::from_env(|name| {
        let value = match name {
            "ANTHROPIC_API_KEY" | "GEMINI_API_KEY" => KEY.to_owned(),
            "OPENAI_API_KEY" if !local => KEY.to_owned(),
            "ANTHROPIC_BASE_URL" | "GOOGLE_GEMINI_BASE_URL" => url.to_owned(),
            "OPENAI_BASE_URL" => format!("{url}/v1"),
            "OPENAI_API" if !local => "responses".to_owned(),
            _ => return None,
        };
        Some(value)
    });
    match providers.unwrap().choose(Some(model)).unwrap() {
        Choice::Live(target) => Live::new(target),
        Choice::Rehearsal => panic!("{model} is no rehearsal"),
    }
}

fn request(messages: Vec<Message>) -> Request {
    let tool = |name: &str| Spec {
        name: name.to_owned(),
        description: format!("Does {name}."),
        parameters: json!({"type": "object", "properties": {"path": {"type": "string"}}}),
        kind: ToolKind::Read,
        server: None,
        read_only: true,
    };
    let tools = vec![tool("read_file"), tool("run_shell_command")];
    Request { system: "be brief".to_owned(), messages, tools, thinking: None, output_schema: None }
}

fn hello() -> Request {
    request(vec![Message::user("hello")])
}

async fn ask(live: &Live, request: Request) -> (Vec<Delta>, Result<Reply, ModelError>) {
    let (deltas, mut heard) = mpsc::channel(4);
    let hear = async {
        let mut all = Vec::new();
        while let Some(delta) = heard.recv().await {
            all.push(delta);
        }
        all
    };
    let (reply, all) = tokio::join!(live.ask(request, deltas), hear);
    (all, reply)
}

/// Asks once, with a script of one reply.
async fn hear(model: &str, script: impl IntoIterator<Item = Scripted>) -> (Vec<Delta>, Result<Reply, ModelError>) {
    let server = ModelServer::start(script).unwrap();
    ask(&live(&server.url(), model), hello()).await
}

fn text(deltas: &[Delta]) -> String {
    deltas.iter().filter_map(|delta| if let Delta::Text(text) = delta { Some(text.as_str()) } else { None }).collect()
}

fn thought(deltas: &[Delta]) -> String {
    deltas
        .iter()
        .filter_map(|delta| if let Delta::Thought(text) = delta { Some(text.as_str()) } else { None })
        .collect()
}

fn calls(deltas: &[Delta]) -> Vec<&Call> {
    deltas.iter().filter_map(|delta| if let Delta::Call(call) = delta { Some(call) } else { None }).collect()
}

/// What stays of a reply in the conversation.
fn said(deltas: Vec<Delta>) -> Message {
    let mut parts: Vec<Part> = Vec::new();
    for delta in deltas {
        match (delta, parts.last_mut()) {
            (Delta::Text(more), Some(Part::Text { text })) => text.push_str(&more),
            (Delta::Text(text), _) => parts.push(Part::Text { text }),
            (Delta::Thought(more), Some(Part::Thought { text, signature: None })) => text.push_str(&more),
            (Delta::Thought(text), _) => parts.push(Part::Thought { text, signature: None }),
            (Delta::Signature(sign), Some(Part::Thought { signature: signature @ None, .. })) => {
                *signature = Some(sign);
            }
            (Delta::Signature(sign), _) => parts.push(Part::Thought { text: String::new(), signature: Some(sign) }),
            (Delta::Call(call), _) => parts.push(Part::Call(call)),
        }
    }
    Message::Assistant { parts }
}

fn picture() -> Image {
    Image { media_type: "image/png".to_owned(), data: "aGVsbG8=".to_owned() }
}

fn answer(call: &Call, text: &str) -> Answer {
    Answer { failed: false, ..call.unanswered(text) }
}

#[tokio::test]
async fn text_streams_in_pieces_and_is_counted() {
    for model in MODELS {
        let server = ModelServer::start(Scripted::text("hello streaming world").usage(321, 54)).unwrap();
        let (deltas, reply) = ask(&live(&server.url(), model), hello()).await;
        assert!(deltas.len() > 1 && text(&deltas) == "hello streaming world", "{model} {deltas:?}");
        let usage = reply.unwrap().usage.unwrap();
        assert_eq!((usage.input_tokens, usage.output_tokens, usage.total_tokens), (321, 54, 375), "{model}");
        let asked = &server.conversation()[0];
        assert_eq!(asked.model(), model.split_once('/').map(|(_, name)| name));
        assert_eq!((asked.system(), asked.last_user_text().as_str()), ("be brief", "hello"), "{model}");
        assert_eq!(asked.tools(), ["read_file", "run_shell_command"], "{model}");
    }
}

#[tokio::test]
async fn thoughts_come_apart_from_words() {
    for model in MODELS {
        let (deltas, reply) = hear(model, Scripted::think("let me see now").then_text("so it is")).await;
        assert_eq!(thought(&deltas), "let me see now", "{model}");
        assert_eq!(text(&deltas), "so it is", "{model}");
        assert_eq!(reply.unwrap().cut_short, None, "{model}");
    }
}

#[tokio::test]
async fn calls_come_whole_and_several_at_once() {
    for model in MODELS {
        let read = |path: &str| Tool::native("read_file", json!({"path": path}));
        let (deltas, _) = hear(model, Scripted::call(read("a"))).await;
        let [call] = calls(&deltas)[..] else { panic!("{model} {deltas:?}") };
        assert_eq!((call.name.as_str(), &call.arguments), ("read_file", &json!({"path": "a"})), "{model}");
        let (deltas, _) = hear(model, Scripted::text("both:").then_call(read("a")).then_call(read("b"))).await;
        let [a, b] = calls(&deltas)[..] else { panic!("{model} {deltas:?}") };
        assert_eq!((&a.arguments["path"], &b.arguments["path"]), (&json!("a"), &json!("b")), "{model}");
        assert!(a.id != b.id && !a.id.is_empty(), "{model} {deltas:?}");
        assert_eq!(text(&deltas), "both:", "{model}");
    }
}

/// A turn in which the model thought, spoke and made two calls, one of which failed, and what is asked next.
async fn turn(server: &ModelServer, model: &str) -> (Vec<Message>, Request) {
    let (deltas, _) = ask(&live(&server.url(), model), hello()).await;
    let calls: Vec<Call> = calls(&deltas).into_iter().cloned().collect();
    let failed = calls[1].unanswered("no such file");
    let results = vec![Answer { images: vec![picture()], ..answer(&calls[0], "the file") }, failed];
    let messages = vec![Message::user("hello"), said(deltas), Message::Results { answers: results }];
    (messages.clone(), request(messages))
}

fn thinking_turn() -> Scripted {
    let read = |path: &str| Tool::native("read_file", json!({"path": path}));
    Scripted::think("first the one, then the other").then_text("I look.").then_call(read("a")).then_call(read("b"))
}

/// By which the scripted model knows its thought again.
fn proof(model: &str) -> &'static str {
    match model {
        "anthropic/claude-opus-5-5" => "c2NyaXB0ZWQtc2lnbmF0dXJl",
        "openai/gpt-6.1-sol" => "c2NyaXB0ZWQtcmVhc29uaW5n",
        "openai/local-model" => "first the one, then the other",
        _ => "c2NyaXB0ZWQtdGhvdWdodA==",
    }
}

#[tokio::test]
async fn the_conversation_goes_back_with_results_pictures_and_thoughts() {
    for model in MODELS {
        let server = ModelServer::start([thinking_turn(), Scripted::text("done")]).unwrap();
        let (_, next) = turn(&server, model).await;
        let (deltas, reply) = ask(&live(&server.url(), model), next).await;
        assert_eq!(text(&deltas), "done", "{model}");
        reply.unwrap();
        let asked = &server.conversation()[1];
        let results = asked.tool_results();
        assert_eq!(results.len(), 2, "{model} {}", asked.body);
        assert_eq!(results[0].text, "the file", "{model}");
        assert!(results[1].text.ends_with("no such file"), "{model}");
        let reported = results[1].is_error || results[1].text.starts_with("Error: ");
        assert!(reported && !results[0].is_error, "{model} {results:?}");
        assert_eq!(asked.images().len(), 1, "{model}");
        assert!(asked.body.to_string().contains(proof(model)), "{model} {}", asked.body);
        assert_eq!(asked.user_texts()[0], "hello", "{model}");
    }
}

#[tokio::test]
async fn openai_gets_its_thoughts_back_in_their_place() {
    let server = ModelServer::start([thinking_turn(), Scripted::text("done")]).unwrap();
    let (_, next) = turn(&server, "openai/gpt-6.1-sol").await;
    ask(&live(&server.url(), "openai/gpt-6.1-sol"), next).await.1.unwrap();
    let body = &server.conversation()[1].body;
    let kinds = body["input"].as_array().unwrap().iter().map(|item| item["type"].as_str().unwrap_or("user"));
    let whole = ["user", "reasoning", "message", "function_call", "function_call"];
    let outputs = ["function_call_output", "function_call_output", "user"];
    assert_eq!(kinds.collect::<Vec<_>>(), [&whole[..], &outputs[..]].concat());
    assert_eq!(body["include"], json!(["reasoning.encrypted_content"]));
    assert_eq!(body["reasoning"], json!({"summary": "auto"}));
    assert!(body["prompt_cache_key"].is_string() && body.get("prompt_cache_options").is_none(), "{body}");
}

#[tokio::test]
async fn another_models_thoughts_are_not_passed_on() {
    for model in MODELS {
        for other in MODELS.into_iter().chain(["anthropic/claude-sonnet-5-5"]).filter(|other| *other != model) {
            let server = ModelServer::start([thinking_turn(), Scripted::text("done")]).unwrap();
            let (_, next) = turn(&server, model).await;
            ask(&live(&server.url(), other), next).await.1.unwrap();
            let body = server.conversation()[1].body.to_string();
            assert!(!body.contains(proof(model)), "{model} then {other}: {body}");
        }
    }
}

#[tokio::test]
async fn thoughts_that_are_not_known_again_are_left_out() {
    for model in MODELS {
        let refusal = Scripted::refuse(400, "messages.1: Invalid signature in thinking block");
        let server = ModelServer::start([thinking_turn(), refusal, Scripted::text("done")]).unwrap();
        let (_, next) = turn(&server, model).await;
        let (deltas, _) = ask(&live(&server.url(), model), next).await;
        assert_eq!(text(&deltas), "done", "{model}");
        assert!(!server.conversation()[2].body.to_string().contains(proof(model)), "{model}");
        // Without thoughts there is nothing to leave out.
        let refusal = Scripted::refuse(400, "thinking is not for you");
        let (_, reply) = hear(model, [refusal, Scripted::text("done")]).await;
        assert_eq!(reply.unwrap_err().kind, ModelErrorKind::Refused, "{model}");
    }
}

#[tokio::test]
async fn an_account_that_may_not_see_thoughts_goes_without() {
    let refusal = Scripted::refuse(400, "Your organization must be verified to generate reasoning summaries.");
    let server = ModelServer::start([refusal, Scripted::text("one"), Scripted::text("two")]).unwrap();
    let live = live(&server.url(), "openai/gpt-6.1-sol");
    assert_eq!(text(&ask(&live, hello()).await.0), "one");
    assert_eq!(text(&ask(&live, hello()).await.0), "two");
    let asked = server.conversation();
    let summary = |asked: &Asked| asked.body.pointer("/reasoning/summary").is_some();
    assert_eq!(asked.iter().map(summary).collect::<Vec<_>>(), [true, false, false]);
}

#[tokio::test]
async fn broken_arguments_come_through_as_text_and_go_back_as_an_object() {
    for model in MODELS {
        let broken = Tool::native("read_file", json!("{\"path\": "));
        let server = ModelServer::start([Scripted::call(broken), Scripted::text("sorry")]).unwrap();
        let live = live(&server.url(), model);
        let (deltas, _) = ask(&live, hello()).await;
        let call = calls(&deltas)[0].clone();
        assert_eq!(call.arguments, Value::String("{\"path\": ".to_owned()), "{model}");
        let answers = vec![call.unanswered("the arguments must be an object")];
        let next = vec![Message::user("hello"), said(deltas), Message::Results { answers }];
        ask(&live, request(next)).await.1.unwrap();
        assert!(server.conversation()[1].body.to_string().contains("unreadable"), "{model}");
    }
}

#[tokio::test]
async fn a_call_without_arguments_has_none() {
    let empty = Tool::native("read_file", json!(""));
    let (deltas, _) = hear("openai/local-model", Scripted::call(empty)).await;
    assert_eq!(calls(&deltas)[0].arguments, json!({}));
}

#[tokio::test]
async fn pictures_schemas_and_thinking_are_asked_for_in_each_ones_words() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]});
    for (model, thinks, thinking, format) in [
        ("anthropic/claude-opus-5-5", "/output_config/effort", json!("medium"), "/output_config/format/schema"),
        ("anthropic/claude-sonnet-4-5", "/thinking/budget_tokens", json!(8000), "/output_config/format/schema"),
        ("openai/gpt-6.1-sol", "/reasoning/effort", json!("medium"), "/text/format/schema"),
        ("openai/local-model", "/reasoning_effort", Value::Null, "/response_format/json_schema/schema"),
        ("gemini/gemini-3.8-flash", "/generationConfig/thinkingConfig/thinkingLevel", json!("medium"), GEMINI_SCHEMA),
        ("gemini/gemini-2.5-pro", "/generationConfig/thinkingConfig/thinkingBudget", json!(8000), GEMINI_SCHEMA),
    ] {
        let server = ModelServer::start(Scripted::text("{}")).unwrap();
        let said = UserText { text: "what is this?".to_owned(), images: vec![picture()] };
        let request =
            Request { thinking: Some(8000), output_schema: Some(schema.clone()), ..request(vec![Message::User(said)]) };
        ask(&live(&server.url(), model), request).await.1.unwrap();
        let asked = &server.conversation()[0];
        assert_eq!(asked.body.pointer(thinks).cloned().unwrap_or_default(), thinking, "{model} {}", asked.body);
        assert_eq!(asked.body.pointer(format).unwrap()["required"], json!(["a"]), "{model} {}", asked.body);
        assert_eq!((asked.images().len(), asked.images()[0].base64_len), (1, 8), "{model}");
        assert_eq!(asked.last_user_text(), "what is this?", "{model}");
    }
}

const GEMINI_SCHEMA: &str = "/generationConfig/responseJsonSchema";

#[tokio::test]
async fn anthropic_is_told_what_to_keep() {
    let server = ModelServer::start([thinking_turn(), Scripted::text("done")]).unwrap();
    let (_, next) = turn(&server, "anthropic/claude-opus-5-5").await;
    ask(&live(&server.url(), "anthropic/claude-opus-5-5"), next).await.1.unwrap();
    let body = &server.conversation()[1].body;
    assert_eq!(body.to_string().matches("cache_control").count(), 3, "{body}");
    assert!(body["system"][0]["cache_control"].is_object(), "{body}");
    assert_eq!(body["thinking"], json!({"type": "adaptive", "display": "summarized"}));
    let kinds = body["messages"][1]["content"].as_array().unwrap().iter().map(|block| block["type"].as_str().unwrap());
    assert_eq!(kinds.collect::<Vec<_>>(), ["thinking", "text", "tool_use", "tool_use"]);
    assert_eq!(body["messages"][2]["content"][0]["content"][1]["type"], "image");
}

#[tokio::test]
async fn a_conversation_with_calls_can_be_asked_about_without_tools() {
    let server = ModelServer::start([thinking_turn(), Scripted::text("a summary")]).unwrap();
    let (_, mut next) = turn(&server, "anthropic/claude-opus-5-5").await;
    next.tools.clear();
    ask(&live(&server.url(), "anthropic/claude-opus-5-5"), next).await.1.unwrap();
    // Anthropic refuses calls of tools that it was not told of.
    let body = &server.requests()[1].body;
    assert_eq!(body["tools"], json!([{"name": "read_file", "input_schema": {"type": "object"}}]));
    assert_eq!(body["tool_choice"], json!({"type": "none"}));
}

#[tokio::test]
async fn hidden_thoughts_go_back_as_they_came() {
    let hidden = json!({"type": "redacted_thinking", "data": "b3BhcXVl"});
    let thought = |signature: &str| Part::Thought {
        text: String::new(),
        signature: Some(format!("anthropic/claude-opus-5-5 {signature}")),
    };
    let parts = vec![thought("signed"), thought(&hidden.to_string()), Part::Text { text: "so".to_owned() }];
    let messages = vec![Message::user("one"), Message::Assistant { parts }, Message::user("two")];
    let server = ModelServer::start(Scripted::text("hi")).unwrap();
    ask(&live(&server.url(), "anthropic/claude-opus-5-5"), request(messages)).await.1.unwrap();
    let blocks = &server.conversation()[0].body["messages"][1]["content"];
    let signed = json!({"type": "thinking", "thinking": "", "signature": "signed"});
    assert_eq!(*blocks, json!([signed, hidden, {"type": "text", "text": "so"}]));
}

#[tokio::test]
async fn gemini_takes_calls_that_it_did_not_sign() {
    let server = ModelServer::start([thinking_turn(), Scripted::text("done")]).unwrap();
    let (_, next) = turn(&server, "anthropic/claude-opus-5-5").await;
    ask(&live(&server.url(), "gemini/gemini-4-argon"), next).await.1.unwrap();
    let parts = server.conversation()[1].body["contents"][1]["parts"].clone();
    assert_eq!(parts[1]["thoughtSignature"], "skip_thought_signature_validator", "{parts}");
    assert!(parts[2]["functionCall"].is_object() && parts[2].get("thoughtSignature").is_none(), "{parts}");
}

#[tokio::test]
async fn empty_messages_are_not_sent_empty() {
    for model in MODELS {
        let parts =
            vec![Part::Text { text: "\n".to_owned() }, Part::Thought { text: "hm".to_owned(), signature: None }];
        let messages = vec![Message::user(""), Message::Assistant { parts }, Message::user("two")];
        let server = ModelServer::start(Scripted::text("hi")).unwrap();
        ask(&live(&server.url(), model), request(messages)).await.1.unwrap();
        assert_eq!(server.conversation()[0].user_texts(), ["(no words)", "two"], "{model}");
        assert!(!server.conversation()[0].body.to_string().contains("assistant"), "{model}");
    }
}

#[tokio::test]
async fn a_server_without_a_key_is_sent_none() {
    let server = ModelServer::start(Scripted::text("hi")).unwrap();
    ask(&live(&server.url(), "openai/local-model"), hello()).await.1.unwrap();
    assert!(!server.requests()[0].headers.contains_key("authorization"));
    let server = ModelServer::start(Scripted::text("hi")).unwrap();
    ask(&live(&server.url(), "openai/gpt-6.1-sol"), hello()).await.1.unwrap();
    assert!(server.requests()[0].headers.contains_key("authorization"));
}

#[tokio::test]
async fn the_end_of_a_name_is_part_of_it() {
    for model in ["openai/gpt-5.1-codex-max", "openai/local-medium"] {
        let server = ModelServer::start(Scripted::text("hi")).unwrap();
        ask(&live(&server.url(), model), hello()).await.1.unwrap();
        assert_eq!(server.requests()[0].model(), model.strip_prefix("openai/"));
    }
}

#[test]
fn usage_with_nothing_in_it_is_none() {
    assert_eq!(decode::tokens(genai::chat::Usage::default()), None::<TokenUsage>);
}
