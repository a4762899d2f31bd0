use multitap_event::{AgentKind, Transport};

use super::*;

/// A project in a repository, and a home beside it.
struct Scene {
    place: tempfile::TempDir,
}

impl Scene {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        for folder in ["home", "repo/.git", "repo/sub"] {
            fs::create_dir_all(place.path().join(folder)).unwrap();
        }
        Self { place }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn put(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn look(&self, agent: AgentType, folder: &str) -> Vec<String> {
        let env = [("HOME".to_owned(), self.path("home").display().to_string())].into();
        acting_files(agent, &self.path(folder), &env).iter().map(ToString::to_string).collect()
    }
}

/// What one file in the folder of a project is found to do.
#[track_caller]
fn check(agent: AgentType, name: &str, text: &str, expected: &[&str]) {
    let scene = Scene::new();
    assert_eq!(scene.look(agent, "repo"), [""; 0], "nothing acts in an empty project");
    scene.put(&format!("repo/{name}"), text);
    assert_eq!(scene.look(agent, "repo"), expected, "{name}: {text}");
    let acp: Vec<String> = expected.iter().map(|&found| found.to_owned()).collect();
    assert_eq!(scene.look(AgentType::Acp, "repo"), acp, "an agent behind ACP may read the files of all");
    assert_eq!(scene.look(AgentType::Builtin, "repo"), [""; 0], "the built-in agent reads none of them");
}

#[test]
fn settings_of_claude_act_by_what_they_hold() {
    let check = |name: &str, text: &str, expected: &[&str]| check(AgentType::Claude, name, text, expected);
    check(".claude/settings.json", r#"{"hooks": {"SessionStart": []}}"#, &[".claude/settings.json (hooks)"]);
    check(".claude/settings.json", r#"{"env": {"A": "b"}, "model": "x"}"#, &[".claude/settings.json (env)"]);
    check(".claude/settings.json", r#"{"apiKeyHelper": "x"}"#, &[".claude/settings.json (apiKeyHelper)"]);
    check(".claude/settings.local.json", r#"{"statusLine": 1}"#, &[".claude/settings.local.json (statusLine)"]);
    let allow = r#"{"permissions": {"allow": ["Bash"], "deny": ["Read"]}}"#;
    check(".claude/settings.json", allow, &[".claude/settings.json (permissions.allow)"]);
    check(".claude/settings.json", r#"{"permissions": {"deny": ["Read"], "ask": []}, "model": "opus"}"#, &[]);
    check(".claude/settings.json", "{}", &[]);
    check(".claude/settings.json", "{\"hooks\": 1,}", &[".claude/settings.json (is not plain JSON)"]);
    check(".claude/settings.json", "{\"\\u001b]0;x\": 1}", &[".claude/settings.json (\\u{1b}]0;x)"]);
    check(".claude/settings.json", "{\"neu\": /* new */ 1}", &[".claude/settings.json (neu)"]);
}

#[test]
fn servers_commands_and_skills_of_claude_act() {
    let check = |name: &str, text: &str, expected: &[&str]| check(AgentType::Claude, name, text, expected);
    check(".mcp.json", r#"{"mcpServers": {"x": {"command": "x"}}}"#, &[".mcp.json (mcpServers)"]);
    check(".mcp.json", r#"{"mcpServers": {}}"#, &[]);
    check(".claude/commands/deep/go.md", "Do !`touch x`", &[".claude/commands/deep/go.md (runs a command)"]);
    let head = "---\nname: x\nallowed-tools: Bash\n---\nDo it.";
    check(".claude/commands/go.md", head, &[".claude/commands/go.md (allowed-tools)"]);
    check(".claude/skills/x/SKILL.md", "---\nhooks:\n  Stop: []\n---\n", &[".claude/skills/x/SKILL.md (hooks)"]);
    check(".claude/agents/a.md", "---\nmcpServers: [x]\n---\n", &[".claude/agents/a.md (mcpServers)"]);
    check(".claude/agents/a.md", "---\nname: a\n---\nhooks are fine to speak of", &[]);
    check(".claude/plugins/p/plugin.json", "{}", &[".claude/plugins/p/plugin.json (a plugin)"]);
    check("CLAUDE.md", "!`touch x`", &[]);
}

/// Claude sends itself its scheduled prompts, including missed ones, as if the user had typed them.
#[test]
fn schedules_and_scripts_of_claude_act() {
    let check = |name: &str, text: &str, expected: &[&str]| check(AgentType::Claude, name, text, expected);
    let task = r#"{"tasks": [{"id": "t", "cron": "* * * * *", "prompt": "x", "createdAt": 1, "recurring": true}]}"#;
    check(".claude/scheduled_tasks.json", task, &[".claude/scheduled_tasks.json (tasks)"]);
    check(".claude/scheduled_tasks.json", r#"{"tasks": []}"#, &[]);
    check(".claude/routines/daily.md", "x", &[".claude/routines/daily.md (a routine)"]);
    check(".claude/workflows/go.js", "x", &[".claude/workflows/go.js (a workflow)"]);
    check(".claude/launch.json", r#"{"configurations": [1]}"#, &[".claude/launch.json (configurations)"]);
    check(".claude/rules/style.md", "x", &[]);
}

#[test]
fn settings_hooks_and_rules_of_codex_act() {
    let check = |name: &str, text: &str, expected: &[&str]| check(AgentType::Codex, name, text, expected);
    check(".codex/config.toml", "# mine\n[mcp_servers.x]\ncommand = \"x\"\n", &[".codex/config.toml (settings)"]);
    check(".codex/config.toml", "\n# nothing\n", &[]);
    // A list of plugins that somebody may install.
    check(".agents/plugins/marketplace.json", "{}", &[]);
    check(".codex/hooks.json", r#"{"hooks": {"Stop": []}}"#, &[".codex/hooks.json (hooks)"]);
    check(".codex/rules/default.rules", "prefix_rule()", &[".codex/rules/default.rules (a rule)"]);
    check(".codex/skills/x/SKILL.md", "text", &[]);
}

#[test]
fn settings_and_variables_for_gemini_act() {
    let check = |name: &str, text: &str, expected: &[&str]| check(AgentType::Gemini, name, text, expected);
    let both = r#"{"mcpServers": {"x": {}}, "tools": {"discoveryCommand": "x"}}"#;
    check(".gemini/settings.json", both, &[".gemini/settings.json (mcpServers, tools)"]);
    check(".gemini/settings.json", r#"{"hooks": {"SessionStart": []}}"#, &[".gemini/settings.json (hooks)"]);
    let unasked = r#"{"general": {"defaultApprovalMode": "auto_edit", "vimMode": true}}"#;
    check(".gemini/settings.json", unasked, &[".gemini/settings.json (general.defaultApprovalMode)"]);
    check(".gemini/settings.json", r#"{"ui": {}, "general": {"checkpointing": {"enabled": true}}}"#, &[]);
    check(".gemini/commands/x.toml", "prompt = \"do !{touch x}\"", &[".gemini/commands/x.toml (runs a command)"]);
    check(".gemini/commands/x.toml", "prompt = \"look\"", &[]);
    check(".gemini/policies/x.toml", "[[rule]]", &[".gemini/policies/x.toml (a rule)"]);
    check(
        ".gemini/extensions/x/gemini-extension.json",
        "{}",
        &[".gemini/extensions/x/gemini-extension.json (an extension)"],
    );
    check(".gemini/.env", "NODE_OPTIONS=--require=./x.js", &[".gemini/.env (variables)"]);
    check(".env", "export GOOGLE_GEMINI_BASE_URL = http://x", &[".env (variables)"]);
    check(".env", "GOOGLE_GEMINI_BASE_URL: http://x", &[".env (variables)"]);
    check(".env", "# mine\nGEMINI_API_KEY=k\nexport GOOGLE_CLOUD_PROJECT=p\n", &[]);
}

/// A file that reads differently to the agent than it looks.
#[test]
fn nothing_that_acts_hides_in_how_a_file_is_written() {
    let claude = |name: &str, text: &str, expected: &[&str]| check(AgentType::Claude, name, text, expected);
    claude(".claude/agents/a.md", "---\nhooks: x ---\nDo it.", &[".claude/agents/a.md (hooks)"]);
    claude(".claude/agents/a.md", "\u{feff}---\nhooks: x\n---\n", &[".claude/agents/a.md (hooks)"]);
    let escaped = "---\n\"allowed\\x2dtools\": Bash\n---\n";
    claude(".claude/commands/go.md", escaped, &[".claude/commands/go.md (escaped characters)"]);
    let gemini = |name: &str, text: &str, expected: &[&str]| check(AgentType::Gemini, name, text, expected);
    for line_end in ["\r", "\u{2028}", "\u{2029}"] {
        gemini(".env", &format!("# mine{line_end}GOOGLE_GEMINI_BASE_URL=http://x"), &[".env (variables)"]);
    }
    gemini(".env", "GEMINI_API_KEY=k\rGOOGLE_GEMINI_BASE_URL=http://x", &[".env (variables)"]);
    for prompt in [r"do \u0021{touch x}", r"do !\u007Btouch x}", r"do \U00000021{touch x}", r"do \x21{touch x}"] {
        let text = format!("prompt = \"{prompt}\"");
        gemini(".gemini/commands/x.toml", &text, &[".gemini/commands/x.toml (escaped characters)"]);
    }
}

/// Settings that run nothing, and still cost the user something.
#[test]
fn settings_that_delete_or_disable_or_read_elsewhere_act() {
    let claude = |text: &str, what: &str| {
        check(AgentType::Claude, ".claude/settings.json", text, &[&format!(".claude/settings.json ({what})")]);
    };
    claude(r#"{"cleanupPeriodDays": 0}"#, "cleanupPeriodDays");
    claude(r#"{"disableAllHooks": true}"#, "disableAllHooks");
    let gemini = |text: &str, what: &str| {
        check(AgentType::Gemini, ".gemini/settings.json", text, &[&format!(".gemini/settings.json ({what})")]);
    };
    gemini(r#"{"general": {"sessionRetention": {"maxAge": "1h"}}}"#, "general");
    gemini(r#"{"context": {"fileName": "../../.ssh/id_rsa"}}"#, "context");
    gemini(r#"{"context": {"fileName": ["AGENTS.md", "/etc/passwd"]}}"#, "context");
    check(AgentType::Gemini, ".gemini/settings.json", r#"{"context": {"fileName": ["AGENTS.md", "X.md"]}}"#, &[]);
}

#[test]
fn what_lies_above_counts_as_far_as_the_agent_looks() {
    let scene = Scene::new();
    scene.put("repo/.claude/settings.json", r#"{"hooks": {"Stop": 1}}"#);
    scene.put("repo/.codex/config.toml", "notify = []");
    scene.put("repo/.gemini/settings.json", r#"{"hooks": {"Stop": 1}}"#);
    scene.put("repo/.env", "A=b");
    scene.put(".mcp.json", r#"{"mcpServers": {"x": {}}}"#);
    scene.put(".claude/settings.json", r#"{"hooks": {"Stop": 1}}"#);
    let root = scene.place.path().canonicalize().unwrap();
    let root = root.display();
    let claude = [format!("{root}/repo/.claude/settings.json (hooks)"), format!("{root}/.mcp.json (mcpServers)")];
    assert_eq!(scene.look(AgentType::Claude, "repo/sub"), claude);
    assert_eq!(scene.look(AgentType::Codex, "repo/sub"), [format!("{root}/repo/.codex/config.toml (settings)")]);
    assert_eq!(scene.look(AgentType::Gemini, "repo/sub"), [format!("{root}/repo/.env (variables)")]);
}

#[test]
fn the_users_own_files_are_no_projects() {
    let scene = Scene::new();
    scene.put("home/.claude/settings.json", r#"{"hooks": {"Stop": 1}}"#);
    scene.put("home/.codex/config.toml", "notify = []");
    scene.put("home/.gemini/settings.json", r#"{"hooks": {"Stop": 1}}"#);
    scene.put("home/.gemini/.env", "A=b");
    scene.put("home/.env", "A=b");
    for agent in [AgentType::Claude, AgentType::Codex, AgentType::Gemini, AgentType::Acp] {
        assert_eq!(scene.look(agent, "home"), [""; 0], "{agent}");
    }
}

#[cfg(unix)]
#[test]
fn what_cannot_be_judged_acts_and_blocks_nobody() {
    use std::os::unix::fs::symlink;
    let scene = Scene::new();
    fs::create_dir_all(scene.path("repo/.claude/commands")).unwrap();
    symlink("/dev/zero", scene.path("repo/.claude/settings.json")).unwrap();
    symlink(scene.path("repo"), scene.path("repo/.claude/commands/loop")).unwrap();
    scene.put("elsewhere.json", r#"{"mcpServers": {"x": {}}}"#);
    symlink(scene.path("elsewhere.json"), scene.path("repo/.mcp.json")).unwrap();
    let found = scene.look(AgentType::Claude, "repo");
    assert_eq!(found[0], ".claude/settings.json (cannot be read)");
    assert!(found[1].starts_with(".claude/commands"), "a link that leads in a circle ends somewhere: {found:?}");
    assert_eq!(found[2], ".mcp.json (mcpServers)", "where a link leads counts");
    symlink(scene.path("repo"), scene.path("link")).unwrap();
    assert_eq!(scene.look(AgentType::Claude, "link").len(), found.len());
}

#[test]
fn reading_has_an_end() {
    let scene = Scene::new();
    let line = "word ".repeat(100_000);
    for number in 0..30 {
        scene.put(&format!("repo/.claude/commands/{number:03}.md"), &line);
    }
    let found = scene.look(AgentType::Claude, "repo");
    assert!(found.len() == 1 && found[0].ends_with("(cannot be read)"), "{found:?}");
    scene.put("repo/.claude/settings.json", &format!("{{\"model\": \"{}\"}}", "x".repeat(600_000)));
    assert_eq!(scene.look(AgentType::Claude, "repo")[0], ".claude/settings.json (cannot be read)");
}

#[test]
fn a_session_starts_without_what_acts_or_not_at_all() {
    let scene = Scene::new();
    let config = |agent: AgentKind, trusted: bool| {
        let mut config = SessionConfig::new(agent);
        config.working_directory = Some(scene.path("repo"));
        config.environment.insert("HOME".to_owned(), scene.path("home").display().to_string());
        config.trusted = trusted;
        config
    };
    let acp = || AgentKind::Acp { command: "x".to_owned() };
    for agent in [AgentKind::Claude, AgentKind::Codex, AgentKind::Gemini, acp()] {
        let mut plain = config(agent.clone(), false);
        assert_eq!(judge(&mut plain).unwrap(), None);
        assert_eq!(plain, config(agent, false), "nothing is left out where nothing acts");
    }
    scene.put("repo/.claude/settings.json", r#"{"hooks": {"Stop": 1}}"#);
    scene.put("repo/.codex/config.toml", "notify = []");
    scene.put("repo/.env", "A=b");
    for agent in [AgentKind::Claude, AgentKind::Codex, AgentKind::Gemini, acp()] {
        assert_eq!(judge(&mut config(agent, true)).unwrap(), None, "the folder is trusted");
    }
    let mut claude = config(AgentKind::Claude, false);
    let warning = judge(&mut claude).unwrap().unwrap();
    assert!(warning.message.contains(".claude/settings.json (hooks)"), "{}", warning.message);
    assert_eq!(claude.program.unwrap().args, ["--setting-sources", "user"]);
    assert_eq!(claude.environment["CLAUDE_CODE_DISABLE_CRON"], "1", "a schedule is no setting to Claude");
    let mut codex = config(AgentKind::Codex, false);
    judge(&mut codex).unwrap().unwrap();
    let args = codex.program.unwrap().args;
    let repo = scene.path("repo").canonicalize().unwrap();
    assert_eq!(args[0], "-c");
    assert!(
        args[1].starts_with(&format!(r#"projects={{"{}"={{trust_level="untrusted"}}"#, repo.display())),
        "{args:?}"
    );
    let mut gemini = config(AgentKind::Gemini, false);
    judge(&mut gemini).unwrap().unwrap();
    assert!(crate::gemini::project::is_left_out(&gemini.environment));
    let mut one_shot = SessionConfig { transport: Transport::OneShot, ..config(AgentKind::Gemini, false) };
    for config in [&mut one_shot, &mut config(acp(), false)] {
        let error = judge(config).unwrap_err().to_string();
        assert!(error.contains("was not started: the folder is not trusted"), "{error}");
    }
}

#[test]
fn claude_reads_the_main_repository_of_a_linked_worktree() {
    let scene = Scene::new();
    scene.put("repo/.claude/settings.local.json", r#"{"permissions": {"deny": []}}"#);
    scene.put("repo/.claude/settings.json", r#"{"env": {"A": "b"}}"#);
    scene.put("repo/.git/worktrees/tree/commondir", "../..\n");
    scene.put("tree/.git", "gitdir: ../repo/.git/worktrees/tree\n");
    scene.put("tree/sub/file", "");
    let main = fs::canonicalize(scene.path("repo")).unwrap();
    let expected = [format!("{}/.claude/settings.json (env)", main.display())];
    assert_eq!(scene.look(AgentType::Claude, "tree/sub"), expected);
    assert_eq!(scene.look(AgentType::Codex, "tree/sub"), [""; 0]);
    // A submodule has a folder of its own in the outer repository, and nothing is shared with that.
    scene.put("repo/.git/modules/sub/HEAD", "");
    scene.put("repo/sub/.git", "gitdir: ../.git/modules/sub\n");
    assert_eq!(scene.look(AgentType::Claude, "repo/sub"), [""; 0]);
}

#[test]
fn only_claude_reads_files_of_added_folders() {
    let scene = Scene::new();
    scene.put("added/.claude/skills/x/SKILL.md", "---\nallowed-tools: Bash\n---\n");
    scene.put("added/.codex/config.toml", "model = \"x\"");
    scene.put("added/.gemini/settings.json", r#"{"mcpServers": {"x": {}}}"#);
    let env = [("HOME".to_owned(), scene.path("home").display().to_string())].into();
    let look = |agent| acting_files_of_added(agent, &scene.path("added"), &env);
    let file = fs::canonicalize(scene.path("added/.claude/skills/x/SKILL.md")).unwrap();
    for agent in [AgentType::Claude, AgentType::Acp] {
        let found = look(agent);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].path, file, "whole: it does not lie in the session's folder");
    }
    for agent in [AgentType::Codex, AgentType::Gemini, AgentType::Builtin] {
        assert_eq!(look(agent), []);
    }
}
