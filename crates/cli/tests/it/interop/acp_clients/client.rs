//! An ACP client that others wrote: it starts `multitap acp` or joins over a WebSocket, and everything on the wire is
//! recorded.

use std::collections::VecDeque;

use multitap_testkit::Scratch;
use multitap_testkit::peer::{Call, Kind, Peer, Said};
use serde_json::{Value, json};

use super::wire;

/// A connected client.
pub(super) struct Client {
    kind: Kind,
    peer: Peer,
    connection: Call,
    /// Everything that it told, in order.
    told: Vec<Value>,
    /// What it got from us and the test has not looked at.
    unseen: VecDeque<Value>,
}

/// A question that the client was asked.
pub(super) struct Asked {
    pub(super) id: Value,
    pub(super) params: Value,
}

impl Asked {
    /// The id of the option of that kind.
    #[track_caller]
    pub(super) fn option(&self, kind: &str) -> String {
        let options = self.params["options"].as_array().unwrap();
        let option = options.iter().find(|option| option["kind"] == kind);
        option.unwrap_or_else(|| panic!("there is no {kind}: {:#}", self.params))["optionId"]
            .as_str()
            .unwrap()
            .to_owned()
    }
}

impl Client {
    /// Connects, and introduces itself by that name and what it can do. `to` is `{command: WORDS}` or `{url: URL}`.
    pub(super) fn connect(kind: Kind, scratch: &Scratch, to: Value, name: &str, can: &Value) -> (Self, Value) {
        let mut peer = Peer::start(kind, scratch).unwrap();
        let connection = peer.begin("connect", to).unwrap();
        peer.until(connection, "a connection", |event| event["connected"] == true).unwrap();
        let mut client = Self { kind, peer, connection, told: Vec::new(), unseen: VecDeque::new() };
        let about = client.request(
            "initialize",
            &json!({"protocolVersion": 1, "clientCapabilities": can, "clientInfo": {"name": name, "version": "1"}}),
        );
        (client, about)
    }

    /// Sends a request by the SDK, and does not wait.
    pub(super) fn begin(&mut self, method: &str, params: &Value) -> Call {
        self.peer.begin("request", json!({"method": method, "params": params})).unwrap()
    }

    /// The result of a request.
    #[track_caller]
    pub(super) fn end(&mut self, call: Call) -> Value {
        let said = self.peer.next(call).unwrap();
        self.hear();
        match said {
            Said::Done(result) => result,
            other => panic!("{other:#?} after {:#?}", self.told),
        }
    }

    #[track_caller]
    pub(super) fn request(&mut self, method: &str, params: &Value) -> Value {
        let call = self.begin(method, params);
        self.end(call)
    }

    /// The error of a request that must fail.
    #[track_caller]
    pub(super) fn refused(&mut self, method: &str, params: &Value) -> Value {
        let refused = self.peer.refused("request", json!({"method": method, "params": params})).unwrap();
        self.hear();
        refused
    }

    pub(super) fn notify(&mut self, method: &str, params: &Value) {
        self.peer.call("notify", json!({"method": method, "params": params})).unwrap();
    }

    /// Begins a turn with this text.
    pub(super) fn prompt(&mut self, session: &str, text: &str) -> Call {
        self.begin("session/prompt", &json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]}))
    }

    /// Gives an answer to a question.
    pub(super) fn answer(&mut self, asked: &Asked, result: &Value) {
        self.peer.call("answer", json!({"question": asked.id, "result": result})).unwrap();
    }

    pub(super) fn dismiss(&mut self, asked: &Asked) {
        self.answer(asked, &json!({"outcome": {"outcome": "cancelled"}}));
    }

    pub(super) fn choose(&mut self, asked: &Asked, option: &str) {
        self.answer(asked, &json!({"outcome": {"outcome": "selected", "optionId": option}}));
    }

    /// What it got, up to the first message that fits.
    #[track_caller]
    pub(super) fn until(&mut self, what: &str, mut fits: impl FnMut(&Value) -> bool) -> Vec<Value> {
        let mut passed = Vec::new();
        loop {
            if let Some(message) = self.unseen.pop_front() {
                let is_it = fits(&message);
                passed.push(message);
                if is_it {
                    return passed;
                }
                continue;
            }
            match self.peer.next(self.connection) {
                Ok(Said::Event(event)) => self.told(event),
                other => panic!("no {what} came: {other:#?} after {:#?}", self.told),
            }
        }
    }

    /// What it got, until the agent has said these words.
    #[track_caller]
    pub(super) fn until_said(&mut self, words: &str) -> Vec<Value> {
        let mut said = String::new();
        self.until(words, |message| {
            said.push_str(&wire::text(std::slice::from_ref(message), wire::SAID));
            said.contains(words)
        })
    }

    /// What it got that nobody has looked at yet.
    pub(super) fn rest(&mut self) -> Vec<Value> {
        self.hear();
        self.unseen.drain(..).collect()
    }

    /// The next question.
    #[track_caller]
    pub(super) fn asked(&mut self) -> Asked {
        let mut passed = self.until("question", |message| {
            message["method"] == "session/request_permission" || message["method"] == "elicitation/create"
        });
        let mut message = passed.pop().unwrap();
        Asked { id: message["id"].take(), params: message["params"].take() }
    }

    /// Waits until a question is taken back.
    #[track_caller]
    pub(super) fn withdrawn(&mut self, asked: &Asked) {
        self.until("withdrawal", |message| {
            message["method"] == "$/cancel_request" && message["params"]["requestId"] == asked.id
        });
    }

    /// Drops its connection, like a client that disappears, and checks what it was told until then.
    pub(super) fn hang_up(mut self) {
        self.hear();
        wire::check(&self.told);
        self.peer.hang_up(self.connection).unwrap();
        while self.kind == Kind::AcpJs {
            match self.peer.next(self.connection).unwrap() {
                Said::Event(_) => {}
                Said::Done(closed) if closed.is_null() => return,
                Said::Done(closed) => {
                    // 1005: the client gave no code, and is answered with none.
                    let is_clean = [1000, 1001, 1005].iter().any(|code| closed["code"] == *code);
                    assert!(is_clean && closed["wasClean"] == true, "{closed}");
                    return;
                }
                failed @ Said::Failed(_) => panic!("{failed:?}"),
            }
        }
    }

    /// Leaves. Everything on the wire fitted the schema, and the SDK has delivered every update.
    #[track_caller]
    pub(super) fn leave(mut self) {
        self.hear();
        let count = |told: &[Value], fits: fn(&Value) -> bool| told.iter().filter(|line| fits(line)).count();
        while count(&self.told, |line| line.get("update").is_some())
            < count(&self.told, |line| wire::update(&line["got"]).is_some())
        {
            match self.peer.next(self.connection) {
                Ok(Said::Event(event)) => self.told(event),
                other => panic!("the SDK does not deliver an update: {other:#?} after {:#?}", self.told),
            }
        }
        wire::check(&self.told);
        self.peer.hang_up(self.connection).unwrap();
    }

    fn hear(&mut self) {
        for event in self.peer.heard(self.connection).unwrap() {
            self.told(event);
        }
    }

    fn told(&mut self, event: Value) {
        self.unseen.extend(event.get("got").cloned());
        self.told.push(event);
    }
}
