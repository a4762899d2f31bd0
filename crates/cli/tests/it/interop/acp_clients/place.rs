//! Where a client and an agent meet.

use std::process::{Command, Stdio};
use std::time::Instant;

use multitap_testkit::peer::Kind;
use serde_json::{Value, json};

use super::client::Client;
use crate::interop::agent::Agent;
use crate::interop::stage::{PATIENCE, Place};
use crate::scene::Live;

/// How the client comes in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// It starts `multitap acp`.
    Stdio,
    /// It joins `multitap serve`.
    Socket,
}

pub(super) struct Meeting {
    pub(super) place: Place,
    pub(super) way: Way,
    kind: Kind,
    /// What the client connects to.
    to: Value,
    /// Ends with the test.
    _server: Option<Live>,
}

impl Meeting {
    pub(super) fn new(agent: Agent, kind: Kind, way: Way) -> Self {
        let place = Place::new(agent, []);
        let asks = ["--approval-mode", "ask"];
        let (to, server) = match way {
            Way::Stdio => (json!({"command": words(&place.command(&[&["acp"], &asks[..]].concat()))}), None),
            Way::Socket => {
                let mut command = place.command(&[&["serve", "--port", "0"], &asks[..]].concat());
                let mut server = Live::new({
                    command.stdout(Stdio::piped()).stderr(Stdio::piped());
                    command
                });
                let line = server.line_by(Instant::now() + PATIENCE).unwrap_or_default();
                let Some(url) = line.strip_prefix("multitap listening on http://") else {
                    panic!("it does not listen: {line:?}");
                };
                // A client of the remote transport knows one path, others know the other.
                let path = if kind == Kind::AcpPython { "acp" } else { "ws" };
                (json!({"url": format!("ws://{}/{path}", url.trim_end_matches('/'))}), Some(server))
            }
        };
        Self { place, way, kind, to, _server: server }
    }

    /// A client that has introduced itself, and what it was told about us.
    pub(super) fn introduced(&self) -> (Client, Value) {
        Client::connect(self.kind, &self.place.scratch, self.to.clone(), "editor", &json!({}))
    }

    /// A client in a session of its own: the client, what it was told of the session, and the session's id.
    pub(super) fn client(&self) -> (Client, Value, String) {
        self.client_that(&json!({}))
    }

    /// The same with a client that can do this.
    pub(super) fn client_that(&self, can: &Value) -> (Client, Value, String) {
        let (mut client, _) = Client::connect(self.kind, &self.place.scratch, self.to.clone(), "editor", can);
        let made = client.request("session/new", &json!({"cwd": self.folder(), "mcpServers": []}));
        let id = made["sessionId"].as_str().unwrap().to_owned();
        (client, made, id)
    }

    pub(super) fn folder(&self) -> String {
        self.place.scratch.workspace().display().to_string()
    }
}

/// The program and its arguments.
pub(super) fn words(command: &Command) -> Vec<String> {
    [command.get_program()]
        .into_iter()
        .chain(command.get_args())
        .map(|word| word.to_str().unwrap().to_owned())
        .collect()
}
