//! The parts of which a case of any CLI consists.

use std::time::Duration;

use serde_json::Value;

use super::{Case, Move};

impl Case {
    pub(super) fn new(name: &'static str, about: &'static str) -> Self {
        Self { name, about, args: Vec::new(), moves: Vec::new(), before: None, files: Vec::new() }
    }

    pub(super) fn args(self, args: &[&str]) -> Self {
        args.iter().fold(self, |case, arg| case.arg(arg))
    }

    pub(super) fn arg(mut self, arg: &str) -> Self {
        self.args.push(arg.to_owned());
        self
    }

    pub(super) fn file(mut self, name: &'static str, content: &'static str) -> Self {
        self.files.push((name, content));
        self
    }

    pub(super) fn after(mut self, before: Self) -> Self {
        self.before = Some(Box::new(before));
        self
    }

    pub(super) fn step(mut self, step: Move) -> Self {
        self.moves.push(step);
        self
    }

    pub(super) fn send(self, line: &Value) -> Self {
        self.step(Move::Send(line.to_string()))
    }

    pub(super) fn hanging(self) -> Self {
        // The text before the hang must have arrived as well.
        self.step(Move::UntilHanging).pause(300)
    }

    pub(super) fn pause(self, millis: u64) -> Self {
        self.step(Move::Pause(Duration::from_millis(millis)))
    }

    pub(super) fn signal(self, signal: i32) -> Self {
        self.step(Move::Signal(signal))
    }
}
