use multitap_event::{AgentKind, AgentType, ApprovalMode, Mode, SandboxMode, SessionConfig, SessionStart};

/// The mode table, row by row: R002-95, R002-112.
#[test]
fn each_agent_has_its_own_word_or_none() {
    use AgentType::{Builtin, Claude, Codex, Gemini};
    let table = [
        (ApprovalMode::Ask, ["default", "untrusted", "default", "default"]),
        (ApprovalMode::AskDangerous, ["-", "on-request", "-", "askDangerous"]),
        (ApprovalMode::AutoEdit, ["acceptEdits", "-", "autoEdit", "auto_edit"]),
        (ApprovalMode::AutoAll, ["bypassPermissions", "never", "yolo", "yolo"]),
        (ApprovalMode::Plan, ["plan", "never", "plan", "plan"]),
        (ApprovalMode::DontAsk, ["dontAsk", "never", "-", "dontAsk"]),
    ];
    for (mode, words) in table {
        for (agent, word) in [Claude, Codex, Gemini, Builtin].into_iter().zip(words) {
            assert_eq!(mode.native(agent).map_or("-", |native| native.word), word, "{agent} {mode}");
        }
    }
    let sandbox = |mode: ApprovalMode| mode.native(Codex).and_then(|native| native.sandbox);
    assert_eq!(sandbox(ApprovalMode::Plan), Some(SandboxMode::ReadOnly));
    assert_eq!(sandbox(ApprovalMode::DontAsk), Some(SandboxMode::WorkspaceWrite));
    assert_eq!(sandbox(ApprovalMode::AutoAll), None);
}

/// Each lets run what those before it do, and more.
#[test]
fn modes_are_in_an_order_of_strictness() {
    use ApprovalMode::{Ask, AutoEdit, DontAsk, Plan};
    let mut all = ApprovalMode::STRICTEST_FIRST.to_vec();
    for agent in [AgentType::Claude, AgentType::Gemini, AgentType::Builtin, AgentType::Acp] {
        for (most, mode) in all.iter().enumerate() {
            let within = all.iter().filter(|other| other.is_within(*mode, agent)).count();
            assert_eq!(within, most + 1, "{agent} {mode}");
        }
    }
    assert!(DontAsk.is_within(Ask, AgentType::Claude), "what no rule allows is denied");
    assert!(!DontAsk.is_within(Ask, AgentType::Codex), "it does what its sandbox lets it");
    assert!(DontAsk.is_within(AutoEdit, AgentType::Codex) && Plan.is_within(Ask, AgentType::Codex));
    assert_eq!(Mode::bound(None), Ask);
    assert_eq!(Mode::bound(Some(&Mode::Native("auto".into()))), Ask);
    assert_eq!(Mode::bound(Some(&Mode::Unified(Plan))), Plan);
    all.sort_by_key(|mode| mode.as_str());
    let mut every = ApprovalMode::ALL.to_vec();
    every.sort_by_key(|mode| mode.as_str());
    assert_eq!(all, every, "none is left out");
}

#[test]
fn an_agents_own_words_are_understood() {
    let parse = |agent, word| Mode::parse(agent, word).ok();
    assert_eq!(parse(AgentType::Claude, "acceptEdits"), Some(Mode::Unified(ApprovalMode::AutoEdit)));
    assert_eq!(parse(AgentType::Claude, "auto-edit"), Some(Mode::Unified(ApprovalMode::AutoEdit)));
    assert_eq!(parse(AgentType::Claude, "manual"), Some(Mode::Unified(ApprovalMode::Ask)));
    assert_eq!(parse(AgentType::Claude, "auto"), Some(Mode::Native("auto".into())));
    assert_eq!(parse(AgentType::Gemini, "auto_edit"), Some(Mode::Unified(ApprovalMode::AutoEdit)));
    assert_eq!(parse(AgentType::Codex, "never"), Some(Mode::Unified(ApprovalMode::AutoAll)));
    assert_eq!(parse(AgentType::Acp, "architect"), Some(Mode::Native("architect".into())));
    let refused = Mode::parse(AgentType::Claude, "yolo").unwrap_err().to_string();
    assert_eq!(refused, "claude has no approval mode 'yolo': it knows ask, auto-edit, auto-all, plan, dont-ask");
}

/// A mode outside the printed enum is left out of `config` for the three CLIs, and only for them.
#[test]
fn the_stated_configuration_keeps_to_the_printed_enum() {
    let stated = |agent, mode| {
        let mut config = SessionConfig::new(agent);
        config.mode = Some(Mode::Unified(mode));
        config.stated().approval_mode
    };
    assert_eq!(stated(AgentKind::Claude, ApprovalMode::Plan), None);
    assert_eq!(stated(AgentKind::Claude, ApprovalMode::AutoAll), Some(ApprovalMode::AutoAll));
    assert_eq!(stated(AgentKind::Builtin, ApprovalMode::Plan), Some(ApprovalMode::Plan));
}

#[test]
fn agents_are_named_as_on_the_command_line() {
    for word in ["claude", "codex", "gemini", "builtin", "acp:opencode acp"] {
        assert_eq!(word.parse::<AgentKind>().unwrap().to_string(), word);
    }
    assert!("acp:".parse::<AgentKind>().is_err());
    assert!("gpt".parse::<AgentKind>().is_err());
}

/// A running agent is switched only to what it can do: R002-95, R002-112.
#[test]
fn a_mode_works_as_the_agent_was_started() {
    let start = |agent, transport: &str, native: &str| SessionStart {
        transport: Some(transport.to_owned()),
        native_mode: Some(native.to_owned()),
        ..SessionStart::of(agent)
    };
    let works = |start: &SessionStart, offered: Option<&[&str]>| {
        let offered: Option<Vec<String>> = offered.map(|words| words.iter().map(|word| (*word).to_owned()).collect());
        let modes = ApprovalMode::ALL.into_iter().filter(|mode| mode.works_for(start, offered.as_deref()));
        modes.map(ApprovalMode::option_word).collect::<Vec<_>>().join(" ")
    };
    let claude = |native| start(AgentType::Claude, "stream-json", native);
    assert_eq!(works(&claude("default"), None), "ask auto-edit plan dont-ask");
    assert_eq!(works(&claude("bypassPermissions"), None), "ask auto-edit auto-all plan dont-ask");
    let codex = |transport| start(AgentType::Codex, transport, "untrusted");
    assert_eq!(works(&codex("app-server"), None), "ask ask-dangerous auto-all plan dont-ask");
    assert_eq!(works(&codex("exec"), None), "auto-all plan dont-ask");
    let gemini = |transport| start(AgentType::Gemini, transport, "default");
    assert_eq!(works(&gemini("stream-json"), None), "auto-edit auto-all plan");
    assert_eq!(works(&gemini("acp"), Some(&["default", "autoEdit", "yolo"])), "ask auto-edit auto-all");
    let acp = start(AgentType::Acp, "acp", "default");
    assert_eq!(works(&acp, Some(&["default", "acceptEdits"])), "ask auto-edit");
    assert_eq!(works(&acp, None), "ask ask-dangerous auto-edit auto-all plan dont-ask");
}
