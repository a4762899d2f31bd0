//! A folder acts only if the user trusts it: `-p` with `--trust` or an earlier yes, the terminal by asking. And other
//! things that the command line must not take for granted.

use std::fs;
use std::net::TcpListener;

use multitap_testkit::fake::Fake;
use multitap_testkit::interop;
use multitap_testkit::terminal::Terminal;
use serde_json::{Value, json};

use crate::scene::{MULTITAP, Scene, of};
use crate::terminal::READY;

const STREAM: [&str; 2] = ["--output-format", "stream-json"];
const HOOKS: &str = r#"{"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "touch x"}]}]}}"#;

fn fake() -> Fake {
    Fake::claude().says("hello").build().unwrap()
}

/// A workspace with a hook in it.
fn hooked(fake: &Fake) -> Scene {
    let scene = Scene::with(fake);
    scene.scratch.write(".claude/settings.json", HOOKS).unwrap();
    scene
}

/// Whether the newest start of the fake left the project's settings out.
fn is_left_out(fake: &Fake) -> bool {
    let heard = fake.heard().unwrap();
    let last = heard.iter().rfind(|line| line.contains("--input-format")).unwrap_or_else(|| panic!("{heard:?}"));
    last.contains("--setting-sources user")
}

fn warnings(events: &[Value]) -> usize {
    let is_about = |event: &&&Value| event["message"].as_str().is_some_and(|text| text.contains("not trusted"));
    of(events, "error").iter().filter(is_about).count()
}

#[test]
fn a_run_without_a_terminal_leaves_out_what_nobody_trusts_and_says_so() {
    let fake = fake();
    let scene = hooked(&fake);
    let run = scene.run(&[&["-p", "hi"], &STREAM[..]].concat()).exits(0);
    assert!(is_left_out(&fake), "{:?}", fake.heard());
    assert_eq!(warnings(&run.events()), 1, "{}", run.stdout);
    assert!(run.stderr.contains(".claude/settings.json (hooks)") && run.stderr.contains("--trust"), "{}", run.stderr);
    let text = scene.run(&["-p", "hi"]).exits(0);
    assert_eq!(text.stderr.matches("not trusted").count(), 1, "once, also as text: {}", text.stderr);
    let run = scene.run(&[&["-p", "hi", "--trust"], &STREAM[..]].concat()).exits(0);
    assert!(!is_left_out(&fake));
    assert_eq!(warnings(&run.events()), 0);
    assert_eq!(run.stderr, "");
    let run = scene.run(&["-p", "hi"]).exits(0);
    assert!(is_left_out(&fake) && run.stderr.contains("not trusted"), "--trust holds for one run");
}

#[test]
fn a_project_without_anything_that_acts_is_left_alone() {
    let fake = fake();
    let scene = Scene::with(&fake);
    scene.scratch.write(".claude/settings.json", r#"{"permissions": {"deny": ["WebFetch"]}}"#).unwrap();
    scene.scratch.write("CLAUDE.md", "Be kind.").unwrap();
    let run = scene.run(&["-p", "hi"]).exits(0);
    assert!(!is_left_out(&fake));
    assert_eq!(run.stderr, "");
}

#[test]
fn a_resumed_session_is_judged_by_its_own_folder() {
    let fake = fake();
    let mut scene = Scene::with(&fake);
    let home = scene.scratch.root().join("own");
    scene.scratch.set("MULTITAP_HOME", &home);
    let other = scene.scratch.root().join("other");
    fs::create_dir_all(other.join(".claude")).unwrap();
    fs::create_dir_all(&home).unwrap();
    fs::write(other.join(".claude/settings.json"), HOOKS).unwrap();
    // This folder is trusted, and the other is not.
    let here = scene.scratch.path("").canonicalize().unwrap();
    fs::write(home.join("settings.json"), json!({ "trustedFolders": [here] }).to_string()).unwrap();
    let there = other.display().to_string();
    let first = scene.run(&[&["-p", "hi", "--cwd", &there], &STREAM[..]].concat()).exits(0).events();
    assert!(is_left_out(&fake));
    let id = first[0]["sessionId"].as_str().unwrap();
    let again = scene.run(&[&["-p", "on", "-r", id], &STREAM[..]].concat()).exits(0).events();
    assert!(is_left_out(&fake), "what is trusted here does not count there");
    assert_eq!(warnings(&again), 1);
    fs::write(home.join("settings.json"), json!({ "trustedFolders": [other] }).to_string()).unwrap();
    scene.run(&["-p", "on", "-r", id]).exits(0);
    assert!(!is_left_out(&fake));
}

/// A terminal in that scene, if this machine has one.
fn show<'a>(scene: &'a Scene, args: &[&str]) -> Option<Terminal<'a>> {
    let program = [&[MULTITAP], args].concat();
    Some(Terminal::start(interop::tmux()?, &scene.scratch, &program, (100, 30)).unwrap())
}

const ASKED: &str = "Do you trust the files in";
/// Shown as soon as keys count.
const HEARS: &str = "Ctrl+C quits";

#[test]
fn the_terminal_asks_before_the_agent_starts() {
    let fake = fake();
    let mut scene = hooked(&fake);
    let home = scene.scratch.root().join("own");
    scene.scratch.set("MULTITAP_HOME", &home);
    let evil = "{\"mcpServers\": {\"x\": {}}, \"\\u001b]0;t\\u0007\": 1}";
    scene.scratch.write(".gemini/settings.json", evil).unwrap();
    let Some(terminal) = show(&scene, &["--agent", "claude"]) else { return };
    let screen = terminal.shows(HEARS).unwrap();
    assert!(screen.contains(ASKED) && screen.contains(".claude/settings.json (hooks)"), "{screen}");
    assert!(
        screen.contains(".gemini/settings.json") && screen.contains("u{1b}"),
        "for all agents, and nothing is obeyed: {screen}"
    );
    assert_eq!(fake.heard().unwrap(), [""; 0], "nothing has started");
    // No is what Enter says.
    terminal.press(&["Enter"]).unwrap();
    terminal.shows(READY).unwrap();
    terminal.shows("the folder is not trusted").unwrap();
    assert!(is_left_out(&fake));
    terminal.press(&["C-d"]).unwrap();
    assert_eq!(terminal.ended().unwrap(), 0);
    drop(terminal);
    let terminal = show(&scene, &["--agent", "claude"]).unwrap();
    terminal.shows(HEARS).unwrap();
    terminal.press(&["C-c"]).unwrap();
    assert_eq!(terminal.ended().unwrap(), 130, "whoever leaves starts nothing");
    drop(terminal);
    let terminal = show(&scene, &["--agent", "claude"]).unwrap();
    terminal.shows(HEARS).unwrap();
    terminal.press(&["1"]).unwrap();
    terminal.shows(READY).unwrap();
    assert!(!is_left_out(&fake));
    terminal.press(&["C-d"]).unwrap();
    assert_eq!(terminal.ended().unwrap(), 0);
    drop(terminal);
    let kept = fs::read_to_string(home.join("settings.json")).unwrap();
    let here = scene.scratch.path("").canonicalize().unwrap();
    assert!(kept.contains("trustedFolders") && kept.contains(&here.display().to_string()), "{kept}");
    let terminal = show(&scene, &["--agent", "claude"]).unwrap();
    let screen = terminal.shows(READY).unwrap();
    assert!(!screen.contains(ASKED), "asked once");
    terminal.press(&["C-d"]).unwrap();
    assert_eq!(terminal.ended().unwrap(), 0);
    drop(terminal);
    scene.run(&["-p", "hi"]).exits(0);
    assert!(!is_left_out(&fake), "the yes counts without a terminal too");
}

/// Everything lies below the home folder and `/`, also what was cloned to be looked at.
#[test]
fn the_home_folder_and_what_holds_it_are_trusted_for_themselves_alone() {
    let fake = fake();
    let mut scene = hooked(&fake);
    let own = scene.scratch.root().join("own");
    scene.scratch.set("MULTITAP_HOME", &own);
    fs::create_dir_all(&own).unwrap();
    let project = scene.scratch.home().join("project");
    fs::create_dir_all(project.join(".claude")).unwrap();
    fs::write(project.join(".claude/settings.json"), HOOKS).unwrap();
    let project = project.display().to_string();
    for wide in [scene.scratch.home().display().to_string(), "/".to_owned()] {
        fs::write(own.join("settings.json"), json!({ "trustedFolders": [wide] }).to_string()).unwrap();
        let run = scene.run(&["-p", "hi", "--cwd", &project]).exits(0);
        assert!(is_left_out(&fake), "{wide}: {}", run.stderr);
        assert!(run.stderr.contains("trustedFolders") && run.stderr.contains("home folder"), "{}", run.stderr);
    }
    fs::write(own.join("settings.json"), json!({ "trustedFolders": [project] }).to_string()).unwrap();
    let run = scene.run(&["-p", "hi", "--cwd", &project]).exits(0);
    assert!(!is_left_out(&fake), "{}", run.stderr);
}

const SKILL: &str = "---\nname: x\nallowed-tools: Bash\n---\nHello.\n";

#[test]
fn the_terminal_asks_about_an_added_folder_too() {
    let fake = fake();
    let mut scene = Scene::with(&fake);
    let home = scene.scratch.root().join("own");
    scene.scratch.set("MULTITAP_HOME", &home);
    let added = scene.scratch.root().join("added");
    fs::create_dir_all(added.join(".claude/skills/x")).unwrap();
    fs::write(added.join(".claude/skills/x/SKILL.md"), SKILL).unwrap();
    let name = added.canonicalize().unwrap().display().to_string();
    let args = ["--agent", "claude", "--add-dir", &name];
    let Some(terminal) = show(&scene, &args) else { return };
    let screen = terminal.shows(HEARS).unwrap();
    assert!(screen.contains(&format!("{ASKED} {name}?")) && screen.contains("SKILL.md"), "{screen}");
    assert_eq!(fake.heard().unwrap(), [""; 0], "nothing has started");
    terminal.press(&["Enter"]).unwrap();
    terminal.shows(READY).unwrap();
    terminal.shows("an added folder is not trusted").unwrap();
    assert!(is_left_out(&fake));
    terminal.press(&["C-d"]).unwrap();
    assert_eq!(terminal.ended().unwrap(), 0);
    drop(terminal);
    let terminal = show(&scene, &args).unwrap();
    terminal.shows(HEARS).unwrap();
    terminal.press(&["1"]).unwrap();
    terminal.shows(READY).unwrap();
    assert!(!is_left_out(&fake));
    terminal.press(&["C-d"]).unwrap();
    assert_eq!(terminal.ended().unwrap(), 0);
    let stored = fs::read_to_string(home.join("settings.json")).unwrap();
    assert!(stored.contains(&name), "{stored}");
    scene.run(&[&["-p", "hi"], &args[..]].concat()).exits(0);
    assert!(!is_left_out(&fake), "the yes counts without a terminal too");
}

/// `/resume` may start another agent than the one on the screen, to which the folder's files matter.
#[test]
fn another_agent_in_the_same_terminal_is_asked_about_before_it_starts() {
    let fake = fake();
    let scene = hooked(&fake);
    let first = scene.run(&[&["-p", "hi"], &STREAM[..]].concat()).exits(0).events();
    let id = first[0]["sessionId"].as_str().unwrap();
    let starts = || fake.heard().unwrap().iter().filter(|line| line.contains("--input-format")).count();
    assert_eq!(starts(), 1);
    let Some(terminal) = show(&scene, &["--agent", "builtin", "--model", "rehearsal"]) else { return };
    terminal.shows(READY).unwrap();
    terminal.enter("/resume").unwrap();
    terminal.shows("resume a session").unwrap();
    terminal.say(id).unwrap();
    terminal.press(&["Enter"]).unwrap();
    let screen = terminal.shows(HEARS).unwrap();
    assert!(screen.contains(ASKED), "{screen}");
    assert_eq!(starts(), 1, "nothing has started");
    terminal.press(&["Enter"]).unwrap();
    terminal.shows("the folder is not trusted").unwrap();
    assert!(starts() == 2 && is_left_out(&fake), "{:?}", fake.heard());
    terminal.press(&["C-d"]).unwrap();
    assert_eq!(terminal.ended().unwrap(), 0);
}

#[test]
fn our_own_project_settings_are_asked_about_for_the_built_in_agent() {
    let mut scene = Scene::bare();
    let home = scene.scratch.root().join("own");
    scene.scratch.set("MULTITAP_HOME", &home);
    scene.scratch.write(".multitap/settings.json", r#"{"approvalMode": "auto-all"}"#).unwrap();
    let args = ["--agent", "builtin", "--model", "rehearsal"];
    let Some(terminal) = show(&scene, &args) else { return };
    let screen = terminal.shows(HEARS).unwrap();
    assert!(screen.contains(".multitap/settings.json (approvalMode)"), "{screen}");
    terminal.press(&["Up"]).unwrap();
    terminal.press(&["Enter"]).unwrap();
    terminal.shows(READY).unwrap();
    terminal.press(&["C-d"]).unwrap();
    assert_eq!(terminal.ended().unwrap(), 0);
    let kept = fs::read_to_string(home.join("settings.json")).unwrap();
    assert!(kept.contains("trustedFolders"), "{kept}");
}

/// Remote agents of a project are asked for at the start of a session, whichever agent runs.
#[test]
fn remote_agents_of_a_project_are_asked_about_before_anything_is_sent_to_them() {
    let fake = fake();
    let mut scene = Scene::with(&fake);
    let home = scene.scratch.root().join("own");
    scene.scratch.set("MULTITAP_HOME", &home);
    let remote = TcpListener::bind("127.0.0.1:0").unwrap();
    remote.set_nonblocking(true).unwrap();
    let list = json!({ "a2aServers": [{ "url": format!("http://{}", remote.local_addr().unwrap()) }] });
    scene.scratch.write(".multitap/settings.json", &list.to_string()).unwrap();
    let run = scene.run(&["-p", "hi"]).exits(0);
    assert!(run.stderr.contains("'a2aServers' is ignored here: this folder is not among"), "{}", run.stderr);
    let is_given = || fake.heard().unwrap().iter().any(|line| line.contains("--mcp-config"));
    for agent in [&["--agent", "claude"][..], &["--agent", "builtin", "--model", "rehearsal"]] {
        let Some(terminal) = show(&scene, agent) else { return };
        let screen = terminal.shows(HEARS).unwrap();
        assert!(screen.contains("all      .multitap/settings.json (a2aServers)"), "{screen}");
        terminal.press(&["Enter"]).unwrap();
        terminal.shows(READY).unwrap();
        terminal.press(&["C-d"]).unwrap();
        assert_eq!(terminal.ended().unwrap(), 0);
        assert!(remote.accept().is_err() && !is_given(), "nobody was asked anything");
    }
    let terminal = show(&scene, &["--agent", "claude"]).unwrap();
    terminal.shows(HEARS).unwrap();
    terminal.press(&["1"]).unwrap();
    terminal.shows(READY).unwrap();
    assert!(is_given(), "{:?}", fake.heard());
    terminal.press(&["C-d"]).unwrap();
    assert_eq!(terminal.ended().unwrap(), 0);
}

#[test]
fn the_newest_conversation_goes_by_a_word() {
    let fake = fake();
    let scene = Scene::with(&fake);
    let builtin = ["--agent", "builtin", "--model", "rehearsal"];
    for how in [&["-c"][..], &["-r", "latest"], &[&builtin[..], &["-c"]].concat()] {
        let run = scene.run(&[&["-p", "hi"], how, &STREAM[..]].concat()).exits(3);
        let events = run.events();
        assert_eq!(of(&events, "error")[0]["kind"], "sessionNotFound", "{}", run.stdout);
        assert!(
            run.stderr.contains("no conversation to continue in") && run.stderr.contains("multitap sessions"),
            "{}",
            run.stderr
        );
    }
    let first = scene.run(&[&["-p", "hi"], &STREAM[..]].concat()).exits(0).events();
    let again = scene.run(&[&["-p", "on", "-r", "latest"], &STREAM[..]].concat()).exits(0).events();
    assert_eq!(first[0]["sessionId"], again[0]["sessionId"]);
}

/// The question comes before there is a session, and must not outlive the terminal it is shown on.
#[test]
fn a_terminal_that_goes_away_ends_the_question() {
    let fake = fake();
    let scene = hooked(&fake);
    let Some(terminal) = show(&scene, &["--agent", "claude"]) else { return };
    terminal.shows(HEARS).unwrap();
    drop(terminal);
    scene.nothing_left();
    assert_eq!(fake.heard().unwrap(), [""; 0], "no agent was started");
}

#[test]
fn a_misspelt_command_is_no_prompt() {
    let fake = fake();
    let scene = Scene::with(&fake);
    for args in [&["sesions"][..], &["sesions", "list"]] {
        let run = scene.run(args).exits(2);
        assert!(run.stderr.contains("multitap sessions") && run.stderr.contains("-p sesions"), "{}", run.stderr);
    }
    assert_eq!(fake.heard().unwrap(), [""; 0]);
    scene.run(&["-p", "sesions"]).exits(0);
    let Some(terminal) = show(&scene, &["docter"]) else { return };
    terminal.shows("Did you mean: multitap doctor?").unwrap();
}

#[test]
fn doctor_says_who_is_not_signed_in() {
    let fake = fake();
    let mut scene = Scene::with(&fake);
    let told = scene.run(&["doctor"]).exits(0).stdout;
    assert!(told.contains("claude sign-in  not signed in") && told.contains("claude auth login"), "{told}");
    let verdict = told.lines().rev().take(2).collect::<Vec<_>>().join("\n");
    assert!(verdict.contains("claude is not signed in") && !verdict.contains("Ready"), "{told}");
    assert!(verdict.contains("--agent builtin") && verdict.contains("rehears"), "what works without: {told}");
    scene.scratch.set("ANTHROPIC_API_KEY", "dummy");
    let told = scene.run(&["doctor"]).exits(0).stdout;
    assert!(told.contains("found in ANTHROPIC_API_KEY") && !told.contains("not signed in"), "{told}");
    assert!(told.ends_with("\nReady: multitap -p \"explain this folder\"\n"), "{told}");
}
