//! `multitap` on a real terminal, on the rehearsal: what is typed, what is seen, and how it is left.

mod shared;

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use multitap_testkit::interop;
use multitap_testkit::terminal::Terminal;
use multitap_testkit::wait::until_blocking;
use serde_json::Value;

use crate::scene::{MULTITAP, PATIENCE, Scene};

pub(crate) const REHEARSAL: [&str; 4] = ["--agent", "builtin", "--model", "rehearsal"];
/// What stands where nothing is typed.
pub(crate) const READY: &str = "ask for something";

/// The binary in a terminal, if this machine has one.
fn show<'a>(scene: &'a Scene, args: &[&str]) -> Option<Terminal<'a>> {
    let program = [&[MULTITAP], args].concat();
    Some(Terminal::start(interop::tmux()?, &scene.scratch, &program, (100, 30)).unwrap())
}

/// The same with the rehearsal, once it is up.
fn rehearse<'a>(scene: &'a Scene, args: &[&str]) -> Option<Terminal<'a>> {
    let terminal = show(scene, &[&REHEARSAL, args].concat())?;
    terminal.shows(READY).unwrap();
    Some(terminal)
}

/// The port of the door, as the status line has it.
pub(crate) fn port(terminal: &Terminal<'_>) -> u16 {
    let screen = terminal.shows("http://127.0.0.1:").unwrap();
    let (_, rest) = screen.split_once("http://127.0.0.1:").unwrap();
    rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap()
}

/// Everything in the log of the newest session.
fn log(scene: &Scene) -> Vec<Value> {
    scene.run(&["sessions", "export", "latest"]).exits(0).events()
}

/// The texts that an editor was opened with, or that were kept, in a folder for temporary files.
fn notes(folder: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|ending| ending == "md")).collect()
}

fn find<'a>(events: &'a [Value], kind: &str) -> &'a Value {
    events.iter().rfind(|event| event["type"] == kind).unwrap_or_else(|| panic!("no {kind} in {events:#?}"))
}

#[test]
fn a_newcomer_meets_the_rehearsal_and_gets_the_screen_back() {
    let scene = Scene::bare();
    let Some(terminal) = show(&scene, &[]) else { return };
    terminal.shows("No agent found: this is a rehearsal").unwrap();
    terminal.enter("hello you").unwrap();
    let screen = terminal.until("an answer", |screen| screen.contains("rehears") && screen.contains("hello you"));
    assert!(!screen.unwrap().contains("No agent found"), "a key takes the line away");
    assert!(terminal.is_taken().unwrap());
    terminal.press(&["C-d"]).unwrap();
    assert_eq!(terminal.ended().unwrap(), 0);
    assert!(!terminal.is_taken().unwrap());
    drop(terminal);
    scene.nothing_left();
}

#[test]
fn a_picture_is_pasted_from_the_clipboard_of_the_desktop() {
    let scene = Scene::bare();
    let Some(tmux) = interop::tmux() else { return };
    let desktop = scene.scratch.root().join("desktop");
    fs::create_dir(&desktop).unwrap();
    let paste = desktop.join("wl-paste");
    let script = r"case $1 in --list-types) echo image/png;; *) printf '\211PNG';; esac";
    fs::write(&paste, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&paste, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("PATH={}:/usr/bin:/bin", desktop.display());
    let program = [&["env", &path, "WAYLAND_DISPLAY=wayland-9", MULTITAP][..], &REHEARSAL].concat();
    let terminal = Terminal::start(tmux, &scene.scratch, &program, (100, 30)).unwrap();
    terminal.shows(READY).unwrap();
    terminal.say("what is ").unwrap();
    terminal.press(&["C-v"]).unwrap();
    terminal.shows("> what is [Image #1: clipboard]").unwrap();
    terminal.press(&["Enter"]).unwrap();
    terminal.shows("[png image, 4 B]").unwrap();
    // The program is gone: what could be installed is said.
    fs::remove_file(&paste).unwrap();
    terminal.press(&["C-v"]).unwrap();
    terminal.shows("install wl-clipboard").unwrap();
    terminal.press(&["C-d"]).unwrap();
    assert_eq!(terminal.ended().unwrap(), 0);
    let events = log(&scene);
    let images = &find(&events, "userMessage")["images"];
    assert_eq!(*images, serde_json::json!([{ "mediaType": "image/png", "data": "iVBORw==" }]));
    drop(terminal);
    scene.nothing_left();
}

#[test]
fn a_question_is_answered_by_a_key() {
    let scene = Scene::bare();
    let Some(terminal) = rehearse(&scene, &[]) else { return };
    terminal.enter("run: echo made-$((40+2)) > made.txt").unwrap();
    terminal.shows("Esc refuses").unwrap();
    assert!(!scene.scratch.path("made.txt").exists());
    terminal.press(&["1"]).unwrap();
    terminal.hides("Esc refuses").unwrap();
    terminal.shows(READY).unwrap();
    assert_eq!(scene.scratch.read("made.txt").unwrap(), "made-42\n");
}

#[test]
fn a_question_is_denied_with_words() {
    let scene = Scene::bare();
    let Some(terminal) = rehearse(&scene, &[]) else { return };
    terminal.enter("run: touch never.txt").unwrap();
    terminal.shows("Esc refuses").unwrap();
    terminal.press(&["Tab"]).unwrap();
    terminal.say("not in this folder").unwrap();
    // Nobody chose to allow it, so the comment goes with a no.
    terminal.press(&["Enter"]).unwrap();
    terminal.shows(READY).unwrap();
    terminal.press(&["C-d"]).unwrap();
    assert_eq!(terminal.ended().unwrap(), 0);
    assert!(!scene.scratch.path("never.txt").exists());
    let events = log(&scene);
    let ruling = find(&events, "permissionSettled");
    assert_eq!((&ruling["feedback"], &ruling["settledBy"]["door"]), (&"not in this folder".into(), &"terminal".into()));
    assert_eq!(ruling["kind"], "rejectOnce");
}

#[test]
fn what_is_written_is_edited_before_it_is_allowed() {
    let mut scene = Scene::bare();
    let editor = scene.scratch.write("editor", "#!/bin/sh\nprintf 'better\\n' > \"$1\"\n").unwrap();
    fs::set_permissions(&editor, PermissionsExt::from_mode(0o755)).unwrap();
    scene.scratch.set("EDITOR", editor);
    let Some(terminal) = rehearse(&scene, &[]) else { return };
    terminal.enter("write good to note.txt").unwrap();
    terminal.shows("Esc refuses").unwrap();
    assert!(terminal.about("#{pane_title}").unwrap().starts_with("? "), "the title says that a question waits");
    terminal.press(&["C-g"]).unwrap();
    let is_asked = |screen: &str| screen.contains("with your edit") && screen.contains("Enter answers");
    let screen = terminal.until("the edit", is_asked).unwrap();
    assert!(screen.contains("+better") && !scene.scratch.path("note.txt").exists(), "{screen}");
    terminal.press(&["Enter"]).unwrap();
    terminal.shows(READY).unwrap();
    assert_eq!(scene.scratch.read("note.txt").unwrap().trim_end(), "better");
    terminal.say("draft").unwrap();
    terminal.press(&["C-g"]).unwrap();
    terminal.shows("> better").unwrap();
}

#[test]
fn an_editor_that_changes_nothing_or_fails_allows_nothing() {
    for (editor, told) in [("true", "nothing was changed"), ("false", "the editor cannot be used")] {
        let mut scene = Scene::bare();
        scene.scratch.set("EDITOR", editor);
        let Some(terminal) = rehearse(&scene, &[]) else { return };
        terminal.enter("run: touch never.txt").unwrap();
        terminal.shows("Esc refuses").unwrap();
        terminal.press(&["C-g"]).unwrap();
        let screen = terminal.shows(told).unwrap();
        assert!(screen.contains("touch never.txt") && screen.contains("1. Allow once"), "{screen}");
        terminal.press(&["Escape"]).unwrap();
        terminal.shows(READY).unwrap();
        assert!(!scene.scratch.path("never.txt").exists());
        assert_eq!(find(&log(&scene), "permissionSettled")["kind"], "rejectOnce");
    }
}

#[test]
fn clearing_empties_the_screen() {
    let scene = Scene::bare();
    let Some(terminal) = rehearse(&scene, &[]) else { return };
    terminal.enter("say what was before").unwrap();
    terminal.until("the answer", |screen| screen.matches("what was before").count() > 1).unwrap();
    terminal.enter("/clear").unwrap();
    let screen = terminal.hides("what was before").unwrap();
    terminal.press(&["PageUp"]).unwrap();
    terminal.enter("say something new").unwrap();
    let screen_after = terminal.until("the answer", |screen| screen.matches("something new").count() > 1).unwrap();
    assert!(!screen_after.contains("what was before"), "{screen}\n{screen_after}");
}

/// What stands in a command is on the screen, whatever a terminal would make of it.
#[test]
fn a_question_shows_what_the_shell_would_run() {
    let scene = Scene::bare();
    let prompt = "run: echo hi \u{1b}]; touch never.txt \u{7}";
    let Some(terminal) = show(&scene, &[&REHEARSAL[..], &[prompt]].concat()) else { return };
    let screen = terminal.shows("Esc refuses").unwrap();
    assert!(screen.contains("echo hi ␛]; touch never.txt ␇"), "{screen}");
    terminal.press(&["Escape"]).unwrap();
    terminal.shows(READY).unwrap();
}

#[test]
fn what_was_written_outlives_an_editor_that_fails() {
    let mut scene = Scene::bare();
    let editor = scene.scratch.write("editor", "#!/bin/sh\necho half > \"$1\"; exit 3\n").unwrap();
    fs::set_permissions(&editor, PermissionsExt::from_mode(0o755)).unwrap();
    scene.scratch.set("EDITOR", editor);
    let kept = scene.scratch.path("kept");
    fs::create_dir(&kept).unwrap();
    scene.scratch.set("TMPDIR", &kept);
    let Some(terminal) = rehearse(&scene, &[]) else { return };
    terminal.say("draft").unwrap();
    terminal.press(&["C-g"]).unwrap();
    let is_told = |screen: &str| screen.replace("\n  ", " ").contains("saved in");
    // A key takes a notice away, and not this.
    terminal.until("the file", is_told).unwrap();
    terminal.say("!").unwrap();
    let screen = terminal.shows("> draft!").unwrap();
    assert!(is_told(&screen), "{screen}");
    let files = notes(&kept);
    let [file] = &files[..] else { panic!("{files:?}") };
    assert_eq!(fs::read_to_string(file).unwrap(), "half\n");
}

#[test]
fn what_is_typed_to_the_editor_is_not_meant_for_us() {
    let mut scene = Scene::bare();
    // It leaves the terminal as it is, where Ctrl+C is a signal to all of us.
    let editor = scene.scratch.write(
        "editor",
        "#!/bin/sh\ntrap 'echo stopped > \"$1\"; exit 0' INT\necho editing; while :; do sleep 0.1; done\n",
    );
    let editor = editor.unwrap();
    fs::set_permissions(&editor, PermissionsExt::from_mode(0o755)).unwrap();
    scene.scratch.set("EDITOR", editor);
    let Some(terminal) = rehearse(&scene, &[]) else { return };
    terminal.say("draft").unwrap();
    terminal.press(&["C-g"]).unwrap();
    terminal.shows("editing").unwrap();
    terminal.press(&["C-c"]).unwrap();
    terminal.shows("> stopped").unwrap();
    // An end that is meant for us is the end of the editor too.
    terminal.press(&["C-g"]).unwrap();
    terminal.shows("editing").unwrap();
    let pid = terminal.pid().unwrap().to_string();
    assert!(scene.scratch.command("kill").args(["-TERM", &pid]).status().unwrap().success());
    assert_eq!(terminal.ended().unwrap(), 0);
    drop(terminal);
    scene.nothing_left();
}

#[test]
fn prompts_keep_the_order_in_which_they_were_typed() {
    let scene = Scene::bare();
    let Some(terminal) = rehearse(&scene, &[]) else { return };
    let typed: Vec<String> = (1..=12).map(|at| format!("word{at:02}")).collect();
    let keys: Vec<&str> = typed.iter().flat_map(|word| [word.as_str(), "Enter"]).collect();
    terminal.press(&keys).unwrap();
    terminal.until("the last answer", |screen| screen.contains("\"word12\"")).unwrap();
    let asked: Vec<Value> = log(&scene).into_iter().filter(|event| event["type"] == "userMessage").collect();
    let asked: Vec<&str> = asked.iter().filter_map(|event| event["content"].as_str()).collect();
    assert_eq!(asked, typed);
}

#[test]
fn what_is_typed_meanwhile_waits_and_is_taken_back() {
    let scene = Scene::bare();
    let Some(terminal) = rehearse(&scene, &[]) else { return };
    terminal.enter("slow 300").unwrap();
    terminal.shows("type to queue").unwrap();
    terminal.enter("and then this").unwrap();
    terminal.shows("queued: and then this").unwrap();
    terminal.press(&["Up"]).unwrap();
    terminal.hides("queued:").unwrap();
    terminal.shows("> and then this").unwrap();
    // Esc interrupts, and what is typed stays.
    terminal.press(&["Escape"]).unwrap();
    terminal.until("rest", |screen| !screen.contains("working") && screen.contains("> and then this")).unwrap();
}

#[test]
fn files_commands_and_what_was_typed_before_are_found() {
    let scene = Scene::bare();
    scene.scratch.write("src/kitchen.rs", "pan").unwrap();
    scene.scratch.write(".gitignore", "secret\n").unwrap();
    scene.scratch.write("secret/kitchen.txt", "no").unwrap();
    let Some(terminal) = rehearse(&scene, &[]) else { return };
    terminal.say("look at @kitch").unwrap();
    let screen = terminal.until("a file", |screen| screen.contains(" src/kitchen.rs")).unwrap();
    assert!(!screen.contains("secret/"), "{screen}");
    terminal.press(&["Tab"]).unwrap();
    terminal.shows("> look at @src/kitchen.rs").unwrap();
    terminal.press(&["Enter"]).unwrap();
    terminal.shows(READY).unwrap();
    // A command of the agent, with what may follow it.
    terminal.say("/mem").unwrap();
    terminal.shows("/memory").unwrap();
    terminal.press(&["Tab"]).unwrap();
    terminal.shows("refresh").unwrap();
    terminal.press(&["C-u"]).unwrap();
    terminal.enter("/quit").unwrap();
    assert_eq!(terminal.ended().unwrap(), 0);
    drop(terminal);

    let again = rehearse(&scene, &[]).unwrap();
    again.press(&["C-r"]).unwrap();
    again.say("kitch").unwrap();
    again.shows("> look at @src/kitchen.rs").unwrap();
}

#[test]
fn a_start_that_fails_is_said_before_the_screen_changes() {
    let scene = Scene::bare();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let cases: [(&[&str], i32, &str); 3] = [
        (&["--agent", "builtin", "--model", "rehearsal", "--a2a-port", &port], 1, &port),
        (&["--agent", "claude"], 3, "claude"),
        (&["--agent", "nobody"], 2, "nobody"),
    ];
    for (args, code, words) in cases {
        let Some(terminal) = show(&scene, args) else { return };
        assert_eq!(terminal.ended().unwrap(), code, "{args:?}: {}", terminal.screen().unwrap());
        let screen = terminal.shows(words).unwrap();
        assert!(screen.starts_with("multitap: "), "nothing came before it: {screen}");
    }
}

#[test]
fn a_closed_terminal_ends_the_agent_and_the_session_goes_on_later() {
    let scene = Scene::bare();
    let Some(terminal) = rehearse(&scene, &[]) else { return };
    terminal.enter("run: echo started > started.txt; sleep 1000").unwrap();
    terminal.shows("Esc refuses").unwrap();
    terminal.press(&["1"]).unwrap();
    until_blocking("the command", PATIENCE, || scene.scratch.path("started.txt").exists().then_some(())).unwrap();
    terminal.close().unwrap();
    scene.nothing_left();
    drop(terminal);

    let again = show(&scene, &[&REHEARSAL[..], &["-c"]].concat()).unwrap();
    again.shows("run: echo started > started.txt").unwrap();
    again.shows(READY).unwrap();
    again.enter("hello again").unwrap();
    again.until("an answer", |screen| screen.matches("hello again").count() > 1).unwrap();
    again.press(&["C-d"]).unwrap();
    assert_eq!(again.ended().unwrap(), 0);
    let events = log(&scene);
    for (event, seq) in events.iter().zip(1_u64..) {
        assert_eq!(event["seq"], seq, "the log is whole");
    }
    let cut_off = events.iter().find(|event| event["type"] == "turnCompleted").unwrap();
    assert_ne!(cut_off["status"], "completed");
}

/// Below a shell that has jobs: elsewhere nothing could let it go on.
#[test]
fn a_shell_stops_it_and_lets_it_go_on() {
    let scene = Scene::bare();
    let Some(tmux) = interop::tmux() else { return };
    let terminal = Terminal::start(tmux, &scene.scratch, &["sh", "-i"], (100, 30)).unwrap();
    terminal.enter(&format!("{MULTITAP} {}", REHEARSAL.join(" "))).unwrap();
    terminal.shows(READY).unwrap();
    terminal.say("half a sen").unwrap();
    terminal.press(&["C-z"]).unwrap();
    terminal.shows("Stopped").unwrap();
    // Again and again: who waits for keys may be at it or not.
    for round in 0..4 {
        until_blocking("the shell", PATIENCE, || (!terminal.is_taken().unwrap()).then_some(())).unwrap();
        terminal.enter(&format!("echo round-$((40+{round}))")).unwrap();
        terminal.shows(&format!("round-{}", 40 + round)).unwrap();
        terminal.enter("fg").unwrap();
        terminal.until("the screen", |screen| screen.contains("> half a sen") && !screen.contains("Stopped")).unwrap();
        if round < 3 {
            terminal.press(&["C-z"]).unwrap();
        }
    }
    terminal.enter("tence").unwrap();
    terminal.until("an answer", |screen| screen.matches("half a sentence").count() > 1).unwrap();
    terminal.press(&["C-d"]).unwrap();
    terminal.until("the shell", |screen| !screen.contains(READY)).unwrap();
}

#[test]
fn the_wheel_scrolls_if_that_is_set_and_walks_through_nothing_if_not() {
    for (mouse, flag) in [(true, "1"), (false, "0")] {
        let scene = Scene::bare();
        let home = scene.scratch.home().join(".config/multitap");
        fs::create_dir_all(&home).unwrap();
        let settings = serde_json::json!({ "terminal": { "mouse": mouse, "notify": "bell" } });
        fs::write(home.join("settings.json"), settings.to_string()).unwrap();
        let Some(terminal) = rehearse(&scene, &[]) else { return };
        assert_eq!(terminal.about("#{mouse_any_flag}").unwrap(), flag);
        terminal.press(&["C-d"]).unwrap();
        assert_eq!(terminal.ended().unwrap(), 0);
        assert_eq!(terminal.about("#{mouse_any_flag}").unwrap(), "0", "and is given back");
    }
}

#[test]
fn the_branch_follows_what_is_checked_out() {
    let scene = Scene::bare();
    scene.scratch.write(".git/HEAD", "ref: refs/heads/first\n").unwrap();
    let Some(terminal) = rehearse(&scene, &[]) else { return };
    terminal.shows("(first)").unwrap();
    scene.scratch.write(".git/HEAD", "ref: refs/heads/second\n").unwrap();
    terminal.enter("hello you").unwrap();
    terminal.shows("(second)").unwrap();
}

#[test]
fn another_session_takes_the_place_of_this_one() {
    let scene = Scene::bare();
    let Some(terminal) = rehearse(&scene, &[]) else { return };
    terminal.enter("think about bananas").unwrap();
    terminal.until("an answer", |screen| screen.matches("bananas").count() > 1).unwrap();
    terminal.shows(READY).unwrap();
    terminal.enter("/new").unwrap();
    terminal.hides("bananas").unwrap();
    terminal.shows(READY).unwrap();
    terminal.enter("/sessions").unwrap();
    terminal.shows("resume a session").unwrap();
    terminal.say("banan").unwrap();
    terminal.press(&["Enter"]).unwrap();
    let is_back = |screen: &str| screen.contains("── resumed") && screen.contains(READY);
    terminal.until("the old session", is_back).unwrap();
    terminal.enter("hello again").unwrap();
    terminal.until("an answer", |screen| screen.matches("hello again").count() > 1).unwrap();
    terminal.press(&["C-d"]).unwrap();
    assert_eq!(terminal.ended().unwrap(), 0);
    drop(terminal);
    scene.nothing_left();
}

/// Somebody who plans and begins anew still plans: the next session lets nothing more run.
#[test]
fn a_new_session_begins_in_the_mode_of_the_one_before() {
    let scene = Scene::bare();
    let Some(terminal) = rehearse(&scene, &[]) else { return };
    terminal.enter("/mode plan").unwrap();
    terminal.shows(" · plan").unwrap();
    terminal.enter("think about bananas").unwrap();
    terminal.until("an answer", |screen| screen.matches("bananas").count() > 1).unwrap();
    terminal.enter("/new").unwrap();
    terminal.hides("bananas").unwrap();
    let screen =
        terminal.until("the mode", |screen| screen.contains(READY) && screen.contains("rehearsal · ")).unwrap();
    assert!(screen.contains(" · plan"), "{screen}");
}

#[test]
fn what_is_typed_while_sessions_change_reaches_the_next_one() {
    let scene = Scene::bare();
    let Some(terminal) = rehearse(&scene, &["--approval-mode", "auto-all"]) else { return };
    // A command that does not want to end: so it takes a while until the session has.
    terminal.enter("run: trap '' TERM INT HUP; echo begun; while true; do sleep 1; done").unwrap();
    terminal.until("the command", |screen| screen.contains("\n  begun")).unwrap();
    terminal.press(&["/new", "Enter"]).unwrap();
    let words: Vec<String> = (1..=20).map(|number| format!("word {number}")).collect();
    for word in &words {
        terminal.press(&[word, "Enter"]).unwrap();
        assert!(terminal.is_taken().unwrap(), "{}", terminal.screen().unwrap());
    }
    terminal.press(&["half a word"]).unwrap();
    let is_done =
        |screen: &str| screen.contains("word 20") && screen.contains("> half a word") && !screen.contains("working");
    terminal.until("all answers, and the beginning of a prompt", is_done).unwrap();
    terminal.press(&["C-c", "C-d"]).unwrap();
    assert_eq!(terminal.ended().unwrap(), 0);
    assert!(!terminal.is_taken().unwrap());
    let events = log(&scene);
    let asked = events.iter().filter(|event| event["type"] == "userMessage").map(|event| &event["content"]);
    assert_eq!(asked.collect::<Vec<_>>(), words.iter().collect::<Vec<_>>());
    drop(terminal);
    scene.nothing_left();
}
