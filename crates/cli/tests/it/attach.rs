//! `multitap attach`: two real terminals on one session, by its private door.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use multitap_testkit::{Scratch, interop};
use serde_json::Value;

use crate::scene::{MULTITAP, Scene};

/// Long enough for a busy machine; nothing waits this long when all is well.
const PATIENCE: Duration = Duration::from_secs(30);
const REHEARSAL: [&str; 4] = ["--agent", "builtin", "--model", "rehearsal"];

/// A terminal that somebody sits at, with the binary in it.
struct Terminal<'a> {
    scratch: &'a Scratch,
    tmux: &'a Path,
    socket: PathBuf,
}

impl<'a> Terminal<'a> {
    fn start(tmux: &'a Path, scratch: &'a Scratch, user: &str, args: &[&str]) -> Self {
        let terminal = Self { scratch, tmux, socket: scratch.root().join(format!("tmux-{user}")) };
        // What it says at last stays on the screen.
        let command =
            format!("USER={user} TERM=xterm-256color {MULTITAP} {}; echo it ended; exec sleep 120", args.join(" "));
        terminal.tmux(&["-f", "/dev/null", "new-session", "-d", "-x", "100", "-y", "40", &command]);
        terminal
    }

    fn tmux(&self, args: &[&str]) -> String {
        let output = self.scratch.command(self.tmux).arg("-S").arg(&self.socket).args(args).output().unwrap();
        assert!(output.status.success(), "tmux {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn enter(&self, text: &str) {
        self.tmux(&["send-keys", "-l", text]);
        self.press("Enter");
    }

    fn press(&self, key: &str) {
        self.tmux(&["send-keys", key]);
    }

    /// Waits until something is to be seen, or is not any more.
    #[track_caller]
    fn until(&self, what: &str, fits: impl Fn(&str) -> bool) {
        let since = Instant::now();
        loop {
            let screen = self.tmux(&["capture-pane", "-p"]);
            if fits(&screen) {
                return;
            }
            assert!(since.elapsed() < PATIENCE, "{what} does not come:\n{screen}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    #[track_caller]
    fn shows(&self, words: &str) {
        self.until(words, |screen| screen.contains(words));
    }

    /// The process of the binary in it.
    fn pid(&self) -> String {
        let shell = self.tmux(&["display-message", "-p", "#{pane_pid}"]);
        let children = format!("/proc/{0}/task/{0}/children", shell.trim());
        let children = std::fs::read_to_string(children).unwrap();
        children.split_whitespace().next().expect("the binary runs").to_owned()
    }
}

impl Drop for Terminal<'_> {
    fn drop(&mut self) {
        // A test that failed must not leave it behind; one that ended is gone already.
        self.scratch.command(self.tmux).arg("-S").arg(&self.socket).arg("kill-server").output().ok();
    }
}

/// What `multitap attach --json` lists.
fn running(scene: &Scene) -> Vec<Value> {
    let run = scene.run(&["attach", "--json"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    serde_json::from_str(&run.stdout).unwrap()
}

/// The only session there is.
fn only(scene: &Scene) -> Value {
    let since = Instant::now();
    loop {
        if let [one] = running(scene).as_slice() {
            return one.clone();
        }
        assert!(since.elapsed() < PATIENCE, "no session runs");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn two_terminals_share_one_session() {
    let Some(tmux) = interop::tmux() else { return };
    let scene = Scene::bare();
    let host = Terminal::start(&tmux, &scene.scratch, "ann", &REHEARSAL);
    host.shows("ask for something");
    let one = only(&scene);
    let id = one["id"].as_str().unwrap().to_owned();
    assert_eq!((&one["agent"], one.get("address")), (&"builtin".into(), None), "no port was asked for");
    let guest = Terminal::start(&tmux, &scene.scratch, "eve", &["attach", &id[..30]]);
    guest.shows("ann joined");
    host.shows("eve joined");
    // A prompt in one shows in the other, and so does the question.
    host.enter("run: echo from-the-host");
    guest.shows("> [terminal] ann: run: echo from-the-host");
    host.shows("> run: echo from-the-host");
    guest.shows("1. Allow once");
    host.shows("1. Allow once");
    // Answered in one, it closes in both.
    guest.press("1");
    host.shows("answered by [terminal] eve");
    for terminal in [&host, &guest] {
        terminal.until("the question's end", |screen| !screen.contains("1. Allow once"));
        terminal.shows("tokens ──");
    }
    guest.enter("run: echo from-the-guest");
    host.shows("> [terminal] eve: run: echo from-the-guest");
    host.shows("1. Allow once");
    host.press("4");
    guest.until("the question's end", |screen| !screen.contains("1. Allow once"));
    // Whoever leaves changes nothing.
    guest.press("C-d");
    guest.shows("goes on where it runs");
    host.shows("eve left");
    assert_eq!(only(&scene)["id"], id.as_str());
    drop(guest);
    // The end of the host is told.
    let guest = Terminal::start(&tmux, &scene.scratch, "kim", &["attach", &id]);
    guest.shows("from-the-guest");
    host.press("C-c");
    host.press("C-c");
    host.shows("end the session for all");
    host.press("2");
    guest.shows("the session is over");
    guest.press("C-d");
    guest.shows("it ended");
    host.shows("it ended");
    assert_eq!(running(&scene), Vec::<Value>::new());
    drop((host, guest));
    scene.nothing_left(PATIENCE);
}

#[cfg(target_os = "linux")]
#[test]
fn who_looks_on_may_be_killed_and_so_may_the_host() {
    let Some(tmux) = interop::tmux() else { return };
    let scene = Scene::bare();
    let host = Terminal::start(&tmux, &scene.scratch, "ann", &REHEARSAL);
    host.shows("ask for something");
    let id = only(&scene)["id"].as_str().unwrap().to_owned();
    let guest = Terminal::start(&tmux, &scene.scratch, "eve", &["attach", &id]);
    host.shows("eve joined");
    kill(&scene.scratch, &guest.pid());
    host.shows("eve left");
    host.enter("think about birds");
    host.shows("tokens ──");
    drop(guest);
    let guest = Terminal::start(&tmux, &scene.scratch, "kim", &["attach", &id]);
    guest.shows("think about birds");
    kill(&scene.scratch, &host.pid());
    guest.shows("the connection is lost");
    guest.shows("out of reach");
    guest.press("C-d");
    guest.shows("it ended");
    assert_eq!(running(&scene), Vec::<Value>::new(), "what it left behind is cleared away");
    drop((host, guest));
    scene.nothing_left(PATIENCE);
}

#[cfg(target_os = "linux")]
fn kill(scratch: &Scratch, pid: &str) {
    assert!(scratch.command("kill").args(["-9", pid]).status().unwrap().success());
}

#[test]
fn what_cannot_be_attached_to_is_said() {
    let scene = Scene::bare();
    let run = scene.run(&["attach"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), ""));
    assert!(run.stderr.contains("no session runs on this machine"), "{}", run.stderr);
    assert_eq!(running(&scene), Vec::<Value>::new());
    let run = scene.run(&["attach", "http://127.0.0.1:9"]);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("this is none"), "{}", run.stderr);
    assert_eq!(scene.run(&["attach", "x", "--json"]).code, Some(2));
}
