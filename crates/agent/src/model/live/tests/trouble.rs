//! Failures, tested with every model API.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::time::Duration;

use multitap_testkit::model::{ModelServer, Reply as Scripted, Stop};
use serde_json::json;

use super::{KEY, MODELS, ask, hear, hello, live, text};
use crate::model::ModelErrorKind;

const PATIENCE: Duration = Duration::from_secs(10);

/// A server that answers one request with exactly these bytes; its address.
fn once(response: String) -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let mut reader = BufReader::new(&stream);
        let mut length = 0;
        let mut line = String::new();
        // The whole request is read, so that nothing is thrown away when the connection closes.
        while reader.read_line(&mut line).unwrap() > 2 {
            let header = line.trim().to_ascii_lowercase();
            length = header.strip_prefix("content-length: ").map_or(length, |value| value.parse().unwrap());
            line.clear();
        }
        reader.read_exact(&mut vec![0; length]).unwrap();
        (&stream).write_all(response.as_bytes()).unwrap();
    });
    url
}

#[tokio::test]
async fn errors_have_a_kind_and_say_what_helps() {
    let cases = [
        (401, ModelErrorKind::Key),
        (403, ModelErrorKind::Key),
        (404, ModelErrorKind::UnknownModel),
        (429, ModelErrorKind::RateLimited),
        (500, ModelErrorKind::Overloaded),
        (503, ModelErrorKind::Overloaded),
        (529, ModelErrorKind::Overloaded),
        (400, ModelErrorKind::Refused),
    ];
    for model in MODELS {
        for (status, kind) in cases {
            let refusal = Scripted::refuse(status, &format!("not with {KEY}")).retry_after(7);
            let (deltas, reply) = hear(model, refusal).await;
            let error = reply.unwrap_err();
            assert_eq!((error.kind, error.status), (kind, Some(status)), "{model} {error:?}");
            assert_eq!(error.retry_after, Some(Duration::from_secs(7)), "{model}");
            assert!(error.message.contains("127.0.0.1"), "{model} {error}");
            if model != "openai/local-model" {
                assert!(!error.message.contains(KEY) && error.message.contains("<key>"), "{model} {error}");
            }
            assert!(deltas.is_empty());
        }
    }
    let said = async |model, status| hear(model, Scripted::status(status)).await.1.unwrap_err().message;
    let unknown = said("openai/local-model", 404).await;
    assert!(
        unknown.contains("has no model 'local-model' (404)") && unknown.contains("OPENAI_API=responses"),
        "{unknown}"
    );
    assert!(said("openai/local-model", 401).await.contains("requires a key: set OPENAI_API_KEY"));
    assert!(
        said("gemini/gemini-3.8-flash", 401)
            .await
            .contains("does not accept the key of GEMINI_API_KEY or GOOGLE_API_KEY")
    );
}

#[tokio::test]
async fn a_conversation_that_does_not_fit_is_told_apart() {
    for (model, words) in [
        ("anthropic/claude-opus-5-5", "prompt is too long: 1048577 tokens > 1000000 maximum"),
        ("openai/gpt-6.1-sol", "Your input exceeds the context window of this model."),
        ("openai/local-model", "the request exceeds the available context size, try increasing it"),
        ("gemini/gemini-3.8-flash", "The input token count (1048577) exceeds the maximum number of tokens allowed"),
    ] {
        let (_, reply) = hear(model, Scripted::refuse(400, words)).await;
        assert_eq!(reply.unwrap_err().kind, ModelErrorKind::TooLong, "{model}");
    }
}

#[tokio::test]
async fn errors_in_the_stream_keep_their_kind() {
    for (model, word, kind) in [
        ("anthropic/claude-opus-5-5", "overloaded_error", ModelErrorKind::Overloaded),
        ("anthropic/claude-opus-5-5", "rate_limit_error", ModelErrorKind::RateLimited),
        ("openai/gpt-6.1-sol", "server_error", ModelErrorKind::Overloaded),
        ("openai/gpt-6.1-sol", "rate_limit_exceeded", ModelErrorKind::RateLimited),
        ("openai/gpt-6.1-sol", "context_length_exceeded", ModelErrorKind::TooLong),
        ("openai/gpt-6.1-sol", "invalid_prompt", ModelErrorKind::Refused),
        ("openai/local-model", "server_error", ModelErrorKind::Overloaded),
        ("gemini/gemini-3.8-flash", "INTERNAL", ModelErrorKind::Overloaded),
    ] {
        let (deltas, reply) = hear(model, Scripted::text("half of it").then_fail(word, "come back later")).await;
        let error = reply.unwrap_err();
        assert_eq!(error.kind, kind, "{model} {word} {error}");
        assert!(error.message.ends_with("come back later"), "{model} {error}");
        assert_eq!(text(&deltas), "half of it", "{model}");
    }
}

#[tokio::test]
async fn a_lost_connection_is_no_end() {
    for model in MODELS {
        let (deltas, reply) = hear(model, Scripted::text("half of it").then_cut()).await;
        let error = reply.unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Connection, "{model} {error}");
        assert!(error.message.contains("was lost"), "{model} {error}");
        assert_eq!(text(&deltas), "half of it", "{model}");
    }
}

#[tokio::test]
async fn nobody_there_is_told_with_the_address() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    for model in MODELS {
        let (_, reply) = ask(&live(&format!("http://127.0.0.1:{port}"), model), hello()).await;
        let error = reply.unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Connection, "{model} {error}");
        assert!(error.message.contains(&format!("127.0.0.1:{port}")), "{model} {error}");
        assert!(error.message.to_lowercase().contains("refused"), "{model} {error}");
    }
}

#[tokio::test]
async fn dropping_the_question_ends_the_connection() {
    for model in MODELS {
        let server = ModelServer::start(Scripted::text("so far").then_hang()).unwrap();
        let live = live(&server.url(), model);
        {
            let asking = ask(&live, hello());
            tokio::select! {
                heard = asking => panic!("{model} answered: {heard:?}"),
                hangs = server.until_hanging(PATIENCE) => hangs.unwrap(),
            }
        }
        server.until_idle(PATIENCE).await.unwrap();
    }
}

#[tokio::test]
async fn a_reply_that_is_cut_short_says_why() {
    for model in MODELS {
        let (deltas, reply) = hear(model, Scripted::text("half").stop(Stop::Length)).await;
        assert_eq!(text(&deltas), "half", "{model}");
        assert_eq!(reply.unwrap().cut_short.as_deref(), Some("the reply reached the limit on its length"), "{model}");
        let (_, reply) = hear(model, Scripted::text("half").stop(Stop::Filtered)).await;
        assert!(reply.unwrap().cut_short.unwrap().contains("broke the reply off"), "{model}");
    }
}

#[tokio::test]
async fn a_key_is_not_carried_elsewhere() {
    let elsewhere = ModelServer::start(Scripted::text("hi")).unwrap();
    let location = format!("{}/v1/messages", elsewhere.url());
    let url = once(format!("HTTP/1.1 307 Elsewhere\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n"));
    let error = ask(&live(&url, "anthropic/claude-opus-5-5"), hello()).await.1.unwrap_err();
    assert_eq!((error.kind, error.status), (ModelErrorKind::Refused, Some(307)), "{error}");
    assert!(elsewhere.requests().is_empty());
}

#[tokio::test]
async fn a_reply_that_ends_without_its_end_was_lost() {
    let frames = [
        json!({"type": "content_block_delta", "delta": {"type": "text_delta", "text": "half"}}),
        json!({"type": "response.output_text.delta", "delta": "half"}),
        json!({"choices": [{"index": 0, "delta": {"content": "half"}, "finish_reason": null}]}),
        json!({"candidates": [{"content": {"role": "model", "parts": [{"text": "half"}]}}]}),
    ];
    for (model, frame) in MODELS.into_iter().zip(frames) {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        let event = frame["type"].as_str().unwrap_or("message");
        let url = once(format!("{head}event: {event}\ndata: {frame}\n\n"));
        let (deltas, reply) = ask(&live(&url, model), hello()).await;
        assert_eq!(text(&deltas), "half", "{model}");
        assert_eq!(reply.unwrap_err().kind, ModelErrorKind::Connection, "{model}");
    }
}

#[tokio::test]
async fn gemini_may_refuse_a_prompt_without_an_error() {
    let frame = json!({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {}});
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    let url = once(format!("{head}data: {frame}\n\n"));
    let (_, reply) = ask(&live(&url, "gemini/gemini-3.8-flash"), hello()).await;
    assert_eq!(reply.unwrap().cut_short.as_deref(), Some("Gemini does not answer this: PROHIBITED_CONTENT"));
}
