//! Nothing is left: after a stop, a drop, the program's own end, and our own.

use std::time::{Duration, Instant};

use multitap_process::{Child, Keeper, Moment, Patience, is_of_agent, spawn};
use rustix::process::{Pid, Signal, kill_process};

use crate::scene::{LONG, Scene, both, impatient, keeper, line, rest, supervisor, within};

/// Scripts that start a `sleep` which gets away in some manner, tell its process id, and live on.
pub(crate) const DETACHED: [(&str, &str); 4] = [
    ("in the background", "sleep 300 & echo $!; wait"),
    ("in its own session", "setsid sleep 300 & echo $!; wait"),
    ("below a session of its own", "setsid sh -c 'sleep 300 & echo $!; wait' & wait"),
    (
        "forked twice, without our pipes",
        "(setsid sh -c 'exec >&3 3>&-; sleep 300 >/dev/null 2>&1 </dev/null & echo $!' 3>&1 &); sleep 300",
    ),
];

/// Like [`DETACHED`], but nothing in the environment says where the process came from.
pub(crate) const WITHOUT_ENVIRONMENT: &str =
    "(setsid env -i sh -c 'exec >&3 3>&-; sleep 300 >/dev/null 2>&1 </dev/null & echo $!' 3>&1 &); sleep 300";

pub(crate) fn alive(pid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, fields)| !fields.starts_with(['Z', 'X']))
}

pub(crate) fn parent(pid: Pid) -> Pid {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap();
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    Pid::from_raw(fields.split(' ').nth(1).unwrap().parse().unwrap()).unwrap()
}

pub(crate) fn program_of(child: &Child) -> Pid {
    Pid::from_raw(child.pid().unwrap().try_into().unwrap()).unwrap()
}

/// Waits for something to come true.
pub(crate) async fn until(what: &str, patience: Duration, mut happened: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !happened() {
        assert!(begun.elapsed() < patience, "not within {patience:?}: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A line that is a process id.
pub(crate) async fn pid(child: &mut Child) -> Pid {
    Pid::from_raw(line(child).await.trim().parse().unwrap()).unwrap()
}

#[track_caller]
fn assert_nothing_left(scene: &Scene) {
    let left = scene.processes();
    assert!(left.is_empty(), "left behind: {left:?}");
}

pub(crate) async fn gone(scene: &Scene) {
    until("nothing is left", LONG, || scene.processes().is_empty()).await;
}

#[tokio::test]
async fn stopping_asks_first() {
    let scene = Scene::new();
    let patience = Patience { after_eof: LONG, ..impatient() };
    for keeper in both() {
        let mut child = scene.sh("echo up; while read line; do :; done; exit 4", &keeper).await;
        assert_eq!(line(&mut child).await, "up");
        assert_eq!(within("stop", child.stop(patience)).await.code, Some(4));
        gone(&scene).await;
    }
}

#[tokio::test]
async fn stopping_escalates_as_far_as_it_must() {
    let scene = Scene::new();
    let idle = "echo up; while :; do sleep 0.05; done";
    for keeper in both() {
        for (trap, code, signal) in [
            ("trap 'exit 5' INT", Some(5), None),
            ("trap '' INT; trap 'exit 6' TERM", Some(6), None),
            ("trap '' INT TERM", None, Some(9)),
        ] {
            let mut child = scene.sh(&format!("{trap}; {idle}"), &keeper).await;
            assert_eq!(line(&mut child).await, "up");
            // The last step to be taken may take as long as it likes, so that a busy machine changes nothing.
            let long = |wait| if wait { LONG } else { Duration::from_millis(100) };
            let patience = Patience {
                after_eof: long(false),
                after_interrupt: long(code == Some(5)),
                after_terminate: long(code == Some(6)),
            };
            let exit = within("stop", child.stop(patience)).await;
            assert_eq!((exit.code, exit.signal), (code, signal), "{keeper:?} {trap}");
            gone(&scene).await;
        }
    }
}

#[tokio::test]
async fn nothing_detached_survives_a_stop() {
    for (how, script) in DETACHED {
        let scene = Scene::new();
        let mut child = scene.sh(script, &supervisor()).await;
        let sleeper = pid(&mut child).await;
        assert!(alive(sleeper), "{how}");
        within("stop", child.stop(impatient())).await;
        assert!(!alive(sleeper), "{how}");
        assert_nothing_left(&scene);
    }
}

#[tokio::test]
async fn nothing_detached_survives_a_drop() {
    for (how, script) in DETACHED {
        let scene = Scene::new();
        let mut child = scene.sh(script, &supervisor()).await;
        let sleeper = pid(&mut child).await;
        assert!(alive(sleeper), "{how}");
        drop(child);
        gone(&scene).await;
    }
}

#[tokio::test]
async fn nothing_detached_survives_the_program() {
    for (how, script) in DETACHED {
        let scene = Scene::new();
        let mut child = scene.sh(&format!("({script}) & read line; exit 9"), &supervisor()).await;
        let sleeper = pid(&mut child).await;
        assert!(alive(sleeper), "{how}");
        child.stdin.close();
        // The sleeper holds stdout: its end comes only when it is gone.
        let (_, exit) = rest(&mut child).await;
        assert_eq!(exit.code, Some(9), "{how}");
        assert!(!alive(sleeper), "{how}");
        assert_nothing_left(&scene);
    }
}

#[tokio::test]
async fn nothing_survives_our_own_death() {
    for (how, script) in DETACHED {
        let scene = Scene::new();
        let stubborn = format!("trap '' HUP INT; {script}");
        let owner = scene.program(keeper(), &["sh", "-c", &stubborn]);
        let mut owner = spawn(owner, &Keeper::Group).await.unwrap();
        let sleeper = pid(&mut owner).await;
        // One that is becoming another program shows nothing of itself for a moment.
        until(how, LONG, || alive(sleeper) && scene.processes().len() >= 4).await;
        kill_process(program_of(&owner), Signal::KILL).unwrap();
        until(how, LONG, || scene.processes().is_empty()).await;
        assert_eq!(within("the owner's end", owner.wait()).await.signal, Some(9));
    }
}

#[tokio::test]
async fn nothing_that_ignores_signals_survives_our_own_death() {
    let scene = Scene::new();
    let stubborn =
        "trap '' HUP INT TERM; setsid sh -c 'echo $$; while :; do sleep 300; done' & while :; do sleep 1; done";
    let owner = scene.program(keeper(), &["sh", "-c", stubborn]);
    let mut owner = spawn(owner, &Keeper::Group).await.unwrap();
    pid(&mut owner).await;
    kill_process(program_of(&owner), Signal::KILL).unwrap();
    until("nothing is left", LONG, || scene.processes().is_empty()).await;
}

#[tokio::test]
async fn a_program_that_keeps_starting_others_is_ended_too() {
    let scene = Scene::new();
    let script = "trap '' INT TERM; while :; do setsid sleep 300 & echo $!; sleep 0.01; done";
    let mut child = scene.sh(script, &supervisor()).await;
    for _ in 0..10 {
        pid(&mut child).await;
    }
    within("stop", child.stop(impatient())).await;
    assert_nothing_left(&scene);
}

#[tokio::test]
async fn what_is_left_behind_is_asked_before_it_is_killed() {
    let scene = Scene::new();
    let folder = tempfile::tempdir().unwrap();
    let note = folder.path().join("note");
    let script =
        "setsid sh -c 'trap \"echo saved > $0; exit\" TERM; echo up; while :; do sleep 0.01; done' \"$0\" & read line";
    let program = scene.program("sh", &["-c", script, note.to_str().unwrap()]);
    let mut child = spawn(program, &supervisor()).await.unwrap();
    assert_eq!(line(&mut child).await, "up");
    child.stdin.close();
    rest(&mut child).await;
    assert_nothing_left(&scene);
    assert_eq!(std::fs::read_to_string(note).unwrap(), "saved\n");
}

#[tokio::test]
async fn a_group_ends_with_its_child() {
    let script = "sleep 300 & echo $!; read line; true";
    let scene = Scene::new();
    let mut dropped = scene.sh(script, &Keeper::Group).await;
    pid(&mut dropped).await;
    drop(dropped);
    gone(&scene).await;

    let mut stopped = scene.sh(&format!("{script}; sleep 300"), &Keeper::Group).await;
    let sleeper = pid(&mut stopped).await;
    within("stop", stopped.stop(impatient())).await;
    until("the sleeper is gone", LONG, || !alive(sleeper)).await;

    let mut ended = scene.sh(script, &Keeper::Group).await;
    pid(&mut ended).await;
    ended.stdin.close();
    assert!(within("its end", ended.wait()).await.success());
    gone(&scene).await;
}

#[tokio::test]
async fn a_child_that_closed_its_output_but_lives_is_stopped() {
    let scene = Scene::new();
    for keeper in both() {
        let mut child = scene.sh("exec >&- 2>&-; exec sleep 300", &keeper).await;
        assert_eq!(within("the end of its output", child.stdout.next()).await.unwrap(), None);
        let exit = within("stop", child.stop(Patience { after_interrupt: LONG, ..impatient() })).await;
        assert_eq!(exit.signal, Some(2));
        gone(&scene).await;
    }
}

#[tokio::test]
async fn a_pipe_held_by_somebody_else_holds_nobody_up() {
    let scene = Scene::new();
    for keeper in both() {
        let mut child = scene.sh("echo last words >&2; setsid sleep 300 & echo $!; exit 3", &keeper).await;
        let sleeper = pid(&mut child).await;
        let exit = within("its end", child.wait()).await;
        assert_eq!((exit.code, exit.stderr_tail.as_str()), (Some(3), "last words"));
        // It got away from a group; that is why there are supervisors.
        kill_process(sleeper, Signal::KILL).ok();
    }
}

#[tokio::test]
async fn waiting_may_be_broken_off_and_taken_up_again() {
    let scene = Scene::new();
    for keeper in both() {
        let mut child = scene.sh("read line; exit 8", &keeper).await;
        for _ in 0..20 {
            assert!(tokio::time::timeout(Duration::from_millis(1), child.wait()).await.is_err());
        }
        child.stdin.close();
        let exit = within("its end", async {
            loop {
                if let Ok(exit) = tokio::time::timeout(Duration::from_millis(1), child.wait()).await {
                    return exit;
                }
            }
        });
        assert_eq!(exit.await.code, Some(8));
    }
}

#[tokio::test]
async fn a_drop_ends_its_own_child_only() {
    let scene = Scene::new();
    let other = Scene::new();
    let first = scene.sh("exec sleep 300", &supervisor()).await;
    let mut second = other.sh("cat", &supervisor()).await;
    drop(first);
    gone(&scene).await;
    second.stdin.write("still here".into(), LONG).await.unwrap();
    assert_eq!(line(&mut second).await, "still here");
    second.stdin.close();
    assert!(rest(&mut second).await.1.success());
}

#[tokio::test]
async fn many_at_once_all_end() {
    let scene = Scene::new();
    let mut children = Vec::new();
    for _ in 0..20 {
        children.push(scene.sh("setsid sleep 300 & echo $!; wait", &supervisor()).await);
    }
    for child in &mut children {
        pid(child).await;
    }
    drop(children.split_off(10));
    for mut child in children {
        within("stop", child.stop(Patience { after_eof: Duration::ZERO, ..impatient() })).await;
    }
    gone(&scene).await;
}

#[tokio::test]
async fn a_supervisor_that_is_asked_to_end_ends_all() {
    for signal in [Signal::TERM, Signal::HUP, Signal::INT, Signal::QUIT] {
        let scene = Scene::new();
        let mut child = scene.sh("setsid sleep 300 & echo $!; exec sleep 300", &supervisor()).await;
        pid(&mut child).await;
        kill_process(parent(program_of(&child)), signal).unwrap();
        assert_eq!(within("its end", child.wait()).await.signal, Some(15));
        assert_nothing_left(&scene);
    }
}

#[tokio::test]
async fn no_dead_supervisor_stays_unburied() {
    let scene = Scene::new();
    let child = scene.sh("exec sleep 300", &supervisor()).await;
    let supervisor = parent(program_of(&child));
    drop(child);
    let entry = std::path::PathBuf::from(format!("/proc/{}", supervisor.as_raw_nonzero()));
    until("the supervisor is buried", LONG, || !entry.exists()).await;
}

/// It takes milliseconds, which `cargo test -- --nocapture` shows; the limit leaves room for a busy machine.
#[tokio::test]
async fn a_supervisor_starts_quickly() {
    let scene = Scene::new();
    for keeper in both() {
        let mut spent = Vec::new();
        for _ in 0..20 {
            let begun = Instant::now();
            let mut child = spawn(scene.program("true", &[]), &keeper).await.unwrap();
            let started = begun.elapsed();
            within("its end", child.wait()).await;
            spent.push((started, begun.elapsed()));
        }
        spent.sort_unstable();
        let (started, ended) = spent[spent.len() / 2];
        println!("{keeper:?}: started after {started:?}, ended after {ended:?} (median)");
        assert!(started < Duration::from_secs(1));
    }
}

#[tokio::test]
async fn commands_end_and_everything_else_stays() {
    let scene = Scene::new();
    let script = "A_COMMAND=1 sleep 300 & echo $!; sleep 300 & echo $!; read line; sleep 300 & echo $!; \
        A_COMMAND=1 sleep 300 & echo $!; A_COMMAND=1 setsid sh -c 'trap \"\" TERM; echo $$; sleep 300; sleep 300' & \
        (setsid env -i sh -c 'exec >&3 3>&-; sleep 300 >/dev/null 2>&1 </dev/null & echo $!' 3>&1 &); read line";
    let mut child = scene.sh(script, &supervisor()).await;
    let mut stay = vec![pid(&mut child).await, pid(&mut child).await];
    // Older by more than the clock of processes tells apart.
    let before = Moment::now();
    until("the clock goes on", LONG, || Moment::now() != before).await;
    let since = Moment::now();
    child.stdin.write("go".into(), LONG).await.unwrap();
    // They come in any order but the first.
    stay.push(pid(&mut child).await);
    let mut end = Vec::new();
    for _ in 0..3 {
        end.push(pid(&mut child).await);
    }
    within("the end of the commands", child.end_commands(since, "A_COMMAND")).await;
    assert!(end.iter().all(|pid| !alive(*pid)), "{end:?}");
    assert!(stay.iter().all(|pid| alive(*pid)), "{stay:?}");
    assert!(child.pid().is_some(), "the program goes on");
    child.stdin.close();
    rest(&mut child).await;
    assert_nothing_left(&scene);
}

#[tokio::test]
async fn whoever_runs_under_a_supervisor_is_known() {
    let of_agent = |pid: Pid| is_of_agent(pid.as_raw_nonzero().get().try_into().unwrap());
    let scripts = DETACHED.into_iter().chain([("without environment", WITHOUT_ENVIRONMENT)]);
    for (how, script) in scripts {
        let scene = Scene::new();
        let mut child = scene.sh(script, &supervisor()).await;
        let sleeper = pid(&mut child).await;
        assert!(of_agent(sleeper) && of_agent(program_of(&child)), "{how}");
    }
    let scene = Scene::new();
    let child = scene.sh("exec sleep 300", &Keeper::Group).await;
    assert!(!of_agent(program_of(&child)));
}
