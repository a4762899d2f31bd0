//! Nothing is left when somebody kills or stops supervisors, with or without the process that started them.

use multitap_process::{Child, Keeper, end_leftovers, spawn};
use rustix::process::{Pid, Signal, kill_process};

use crate::end::{DETACHED, WITHOUT_ENVIRONMENT, alive, gone, parent, pid, program_of, until};
use crate::scene::{LONG, Scene, keeper, supervisor, within};

#[tokio::test]
async fn a_program_does_not_outlive_its_murdered_supervisor() {
    let scene = Scene::new();
    let mut child = scene.sh("setsid sleep 300 & echo $!; sleep 300", &supervisor()).await;
    pid(&mut child).await;
    kill_process(parent(program_of(&child)), Signal::KILL).unwrap();
    let exit = within("its end", child.wait()).await;
    assert_eq!((exit.code, exit.signal), (None, None));
    gone(&scene).await;
}

/// The supervisors above a program, the nearest first.
fn supervisors(program: Pid) -> Vec<Pid> {
    let is_supervisor = |pid: &Pid| {
        let command = std::fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero())).unwrap_or_default();
        command.split(|byte| *byte == 0).nth(1) == Some(b"__child")
    };
    std::iter::successors(Some(parent(program)), |pid| Some(parent(*pid))).take_while(is_supervisor).collect()
}

#[tokio::test]
async fn nothing_detached_survives_the_murder_of_a_supervisor() {
    let scripts = DETACHED.into_iter().chain([("without environment", WITHOUT_ENVIRONMENT)]);
    for (how, script) in scripts {
        let scene = Scene::new();
        let count = supervisors(program_of(&scene.sh("exec sleep 300", &supervisor()).await)).len();
        assert!(count > 0);
        for victim in 0..count {
            let mut child = scene.sh(script, &supervisor()).await;
            let sleeper = pid(&mut child).await;
            assert!(alive(sleeper), "{how}");
            kill_process(supervisors(program_of(&child))[victim], Signal::KILL).unwrap();
            until(&format!("{how}: gone with supervisor {victim}"), LONG, || !alive(sleeper)).await;
            within("its end", child.wait()).await;
        }
        gone(&scene).await;
    }
}

#[tokio::test]
async fn nothing_detached_survives_the_murder_of_all_its_supervisors() {
    for (how, script) in DETACHED {
        let scene = Scene::new();
        let mut child = scene.sh(script, &supervisor()).await;
        let sleeper = pid(&mut child).await;
        assert!(alive(sleeper), "{how}");
        for supervisor in supervisors(program_of(&child)) {
            kill_process(supervisor, Signal::KILL).unwrap();
        }
        within("its end", child.wait()).await;
        until(how, LONG, || !alive(sleeper)).await;
        gone(&scene).await;
    }
}

#[tokio::test]
async fn nothing_detached_survives_the_murder_of_owner_and_supervisor() {
    for (how, script) in DETACHED.into_iter().chain([("without environment", WITHOUT_ENVIRONMENT)]) {
        let scene = Scene::new();
        let script = format!("echo $$; {script}");
        let owner = scene.program(keeper(), &["sh", "-c", &script]);
        let mut owner = spawn(owner, &Keeper::Group).await.unwrap();
        let program = pid(&mut owner).await;
        let sleeper = pid(&mut owner).await;
        assert!(alive(sleeper), "{how}");
        let supervisor = supervisors(program)[0];
        kill_process(program_of(&owner), Signal::KILL).unwrap();
        kill_process(supervisor, Signal::KILL).unwrap();
        until(how, LONG, || !alive(sleeper)).await;
        gone(&scene).await;
    }
}

/// An owner whose program and sleeper run, with both their supervisors.
struct Owned {
    owner: Child,
    program: Pid,
    sleeper: Pid,
    supervisors: Vec<Pid>,
}

impl Owned {
    async fn start(scene: &Scene, script: &str) -> Self {
        let script = format!("trap '' HUP INT TERM; echo $$; {script}");
        let owner = scene.program(keeper(), &["sh", "-c", &script]);
        let mut owner = spawn(owner, &Keeper::Group).await.unwrap();
        let program = pid(&mut owner).await;
        let sleeper = pid(&mut owner).await;
        let supervisors = supervisors(program);
        assert!(alive(sleeper) && supervisors.len() == 2);
        Self { owner, program, sleeper, supervisors }
    }

    /// Kills the owner and both supervisors so that none of them can act on another's death.
    fn kill_all(&self) {
        let owner = program_of(&self.owner);
        let all = [self.supervisors[1], self.supervisors[0], owner];
        for signal in [Signal::STOP, Signal::KILL] {
            all.iter().for_each(|pid| kill_process(*pid, signal).unwrap());
        }
    }
}

#[tokio::test]
async fn a_program_does_not_outlive_its_owner_and_all_its_supervisors() {
    for (how, script) in DETACHED {
        let scene = Scene::new();
        let owned = Owned::start(&scene, script).await;
        owned.kill_all();
        until(how, LONG, || !alive(owned.program)).await;
    }
}

#[tokio::test]
async fn what_outlives_its_owner_and_all_its_supervisors_is_ended_by_the_next_one() {
    for (how, script) in DETACHED {
        let scene = Scene::new();
        let owned = Owned::start(&scene, script).await;
        owned.kill_all();
        until(how, LONG, || !owned.supervisors.iter().any(|pid| alive(*pid))).await;
        within("the end of the rest", end_leftovers()).await;
        assert!(!alive(owned.sleeper), "{how}");
        gone(&scene).await;
    }
}

#[tokio::test]
async fn the_next_one_leaves_alone_what_is_not_left_over() {
    let scene = Scene::new();
    // Of a host that lives: ours, and another's.
    let mut ours = scene.sh("setsid sleep 300 & echo $!; wait", &supervisor()).await;
    let mut alive_here = vec![pid(&mut ours).await];
    let owned = Owned::start(&scene, "setsid sleep 300 & echo $!; wait").await;
    alive_here.push(owned.sleeper);
    // Below no supervisor, with marks that say nothing of a dead host.
    let mut others = Vec::new();
    for mark in ["", "0123456789abcdef0123456789abcdef", "1-1-1-1-1-0", "x:y", "999999999999-1-1-1-1-0"] {
        let mut program = scene.program("sh", &["-c", "echo $$; exec sleep 300"]);
        program.env.push(("MULTITAP_SUPERVISED".into(), mark.into()));
        let mut other = spawn(program, &Keeper::Group).await.unwrap();
        alive_here.push(pid(&mut other).await);
        others.push(other);
    }
    within("nothing to do", end_leftovers()).await;
    assert!(alive_here.iter().all(|pid| alive(*pid)), "{alive_here:?}");
}

#[tokio::test]
async fn nothing_survives_a_killed_owner_whose_supervisors_were_stopped() {
    for (how, script) in DETACHED.into_iter().chain([("without environment", WITHOUT_ENVIRONMENT)]) {
        for stopped in [&[0][..], &[1], &[0, 1], &[1, 0]] {
            let scene = Scene::new();
            let owned = Owned::start(&scene, script).await;
            stopped.iter().for_each(|at| kill_process(owned.supervisors[*at], Signal::STOP).unwrap());
            kill_process(program_of(&owned.owner), Signal::KILL).unwrap();
            until(&format!("{how}, {stopped:?}"), LONG, || !alive(owned.sleeper)).await;
            until("the supervisors end", LONG, || !owned.supervisors.iter().any(|pid| alive(*pid))).await;
            gone(&scene).await;
        }
    }
}
