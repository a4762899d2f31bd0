//! Conversations in JSON-RPC, as Codex's app-server and ACP use it: numbered requests, and their replies.

use serde_json::{Value, json};

use super::{Case, Move, Wanted};

/// A case in progress.
#[derive(Debug)]
pub(super) struct Talk {
    pub(super) case: Case,
    /// The number of the last request.
    count: u64,
    /// Whether each line names the version of JSON-RPC.
    named: bool,
}

impl Talk {
    /// A case of an agent; `named` says whether its lines name the version of JSON-RPC.
    pub(super) fn new(case: Case, named: bool) -> Self {
        Self { case, count: 0, named }
    }

    pub(super) fn with(mut self, change: impl FnOnce(Case) -> Case) -> Self {
        self.case = change(self.case);
        self
    }

    fn line(&self, mut line: Value) -> Value {
        if self.named {
            line["jsonrpc"] = "2.0".into();
        }
        line
    }

    pub(super) fn ask(mut self, method: &str, params: &Value) -> Self {
        self.count += 1;
        let line = self.line(json!({"id": self.count, "method": method, "params": params}));
        self.with(|case| case.send(&line))
    }

    /// Waits for the reply to the last request.
    pub(super) fn replied(self) -> Self {
        let wanted = Wanted::Reply(self.count);
        self.with(|case| case.step(Move::Until(wanted)))
    }

    pub(super) fn tell(self, method: &str, params: &Value) -> Self {
        let line = self.line(json!({"method": method, "params": params}));
        self.with(|case| case.send(&line))
    }

    /// Waits for a request or a notification.
    pub(super) fn heard(self, method: &'static str) -> Self {
        self.with(|case| case.step(Move::Until(Wanted::Method(method))))
    }

    /// Waits for a request and answers it.
    pub(super) fn asked(self, method: &'static str, answer: fn(&Value) -> Value) -> Self {
        self.heard(method).with(|case| case.step(Move::Answer(answer)))
    }

    pub(super) fn keep(self, name: &'static str, at: &'static str) -> Self {
        self.with(|case| case.step(Move::Keep { name, at }))
    }

    pub(super) fn pause(self, millis: u64) -> Self {
        self.with(|case| case.pause(millis))
    }

    pub(super) fn hanging(self) -> Self {
        self.with(Case::hanging)
    }
}
