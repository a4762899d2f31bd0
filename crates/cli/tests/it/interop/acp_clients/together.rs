//! One session at a terminal, shared with ACP clients that others wrote, and with an A2A client.

use std::sync::Barrier;

use multitap_testkit::model::{Reply, Tool};
use multitap_testkit::peer::{Kind, frame};
use multitap_testkit::terminal::Terminal;
use multitap_testkit::wait::until_blocking;
use multitap_testkit::{interop, ws::WsClient};
use serde_json::{Value, json};

use super::client::{Asked, Client};
use super::wire::{HEARD, SAID, statuses, text, update, update_of};
use crate::interop::agent::{Agent, Api};
use crate::interop::seat;
use crate::interop::stage::{PATIENCE, Place};
use crate::scene::MULTITAP;
use crate::terminal::port;

/// What a question shows at its foot.
const ASKING: &str = "Esc refuses";

/// A terminal with a door.
struct Table<'a> {
    place: &'a Place,
    terminal: Terminal<'a>,
    port: u16,
}

impl<'a> Table<'a> {
    fn set(place: &'a Place) -> Self {
        let terminal = seat::show(place, &["--approval-mode", "ask", "--a2a-port", "0"]);
        let port = port(&terminal);
        Self { place, terminal, port }
    }

    fn client(&self, kind: Kind, name: &str) -> Client {
        let url = format!("ws://localhost:{}/ws", self.port);
        Client::connect(kind, &self.place.scratch, json!({"url": url}), name, &json!({})).0
    }

    fn folder(&self) -> String {
        self.place.scratch.workspace().display().to_string()
    }

    /// The client joins the session of the terminal. Returns the session's id.
    fn join(&self, client: &mut Client) -> String {
        let made = client.request("session/new", &json!({"cwd": self.folder(), "mcpServers": []}));
        made["sessionId"].as_str().unwrap().to_owned()
    }

    /// The model will write this file, and say so.
    fn will_write(&self, file: &str) {
        self.place.model.push(Reply::call(Tool::write(self.place.path(file), "words\n")));
        self.place.model.push(Reply::text(&done(file)));
    }

    /// Everybody leaves; the log has one ruling for each question.
    fn clear(self, questions: usize) {
        let log = seat::leave(self.place, &self.terminal);
        let count = |kind: &str| log.iter().filter(|event| event["type"] == kind).count();
        assert_eq!((count("permissionAsked"), count("permissionSettled")), (questions, questions), "{log:#?}");
    }
}

fn done(file: &str) -> String {
    format!("That was {file}.")
}

/// Whether the test can run.
fn is_possible(agent: Agent, kinds: &[Kind]) -> bool {
    agent.program().is_some() && interop::tmux().is_some() && kinds.iter().all(|kind| interop::peer(*kind).is_some())
}

/// R003-36 to R003-40, with a stock client.
fn a_client_shares_the_session(agent: Agent) {
    if !is_possible(agent, &[Kind::AcpJs]) {
        return;
    }
    let place = seat::place(agent);
    let table = Table::set(&place);
    let mut client = table.client(Kind::AcpJs, "editor");
    let session = table.join(&mut client);
    let listed = client.request("session/list", &json!({}));
    assert_eq!(listed["sessions"][0]["sessionId"], session.as_str(), "{listed:#}");

    // What the client says, and what comes of it.
    place.model.push(Reply::text("Good morning, editor."));
    let call = client.prompt(&session, "greet me");
    table.terminal.shows("> [ACP] editor: greet me").unwrap();
    assert_eq!(client.end(call)["stopReason"], "end_turn");
    assert_eq!(text(&client.rest(), SAID), "Good morning, editor.");
    table.terminal.shows("Good morning, editor.").unwrap();
    seat::rests(&table.terminal);

    // What is typed in the terminal.
    place.model.push(Reply::text("Good morning, terminal."));
    table.terminal.enter("greet this one").unwrap();
    let told = client.until_said("terminal.");
    assert_eq!(text(&told, HEARD), "greet this one");
    assert_eq!(text(&told, SAID), "Good morning, terminal.");
    seat::rests(&table.terminal);

    // The client's choice closes the dialog.
    table.will_write("by-client.txt");
    table.terminal.enter("write by-client.txt").unwrap();
    table.terminal.shows(ASKING).unwrap();
    let asked = client.asked();
    client.choose(&asked, &asked.option("allow_once"));
    let closed = "answered by [ACP] editor: ";
    table.terminal.until("the end of it", |screen| screen.contains(closed) && !screen.contains(ASKING)).unwrap();
    let told = client.until_said(&done("by-client.txt"));
    assert_eq!(statuses(&told).last(), Some(&"completed"), "{told:#?}");
    seat::rests(&table.terminal);
    assert_eq!(place.scratch.read("by-client.txt").unwrap(), "words\n");

    // The terminal's choice takes the question back from the client.
    table.will_write("by-terminal.txt");
    let call = client.prompt(&session, "write by-terminal.txt");
    let asked = client.asked();
    table.terminal.shows(ASKING).unwrap();
    table.terminal.press(&["Escape"]).unwrap();
    client.withdrawn(&asked);
    assert_eq!(client.end(call)["stopReason"], "end_turn");
    assert_eq!(statuses(&client.rest()).last(), Some(&"failed"));
    seat::rests(&table.terminal);
    assert!(!place.scratch.path("by-terminal.txt").exists());

    client.leave();
    table.clear(2);
}

/// An editor that starts `multitap acp --attach` is a client like any other, and leaves the session behind.
fn an_editor_attaches(agent: Agent) {
    if !is_possible(agent, &[Kind::AcpJs, Kind::AcpPython]) {
        return;
    }
    let place = seat::place(agent);
    let table = Table::set(&place);
    let url = format!("http://127.0.0.1:{}", table.port);
    let attach = json!({"command": [MULTITAP, "acp", "--attach", url]});
    let (mut client, _) = Client::connect(Kind::AcpPython, &place.scratch, attach, "editor", &json!({}));
    let session = table.join(&mut client);
    table.terminal.shows("connected").unwrap();

    place.model.push(Reply::text("Good morning, editor."));
    let call = client.prompt(&session, "greet me");
    assert_eq!(client.end(call)["stopReason"], "end_turn");
    let told = client.rest();
    assert_eq!((text(&told, HEARD), text(&told, SAID)), (String::new(), "Good morning, editor.".to_owned()));
    table.terminal.shows("[ACP] editor: greet me").unwrap();
    seat::rests(&table.terminal);

    table.will_write("by-client.txt");
    table.terminal.enter("write by-client.txt").unwrap();
    let told = client.until("prompt", |message| update_of(message, HEARD).is_some());
    assert_eq!(text(&told, HEARD), "write by-client.txt");
    let asked = client.asked();
    client.choose(&asked, &asked.option("allow_once"));
    let told = client.until_said(&done("by-client.txt"));
    assert_eq!(statuses(&told).last(), Some(&"completed"), "{told:#?}");
    seat::rests(&table.terminal);
    assert_eq!(place.scratch.read("by-client.txt").unwrap(), "words\n");

    client.leave();
    table.terminal.hides("connected").unwrap();
    place.model.push(Reply::text("Still here."));
    table.terminal.enter("and now?").unwrap();
    table.terminal.shows("Still here.").unwrap();
    seat::rests(&table.terminal);
    table.clear(1);
}

/// Three ACP clients, an A2A client and the terminal.
struct Crowd<'a> {
    table: Table<'a>,
    session: String,
    clients: [Client; 3],
    /// An A2A client, which is told of everything.
    phone: WsClient,
}

const NAMES: [&str; 3] = ["one", "two", "three"];

impl<'a> Crowd<'a> {
    fn gather(place: &'a Place) -> Self {
        let table = Table::set(place);
        let kinds = [Kind::AcpJs, Kind::AcpPython, Kind::AcpJs];
        let mut clients = [0, 1, 2].map(|index| table.client(kinds[index], NAMES[index]));
        let sessions: Vec<String> = clients.iter_mut().map(|client| table.join(client)).collect();
        assert!(sessions.iter().all(|session| *session == sessions[0]), "{sessions:?}");
        let mut phone = WsClient::connect(table.port, "client=phone").unwrap();
        phone.call("ListTasks", &json!({})).unwrap();
        Self { table, session: sessions[0].clone(), clients, phone }
    }

    /// What each client is told, up to these words of the agent.
    fn told(&mut self, words: &str) -> [Vec<Value>; 3] {
        self.clients.each_mut().map(|client| client.until_said(words))
    }

    /// A question, as each client has it.
    fn asked(&mut self, asker: usize, file: &str) -> [Asked; 3] {
        self.table.will_write(file);
        self.clients[asker].prompt(&self.session, &format!("write {file}"));
        let asked = self.clients.each_mut().map(Client::asked);
        let call = |asked: &Asked| asked.params["toolCall"]["toolCallId"].clone();
        assert!(asked.iter().all(|other| call(other) == call(&asked[0])));
        self.table.terminal.shows(ASKING).unwrap();
        asked
    }

    /// Who ruled, as the A2A client is told.
    fn ruled(&mut self) -> String {
        loop {
            if let Some(by) = settled(&self.phone.event().unwrap()) {
                return by.to_owned();
            }
        }
    }
}

/// Who answered the question that a frame is about.
fn settled(event: &Value) -> Option<&str> {
    let metadata = frame::body(event)["metadata"].as_object()?;
    metadata.values().find_map(|ours| ours["settledBy"]["client"].as_str())
}

/// The updates that tell of a turn, with the prompts or without.
fn story(told: &[Value], with_prompts: bool) -> Vec<Value> {
    let is_of_turn = |update: &&Value| match update["sessionUpdate"].as_str().unwrap() {
        HEARD => with_prompts,
        SAID | "agent_thought_chunk" | "tool_call" | "tool_call_update" | "plan" => true,
        _ => false,
    };
    told.iter().filter_map(update).filter(is_of_turn).cloned().collect()
}

fn many_clients_share_the_session(agent: Agent) {
    if !is_possible(agent, &[Kind::AcpJs, Kind::AcpPython]) {
        return;
    }
    let place = seat::place(agent);
    let mut crowd = Crowd::gather(&place);

    // Everybody is told the same in the same order.
    place.model.push(Reply::chunks(["Good ", "morning, ", "everybody."]));
    crowd.clients[0].prompt(&crowd.session, "greet us");
    let told = crowd.told("everybody.");
    assert_eq!(story(&told[0], true), story(&told[0], false), "it knows what it said itself");
    assert_eq!(story(&told[0], false), story(&told[1], false));
    assert_eq!(story(&told[1], true), story(&told[2], true));
    assert_eq!(text(&told[1], HEARD), "greet us");
    crowd.table.terminal.shows("> [ACP] one: greet us").unwrap();
    seat::rests(&crowd.table.terminal);

    // What the A2A client says is marked.
    place.model.push(Reply::text("Good morning, phone."));
    let parts = json!([{"kind": "text", "text": "greet me"}]);
    let message = json!({"kind": "message", "messageId": "1", "role": "user", "parts": parts});
    crowd.phone.stream("message/stream", &json!({"message": message})).unwrap();
    let told = crowd.told("phone.");
    assert!(told.iter().all(|told| text(told, HEARD) == "[A2A] greet me"), "{told:#?}");
    assert!(told.iter().all(|other| story(other, true) == story(&told[0], true)), "{told:#?}");
    seat::rests(&crowd.table.terminal);

    // One answers; the dialogs of all others close.
    let asked = crowd.asked(0, "ruled.txt");
    let option = asked[1].option("allow_once");
    crowd.clients[1].choose(&asked[1], &option);
    for loser in [0, 2] {
        crowd.clients[loser].withdrawn(&asked[loser]);
    }
    let closed = |screen: &str| screen.contains("answered by [ACP] two: ") && !screen.contains(ASKING);
    crowd.table.terminal.until("the end of it", closed).unwrap();
    assert_eq!(crowd.ruled(), "two");
    for told in crowd.told(&done("ruled.txt")) {
        assert_eq!(statuses(&told).last(), Some(&"completed"), "{told:#?}");
    }
    seat::rests(&crowd.table.terminal);
    assert_eq!(place.scratch.read("ruled.txt").unwrap(), "words\n");

    // Two answer at the same moment: one of them counts.
    let asked = crowd.asked(2, "raced.txt");
    let options = [asked[1].option("allow_once"), asked[2].option("reject_once")];
    let [_, two, three] = &mut crowd.clients;
    let start = Barrier::new(2);
    std::thread::scope(|scope| {
        for (client, index) in [(two, 1), (three, 2)] {
            let (start, asked, options) = (&start, &asked, &options);
            scope.spawn(move || {
                start.wait();
                client.choose(&asked[index], &options[index - 1]);
            });
        }
    });
    let told = crowd.told(&done("raced.txt"));
    let is_written = place.scratch.path("raced.txt").exists();
    for told in &told {
        assert_eq!(statuses(told).last(), Some(&if is_written { "completed" } else { "failed" }), "{told:#?}");
    }
    crowd.table.terminal.hides(ASKING).unwrap();
    seat::rests(&crowd.table.terminal);

    // Who prompted disappears; the turn goes on for the others.
    place.model.push(Reply::text("Once upon ").then_hang().then_text("a time."));
    crowd.clients[0].prompt(&crowd.session, "tell a story");
    crowd.told("upon");
    until_blocking("the model to hang", PATIENCE, || place.model.hangs().then_some(())).unwrap();
    let Crowd { table, session, clients: [one, mut two, mut three], phone } = crowd;
    one.hang_up();
    table.terminal.shows("one left").unwrap();
    place.model.release();
    for client in [&mut two, &mut three] {
        client.until_said("time.");
    }
    seat::rests(&table.terminal);

    // Who comes now is shown everything.
    let mut late = table.client(Kind::AcpPython, "late");
    let loaded = late.request("session/load", &json!({"sessionId": session, "cwd": table.folder(), "mcpServers": []}));
    assert_eq!(loaded["modes"]["currentModeId"], "ask", "{loaded:#}");
    let told = late.rest();
    for prompt in ["greet us", "[A2A] greet me", "write ruled.txt", "write raced.txt", "tell a story"] {
        assert!(text(&told, HEARD).contains(prompt), "no {prompt}: {told:#?}");
    }
    let expected = [
        "Good morning, everybody.",
        "Good morning, phone.",
        &done("ruled.txt"),
        &done("raced.txt"),
        "Once upon a time.",
    ]
    .concat();
    assert_eq!(text(&told, SAID), expected);

    for client in [two, three, late] {
        client.leave();
    }
    drop(phone);
    table.terminal.hides("connected").unwrap();
    table.clear(2);
}

macro_rules! column {
    ($agent:expr) => {
        use crate::interop::acp_clients::together::*;

        #[test]
        fn a_client_shares_the_session() {
            super::a_client_shares_the_session($agent);
        }

        #[test]
        fn an_editor_attaches() {
            super::an_editor_attaches($agent);
        }

        #[test]
        fn many_clients_share_the_session() {
            super::many_clients_share_the_session($agent);
        }
    };
}

mod claude {
    column!(Agent::Claude);
}

mod codex {
    column!(Agent::Codex);
}

mod gemini {
    column!(Agent::Gemini);
}

mod builtin {
    column!(Agent::Builtin(Api::Anthropic));
}
