//! A codec is tested with lists of lines, without a process.

use multitap_adapter::{End, recorded};
use multitap_client::{AgentType, EventKind, Timestamp};

/// R002-131: the four lines of the description, and what it says of them.
#[test]
fn claude_lines_become_events() {
    let mut codec = recorded(AgentType::Claude).unwrap();
    let now = Timestamp::from_millis(0);
    let lines = [
        r#"{"type":"init","session_id":"sess_123"}"#,
        r#"{"type":"tool_use","id":"toolu_01","name":"Edit","input":{"file":"test.txt"}}"#,
        r#"{"type":"tool_result","tool_use_id":"toolu_01","content":"OK","is_error":false}"#,
        r#"{"type":"result","status":"success","session_id":"sess_123"}"#,
    ];
    let mut events: Vec<EventKind> = lines.iter().flat_map(|line| codec.decode(line, now).events).collect();
    events.extend(codec.end(&End::InputEnded, now).events);

    let mut told = events.iter().filter(|kind| !matches!(kind, EventKind::TurnStarted { .. }));
    let Some(EventKind::SessionStarted(start)) = told.next() else { panic!("{events:#?}") };
    assert_eq!(start.native_session_id.as_deref(), Some("sess_123"));
    let Some(EventKind::ToolStarted(tool)) = told.next() else { panic!("{events:#?}") };
    assert_eq!(tool.tool_name, "Edit");
    let Some(EventKind::ToolCompleted(done)) = told.next() else { panic!("{events:#?}") };
    assert!(done.success);
    let Some(EventKind::TurnCompleted(_)) = told.next() else { panic!("{events:#?}") };
    let Some(EventKind::SessionEnded(end)) = told.next() else { panic!("{events:#?}") };
    assert_eq!(end.error, None);
    assert_eq!(told.next(), None);
}
