//! Who joins from elsewhere: a WebSocket without an SDK, and an A2A client that others wrote. Both are told everything
//! that happens in the session, and both can prompt, answer and cancel.

use multitap_testkit::Scratch;
use multitap_testkit::peer::{Call, Kind, Peer, Said, frame};
use multitap_testkit::ws::WsClient;
use serde_json::{Value, json};

use super::frames::{Asked, EXTENSION, Order};

/// What any of them can do.
pub(super) trait Guest {
    /// Prompts, and does not wait.
    fn prompt(&mut self, text: &str);

    /// The next that it is told.
    fn event(&mut self) -> Value;

    /// Answers, and does not wait.
    fn answer(&mut self, asked: &Asked, option: &str);

    /// What became of its last answer: taken, or an error.
    fn outcome(&mut self) -> Result<(), Value>;

    /// Cancels the turn.
    fn cancel(&mut self) -> Result<(), Value>;

    /// The state of the task, as it finds it now.
    fn state(&mut self) -> String;

    /// All that it is told, up to what fits.
    fn until(&mut self, what: &str, fits: &dyn Fn(&Value) -> bool) -> Vec<Value> {
        let mut told = Vec::new();
        loop {
            let event = self.event();
            let is_it = fits(&event);
            told.push(event);
            if is_it {
                return told;
            }
            assert!(told.len() < 1000, "no {what} in {told:#?}");
        }
    }
}

/// A WebSocket with a name.
#[derive(Debug)]
pub(super) struct Socket {
    ws: WsClient,
    task: String,
    order: Order,
    answered: Option<u64>,
}

impl Socket {
    /// Joins, and finds the task that everybody shares.
    pub(super) fn join(port: u16) -> Self {
        let mut ws = WsClient::connect(port, "client=phone").unwrap();
        let list = ws.call("ListTasks", &json!({})).unwrap();
        let task = list["result"]["tasks"][0]["id"].as_str().unwrap_or_else(|| panic!("no task is shared: {list:#}"));
        Self { ws, task: task.to_owned(), order: Order::default(), answered: None }
    }

    pub(super) fn task(&self) -> &str {
        &self.task
    }

    /// Closes the connection.
    pub(super) fn leave(&mut self) {
        self.ws.leave();
    }
}

impl Guest for Socket {
    fn prompt(&mut self, text: &str) {
        let parts = json!([{"kind": "text", "text": text}]);
        let message = json!({"kind": "message", "messageId": text, "role": "user", "parts": parts});
        self.ws.stream("message/stream", &json!({"message": message})).unwrap();
    }

    fn event(&mut self) -> Value {
        let event = self.ws.event().unwrap();
        self.order.check(&event);
        event
    }

    fn answer(&mut self, asked: &Asked, option: &str) {
        let params = json!({"tool_call_id": asked.call, "selected_option_id": option});
        self.answered = Some(self.ws.begin("toolCall/confirm", &params).unwrap());
    }

    fn outcome(&mut self) -> Result<(), Value> {
        let answer = self.ws.answer(self.answered.take().unwrap()).unwrap();
        answer.get("error").cloned().map_or(Ok(()), Err)
    }

    fn cancel(&mut self) -> Result<(), Value> {
        let answer = self.ws.call("tasks/cancel", &json!({"id": self.task})).unwrap();
        answer.get("error").cloned().map_or(Ok(()), Err)
    }

    fn state(&mut self) -> String {
        let answer = self.ws.call("tasks/get", &json!({"id": self.task})).unwrap();
        frame::state(&answer["result"]).unwrap_or_else(|| panic!("{answer:#}"))
    }
}

/// An SDK, which has no way to give itself a name.
#[derive(Debug)]
pub(super) struct Sdk {
    peer: Peer,
    task: String,
    /// The stream that tells it everything.
    joined: Call,
    order: Order,
    answered: Option<Call>,
}

impl Sdk {
    pub(super) fn join(kind: Kind, scratch: &Scratch, port: u16, task: &str) -> Self {
        let mut peer = Peer::start(kind, scratch).unwrap();
        let url = format!("http://127.0.0.1:{port}");
        peer.call("card", json!({"url": url, "transport": "JSONRPC", "extensions": [EXTENSION]})).unwrap();
        let joined = peer.begin("resubscribe", json!({"taskId": task})).unwrap();
        peer.until(joined, "the task as it stands", |event| frame::task_id(event) == Some(task)).unwrap();
        Self { peer, task: task.to_owned(), joined, order: Order::default(), answered: None }
    }

    /// Drops the connection that tells it everything.
    pub(super) fn hang_up(&mut self) {
        self.peer.hang_up(self.joined).unwrap();
    }

    /// What comes of a call that was begun, as soon as anything does.
    fn first(&mut self, call: Call) -> Result<(), Value> {
        match self.peer.next(call).unwrap() {
            Said::Event(_) | Said::Done(_) => Ok(()),
            Said::Failed(error) => Err(error),
        }
    }
}

impl Guest for Sdk {
    fn prompt(&mut self, text: &str) {
        self.peer.begin("stream", json!({"text": text, "taskId": self.task})).unwrap();
    }

    fn event(&mut self) -> Value {
        match self.peer.next(self.joined).unwrap() {
            Said::Event(event) => {
                self.order.check(&event);
                event
            }
            end => panic!("its stream ended: {end:#?}"),
        }
    }

    fn answer(&mut self, asked: &Asked, option: &str) {
        let data = json!({"tool_call_id": asked.call, "selected_option_id": option});
        self.answered = Some(self.peer.begin("answer", json!({"taskId": self.task, "data": data})).unwrap());
    }

    fn outcome(&mut self) -> Result<(), Value> {
        let call = self.answered.take().unwrap();
        self.first(call)
    }

    fn cancel(&mut self) -> Result<(), Value> {
        let call = self.peer.begin("cancel", json!({"taskId": self.task})).unwrap();
        self.first(call)
    }

    fn state(&mut self) -> String {
        let task = self.peer.call("get", json!({"taskId": self.task})).unwrap();
        frame::state(&task).unwrap_or_else(|| panic!("{task:#}"))
    }
}
