//! The approval modes that Shift+Tab offers.

use super::*;

/// Presses Shift+Tab, and says which mode was asked for.
fn next_mode(screen: &mut Screen) -> Option<String> {
    let key = KeyEvent::new(KeyCode::BackTab, KeyModifiers::SHIFT);
    screen.on(Msg::Key(key)).into_iter().find_map(|effect| match effect {
        Effect::SetMode(mode) => Some(mode),
        _ => None,
    })
}

#[test]
fn modes_that_an_agent_does_not_take_are_passed_by() {
    let mut screen = Screen::new(AgentType::Codex);
    screen.tell("modeChanged", &json!({ "mode": "ask" }));
    assert_eq!(next_mode(&mut screen).as_deref(), Some("plan"), "codex has no autoEdit");
    assert_eq!(next_mode(&mut screen).as_deref(), Some("autoAll"), "pressed before the change is told");
    screen.tell("modeChanged", &json!({ "mode": "plan" }));
    screen.tell("modeChanged", &json!({ "mode": "autoAll" }));
    assert_eq!(next_mode(&mut screen).as_deref(), Some("ask"));

    let mut screen = Screen::new(AgentType::Builtin);
    screen.tell("modeChanged", &json!({ "mode": "plan" }));
    assert_eq!(next_mode(&mut screen).as_deref(), Some("autoAll"));
    screen.tell("error", &json!({ "kind": "protocolError", "message": "refused", "severity": "error" }));
    assert_eq!(next_mode(&mut screen).as_deref(), Some("ask"), "it did not take the one before");
    screen.tell("modeChanged", &json!({ "mode": "ask" }));
    assert_eq!(next_mode(&mut screen).as_deref(), Some("autoEdit"));
    screen.tell("modeChanged", &json!({ "mode": "autoEdit" }));
    assert_eq!(next_mode(&mut screen).as_deref(), Some("plan"));
    screen.tell("modeChanged", &json!({ "mode": "plan" }));
    assert_eq!(next_mode(&mut screen).as_deref(), Some("ask"), "and is not asked again");
}

#[test]
fn only_modes_that_work_here_are_offered() {
    // Claude takes this mode at its start only.
    let mut screen = Screen::new(AgentType::Claude);
    screen.tell("modeChanged", &json!({ "mode": "plan" }));
    assert_eq!(next_mode(&mut screen).as_deref(), Some("ask"));
    let mut screen = Screen::new(AgentType::Claude);
    screen.tell("sessionStarted", &json!({ "agentType": "claude", "nativeMode": "bypassPermissions" }));
    screen.tell("modeChanged", &json!({ "mode": "plan" }));
    assert_eq!(next_mode(&mut screen).as_deref(), Some("autoAll"));
    // Whoever is no owner goes no further than the owner did; whoever only sees changes nothing.
    let with_role = |role| {
        let mut screen = Screen::new(AgentType::Builtin);
        screen.model.session.me.role = Some(role);
        screen.tell("modeChanged", &json!({ "mode": "autoEdit" }));
        screen
    };
    let mut screen = with_role(multitap_event::ClientRole::Controller);
    let modes: Vec<_> = (0..3).filter_map(|_| next_mode(&mut screen)).collect();
    assert_eq!(modes, ["plan", "ask", "autoEdit"]);
    let by = json!({ "client": "phone", "door": "a2a", "clientId": "p", "role": "controller" });
    screen.tell("modeChanged", &json!({ "mode": "ask", "by": by }));
    assert_eq!(next_mode(&mut screen).as_deref(), Some("autoEdit"), "only an owner lowers what others may choose");
    assert_eq!(next_mode(&mut with_role(multitap_event::ClientRole::Observer)), None);
}
