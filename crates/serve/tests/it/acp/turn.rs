//! Prompts and their ends: queued, steered, cancelled, and left behind.

use std::time::Duration;

use multitap_event::{AgentError, AgentErrorKind, Command, EventKind, TurnEnd, TurnStatus, Withdrawal};
use serde_json::json;

use super::{cancelled, editor, is, is_asked, prompt, says, selected, shared, stop_reason};
use crate::live::{Live, asked, soon, text, turn_ended, turn_started};

#[tokio::test]
async fn each_of_several_prompts_is_answered_at_its_own_end() {
    let (live, session, mut agent) = shared().await;
    let (mut one, mut two) = (editor(&live).await, editor(&live).await);
    prompt(&mut one, "first", &session, "first").await;
    agent.hears_prompt().await;
    agent.tells(turn_started()).await;
    one.until(|frame| frame["params"]["update"]["sessionUpdate"] == "session_info_update").await;
    prompt(&mut one, "second", &session, "second").await;
    prompt(&mut one, "third", &session, "third").await;
    one.is_silent().await;
    prompt(&mut two, "other", &session, "other").await;
    two.until(|frame| frame["params"]["update"]["content"]["text"] == "first").await;
    // One queued prompt is withdrawn; the others stay, and so does the turn.
    one.notify("$/cancel_request", json!({ "requestId": "second" })).await;
    assert_eq!(stop_reason(&mut one, "second").await, "cancelled");
    agent.tells(turn_ended()).await;
    assert_eq!(stop_reason(&mut one, "first").await, "end_turn");
    assert_eq!(agent.hears_prompt().await.text, "third");
    agent.tells(turn_started()).await;
    agent.tells(turn_ended()).await;
    assert_eq!(stop_reason(&mut one, "third").await, "end_turn");
    agent.answers(1).await;
    assert_eq!(stop_reason(&mut two, "other").await, "end_turn");
}

/// A cancellation right behind its prompt is not lost, whichever the session sees first.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_prompt_is_cancelled_however_soon() {
    let (live, session, mut agent) = shared().await;
    let mut client = editor(&live).await;
    for round in 0..20 {
        let id = format!("p{round}");
        prompt(&mut client, &id, &session, "work").await;
        let cancel = if round % 2 == 0 {
            ("session/cancel", json!({ "sessionId": session.id() }))
        } else {
            ("$/cancel_request", json!({ "requestId": id }))
        };
        client.notify(cancel.0, cancel.1).await;
        agent.hears_prompt().await;
        assert!(matches!(agent.hears().await, Command::Cancel), "round {round}");
        agent.tells(turn_started()).await;
        agent.tells(cancelled()).await;
        assert_eq!(stop_reason(&mut client, &id).await, "cancelled");
    }
}

#[tokio::test]
async fn an_answer_after_the_cancellation_decides_nothing() {
    let (live, session, mut agent) = shared().await;
    let mut client = editor(&live).await;
    prompt(&mut client, "p", &session, "may I?").await;
    agent.asks("q").await;
    let request = is_asked(&mut client).await;
    client.notify("session/cancel", json!({ "sessionId": session.id() })).await;
    assert!(matches!(agent.hears().await, Command::Cancel));
    agent.tells(EventKind::PermissionWithdrawn(Withdrawal { question_id: "q".into(), reason: None })).await;
    agent.tells(cancelled()).await;
    let frames = client.until(|frame| frame["id"] == "p").await;
    assert!(frames.iter().any(is("$/cancel_request")), "{frames:?}");
    assert_eq!(frames.last().unwrap()["result"]["stopReason"], "cancelled");
    client.reply(&request, selected("proceed_once")).await;
    prompt(&mut client, "next", &session, "next").await;
    assert_eq!(agent.hears_prompt().await.text, "next", "no answer came before it");
}

#[tokio::test]
async fn a_large_prompt_arrives_whole() {
    let (live, session, mut agent) = shared().await;
    let (mut client, mut other) = (editor(&live).await, editor(&live).await);
    let large = "0123456789".repeat(1024 * 1024);
    prompt(&mut client, "p", &session, &large).await;
    assert_eq!(agent.hears_prompt().await.text.len(), large.len());
    agent.tells(turn_started()).await;
    agent.tells(turn_ended()).await;
    assert_eq!(stop_reason(&mut client, "p").await, "end_turn");
    let shown = other.until(|frame| frame["params"]["update"]["sessionUpdate"] == "user_message_chunk").await;
    assert_eq!(shown.last().unwrap()["params"]["update"]["content"]["text"], large);
}

#[tokio::test]
async fn a_turn_goes_on_without_the_client_that_began_it() {
    let (live, session, mut agent) = shared().await;
    let (mut gone, mut other) = (editor(&live).await, editor(&live).await);
    prompt(&mut gone, "p", &session, "work").await;
    agent.hears_prompt().await;
    agent.tells(turn_started()).await;
    agent.tells(asked("q")).await;
    is_asked(&mut gone).await;
    drop(gone);
    let request = is_asked(&mut other).await;
    soon(async {
        while session.snapshot().await.unwrap().clients.len() > 1 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    other.reply(&request, selected("proceed_once")).await;
    assert!(matches!(agent.hears().await, Command::Decide(_)), "no cancellation before it");
    agent.tells(text("done")).await;
    other.until(says("done")).await;
}

#[tokio::test]
async fn the_end_of_the_session_answers_what_waits() {
    let (live, session, mut agent) = shared().await;
    let mut client = editor(&live).await;
    prompt(&mut client, "running", &session, "work").await;
    agent.hears_prompt().await;
    agent.tells(turn_started()).await;
    prompt(&mut client, "queued", &session, "more").await;
    soon(async {
        while session.snapshot().await.unwrap().queue.is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    session.end();
    drop(agent);
    let mut answered = Vec::new();
    while answered.len() < 2 {
        let frame = client.frame().await;
        answered.extend(frame.get("id").is_some().then_some(frame));
    }
    let answer = |id: &str| answered.iter().find(|frame| frame["id"] == id).unwrap();
    assert!(answer("running")["error"].is_object(), "{answered:?}");
    assert_eq!(answer("queued")["result"]["stopReason"], "cancelled", "{answered:?}");
    prompt(&mut client, "late", &session, "x").await;
    let late = client.answer("late").await["error"]["code"].clone();
    assert!(late == -32002 || late == -32603, "{late}");
}

/// A prompt that joins the running turn is answered with that turn, and shown to the others where it joined.
#[tokio::test]
async fn a_steered_prompt_ends_with_the_turn_that_it_joined() {
    let (live, session, mut agent) = Live::steered().await;
    let (mut one, mut two) = (editor(&live).await, editor(&live).await);
    prompt(&mut one, "p", &session, "work").await;
    agent.hears_prompt().await;
    agent.tells(turn_started()).await;
    agent.tells(text("working")).await;
    two.until(says("working")).await;
    let blocks = json!([{ "type": "text", "text": "faster" }]);
    let meta = json!({ "multitap": { "whenBusy": "steer" } });
    two.ask("s", "session/prompt", json!({ "sessionId": session.id(), "prompt": blocks, "_meta": meta })).await;
    let Command::Steer(steered) = agent.hears().await else { panic!("another command") };
    assert_eq!(steered.text, "faster");
    let frames = one.until(says("faster")).await;
    assert_eq!(frames.last().unwrap()["params"]["update"]["sessionUpdate"], "user_message_chunk");
    two.is_silent().await;
    agent.tells(turn_ended()).await;
    assert_eq!(stop_reason(&mut one, "p").await, "end_turn");
    assert_eq!(stop_reason(&mut two, "s").await, "end_turn");
}

/// Whoever prompted reads why in the answer, and the others in an update.
#[tokio::test]
async fn a_failure_is_shown_once_to_each() {
    let (live, session, mut agent) = shared().await;
    let (mut prompting, mut other) = (editor(&live).await, editor(&live).await);
    prompt(&mut prompting, "p", &session, "work").await;
    agent.hears_prompt().await;
    agent.tells(turn_started()).await;
    let why = "the model is gone";
    agent.tells(EventKind::Error(AgentError::new(AgentErrorKind::Unknown, why))).await;
    let failed = TurnEnd { error: Some(why.to_owned()), ..TurnEnd::of(TurnStatus::Failed) };
    agent.tells(EventKind::TurnCompleted(failed)).await;
    let frames = prompting.until(|frame| frame["id"] == "p").await;
    let shown: Vec<_> = frames.iter().filter(|frame| frame.to_string().contains(why)).collect();
    assert_eq!(shown.len(), 1, "{shown:?}");
    assert_eq!(shown[0]["error"]["code"], -32603);
    let frames = other.until(|frame| frame.to_string().contains(why)).await;
    assert_eq!(frames.last().unwrap()["params"]["update"]["sessionUpdate"], "agent_message_chunk");
    other.is_silent().await;
}
