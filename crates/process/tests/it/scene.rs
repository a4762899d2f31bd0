//! What every test needs: a keeper, scripts to run, and a look at the processes that descend from them.
//!
//! A scene marks the environment of what it starts, so that all of it is found again, however far it got away. What a
//! failed test leaves behind is ended with its scene.

use std::path::PathBuf;
use std::time::Duration;

use multitap_process::{Child, Exit, Keeper, Line, Patience, Program, StdinMode, spawn};
use rustix::process::{Pid, Signal, kill_process};

/// Longer than anything takes, even on a busy machine.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// A program that supervises, and that owns a child when it is started without being told to.
pub(crate) fn keeper() -> PathBuf {
    env!("CARGO_BIN_EXE_keeper").into()
}

pub(crate) fn supervisor() -> Keeper {
    Keeper::Supervisor(keeper())
}

pub(crate) fn both() -> [Keeper; 2] {
    [supervisor(), Keeper::Group]
}

pub(crate) fn impatient() -> Patience {
    let moment = Duration::from_millis(200);
    Patience { after_eof: moment, after_interrupt: moment, after_terminate: moment }
}

pub(crate) struct Scene {
    mark: String,
}

impl Scene {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        // A name that nothing else has, without a folder that stays.
        Self { mark: format!("MULTITAP_TEST_SCENE={}", folder.path().display()) }
    }

    pub(crate) fn program(&self, program: impl Into<PathBuf>, args: &[&str]) -> Program {
        let (name, value) = self.mark.split_once('=').unwrap();
        Program {
            program: program.into(),
            args: args.iter().map(Into::into).collect(),
            env: vec![(name.into(), value.into())],
            env_remove: Vec::new(),
            cwd: None,
            stdin: StdinMode::Piped,
        }
    }

    pub(crate) async fn sh(&self, script: &str, keeper: &Keeper) -> Child {
        spawn(self.program("sh", &["-c", script]), keeper).await.unwrap()
    }

    /// What runs with our mark, the supervisor too.
    pub(crate) fn processes(&self) -> Vec<Pid> {
        let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
        let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.filter(|pid| {
            let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environ.split(|byte| *byte == 0).any(|variable| variable == self.mark.as_bytes())
        })
        .filter_map(Pid::from_raw)
        .collect()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        for pid in self.processes() {
            kill_process(pid, Signal::KILL).ok();
        }
    }
}

pub(crate) async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(LONG, future).await.unwrap_or_else(|_| panic!("takes too long: {what}"))
}

pub(crate) async fn line(child: &mut Child) -> String {
    match within("a line", child.stdout.next()).await.unwrap() {
        Some(Line::Text(text)) => text,
        other => panic!("no line, but {other:?}"),
    }
}

/// Reads what is left of the output, then waits for the end.
pub(crate) async fn rest(child: &mut Child) -> (Vec<String>, Exit) {
    let mut lines = Vec::new();
    while let Some(next) = within("the rest of the output", child.stdout.next()).await.unwrap() {
        match next {
            Line::Text(text) => lines.push(text),
            Line::TooLong { .. } => panic!("too long"),
        }
    }
    (lines, within("its end", child.wait()).await)
}
