//! How a session begins: what is asked of the agent, and what it cannot do.

use multitap_event::{McpReach, Mode};

use super::*;

#[test]
fn a_new_session() {
    let mut config = config();
    let env = [("TOKEN".to_owned(), "x".to_owned())].into();
    let tiny = McpReach::Stdio { command: "/bin/mcp".to_owned(), args: vec!["-v".to_owned()], env, cwd: None };
    config.mcp_servers = [
        ("tiny".to_owned(), tiny.into()),
        ("web".to_owned(), McpReach::Http { url: "http://x/".to_owned(), headers: [].into() }.into()),
    ]
    .into();
    config.mode = Some(Mode::parse(AgentType::Acp, "auto-edit").unwrap());
    config.model = Some("m2".to_owned());
    config.add_dirs = vec!["/more".into()];
    let mut play = Play::new(&config);
    play.agent(&initialized(&json!({
        "mcpCapabilities": { "http": true },
        "sessionCapabilities": { "additionalDirectories": {} },
    })));
    play.agent(&json!({ "id": 2, "result": {
        "sessionId": "s1", "modes": modes(), "models": { "availableModels": [{ "modelId": "m1" }], "currentModelId": "m1" },
    } }));
    play.agent(&json!({ "id": 3, "result": {} }));
    play.agent(&json!({ "id": 4, "result": {} }));
    insta::assert_snapshot!(play.story);
}

#[test]
fn what_cannot_be_had_is_said_before_the_session_begins() {
    let mut story = String::new();
    let mut check = |name: &str, change: &dyn Fn(&mut SessionConfig), lines: &[&Value]| {
        let mut config = config();
        change(&mut config);
        let mut play = Play::new(&config);
        play.story.clear();
        for line in lines {
            play.agent(line);
        }
        story += &format!("{name}\n{}\n", play.story);
    };
    let plain = initialized(&json!({}));
    let opened = json!({ "id": 2, "result": { "sessionId": "s1", "modes": modes() } });
    let resume = |id: &str| Resume::Session { native_id: id.to_owned(), at: None };
    check("version", &|_| {}, &[&json!({ "id": 1, "result": { "protocolVersion": 2 } })]);
    check("resume", &|config| config.resume = resume("x"), &[&plain]);
    check("continue", &|config| config.resume = Resume::Latest, &[&plain]);
    check("folders", &|config| config.add_dirs = vec!["/x".into()], &[&plain]);
    let web = McpReach::Http { url: "http://x/".to_owned(), headers: [].into() };
    check("http", &|config| config.mcp_servers = [("web".to_owned(), web.clone().into())].into(), &[&plain]);
    check("mode", &|config| config.mode = Some(Mode::Native("yolo".to_owned())), &[&plain, &opened]);
    check("model", &|config| config.model = Some("m".to_owned()), &[&plain, &opened]);
    let options = json!([{ "id": "model", "category": "model", "currentValue": "a", "options": [{ "value": "a" }] }]);
    let chooses = json!({ "id": 2, "result": { "sessionId": "s1", "configOptions": options } });
    let unknown = json!({ "id": 3, "error": { "code": -32602, "message": "Invalid value for model: m" } });
    check("refused model", &|config| config.model = Some("m".to_owned()), &[&plain, &chooses, &unknown]);
    let forks = initialized(&json!({ "sessionCapabilities": { "fork": {} } }));
    let fork = |config: &mut SessionConfig| (config.resume, config.fork) = (resume("x"), true);
    let gone = json!({ "id": 2, "error": { "code": -32002, "message": "Resource not found" } });
    check("fork of nothing", &fork, &[&forks, &gone]);
    let refused = json!({ "id": 2, "error": { "code": -32000, "message": "Authentication required" } });
    check("sign in", &|_| {}, &[&plain, &refused]);
    let load = initialized(&json!({ "loadSession": true }));
    check("gone", &|config| config.resume = resume("x"), &[&load, &gone]);
    insta::assert_snapshot!(story);
}

#[test]
fn settings_that_the_protocol_has_no_word_for() {
    let refused = |change: &dyn Fn(&mut SessionConfig)| {
        let mut config = config();
        change(&mut config);
        plan(&config, Box::new(NoFiles)).map(|_| ()).unwrap_err().to_string()
    };
    let said = [
        refused(&|config| config.allowed_tools = vec!["x".to_owned()]),
        refused(&|config| config.max_turns = Some(3)),
        refused(&|config| config.system_prompt = Some("x".to_owned())),
        refused(&|config| config.output_schema = Some(json!({}))),
        refused(&|config| config.sandbox = Some(multitap_event::SandboxMode::ReadOnly)),
        refused(&|config| config.blocked_tools = vec!["x".to_owned()]),
        refused(&|config| config.append_system_prompt = Some("x".to_owned())),
        refused(&|config| {
            config.resume = Resume::Session { native_id: "x".to_owned(), at: Some("m".to_owned()) };
        }),
        refused(&|config| config.permission_path = PermissionPath::Mcp),
    ];
    insta::assert_snapshot!(said.join("\n"));
}

#[test]
fn a_stored_conversation_is_resumed_where_that_can_be() {
    let mut config = config();
    config.resume = Resume::Latest;
    let mut play = Play::new(&config);
    play.agent(&initialized(&json!({ "loadSession": true, "sessionCapabilities": { "list": {}, "resume": {} } })));
    play.agent(&json!({ "id": 2, "result": { "sessions": [
        { "sessionId": "old", "cwd": "/w", "updatedAt": "2026-11-01T00:00:00Z" },
        { "sessionId": "new", "cwd": "/w", "updatedAt": "2026-11-02T00:00:00Z" },
        { "sessionId": "other", "cwd": "/x", "updatedAt": "2026-11-03T00:00:00Z" },
    ] } }));
    play.agent(&json!({ "id": 3, "result": { "modes": modes() } }));
    insta::assert_snapshot!(play.story);
}

#[test]
fn what_is_told_again_is_not_repeated() {
    let mut story = String::new();
    for (way, fork) in
        [(json!({ "loadSession": true }), false), (json!({ "sessionCapabilities": { "fork": {} } }), true)]
    {
        let mut config = config();
        (config.resume, config.fork) = (Resume::Session { native_id: "s1".to_owned(), at: None }, fork);
        let mut play = Play::new(&config);
        play.agent(&initialized(&way));
        play.update(&json!({ "sessionUpdate": "user_message_chunk", "content": { "type": "text", "text": "old" } }));
        play.update(&json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": "older" } }));
        play.agent(&json!({ "id": 2, "result": if fork { json!({ "sessionId": "s2" }) } else { json!({}) } }));
        story += &play.story;
    }
    insta::assert_snapshot!(story);
}

#[test]
fn gemini_tells_history_until_a_fence_is_answered_without_any() {
    let mut config = SessionConfig { agent: AgentKind::Gemini, ..config() };
    config.resume = Resume::Session { native_id: "s1".to_owned(), at: None };
    let mut play = Play::gemini(&config);
    let text = json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": "old" } });
    let no_method = |id: u64| json!({ "id": id, "error": { "code": -32601, "message": "Method not found" } });
    play.agent(&initialized(&json!({ "loadSession": true })));
    play.update(&text);
    play.agent(&json!({ "id": 2, "result": { "modes": modes() } }));
    play.update(&text);
    play.agent(&no_method(3));
    play.update(&text);
    play.agent(&no_method(4));
    play.agent(&no_method(5));
    insta::assert_snapshot!(play.story);
}
