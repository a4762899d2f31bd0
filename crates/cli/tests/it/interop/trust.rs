//! What a project brings acts only where the user trusts the folder: the real CLIs, with hooks and MCP servers that
//! leave a mark when they run.

use std::path::Path;

use multitap_testkit::model::Reply;
use serde_json::json;

use super::agent::Agent;
use super::stage::{Place, Run};

/// Puts everything into the project by which the CLIs would run something, each with a mark of its own.
fn lay(place: &Place) {
    let marks = place.scratch.root().join("marks");
    std::fs::create_dir_all(&marks).unwrap();
    let touch = |name: &str| format!("touch {}", marks.join(name).display());
    let server = |name: &str| {
        let script = format!("{name}.sh");
        place.scratch.write(&script, &format!("{}\nexit 1\n", touch(name))).unwrap();
        place.path(&script)
    };
    let hook = |name: &str| json!([{"hooks": [{"type": "command", "command": touch(name)}]}]);
    let run = |name: &str| json!({"command": "/bin/sh", "args": [server(name)]});
    let write = |file: &str, text: &str| place.scratch.write(file, text).unwrap();
    let claude = json!({
        "hooks": {"SessionStart": hook("claude-hook"), "UserPromptSubmit": hook("claude-prompt-hook")},
        "enableAllProjectMcpServers": true,
    });
    write(".claude/settings.json", &claude.to_string());
    let local = json!({"hooks": {"UserPromptSubmit": hook("claude-local-hook")}});
    write(".claude/settings.local.json", &local.to_string());
    write(".mcp.json", &json!({"mcpServers": {"marked": run("claude-mcp")}}).to_string());
    let codex = format!("[mcp_servers.marked]\ncommand = \"/bin/sh\"\nargs = [\"{}\"]\n", server("codex-mcp"));
    write(".codex/config.toml", &codex);
    let gemini = json!({"mcpServers": {"marked": run("gemini-mcp")}});
    write(".gemini/settings.json", &gemini.to_string());
}

/// The marks that were left since the last look.
fn marks(place: &Place) -> Vec<String> {
    let folder = place.scratch.root().join("marks");
    let mut names: Vec<String> =
        std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.iter().for_each(|name| std::fs::remove_file(folder.join(name)).unwrap());
    names.sort();
    names
}

fn warned(run: &Run) -> bool {
    let about = |text: &str| text.contains("not trusted");
    let event = run.all("error").iter().any(|event| event["message"].as_str().is_some_and(about));
    event && about(&run.stderr)
}

/// Starts in a folder that nobody trusts, then with `--trust`, then after an earlier yes.
fn check(agent: Agent, options: &[&str], expected: &[&str]) {
    if agent.program().is_none() {
        return; // said loudly, and counted
    }
    let place = Place::new(agent, [Reply::text("one"), Reply::text("two"), Reply::text("three")]);
    lay(&place);
    let run = place.once("hello", options);
    run.exits(0);
    assert_eq!(marks(&place), [""; 0], "nothing of the project ran:\n{}", run.story());
    assert!(warned(&run), "it says so:\n{}", run.story());
    let codex = std::fs::read_to_string(place.scratch.home().join(".codex/config.toml")).unwrap();
    assert!(!codex.contains("trust_level"), "the user's own settings stay as they were: {codex}");
    let run = place.once("hello", &[&["--trust"], options].concat());
    run.exits(0);
    assert_eq!(marks(&place), expected, "with trust it runs:\n{}", run.story());
    assert!(!warned(&run), "{}", run.story());
    place.settings(&json!({"trustedFolders": [place.scratch.path("").parent().unwrap_or(Path::new("/"))]}));
    let run = place.once("hello", options);
    run.exits(0);
    assert_eq!(marks(&place), expected, "an earlier yes counts, also for what lies below:\n{}", run.story());
}

#[test]
fn claude_runs_nothing_of_a_folder_that_nobody_trusts() {
    check(Agent::Claude, &[], &["claude-hook", "claude-local-hook", "claude-mcp", "claude-prompt-hook"]);
}

#[test]
fn codex_runs_nothing_of_a_folder_that_nobody_trusts() {
    // Where it may write, Codex would trust the folder by itself.
    check(Agent::Codex, &["--sandbox", "workspace-write"], &["codex-mcp"]);
}

#[test]
fn gemini_runs_nothing_of_a_folder_that_nobody_trusts() {
    check(Agent::Gemini, &[], &["gemini-mcp"]);
}

#[test]
fn an_agent_behind_acp_does_not_start_in_a_folder_that_nobody_trusts() {
    if Agent::Acp.program().is_none() {
        return; // said loudly, and counted
    }
    let place = Place::new(Agent::Acp, [Reply::text("one")]);
    lay(&place);
    let run = place.once("hello", &[]);
    run.exits(3);
    assert_eq!(marks(&place), [""; 0], "{}", run.story());
    assert!(run.stderr.contains("was not started: the folder is not trusted"), "{}", run.stderr);
    assert!(place.model.conversation().is_empty());
    let run = place.once("hello", &["--trust"]);
    run.exits(0);
    assert!(!marks(&place).is_empty(), "{}", run.story());
}
