//! `dialect=events`: a session's own events on a WebSocket.

use multitap_event::{
    AgentCapabilities, AgentCommand, ClientRef, Command, Decide, Door as Way, Event, EventKind, Prompt, Query, option,
};
use multitap_hub::{Edge, Part, Session, State, WhenBusy};
use serde_json::{Value, json};

use crate::live::{Agent, Client, Live, asked, ended, soon, text, turn_ended, turn_started};

const EVENTS: &str = "?dialect=events&client=eve";

/// The log as it is.
async fn log(session: &Session) -> Vec<Value> {
    let part = Part { edge: Edge::After(0), limit: 10_000, bytes: usize::MAX };
    let page = session.page(part).await.unwrap();
    page.entries.iter().map(|entry| serde_json::from_str(entry.json()).unwrap()).collect()
}

/// Somebody types, and the agent answers: all of that is in the log.
async fn typed(session: &Session, agent: &mut Agent, words: &str) {
    let by = ClientRef::new("ann", Way::Terminal);
    let turns = async || session.snapshot().await.unwrap().turns;
    let before = turns().await;
    session.prompt(Prompt::text(words), WhenBusy::Queue, by).await.unwrap();
    agent.answers(3).await;
    soon(async {
        while turns().await == before {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// Events up to one of that type; none is missing.
async fn until(client: &mut Client, wanted: &str) -> Vec<Value> {
    let frames = client.until(|frame| frame["params"]["type"] == wanted).await;
    let events: Vec<Value> = frames
        .into_iter()
        .map(|mut frame| {
            assert_eq!(frame["method"], "event", "{frame:#}");
            frame["params"].take()
        })
        .collect();
    let numbers: Vec<u64> = events.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert!(numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{numbers:?}");
    events
}

async fn join(client: &mut Client, params: Value) -> Value {
    client.ask("join", "session/join", params).await;
    let mut answer = client.frame().await;
    assert_eq!(answer["id"], "join", "the answer comes before the events: {answer:#}");
    answer["result"].take()
}

#[tokio::test]
async fn events_are_told_as_they_are_in_the_log_from_wherever_one_joins() {
    let (live, session, mut agent) = Live::shared().await;
    typed(&session, &mut agent, "one").await;
    let mut all = live.client(EVENTS).await;
    let joined = join(&mut all, json!({ "after": 0 })).await;
    assert_eq!((&joined["sessionId"], &joined["epoch"]), (&json!(session.id()), &json!(session.epoch())));
    assert_eq!(joined["client"]["client"], "eve");
    assert!(joined.get("snapshot").is_none() && joined.get("gap").is_none(), "all of the log stands for itself");
    let before = until(&mut all, "clientJoined").await;
    assert_eq!(before.last().unwrap()["client"], joined["client"]);
    let mut tail = live.client("?dialect=events&client=tom&door=web").await;
    let joined = join(&mut tail, json!({ "tail": 2 })).await;
    assert_eq!(joined["client"]["door"], "a2a", "whoever comes by HTTP is not believed");
    assert_eq!(joined["snapshot"]["turns"], 1, "{joined:#}");
    let mut now = live.client(EVENTS).await;
    let place = join(&mut now, json!({})).await["last"].as_u64().unwrap();
    typed(&session, &mut agent, "two").await;
    let log = log(&session).await;
    let rest = until(&mut all, "turnCompleted").await;
    assert_eq!([before, rest].concat(), log);
    let tail = until(&mut tail, "turnCompleted").await;
    assert_eq!(tail, log[log.len() - tail.len()..]);
    assert_eq!(tail[0]["seq"].as_u64(), joined["snapshot"]["seq"].as_u64().map(|seq| seq - 1), "the last two");
    let now = until(&mut now, "turnCompleted").await;
    assert_eq!(now, log[usize::try_from(place).unwrap()..]);
    assert!(serde_json::from_value::<Event>(now[0].clone()).is_ok());
}

#[tokio::test]
async fn who_comes_back_joins_with_the_address() {
    let (live, session, mut agent) = Live::shared().await;
    typed(&session, &mut agent, "one").await;
    let mut client = live.client(&format!("{EVENTS}&after=3&epoch={}", session.epoch())).await;
    let first = client.frame().await;
    assert_eq!((&first["method"], &first["params"]["sessionId"]), (&json!("joined"), &json!(session.id())));
    let events = until(&mut client, "turnCompleted").await;
    assert_eq!(events, log(&session).await[3..3 + events.len()]);
    let mut lost = live.client(&format!("{EVENTS}&after=100000")).await;
    let joined = lost.frame().await;
    assert_eq!(joined["params"]["gap"]["asked"], 100_000, "{joined:#}");
    assert_eq!(joined["params"]["snapshot"]["turns"], 1);
    typed(&session, &mut agent, "two").await;
    let events = until(&mut lost, "turnCompleted").await;
    assert_eq!(events[0]["seq"].as_u64(), joined["params"]["snapshot"]["seq"].as_u64().map(|seq| seq + 1));
}

/// What was asked in events that are lost still waits for an answer, and can be given one.
#[tokio::test]
async fn where_events_are_lost_it_is_told_what_the_session_is() {
    let (live, session, mut agent) = Live::unkept().await;
    let mut ann = live.client("?dialect=events&client=ann").await;
    join(&mut ann, json!({})).await;
    agent.tells(asked("q")).await;
    agent.tells(text("waiting")).await;
    ann.until(|frame| frame["params"]["type"] == "textChunk").await;
    let mut eve = live.client(EVENTS).await;
    join(&mut eve, json!({ "after": 0 })).await;
    let gap = eve.frame().await;
    assert_eq!((&gap["method"], &gap["params"]["after"]), (&json!("replayGap"), &json!(0)), "{gap:#}");
    let snapshot: State = serde_json::from_value(gap["params"]["snapshot"].clone()).unwrap();
    let open: Vec<_> = snapshot.questions.open().iter().map(|question| question.question_id.clone()).collect();
    assert_eq!(open, ["q".into()]);
    let first = eve.frame().await;
    assert_eq!(first["params"]["seq"], gap["params"]["next"]);
    assert!(snapshot.seq + 1 >= gap["params"]["next"].as_u64().unwrap() && snapshot.seq <= session.last());
    eve.ask(1, "decide", json!({ "questionId": "q", "optionId": option::CANCEL })).await;
    assert_eq!(eve.answer(1).await["result"]["settledBy"]["client"], "eve");
    assert!(matches!(agent.hears().await, Command::Decide(_)));
}

#[tokio::test]
async fn a_page_shows_what_was_before() {
    let (live, session, mut agent) = Live::shared().await;
    typed(&session, &mut agent, "one").await;
    let mut client = live.client(EVENTS).await;
    client.ask(1, "session/page", json!({ "before": 5, "limit": 2 })).await;
    let page = client.answer(1).await;
    assert_eq!(page["result"]["events"], json!(log(&session).await[2..4]));
    assert_eq!(page["result"]["last"], session.last());
    client.ask(2, "session/page", json!({})).await;
    assert_eq!(client.answer(2).await["result"]["events"], json!(log(&session).await));
}

#[tokio::test]
async fn everything_a_session_takes_can_be_asked_of_it() {
    let (live, session, mut agent) = Live::shared().await;
    let mut client = live.client(EVENTS).await;
    join(&mut client, json!({})).await;
    let mut asked_for = 0;
    let mut result = async |client: &mut Client, method: &str, params: Value| {
        asked_for += 1;
        client.ask(asked_for, method, params).await;
        client.answer(asked_for).await
    };
    let prompt = result(&mut client, "prompt", json!({ "text": "go" })).await["result"]["promptId"].clone();
    assert_eq!(json!(agent.hears_prompt().await.prompt_id), prompt);
    agent.tells(turn_started()).await;
    let waiting = result(&mut client, "prompt", json!({ "text": "then", "whenBusy": "queue" })).await;
    let waiting = waiting["result"]["promptId"].clone();
    assert_eq!(result(&mut client, "withdraw", json!({ "promptId": waiting })).await["result"], json!({}));
    let again = result(&mut client, "withdraw", json!({ "promptId": waiting })).await;
    assert_eq!((&again["error"]["code"], &again["error"]["data"]["code"]), (&json!(-32602), &json!("promptNotQueued")));
    agent.tells(asked("q")).await;
    client.until(|frame| frame["params"]["type"] == "permissionAsked").await;
    let wrong = result(&mut client, "decide", json!({ "questionId": "q", "optionId": "maybe" })).await;
    assert_eq!(wrong["error"]["code"], -32602);
    assert_eq!(wrong["error"]["data"]["offered"], json!([option::PROCEED_ONCE, option::CANCEL]));
    // The agent takes no edited answers: the question stays open.
    agent.end.reviews.close();
    let edited = json!({ "questionId": "q", "optionId": option::PROCEED_ONCE, "newContent": "touch x" });
    let refused = result(&mut client, "decide", edited).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused:#}");
    assert!(refused["error"]["data"]["editRefused"].is_string(), "{refused:#}");
    assert_eq!(refused["error"]["data"]["offered"], json!([option::PROCEED_ONCE, option::CANCEL]));
    let decide = json!({ "questionId": "q", "optionId": option::CANCEL, "feedback": "not that" });
    let ruling = result(&mut client, "decide", decide).await;
    assert_eq!(ruling["result"]["settledBy"]["client"], "eve");
    let Command::Decide(decide) = agent.hears().await else { panic!() };
    assert_eq!(decide.feedback.as_deref(), Some("not that"));
    let late = result(&mut client, "decide", json!({ "questionId": "q", "optionId": option::PROCEED_ONCE })).await;
    assert_eq!(
        (&late["error"]["code"], &late["error"]["data"]["settledBy"]["client"]),
        (&json!(-32011), &json!("eve"))
    );
    assert_eq!(late["error"]["data"]["code"], "questionSettled");
    let beyond = result(&mut client, "setMode", json!({ "mode": "bypassPermissions" })).await;
    assert_eq!((&beyond["error"]["code"], &beyond["error"]["data"]["code"]), (&json!(-32012), &json!("beyondCeiling")));
    assert!(beyond["error"]["message"].as_str().unwrap().contains("than ask"), "{beyond:#}");
    for (method, params, command) in [
        ("cancel", json!({}), Command::Cancel),
        ("setMode", json!({ "mode": "plan" }), Command::SetMode { mode: "plan".into() }),
        ("setModel", json!({ "model": "m" }), Command::SetModel { model: "m".into() }),
        ("setThinking", json!({ "tokens": 5 }), Command::SetThinking { tokens: Some(5) }),
        ("setThinkingLevel", json!({ "level": "high" }), Command::SetThinkingLevel { level: "high".into() }),
        ("query", json!({ "what": "models" }), Command::Query { what: Query::Models }),
    ] {
        assert_eq!(result(&mut client, method, params).await["result"], json!({}), "{method}");
        assert_eq!(agent.hears().await, command);
    }
    agent.tells(turn_ended()).await;
    client.until(|frame| frame["params"]["type"] == "turnCompleted").await;
    assert_eq!(result(&mut client, "cancel", json!({})).await["error"]["code"], -32002);
    assert_eq!(result(&mut client, "rules", json!({})).await["result"], json!({ "rules": [] }));
    assert_eq!(result(&mut client, "revoke", json!({ "ruleId": "none" })).await["error"]["code"], -32602);
    let snapshot = result(&mut client, "snapshot", json!({})).await;
    assert_eq!(snapshot["result"]["snapshot"]["turns"], 1);
    assert_eq!(snapshot["result"]["sessionId"], json!(session.id()));
    assert_eq!(result(&mut client, "initialize", json!({})).await["error"]["code"], -32601);
    assert_eq!(result(&mut client, "message/send", json!({})).await["error"]["code"], -32601);
}

#[tokio::test]
async fn clients_see_each_other_and_owners_send_them_away() {
    let (live, session, agent) = Live::shared().await;
    let mut a2a = live.client("?client=ann").await;
    let mut eve = live.client(EVENTS).await;
    let mut observer = live.client("?dialect=events&client=olaf&role=observer").await;
    join(&mut eve, json!({})).await;
    join(&mut observer, json!({ "after": 0 })).await;
    eve.ask(1, "clients", json!({})).await;
    let clients = eve.answer(1).await["result"]["clients"].clone();
    let id = |name: &str| {
        let found = clients.as_array().unwrap().iter().find(|client| client["client"] == name);
        found.unwrap_or_else(|| panic!("{name} in {clients:#}"))["clientId"].clone()
    };
    observer.ask(1, "kick", json!({ "clientId": id("ann") })).await;
    assert_eq!(observer.answer(1).await["error"]["code"], -32012);
    eve.ask(2, "kick", json!({ "clientId": id("ann") })).await;
    let refused = eve.answer(2).await;
    assert_eq!(refused["error"]["code"], -32012);
    assert!(refused["error"]["message"].as_str().unwrap().contains("owner"), "{refused:#}");
    let by = ClientRef::new("host", Way::Terminal);
    session.kick(id("ann").as_str().unwrap().into(), by.clone()).await.unwrap();
    assert_eq!(a2a.closed().await, "4001 you were kicked from this session");
    session.kick(id("eve").as_str().unwrap().into(), by).await.unwrap();
    assert_eq!(eve.closed().await, "4001 you were kicked from this session");
    agent.tells(ended()).await;
    drop(agent);
    until(&mut observer, "sessionEnded").await;
    assert_eq!(observer.closed().await, "4000 the session is over");
}

#[tokio::test]
async fn nobody_poses_as_the_person_at_the_terminal() {
    let (live, _session, _agent) = Live::shared().await;
    let mut eve = live.client("?dialect=events&door=terminal&client=root%20%5BACP%5D%E2%80%AE").await;
    let joined = join(&mut eve, json!({})).await;
    assert_eq!((&joined["client"]["door"], &joined["client"]["role"]), (&json!("a2a"), &json!("controller")));
    assert_eq!(joined["client"]["client"], "root ACP");
    // Editors have a path of their own here, so that this says nothing more.
    let mut editor = live.client("?dialect=events&door=acp").await;
    let joined = join(&mut editor, json!({})).await;
    assert_eq!((&joined["client"]["door"], &joined["client"]["role"]), (&json!("acp"), &json!("controller")));
}

#[tokio::test]
async fn answers_through_both_dialects_meet_one_ruling() {
    let (live, session, mut agent) = Live::shared().await;
    let mut eve = live.client(&format!("{EVENTS}&door=terminal&after=0")).await;
    let by = ClientRef::new("ann", Way::Web);
    session.prompt(Prompt::text("go"), WhenBusy::Queue, by.clone()).await.unwrap();
    agent.asks("q").await;
    eve.until(|frame| frame["params"]["type"] == "permissionAsked").await;
    session.decide(Decide::new(&"q".into(), option::PROCEED_ONCE), by).await.unwrap();
    eve.ask(1, "decide", json!({ "questionId": "q", "optionId": option::CANCEL })).await;
    let late = eve.answer(1).await;
    assert_eq!(late["error"]["data"]["settledBy"], json!({ "client": "ann", "door": "web" }));
}

#[tokio::test]
async fn among_many_sessions_one_is_named() {
    let mut live = Live::own().await;
    let mut client = live.client("").await;
    client.stream(1, "one").await;
    let agent = live.agent().await;
    let session = client.answer(1).await["result"]["contextId"].as_str().unwrap().to_owned();
    let mut eve = live.client(EVENTS).await;
    for (id, method, params) in [
        (1, "session/join", json!({})),
        (2, "prompt", json!({ "text": "which?" })),
        (3, "session/join", json!({ "sessionId": "none" })),
    ] {
        eve.ask(id, method, params).await;
        assert_eq!(eve.answer(id).await["error"]["code"], -32602, "{method}");
    }
    let joined = join(&mut eve, json!({ "sessionId": session, "after": 0 })).await;
    assert_eq!(joined["sessionId"], session);
    agent.tells(text("so")).await;
    let events = until(&mut eve, "textChunk").await;
    let kinds: Vec<EventKind> = events.into_iter().map(|event| serde_json::from_value(event).unwrap()).collect();
    assert!(matches!(kinds.last(), Some(EventKind::TextChunk(chunk)) if chunk.content == "so"));
}

/// What a host is asked rather than a session: which sessions there are, and what they have.
#[tokio::test]
async fn a_host_lists_and_opens_sessions_and_says_what_they_have() {
    let mut live = Live::own().await;
    let mut client = live.client(EVENTS).await;
    client.ask(1, "sessions", json!({})).await;
    assert_eq!(client.answer(1).await["result"], json!({ "sessions": [] }));
    client.ask(2, "files", json!({ "query": "main" })).await;
    assert_eq!(client.answer(2).await["error"]["data"]["code"], "noSession");

    client.ask(3, "open", json!({ "agent": "claude" })).await;
    let mut agent = live.agent().await;
    let id = client.answer(3).await["result"]["sessionId"].clone();
    client.ask(4, "resume", json!({ "sessionId": id })).await;
    assert_eq!(client.answer(4).await["result"]["sessionId"], id, "it is live");
    client.ask(5, "resume", json!({ "sessionId": "nope" })).await;
    assert_eq!(client.answer(5).await["error"]["data"]["code"], "unknownSession");

    // The agent is asked once; then the session knows.
    for request in 6..8 {
        client.ask(request, "commands", json!({ "sessionId": id })).await;
        if request == 6 {
            assert_eq!(agent.hears().await, Command::Query { what: Query::Commands });
            let commands = vec![AgentCommand { name: "compact".into(), ..AgentCommand::default() }];
            let listed = AgentCapabilities { commands: Some(commands), ..AgentCapabilities::default() };
            agent.tells(EventKind::Capabilities(listed)).await;
        }
        let listed = client.answer(request).await;
        assert_eq!(listed["result"]["commands"], json!([{ "name": "compact" }]), "{listed:#}");
    }

    let session = live.hub.find(&id.as_str().unwrap().into()).unwrap();
    session.prompt(Prompt::text("go"), WhenBusy::Queue, ClientRef::new("ann", Way::Terminal)).await.unwrap();
    agent.asks("q").await;
    soon(async {
        while session.snapshot().await.unwrap().questions.open().is_empty() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    client.ask(8, "questions", json!({})).await;
    let questions = client.answer(8).await["result"]["questions"].clone();
    assert_eq!((&questions[0]["sessionId"], &questions[0]["question"]["questionId"]), (&id, &json!("q")));
    client.ask(9, "sessions", json!({ "limit": 1 })).await;
    let listed = client.answer(9).await["result"].clone();
    let summary = &listed["sessions"][0];
    assert_eq!((&summary["sessionId"], &summary["status"], &summary["questions"]), (&id, &json!("asking"), &json!(1)));
    assert_eq!((&summary["title"], &listed["next"]), (&json!("go"), &Value::Null));

    let mut observer = live.client(&format!("{EVENTS}&role=observer")).await;
    for method in ["open", "models"] {
        observer.ask(method, method, json!({})).await;
        assert_eq!(observer.answer(method).await["error"]["data"]["code"], "observer", "{method}");
    }
}
