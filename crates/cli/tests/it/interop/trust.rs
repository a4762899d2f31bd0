//! What a project brings acts only where the user trusts the folder: the real CLIs, with hooks and MCP servers that
//! leave a mark when they run.

use std::path::Path;

use multitap_testkit::model::{Reply, Tool};
use serde_json::json;

use super::agent::Agent;
use super::stage::{Place, Run};

/// What the skill leaves, in the folder that it lies in.
const SKILL_MARK: &str = "claude-skill";

/// Puts everything into the project by which the CLIs would run something, each with a mark of its own.
fn lay(place: &Place) {
    lay_in(place, &place.scratch.path(""));
}

/// The same in any folder.
fn lay_in(place: &Place, folder: &Path) {
    let marks = place.scratch.root().join("marks");
    std::fs::create_dir_all(&marks).unwrap();
    let touch = |name: &str| format!("touch {}", marks.join(name).display());
    let server = |name: &str| {
        let script = folder.join(format!("{name}.sh"));
        std::fs::write(&script, format!("{}\nexit 1\n", touch(name))).unwrap();
        script.display().to_string()
    };
    let hook = |name: &str| json!([{"hooks": [{"type": "command", "command": touch(name)}]}]);
    let run = |name: &str| json!({"command": "/bin/sh", "args": [server(name)]});
    let write = |file: &str, text: &str| {
        let file = folder.join(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    };
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
    // Claude Code asks about other places in spite of the skill's own rule.
    let shell = format!("touch {}", folder.join(SKILL_MARK).display());
    let skill = format!("---\nname: marked\ndescription: marks\nallowed-tools: Bash(touch:*)\n---\nDone: !`{shell}`\n");
    write(".claude/skills/marked/SKILL.md", &skill);
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
    place.settings(&json!({"trustedFolders": [place.scratch.path("")]}));
    let run = place.once("hello", options);
    run.exits(0);
    assert_eq!(marks(&place), expected, "an earlier yes counts:\n{}", run.story());
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

/// Lays everything into a folder that is added to the session, and asks for its skill. What it expects runs only after
/// a yes to that folder.
fn check_added(agent: Agent, options: &[&str], expected: &[&str]) {
    if agent.program().is_none() {
        return; // said loudly, and counted
    }
    let place = Place::new(agent, [Reply::text("one"), Reply::text("two")]);
    let added = place.scratch.root().join("added");
    std::fs::create_dir_all(&added).unwrap();
    lay_in(&place, &added);
    let name = added.display().to_string();
    let options = [&["--add-dir", &name], options].concat();
    let marks = || {
        let mut marks = marks(&place);
        marks.extend(std::fs::remove_file(added.join(SKILL_MARK)).ok().map(|()| SKILL_MARK.to_owned()));
        marks
    };
    let run = place.once("/marked", &options);
    assert_eq!(marks(), [""; 0], "nothing of the added folder ran:\n{}", run.story());
    assert_eq!(warned(&run), !expected.is_empty(), "it says so:\n{}", run.story());
    place.settings(&json!({"trustedFolders": [name]}));
    let run = place.once("/marked", &options);
    run.exits(0);
    assert_eq!(marks(), expected, "{}", run.story());
    assert!(!warned(&run), "{}", run.story());
}

#[test]
fn claude_runs_nothing_of_an_added_folder_that_nobody_trusts() {
    check_added(Agent::Claude, &[], &[SKILL_MARK]);
}

#[test]
fn codex_runs_nothing_of_an_added_folder() {
    check_added(Agent::Codex, &["--sandbox", "workspace-write"], &[]);
}

#[test]
fn gemini_runs_nothing_of_an_added_folder() {
    check_added(Agent::Gemini, &[], &[]);
}

/// Claude Code loads the skills of a folder below its own when it works on a file there. They are no files that act: its
/// model cannot use one without a question.
#[test]
fn claude_asks_before_its_model_uses_a_skill_from_further_below() {
    if Agent::Claude.program().is_none() {
        return; // said loudly, and counted
    }
    let place = Place::new(Agent::Claude, []);
    let below = place.scratch.path("packages/one");
    lay_in(&place, &below);
    std::fs::write(below.join("note.txt"), "a note").unwrap();
    for tool in [Tool::read(below.join("note.txt")), Tool::native("Skill", json!({"skill": "marked"}))] {
        place.model.push(Reply::call(tool));
    }
    place.model.push(Reply::text("done"));
    let run = place.once("hello", &["--approval-mode", "auto-edit"]);
    run.exits(4);
    let asked = run.all("permissionAsked");
    assert_eq!(asked.len(), 1, "{}", run.story());
    assert_eq!(asked[0]["toolName"], "Skill", "{}", run.story());
    assert!(!below.join(SKILL_MARK).exists() && marks(&place).is_empty(), "{}", run.story());
}

/// What git needs to see a repository, without a program to make one.
fn git_folder(git: &Path) {
    for folder in ["objects", "refs/heads"] {
        std::fs::create_dir_all(git.join(folder)).unwrap();
    }
    std::fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    std::fs::write(git.join("config"), "[core]\n\trepositoryformatversion = 0\n\tbare = false\n").unwrap();
}

/// The session works in a repository that lies in, or belongs to, one with everything that acts.
fn check_inner_repositories(agent: Agent, options: &[&str]) {
    if agent.program().is_none() {
        return; // said loudly, and counted
    }
    let place = Place::new(agent, [Reply::text("one"), Reply::text("two"), Reply::text("three")]);
    lay(&place);
    let outer = place.scratch.path("");
    let git = outer.join(".git");
    git_folder(&git);
    let nested = outer.join("nested");
    git_folder(&nested.join(".git"));
    let submodule = outer.join("submodule");
    let own = git.join("modules/submodule");
    git_folder(&own);
    std::fs::create_dir_all(&submodule).unwrap();
    std::fs::write(submodule.join(".git"), "gitdir: ../.git/modules/submodule\n").unwrap();
    let config = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = ../../../submodule\n";
    std::fs::write(own.join("config"), config).unwrap();
    let worktree = place.scratch.root().join("worktree");
    let own = git.join("worktrees/worktree");
    std::fs::create_dir_all(&own).unwrap();
    std::fs::create_dir_all(&worktree).unwrap();
    std::fs::write(worktree.join(".git"), format!("gitdir: {}\n", own.display())).unwrap();
    std::fs::write(own.join("HEAD"), "ref: refs/heads/other\n").unwrap();
    std::fs::write(own.join("commondir"), "../..\n").unwrap();
    std::fs::write(own.join("gitdir"), format!("{}\n", worktree.join(".git").display())).unwrap();
    for folder in [nested, submodule, worktree] {
        let name = folder.display().to_string();
        let run = place.once("hello", &[&["--cwd", &name], options].concat());
        run.exits(0);
        assert_eq!(marks(&place), [""; 0], "in {name}:\n{}", run.story());
    }
}

#[test]
fn claude_runs_nothing_around_an_inner_repository() {
    check_inner_repositories(Agent::Claude, &[]);
}

#[test]
fn codex_runs_nothing_around_an_inner_repository() {
    check_inner_repositories(Agent::Codex, &["--sandbox", "workspace-write"]);
}

#[test]
fn gemini_runs_nothing_around_an_inner_repository() {
    check_inner_repositories(Agent::Gemini, &[]);
}
