//! The same scripts through all model APIs.

use std::time::{Duration, Instant};

use multitap_testkit::model::{Api, ModelServer, Reply, Role, Stop, Tool};
use serde_json::{Value, json};

use crate::http::{Response, get, post, read, send};

const PATIENCE: Duration = Duration::from_secs(5);
const APIS: [Api; 4] = [Api::Anthropic, Api::OpenAi, Api::OpenAiChat, Api::Gemini];

/// A conversation of one user message, as each API carries it.
fn asking(api: Api, text: &str) -> (String, Value) {
    match api {
        Api::Anthropic => (
            "/v1/messages".to_owned(),
            json!({"model": "claude-x", "stream": true, "system": [{"type": "text", "text": "be brief"}],
                   "tools": [{"name": "Bash"}], "thinking": {"type": "enabled", "budget_tokens": 2000},
                   "messages": [{"role": "user", "content": [
                       {"type": "text", "text": "<system-reminder>not the user</system-reminder>"},
                       {"type": "text", "text": text}]}]}),
        ),
        Api::OpenAi => (
            "/v1/responses".to_owned(),
            json!({"model": "gpt-x", "stream": true, "instructions": "be brief",
                   "tools": [{"type": "function", "name": "exec_command"}, {"type": "custom", "name": "apply_patch"}],
                   "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}]}),
        ),
        Api::OpenAiChat => (
            "/v1/chat/completions".to_owned(),
            json!({"model": "local-x", "stream": true,
                   "tools": [{"type": "function", "function": {"name": "run_shell_command"}}],
                   "messages": [{"role": "system", "content": "be brief"},
                                {"role": "user", "content": [{"type": "text", "text": text}]}]}),
        ),
        Api::Gemini => (
            "/v1beta/models/gemini-x:streamGenerateContent?alt=sse".to_owned(),
            json!({"systemInstruction": {"role": "user", "parts": [{"text": "be brief"}]},
                   "tools": [{"functionDeclarations": [{"name": "run_shell_command"}]}],
                   "contents": [{"role": "user", "parts": [{"text": text}]}]}),
        ),
    }
}

/// The conversation after a tool ran.
fn after_tool(api: Api, text: &str, output: &str) -> (String, Value) {
    let (path, mut body) = asking(api, text);
    let (list, more) = match api {
        Api::Anthropic => (
            "messages",
            [
                json!({"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {}}]}),
                json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": output}]}),
            ],
        ),
        Api::OpenAi => (
            "input",
            [
                json!({"type": "function_call", "call_id": "t1", "name": "exec_command", "arguments": "{}"}),
                json!({"type": "function_call_output", "call_id": "t1", "output": output}),
            ],
        ),
        Api::OpenAiChat => (
            "messages",
            [
                json!({"role": "assistant", "content": "", "tool_calls": [{"id": "t1", "type": "function",
                       "function": {"name": "run_shell_command", "arguments": "{}"}}]}),
                json!({"role": "tool", "tool_call_id": "t1", "content": output}),
            ],
        ),
        Api::Gemini => (
            "contents",
            [
                json!({"role": "model", "parts": [{"functionCall": {"name": "run_shell_command", "args": {}}}]}),
                json!({"role": "user", "parts": [
                    {"functionResponse": {"name": "run_shell_command", "response": {"output": output}}}]}),
            ],
        ),
    };
    for item in more {
        body[list].as_array_mut().into_iter().for_each(|list| list.push(item.clone()));
    }
    (path, body)
}

/// The deltas of text and of thought in a streamed answer.
fn spoken(api: Api, response: &Response) -> (String, String) {
    let pick = |pointer: &str, only: &dyn Fn(&Value) -> bool| -> String {
        let events = response.events();
        let said = events.iter().filter(|event| only(event)).filter_map(|event| event.pointer(pointer)?.as_str());
        said.collect()
    };
    match api {
        Api::Anthropic => (pick("/delta/text", &|_| true), pick("/delta/thinking", &|_| true)),
        Api::OpenAi => (
            pick("/delta", &|event| event["type"] == "response.output_text.delta"),
            pick("/delta", &|event| event["type"] == "response.reasoning_summary_text.delta"),
        ),
        Api::OpenAiChat => {
            (pick("/choices/0/delta/content", &|_| true), pick("/choices/0/delta/reasoning_content", &|_| true))
        }
        Api::Gemini => {
            let thought = |event: &Value| event.pointer("/candidates/0/content/parts/0/thought").is_some();
            let text = "/candidates/0/content/parts/0/text";
            (pick(text, &|event| !thought(event)), pick(text, &thought))
        }
    }
}

/// The names of the tools called in a streamed answer.
fn called(api: Api, response: &Response) -> Vec<String> {
    let pointer = match api {
        Api::Anthropic => "/content_block/name",
        Api::OpenAi => "/item/name",
        Api::OpenAiChat => "/choices/0/delta/tool_calls/0/function/name",
        Api::Gemini => "/candidates/0/content/parts/0/functionCall/name",
    };
    let events = response.events();
    let done = events.iter().filter(|event| event["type"] != "response.output_item.added");
    done.filter_map(|event| Some(event.pointer(pointer)?.as_str()?.to_owned())).collect()
}

#[track_caller]
fn ask(server: &ModelServer, api: Api, text: &str) -> Response {
    let (path, body) = asking(api, text);
    post(server, &path, &body)
}

#[test]
fn a_reply_thinks_speaks_and_calls_in_every_api() {
    for api in APIS {
        let reply = Reply::think("let me see").then_text("hello streaming world").then_call(Tool::shell("ls"));
        let server = ModelServer::start(reply.usage(321, 54)).unwrap();
        let response = ask(&server, api, "hi");
        assert_eq!((response.status, response.whole), (200, true), "{api:?}");
        assert_eq!(spoken(api, &response), ("hello streaming world".to_owned(), "let me see".to_owned()), "{api:?}");
        assert_eq!(called(api, &response).len(), 1, "{api:?}");
        assert!(response.body.contains("321") && response.body.contains("54"), "{api:?}");
    }
}

#[test]
fn calls_in_one_reply_are_parallel() {
    for api in APIS {
        let server = ModelServer::start(Reply::call(Tool::shell("ls")).then_call(Tool::shell("pwd"))).unwrap();
        assert_eq!(called(api, &ask(&server, api, "hi")).len(), 2, "{api:?}");
    }
}

#[test]
fn without_a_script_the_message_directs() {
    for api in APIS {
        let server = ModelServer::start([]).unwrap();
        let response = ask(&server, api, "please [[think:hm]] [[text:as you wish]] [[tool:ls]] [[next]] [[text:over]]");
        assert_eq!(spoken(api, &response), ("as you wish".to_owned(), "hm".to_owned()), "{api:?}");
        let (path, body) = after_tool(api, "[[tool:ls]] [[next]] [[text:over]]", "a b c");
        assert_eq!(spoken(api, &post(&server, &path, &body)).0, "over", "{api:?}");
        let (path, body) = after_tool(api, "[[tool:ls]]", "a b c");
        assert_eq!(spoken(api, &post(&server, &path, &body)).0, "tool said: a b c", "{api:?}");
        assert_eq!(spoken(api, &ask(&server, api, "plain")).0, "you said: plain", "{api:?}");
    }
}

#[test]
fn refusals_come_first_and_end() {
    for api in APIS {
        let server = ModelServer::start(Reply::status(429).retry_after(7)).unwrap();
        let response = ask(&server, api, "[[status:503:1]] [[text:at last]]");
        assert_eq!(response.status, 429, "{api:?}");
        assert!(response.head.contains("retry-after: 7"), "{}", response.head);
        assert!(response.json()["error"].is_object(), "{api:?}");
        assert_eq!(ask(&server, api, "[[status:503:1]] [[text:at last]]").status, 503, "{api:?}");
        assert_eq!(spoken(api, &ask(&server, api, "[[status:503:1]] [[text:at last]]")).0, "at last", "{api:?}");
    }
}

#[test]
fn a_stream_can_break_or_fail_in_the_middle() {
    for api in APIS {
        let cut = Reply::text("half").then_cut();
        let fail = Reply::text("half").then_fail("overloaded_error", "too much");
        let server = ModelServer::start([cut, fail]).unwrap();
        let response = ask(&server, api, "hi");
        assert_eq!((spoken(api, &response).0.as_str(), response.whole), ("half", false), "{api:?}");
        let response = ask(&server, api, "hi");
        assert!(response.whole && response.body.contains("overloaded_error"), "{api:?} {}", response.body);
    }
}

#[test]
fn a_reply_says_why_it_ends() {
    let words = [
        (Api::Anthropic, ["max_tokens", "refusal"]),
        (Api::OpenAi, ["max_output_tokens", "content_filter"]),
        (Api::OpenAiChat, ["length", "content_filter"]),
        (Api::Gemini, ["MAX_TOKENS", "SAFETY"]),
    ];
    for (api, words) in words {
        for (stop, word) in [Stop::Length, Stop::Filtered].into_iter().zip(words) {
            let server = ModelServer::start(Reply::text("half").stop(stop)).unwrap();
            assert!(ask(&server, api, "hi").body.contains(&format!("\"{word}\"")), "{api:?} {stop:?}");
        }
    }
}

#[test]
fn chunks_can_be_slow() {
    let reply = Reply::chunks(["a", "b", "c"]).chunk_delay(Duration::from_millis(40));
    let server = ModelServer::start(reply).unwrap();
    let start = Instant::now();
    assert_eq!(spoken(Api::Anthropic, &ask(&server, Api::Anthropic, "hi")).0, "abc");
    assert!(start.elapsed() >= Duration::from_millis(120));
}

#[tokio::test]
async fn a_hanging_reply_goes_on_when_released() {
    let server = ModelServer::start(Reply::text("before ").then_hang().then_text("after")).unwrap();
    let (path, body) = asking(Api::Anthropic, "hi");
    let stream = send(&server, "POST", &path, &body.to_string()).unwrap();
    server.until_hanging(PATIENCE).await.unwrap();
    server.release();
    assert_eq!(spoken(Api::Anthropic, &read(stream)).0, "before after");
    server.until_idle(PATIENCE).await.unwrap();
}

#[tokio::test]
async fn dropping_the_server_ends_what_hangs() {
    let server = ModelServer::start(Reply::hang()).unwrap();
    let (path, body) = asking(Api::Gemini, "hi");
    let stream = send(&server, "POST", &path, &body.to_string()).unwrap();
    server.until_hanging(PATIENCE).await.unwrap();
    drop(server);
    assert!(!read(stream).whole);
}

#[test]
fn what_is_asked_beside_the_conversation_leaves_the_script_alone() {
    for api in APIS {
        let server = ModelServer::start(Reply::text("main")).unwrap();
        server.set_side_text("A title");
        let (path, mut body) = asking(api, "name this conversation");
        body.as_object_mut().unwrap().remove("tools");
        assert_eq!(spoken(api, &post(&server, &path, &body)).0, "A title", "{api:?}");
        assert_eq!(server.queued(), 1, "{api:?}");
        assert_eq!(spoken(api, &ask(&server, api, "hi")).0, "main", "{api:?}");
        let roles: Vec<Role> = server.requests().iter().map(|request| request.role).collect();
        assert_eq!(roles, [Role::Side, Role::Conversation], "{api:?}");
    }
}

/// It has the whole conversation in it, and tools.
#[test]
fn what_the_user_might_type_next_is_asked_beside_the_conversation() {
    let server = ModelServer::start(Reply::text("mine")).unwrap();
    ask(&server, Api::Anthropic, "[SUGGESTION MODE: Suggest what the user might naturally type next.]");
    assert_eq!((server.requests()[0].role, server.queued()), (Role::Side, 1));
}

#[test]
fn codex_may_offer_its_tools_in_the_input_and_take_programs() {
    let server = ModelServer::start(Reply::call(Tool::shell("ls"))).unwrap();
    let (path, mut body) = asking(Api::OpenAi, "hi");
    body.as_object_mut().unwrap().remove("tools");
    let functions = json!({"type": "namespace", "name": "functions", "tools": [{"type": "custom", "name": "exec"}]});
    body["input"].as_array_mut().unwrap().push(json!({"type": "additional_tools", "tools": [functions]}));
    let response = post(&server, &path, &body);
    assert_eq!(called(Api::OpenAi, &response), ["exec"]);
    assert!(response.body.contains("custom_tool_call") && response.body.contains("tools.exec_command"));
}

#[test]
fn a_reply_can_wait_for_its_question() {
    let server = ModelServer::start([Reply::text("for later").when_asked("beta"), Reply::text("now")]).unwrap();
    assert_eq!(spoken(Api::Anthropic, &ask(&server, Api::Anthropic, "alpha")).0, "now");
    assert_eq!(spoken(Api::Anthropic, &ask(&server, Api::Anthropic, "alpha beta")).0, "for later");
}

#[test]
fn requests_are_kept_without_secrets_and_read_alike() {
    for api in APIS {
        let server = ModelServer::start([]).unwrap();
        let (path, body) = after_tool(api, "do it", "made");
        post(&server, &path, &body);
        let requests = server.requests();
        let [request] = requests.as_slice() else { panic!("{requests:?}") };
        assert_eq!(request.api, Some(api));
        assert!(request.model().unwrap().ends_with("-x"), "{api:?}");
        assert_eq!(request.last_user_text(), "do it", "{api:?}");
        assert!(request.system().contains("be brief"), "{api:?}");
        assert_eq!(request.tool_results()[0].text, "made", "{api:?}");
        assert_eq!(request.headers["x-api-key"], "<hidden>", "{api:?}");
        assert_eq!(request.thinking_budget(), (api == Api::Anthropic).then_some(2000));
    }
}

#[test]
fn images_are_seen_in_every_api() {
    let data = "aGVsbG8=";
    let url = format!("data:image/png;base64,{data}");
    let parts = [
        (
            "/messages/0/content",
            json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}),
        ),
        ("/input/0/content", json!({"type": "input_image", "image_url": url})),
        ("/messages/1/content", json!({"type": "image_url", "image_url": {"url": url}})),
        ("/contents/0/parts", json!({"inlineData": {"mimeType": "image/png", "data": data}})),
    ];
    for (api, (content, part)) in APIS.into_iter().zip(parts) {
        let server = ModelServer::start([]).unwrap();
        let (path, mut body) = asking(api, "look");
        body.pointer_mut(content).unwrap().as_array_mut().unwrap().push(part);
        post(&server, &path, &body);
        let images = server.requests()[0].images();
        assert_eq!((images.len(), images[0].media_type.as_str(), images[0].base64_len), (1, "image/png", 8), "{api:?}");
    }
}

#[test]
fn answers_also_come_in_one_piece() {
    let server = ModelServer::start(vec![Reply::text("whole").then_call(Tool::shell("ls")); 2]).unwrap();
    let (path, mut body) = asking(Api::Anthropic, "hi");
    body["stream"] = false.into();
    assert_eq!(post(&server, &path, &body).json()["content"][0]["text"], "whole");
    let (_, body) = asking(Api::Gemini, "hi");
    let response = post(&server, "/v1beta/models/gemini-x:generateContent", &body).json();
    assert_eq!(response["candidates"][0]["content"]["parts"][0]["text"], "whole");
}

#[test]
fn a_request_for_json_gets_json_of_that_shape() {
    let server = ModelServer::start([]).unwrap();
    let schema = json!({"type": "object", "properties": {"choice": {"type": "string", "enum": ["flash", "pro"]}}});
    let body = json!({"contents": [], "generationConfig":
        {"responseMimeType": "application/json", "responseJsonSchema": schema}});
    let response = post(&server, "/v1beta/models/gemini-x:generateContent", &body).json();
    assert_eq!(response["candidates"][0]["content"]["parts"][0]["text"], r#"{"choice":"flash"}"#);
}

#[test]
fn probes_and_counts_do_no_harm() {
    let server = ModelServer::start(Reply::text("kept")).unwrap();
    assert_eq!(get(&server, "/").status, 200);
    assert_eq!(get(&server, "/v1/models").status, 200);
    assert_eq!(post(&server, "/v1/messages/count_tokens", &json!({})).json()["input_tokens"], 100);
    assert_eq!(post(&server, "/v1beta/models/m:countTokens", &json!({})).json()["totalTokens"], 100);
    assert_eq!(server.queued(), 1);
}
