//! `multitap serve` with one agent, for as long as a test lasts.

use std::process::Stdio;
use std::time::Instant;

use multitap_testkit::wait;

use super::cast::Cast;
use super::client::{Form, Talk};
use crate::interop::stage::{PATIENCE, Place};
use crate::scene::Live;

pub(super) struct Host<'a> {
    pub(super) place: &'a Place,
    live: Live,
    pub(super) port: u16,
}

impl<'a> Host<'a> {
    /// Starts it, with everything asked.
    pub(super) fn start(place: &'a Place, cast: Cast, options: &[&str]) -> Self {
        let fixed = ["serve", "--port", "0", "--approval-mode", "ask"];
        let mut command = place.command(&[&fixed, options, cast.options()].concat());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut live = Live::new(command);
        let line = live.line_by(Instant::now() + PATIENCE).unwrap_or_else(|| panic!("{:#?}", live.wait()));
        let port = line.strip_prefix("multitap listening on http://").and_then(|place| place.rsplit_once(':'));
        let port = port.and_then(|(_, port)| port.parse().ok()).unwrap_or_else(|| panic!("{line}"));
        Self { place, live, port }
    }

    /// A conversation that has not begun.
    pub(super) fn talk(&self, form: Form) -> Talk<'_> {
        Talk::new(self, form)
    }

    /// Ends it by a signal; nothing of it and of its agents is left.
    #[track_caller]
    pub(super) fn stop(mut self) {
        self.live.signal("-TERM", &self.place.scratch);
        let run = self.live.wait();
        assert_eq!(run.code, Some(0), "{run:#?}");
        let gone = || wait::marked(&self.place.scratch).is_empty().then_some(());
        wait::until_blocking("everything to end", PATIENCE, gone).unwrap();
    }
}
