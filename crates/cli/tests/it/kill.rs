//! SIGKILL of multitap leaves nothing, not even what detached itself.

use multitap_testkit::fake::{Act, Fake, assistant, init};
use multitap_testkit::wait::{marked, until_blocking};

use crate::scene::{Live, PATIENCE, Scene, exists};

/// A Claude that hangs, after it started two processes which detach themselves.
fn detaching() -> (Fake, Fake) {
    assert!(exists("/usr/bin/setsid"), "util-linux is needed");
    let fake = Fake::claude().turn([init().into(), assistant("working").into(), Act::Hang]).build().unwrap();
    let detach = Fake::shell(
        "claude",
        &format!(
            "setsid sleep 4711 </dev/null >/dev/null 2>&1 &\n( setsid sleep 4712 </dev/null >/dev/null 2>&1 & )\nexec {}\n",
            fake.program().display()
        ),
    )
    .unwrap();
    (fake, detach)
}

/// Starts multitap with that agent, and waits until it hangs.
fn hanging(scene: &Scene) -> Live {
    let mut live = scene.start(&["-p", "hang", "--input-format", "stream-json", "--output-format", "stream-json"]);
    live.until_type("textChunk");
    until_blocking("both sleeps", PATIENCE, || (sleeping(scene) == 2).then_some(())).unwrap();
    live
}

fn sleeping(scene: &Scene) -> usize {
    marked(&scene.scratch).iter().filter(|process| process.command.contains("sleep 471")).count()
}

#[test]
fn a_killed_multitap_takes_everything_with_it() {
    let (_fake, detach) = detaching();
    let scene = Scene::with(&detach);
    let live = hanging(&scene);
    live.signal("-KILL", &scene.scratch);
    scene.nothing_left();
}

/// When multitap and both supervisors are killed at once, the agent dies with them, and the next start ends the rest.
#[cfg(target_os = "linux")]
#[test]
fn the_next_start_ends_what_a_kill_of_everything_left() {
    let (_fake, detach) = detaching();
    let scene = Scene::with(&detach);
    let live = hanging(&scene);
    let mut all: Vec<String> = marked(&scene.scratch)
        .iter()
        .filter(|process| process.command.contains(" __child "))
        .map(|process| process.pid.to_string())
        .collect();
    assert_eq!(all.len(), 2, "{:#?}", marked(&scene.scratch));
    all.push(live.pid().to_string());
    // Stopped first, so that none of them can act on another's death.
    for signal in ["-STOP", "-KILL"] {
        assert!(scene.scratch.command("/bin/kill").arg(signal).args(&all).status().unwrap().success());
    }
    let agent = || marked(&scene.scratch).iter().any(|process| !process.command.contains("sleep 471"));
    until_blocking("the agent to end", PATIENCE, || (!agent()).then_some(())).unwrap();
    scene.run(&["-p", "hello", "--agent", "builtin", "--model", "rehearsal"]).exits(0);
    scene.nothing_left();
}
