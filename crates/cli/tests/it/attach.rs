//! `multitap attach`: two real terminals on one session, by its private door.

use multitap_testkit::interop;
use multitap_testkit::terminal::Terminal;
use multitap_testkit::wait::until_blocking;
use serde_json::Value;

use crate::scene::{MULTITAP, PATIENCE, Scene};
use crate::terminal::{READY, REHEARSAL, port};

/// What is to be seen of a question that is open.
const ASKING: &str = "Esc refuses";

/// A terminal that somebody sits at, with the binary in it.
fn sit<'a>(scene: &'a Scene, user: &str, args: &[&str]) -> Option<Terminal<'a>> {
    let user = format!("USER={user}");
    let program = [&["env", &user, MULTITAP], args].concat();
    Some(Terminal::start(interop::tmux()?, &scene.scratch, &program, (100, 40)).unwrap())
}

/// What `multitap attach --json` lists.
fn running(scene: &Scene) -> Vec<Value> {
    let run = scene.run(&["attach", "--json"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    serde_json::from_str(&run.stdout).unwrap()
}

/// The only session there is.
fn only(scene: &Scene) -> Value {
    let one = || <[Value; 1]>::try_from(running(scene)).ok().map(|[one]| one);
    until_blocking("one session", PATIENCE, one).unwrap()
}

#[test]
fn two_terminals_share_one_session() {
    let scene = Scene::bare();
    let Some(host) = sit(&scene, "ann", &REHEARSAL) else { return };
    host.shows(READY).unwrap();
    let one = only(&scene);
    let id = one["id"].as_str().unwrap().to_owned();
    assert_eq!((&one["agent"], one.get("address")), (&"builtin".into(), None), "no port was asked for");
    let guest = sit(&scene, "eve", &["attach", &id[..30]]).unwrap();
    guest.shows("ann joined").unwrap();
    host.shows("eve joined").unwrap();
    // A prompt in one shows in the other, and so does the question.
    host.enter("run: echo from-the-host").unwrap();
    guest.shows("> [terminal] ann: run: echo from-the-host").unwrap();
    host.shows("> run: echo from-the-host").unwrap();
    guest.shows(ASKING).unwrap();
    host.shows(ASKING).unwrap();
    // Answered in one, it closes in both.
    guest.press(&["1"]).unwrap();
    host.shows("answered by [terminal] eve").unwrap();
    for terminal in [&host, &guest] {
        terminal.hides(ASKING).unwrap();
        terminal.shows("tokens ──").unwrap();
    }
    guest.enter("run: echo from-the-guest").unwrap();
    host.shows("> [terminal] eve: run: echo from-the-guest").unwrap();
    host.shows(ASKING).unwrap();
    host.press(&["4"]).unwrap();
    guest.hides(ASKING).unwrap();
    // Whoever leaves changes nothing.
    guest.press(&["C-d"]).unwrap();
    guest.shows("continues. To return").unwrap();
    host.shows("eve left").unwrap();
    assert_eq!(only(&scene)["id"], id.as_str());
    drop(guest);
    // The end of the host is told.
    let guest = sit(&scene, "kim", &["attach", &id]).unwrap();
    guest.shows("from-the-guest").unwrap();
    host.press(&["C-c", "C-c"]).unwrap();
    host.shows("end the session for all").unwrap();
    host.press(&["2"]).unwrap();
    guest.shows("the session is over").unwrap();
    guest.press(&["C-d"]).unwrap();
    assert_eq!(guest.ended().unwrap(), 0);
    assert_eq!(host.ended().unwrap(), 0);
    assert_eq!(running(&scene), Vec::<Value>::new());
    drop((host, guest));
    scene.nothing_left();
}

#[test]
fn who_looks_on_may_be_killed_and_so_may_the_host() {
    let scene = Scene::bare();
    let Some(host) = sit(&scene, "ann", &REHEARSAL) else { return };
    host.shows(READY).unwrap();
    let id = only(&scene)["id"].as_str().unwrap().to_owned();
    let guest = sit(&scene, "eve", &["attach", &id]).unwrap();
    host.shows("eve joined").unwrap();
    kill(&scene, &guest);
    host.shows("eve left").unwrap();
    host.enter("think about birds").unwrap();
    host.shows("tokens ──").unwrap();
    drop(guest);
    let guest = sit(&scene, "kim", &["attach", &id]).unwrap();
    guest.shows("think about birds").unwrap();
    kill(&scene, &host);
    guest.shows("connection lost").unwrap();
    guest.shows("out of reach").unwrap();
    guest.press(&["C-d"]).unwrap();
    assert_eq!(guest.ended().unwrap(), 0);
    assert_eq!(running(&scene), Vec::<Value>::new(), "what it left behind is cleared away");
    drop((host, guest));
    scene.nothing_left();
}

fn kill(scene: &Scene, terminal: &Terminal<'_>) {
    let pid = terminal.pid().unwrap().to_string();
    assert!(scene.scratch.command("kill").args(["-9", &pid]).status().unwrap().success());
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
    assert!(run.stderr.contains("needs an interactive terminal"), "{}", run.stderr);
    assert_eq!(scene.run(&["attach", "x", "--json"]).code, Some(2));
}

#[test]
fn a_door_is_found_by_host_and_port_alone() {
    let scene = Scene::bare();
    let Some(host) = sit(&scene, "ann", &[&REHEARSAL[..], &["--a2a-port", "0"]].concat()) else { return };
    host.shows(READY).unwrap();
    let port = port(&host);
    for (user, to) in [("eve", format!("127.0.0.1:{port}")), ("kim", format!(":{port}"))] {
        let guest = sit(&scene, user, &["attach", &to]).unwrap();
        guest.shows("ann joined").unwrap();
        host.shows(&format!("{user} joined")).unwrap();
    }
}
