//! Questions to several clients: who is asked, whose answer counts, and what others see of it.

use multitap_event::{AskedQuestion, Choice, ChoiceKind, Command, Details, EventKind, Question, option};
use serde_json::json;
use tokio_tungstenite::tungstenite::Message;

use super::{
    asks, editor, editor_at, editor_with, is, is_asked, models, new, prompt, says, selected, shared, types, words,
};
use crate::live::{Live, asked, text, turn_ended, turn_started};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_several_answers_counts_and_the_other_dialogs_close() {
    let (live, session, mut agent) = shared().await;
    let mut clients = Vec::new();
    for _ in 0..3 {
        clients.push(editor(&live).await);
    }
    types(&session, "may I?").await;
    agent.asks("q").await;
    let mut requests = Vec::new();
    for client in &mut clients {
        let request = is_asked(client).await;
        assert_eq!(request["params"]["options"][0]["optionId"], "proceed_once");
        requests.push(request);
    }
    clients[1].reply(&requests[1], selected("proceed_once")).await;
    for loser in [0, 2] {
        let frames = clients[loser].until(is("$/cancel_request")).await;
        assert_eq!(frames.last().unwrap()["params"]["requestId"], requests[loser]["id"]);
        // Too late: it decides nothing any more.
        clients[loser].reply(&requests[loser], selected("cancel")).await;
    }
    let Command::Decide(decide) = agent.hears().await else { panic!("another command") };
    assert_eq!(decide.option_id.as_str(), "proceed_once");
    agent.tells(turn_ended()).await;

    // All at once, with different answers.
    for round in 0..5 {
        types(&session, "and now?").await;
        agent.asks(&format!("q{round}")).await;
        for (at, client) in clients.iter_mut().enumerate() {
            requests[at] = is_asked(client).await;
        }
        for (at, client) in clients.iter_mut().enumerate() {
            client.reply(&requests[at], selected(["cancel", "proceed_once", "cancel"][(at + round) % 3])).await;
        }
        assert!(matches!(agent.hears().await, Command::Decide(_)));
        agent.tells(turn_ended()).await;
    }
    drop(clients);
    types(&session, "that was all").await;
    assert_eq!(agent.hears_prompt().await.text, "that was all", "one ruling each");
}

#[tokio::test]
async fn an_answer_that_was_not_offered_approves_nothing() {
    let (live, session, mut agent) = shared().await;
    let (mut wrong, mut right) = (editor(&live).await, editor(&live).await);
    types(&session, "may I?").await;
    agent.asks("q").await;
    let (request, other) = (is_asked(&mut wrong).await, is_asked(&mut right).await);
    wrong.reply(&request, selected("proceed_always")).await;
    wrong.ask("sync", "session/list", json!({})).await;
    wrong.answer("sync").await;
    assert_eq!(session.snapshot().await.unwrap().questions.open().len(), 1);
    right.reply(&other, selected("cancel")).await;
    let Command::Decide(decide) = agent.hears().await else { panic!("another command") };
    assert_eq!(decide.option_id.as_str(), "cancel");
}

/// An answer counts even if its sender leaves with it.
#[tokio::test]
async fn a_client_may_answer_and_leave() {
    let (live, session, mut agent) = shared().await;
    let mut client = editor(&live).await;
    types(&session, "may I?").await;
    agent.asks("q").await;
    let request = is_asked(&mut client).await;
    client.reply(&request, selected("proceed_once")).await;
    client.send(Message::Close(None)).await;
    drop(client);
    assert!(matches!(agent.hears().await, Command::Decide(_)));
}

#[tokio::test]
async fn an_observer_watches() {
    let (live, session, mut agent) = shared().await;
    let mut observer = editor_at(&live, "/acp?role=observer").await;
    prompt(&mut observer, "p", &session, "may I?").await;
    assert_eq!(observer.answer("p").await["error"]["code"], -32012);
    observer.ask("mode", "session/set_mode", json!({ "sessionId": session.id(), "modeId": "plan" })).await;
    assert_eq!(observer.answer("mode").await["error"]["code"], -32012);
    observer.ask("delete", "session/delete", json!({ "sessionId": session.id() })).await;
    assert_eq!(observer.answer("delete").await["error"]["code"], -32012);
    types(&session, "you there").await;
    agent.asks("q").await;
    agent.tells(text("and on")).await;
    let frames = observer.until(says("and on")).await;
    assert_eq!(words(&frames, "user_message_chunk"), ["you there"]);
    assert!(!frames.iter().any(asks), "{frames:?}");
    observer.ask("close", "session/close", json!({ "sessionId": session.id() })).await;
    assert!(observer.answer("close").await["result"].is_object());
    assert!(!session.is_over());
}

/// What a client does not answer is bounded, and holds nothing else up.
#[tokio::test]
async fn a_client_that_never_answers_is_not_asked_without_end() {
    const QUESTIONS: usize = 70;
    let (live, session, mut agent) = shared().await;
    let mut mute = editor(&live).await;
    types(&session, "may I?").await;
    agent.hears_prompt().await;
    agent.tells(turn_started()).await;
    for question in 0..QUESTIONS {
        agent.tells(asked(&format!("q{question}"))).await;
    }
    agent.tells(text("still there")).await;
    let frames = mute.until(says("still there")).await;
    assert_eq!(frames.iter().filter(|frame| asks(frame)).count(), 64);
    mute.ask("list", "session/list", json!({})).await;
    assert_eq!(mute.answer("list").await["result"]["sessions"][0]["_meta"]["multitap"]["questions"], QUESTIONS);
}

/// What saves a rule is offered to owners, and counts only from them.
#[tokio::test]
async fn an_option_of_the_owner_is_offered_to_owners() {
    let (live, session, mut agent) = Live::guarded().await;
    let mut owner = editor_with(&live, "owner", json!({})).await;
    let mut controller = editor_with(&live, "controller", json!({})).await;
    new(&mut owner).await;
    new(&mut controller).await;
    types(&session, "may I?").await;
    agent.hears_prompt().await;
    agent.tells(turn_started()).await;
    let EventKind::PermissionAsked(mut question) = asked("q") else { panic!("a question") };
    question.options.push(Choice::new(option::PROCEED_ALWAYS_AND_SAVE, "Always", ChoiceKind::AllowAlways));
    agent.tells(EventKind::PermissionAsked(question)).await;
    let (of_owner, of_controller) = (is_asked(&mut owner).await, is_asked(&mut controller).await);
    let count = |request: &serde_json::Value| request["params"]["options"].as_array().unwrap().len();
    assert_eq!((count(&of_owner), count(&of_controller)), (3, 2));
    controller.reply(&of_controller, selected(option::PROCEED_ALWAYS_AND_SAVE)).await;
    controller.ask("sync", "session/list", json!({})).await;
    controller.answer("sync").await;
    assert_eq!(session.snapshot().await.unwrap().questions.open().len(), 1);
    owner.reply(&of_owner, selected(option::PROCEED_ALWAYS_AND_SAVE)).await;
    let Command::Decide(decide) = agent.hears().await else { panic!("another command") };
    assert_eq!(decide.option_id.as_str(), option::PROCEED_ALWAYS_AND_SAVE);
}

/// A question of the agent with one field.
fn form(id: &str) -> EventKind {
    EventKind::PermissionAsked(Question {
        question_id: id.into(),
        tool_id: None,
        tool_name: None,
        title: "Which colour?".to_owned(),
        options: vec![
            Choice::new(option::PROCEED_ONCE, "Answer", ChoiceKind::AllowOnce),
            Choice::new("red", "Red", ChoiceKind::AllowOnce),
            Choice::new(option::CANCEL, "Cancel", ChoiceKind::RejectOnce),
        ],
        details: Details::Input {
            questions: vec![AskedQuestion {
                question: "Which colour?".to_owned(),
                labels: vec!["Red".to_owned()],
                ..AskedQuestion::default()
            }],
        },
        edits: Vec::new(),
        reason: None,
    })
}

/// Some clients declare forms and cannot show this one: they are asked as those without forms.
#[tokio::test]
async fn a_form_that_a_client_refuses_becomes_a_dialog() {
    let (live, session, mut agent) = Live::guarded().await;
    agent.tells(models()).await;
    let mut client = editor_with(&live, "controller", json!({ "elicitation": { "form": {} } })).await;
    new(&mut client).await;
    types(&session, "paint").await;
    agent.hears_prompt().await;
    agent.tells(turn_started()).await;
    agent.tells(form("q")).await;
    let asked = client.until(is("elicitation/create")).await.pop().unwrap();
    client.refuse(&asked, -32601).await;
    let dialog = client.until(asks).await;
    assert!(!dialog.iter().any(is("$/cancel_request")), "it has answered: {dialog:?}");
    let dialog = dialog.last().unwrap();
    let options: Vec<_> = dialog["params"]["options"].as_array().unwrap().iter().map(|one| &one["optionId"]).collect();
    assert_eq!(options, ["red", option::CANCEL]);
    client.reply(dialog, selected("red")).await;
    let Command::Decide(decide) = agent.hears().await else { panic!("another command") };
    assert_eq!(decide.option_id.as_str(), "red");

    // One that refuses the dialog too is not asked again; the question is there for others, or ends with the turn.
    agent.tells(form("q2")).await;
    for method in ["elicitation/create", "session/request_permission"] {
        let asked = client.until(is(method)).await.pop().unwrap();
        client.refuse(&asked, -32603).await;
    }
    client.is_silent().await;
    assert_eq!(session.snapshot().await.unwrap().questions.open().len(), 1);
    let mut other = editor_with(&live, "controller", json!({})).await;
    new(&mut other).await;
    let request = is_asked(&mut other).await;
    other.reply(&request, selected(option::CANCEL)).await;
    assert!(matches!(agent.hears().await, Command::Decide(_)));
}
