use multitap_event::{
    AgentCapabilities, AgentType, Choice, ChoiceKind, ClientRef, ClientRole, Details, Door, Draft, McpServerStatus,
    SessionId, SystemNote, SystemSubtype, TextChunk, Timestamp, ToolKind, ToolProgress, ToolStarted, option,
};

use super::*;

fn after(kinds: impl IntoIterator<Item = EventKind>) -> State {
    let mut state = State::default();
    for kind in kinds {
        let event = Draft::new(Timestamp::from_millis(1), kind).stamp(SessionId::from("s"), state.seq + 1);
        state.apply(&event);
    }
    state
}

fn started() -> EventKind {
    EventKind::SessionStarted(SessionStart {
        native_session_id: Some("native".into()),
        ..SessionStart::of(AgentType::Codex)
    })
}

fn said(text: &str, id: Option<&str>) -> EventKind {
    EventKind::UserMessage(UserMessage {
        content: text.into(),
        images: Vec::new(),
        prompt_id: id.map(Into::into),
        from: None,
        steering: false,
        message_id: None,
        ..UserMessage::default()
    })
}

fn turn() -> EventKind {
    EventKind::TurnStarted { turn_id: "t".into() }
}

fn turn_over(origin: Option<&str>) -> EventKind {
    EventKind::TurnCompleted(TurnEnd {
        origin: origin.map(str::to_owned),
        usage: Some(TokenUsage::of(1, 2)),
        ..TurnEnd::of(TurnStatus::Completed)
    })
}

fn tool(id: &str) -> EventKind {
    EventKind::ToolStarted(ToolStarted {
        tool_id: id.into(),
        tool_name: "shell".into(),
        tool_kind: ToolKind::Shell,
        title: None,
        arguments: serde_json::Map::new(),
        server: None,
        parent_tool_id: None,
    })
}

fn output(id: &str, text: &str) -> EventKind {
    EventKind::ToolProgress(ToolProgress { output: Some(text.into()), ..ToolProgress::of(id.into()) })
}

fn asked(id: &str, tool: &str) -> EventKind {
    EventKind::PermissionAsked(Question {
        question_id: id.into(),
        tool_id: Some(tool.into()),
        tool_name: None,
        title: "may I?".into(),
        options: vec![Choice::new(option::CANCEL, "No", ChoiceKind::RejectOnce)],
        details: Details::Text { text: String::new(), arguments: serde_json::Map::new() },
        edits: Vec::new(),
        reason: None,
    })
}

fn queued(id: &str, first: bool) -> EventKind {
    let prompt = Prompt { prompt_id: Some(id.into()), ..Prompt::text(id) };
    EventKind::PromptQueued { prompt, from: None, first }
}

fn waiting(state: &State) -> Vec<&str> {
    state.queue.iter().map(|queued| queued.prompt.text.as_str()).collect()
}

#[test]
fn the_queue_is_that_of_the_log() {
    let state = after([started(), said("one", Some("p1")), queued("p2", false), queued("p3", true)]);
    assert_eq!(waiting(&state), ["p3", "p2"]);
    assert_eq!((state.in_flight, state.title.as_deref()), (Some("p1".into()), Some("one")));
    let state = after([queued("p2", false), queued("p3", false), said("p2", Some("p2"))]);
    assert_eq!(waiting(&state), ["p3"]);
    let withdrawn = EventKind::PromptWithdrawn { prompt_id: "p2".into(), by: None };
    assert_eq!(waiting(&after([queued("p2", false), withdrawn])), [""; 0]);
}

/// What was said before is forgotten, so it is not what the session is about.
#[test]
fn a_cleared_conversation_gets_a_new_title() {
    let title = |events: Vec<EventKind>| after(events).title;
    let cleared = || vec![started(), said("one", Some("p1")), said(" /clear ", Some("p2"))];
    assert_eq!(title(cleared()), None);
    assert_eq!(title([cleared(), vec![said("two", Some("p3"))]].concat()).as_deref(), Some("two"));
    let queued_behind = [cleared(), vec![queued("/clear", false), queued("p4", false)]].concat();
    assert_eq!(title(queued_behind).as_deref(), Some("p4"), "a command is no title");
}

#[test]
fn the_model_is_the_one_that_the_agent_says_it_uses() {
    let own = EventKind::Capabilities(AgentCapabilities { model: Some("m1".into()), ..AgentCapabilities::default() });
    let data = serde_json::Map::from_iter([("model".to_owned(), "m3".into())]);
    let notice = EventKind::System(SystemNote { subtype: SystemSubtype::CONTEXT.to_owned(), message: None, data });
    assert_eq!(after([started(), own.clone()]).model.as_deref(), Some("m1"));
    let changed = EventKind::ModelChanged { model: "m2".to_owned(), by: None };
    assert_eq!(after([own.clone(), changed]).model.as_deref(), Some("m2"));
    assert_eq!(after([own, notice]).model.as_deref(), Some("m1"), "of something else");
}

#[test]
fn an_agent_that_was_told_nothing_has_no_conversation_to_go_on_with() {
    let said = |text: &str, role: Option<ClientRole>| {
        let from = Some(ClientRef { role, ..ClientRef::new("ann", Door::Terminal) });
        let (content, prompt_id) = (text.to_owned(), Some("p".into()));
        EventKind::UserMessage(UserMessage { content, prompt_id, from, ..UserMessage::default() })
    };
    for (kinds, goes_on) in [
        (vec![], false),
        (vec![said("!ls", None)], false),
        (vec![said("!ls", Some(ClientRole::Controller))], true),
        (vec![said("!ls", None), said("well?", None)], true),
        (vec![EventKind::TextChunk(TextChunk::piece("hello"))], true),
    ] {
        let state = after([started()].into_iter().chain(kinds));
        assert_eq!(state.conversation().is_some(), goes_on, "{state:#?}");
    }
}

#[test]
fn whether_an_agent_takes_pictures_is_known_to_whoever_joins_late() {
    let can = |images| EventKind::Capabilities(AgentCapabilities { images, ..AgentCapabilities::default() });
    let images = |images: bool| can(Some(images));
    assert_eq!(after([started(), images(true)]).capabilities.images, Some(true));
    assert_eq!(after([started(), images(false)]).capabilities.images, Some(false));
    assert_eq!(after([started(), images(true), can(None)]).capabilities.images, Some(true), "nothing new about images");
    assert_eq!(after([started(), images(false), started()]).capabilities.images, None, "another agent");
    let told = serde_json::to_value(after([started(), images(false)])).unwrap();
    assert_eq!(serde_json::from_value::<State>(told).unwrap().capabilities.images, Some(false));
}

#[test]
fn a_turn_of_the_agents_own_does_not_answer_the_prompt() {
    let own = Some("task-notification");
    assert!(!after([started(), turn(), turn_over(own)]).is_busy());
    assert!(after([started(), said("one", Some("p")), turn(), turn_over(own)]).is_busy());
    let state = after([started(), said("one", Some("p")), turn(), turn_over(own), turn(), turn_over(None)]);
    assert!(!state.is_busy());
    assert_eq!((state.turns, state.usage.unwrap().total_tokens), (2, 6));
}

#[test]
fn what_was_said_elsewhere_begins_nothing() {
    let state = after([started(), said("long ago", None)]);
    assert!(!state.is_busy());
    assert_eq!(state.marks.front().map(|mark| (mark.seq, mark.text.as_str())), Some((2, "long ago")));
}

#[test]
fn a_tool_call_is_one_thing() {
    let begun = [started(), turn(), tool("1"), asked("q", "1")];
    assert_eq!(after(begun.clone()).tools[0].status, ToolStatus::Asking);
    let settled = EventKind::PermissionSettled(Ruling {
        question_id: "q".into(),
        selected_option_id: option::CANCEL.into(),
        kind: ChoiceKind::RejectOnce,
        settled_by: ClientRef::new("ann", Door::Terminal),
        at: Timestamp::from_millis(1),
        feedback: None,
        edited: false,
        new_content: None,
        new_input: None,
        runs: None,
    });
    let state = after(begun.into_iter().chain([settled]));
    assert_eq!((state.tools[0].status, state.questions.open().len()), (ToolStatus::Refused, 0));
    let state = after([started(), turn(), tool("1"), output("1", "a"), output("1", "b"), tool("2")]);
    assert_eq!((state.tools[0].output.tail.as_str(), state.tools.len()), ("ab", 2));
    assert!(after([turn(), tool("1"), turn_over(None), turn()]).tools.is_empty());
}

#[test]
fn it_does_not_grow_with_the_log() {
    let long = "ü".repeat(10_000);
    let mut kinds = vec![started(), turn()];
    for number in 0..1000 {
        kinds.extend([said(&long, None), tool(&number.to_string()), output(&number.to_string(), &long)]);
        kinds.push(EventKind::ToolCompleted(ToolCompleted {
            tool_id: number.to_string().into(),
            success: true,
            outcome: ToolOutcome::Completed,
            result: Some(long.as_str().into()),
            error: None,
            exit_code: None,
            duration_ms: None,
        }));
    }
    let small = kinds.iter().filter(|kind| !matches!(kind, EventKind::ToolProgress(_) | EventKind::ToolCompleted(_)));
    let small = after(small.cloned().collect::<Vec<_>>());
    assert_eq!((small.marks.len(), small.tools.len()), (MARKS, 1000), "those that run stay");
    let state = after(kinds);
    let bytes = serde_json::to_string(&state).unwrap().len();
    assert!(bytes < 3 << 19, "{bytes} bytes");
    assert!(state.tools.len() > 20 && state.tools.last().unwrap().started.tool_id.as_str() == "999");
    let mut one = after([turn(), tool("1")]);
    for _ in 0..100 {
        let event = Draft::new(Timestamp::from_millis(1), output("1", &long)).stamp("s".into(), one.seq + 1);
        one.apply(&event);
    }
    assert!(one.tools[0].output.tail.len() <= 2 * 64 * 1024 + long.len());
    assert_eq!(one.tools[0].output.bytes, 100 * long.len() as u64);
}

#[test]
fn mcp_servers_are_as_the_agent_told_last() {
    let server = |name: &str, status: &str| EventKind::McpServerStatus(McpServerStatus::new(name, status));
    let told = [started(), server("web", "starting"), server("git", "failed"), server("web", "ready")];
    let state = after(told.clone());
    assert_eq!(state.mcp_servers["web"], "ready");
    assert_eq!(state.mcp_servers["git"], "failed");
    let end = SessionEnd::of(SessionEndReason::Completed);
    let gone = after(told.into_iter().chain([EventKind::SessionEnded(end)]));
    assert!(gone.mcp_servers.is_empty(), "they went with the agent");
}

#[test]
fn what_was_interrupted_is_closed_in_order() {
    let joined = EventKind::ClientJoined { client: ClientRef::new("ann", Door::A2a) };
    let state = after([started(), joined, said("one", Some("p")), turn(), tool("1"), asked("q", "1")]);
    let mut closed = state.clone();
    let mut names = Vec::new();
    for kind in state.interrupted("gone") {
        let event = Draft::new(Timestamp::from_millis(2), kind).stamp("s".into(), closed.seq + 1);
        names.push(serde_json::to_value(&event).unwrap()["type"].as_str().unwrap().to_owned());
        closed.apply(&event);
    }
    assert_eq!(names, ["permissionWithdrawn", "toolCompleted", "turnCompleted", "sessionEnded", "clientLeft"]);
    assert_eq!(closed.interrupted("gone"), []);
    assert_eq!(after([started(), queued("p", false)]).interrupted("gone").len(), 1, "a prompt still waits");
}
