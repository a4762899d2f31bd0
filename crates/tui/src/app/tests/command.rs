//! Which slash command Enter runs.

use super::*;

#[test]
fn enter_runs_a_command_that_is_typed_and_no_other() {
    let with_commands = || {
        let mut screen = Screen::new(AgentType::Claude);
        let commands = json!([{ "name": "reload-plugins" }, { "name": "compact" }, { "name": "context" }, { "name": "review", "arguments": [{ "name": "[FILE]" }] }]);
        screen.tell("capabilities", &json!({ "commands": commands }));
        screen
    };
    // A command that nobody has never reaches the model as words, nor runs another one.
    for unknown in ["/login", "/rp", "/nope", "/nope now", " /nope"] {
        let mut screen = with_commands();
        assert_eq!(screen.keys(&format!("{unknown}<enter><enter>")), [], "{unknown}");
        let notice = screen.model.status.notice.clone().unwrap_or_default();
        assert!(notice.contains("unknown command"), "{unknown}: {notice}");
        assert_eq!(screen.typed(), unknown);
    }
    // Several begin like this: one is filled in, none runs.
    let mut screen = with_commands();
    assert_eq!(screen.keys("/co<enter>"), []);
    let prompt = |text: &str| [remembered(text), Effect::Prompt(Prompt::text(text))];
    for (keys, sent) in [
        ("/comp<enter>", "/compact"),
        ("/compact<enter>", "/compact"),
        ("/rel<enter>", "/reload-plugins"),
        ("/RELOAD<enter>", "/reload-plugins"),
        ("/rp<down><enter>", "/reload-plugins"),
        ("/review src/main.rs<enter>", "/review src/main.rs"),
        ("/etc/passwd is what?<enter>", "/etc/passwd is what?"),
        ("// a comment<enter>", "// a comment"),
        ("/<enter>", "/"),
    ] {
        let mut screen = with_commands();
        let effects = screen.keys(keys);
        let expected: &[Effect] = if sent == "/" { &[] } else { &prompt(sent) };
        assert_eq!(effects, expected, "{keys}");
    }
}

#[test]
fn a_command_is_not_guessed_while_the_agent_has_not_listed_its_own() {
    let mut screen = Screen::new(AgentType::Claude);
    let effects = screen.keys("/compact<enter>");
    assert!(!effects.iter().any(|effect| matches!(effect, Effect::Prompt(_))), "{effects:?}");
    assert!(screen.model.status.notice.as_ref().unwrap().contains("Enter again"), "{:?}", screen.model.status.notice);
    assert_eq!(screen.keys("<enter>"), [remembered("/compact"), Effect::Prompt(Prompt::text("/compact"))]);
}
