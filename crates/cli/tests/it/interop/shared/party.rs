//! A terminal, a WebSocket and an SDK on one session: what any of them does, and that all of them see it.

use multitap_testkit::model::{Reply, Tool};
use multitap_testkit::peer::Kind;
use multitap_testkit::terminal::Terminal;
use serde_json::Value;

use super::frames::{self, Asked};
use super::guest::{Guest, Sdk, Socket};
use crate::interop::agent::Agent;
use crate::interop::seat::{self, PERSON};
use crate::interop::stage::Place;
use crate::terminal::port;

/// What a question shows at its foot.
pub(super) const ASKING: &str = "Esc refuses";
/// What is thought before anything is done; its first line is what it is called.
const THOUGHT: &str = "**Weighing it**\n\nIt can be done.";
const SUBJECT: &str = "Weighing it";

/// Where something comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Terminal,
    Socket,
    Sdk,
}

impl Side {
    pub(super) const ALL: [Self; 3] = [Self::Terminal, Self::Socket, Self::Sdk];

    /// What others see it as, and the door it comes through.
    pub(super) fn who(self) -> (&'static str, &'static str) {
        match self {
            Self::Terminal => (PERSON, "terminal"),
            Self::Socket => ("phone", "a2a"),
            Self::Sdk => ("client", "a2a"),
        }
    }

    /// A prompt of theirs, as the terminal shows it.
    fn shown(self, text: &str) -> String {
        match self {
            Self::Terminal => format!("> {text}"),
            Self::Socket | Self::Sdk => format!("> [A2A] {}: {text}", self.who().0),
        }
    }

    /// Their answer, as the terminal shows it.
    fn answered(self) -> String {
        match self {
            Self::Terminal => "answered: ".to_owned(),
            Self::Socket | Self::Sdk => format!("answered by [A2A] {}: ", self.who().0),
        }
    }
}

/// All three, on one session.
pub(super) struct Party<'a> {
    pub(super) place: &'a Place,
    pub(super) terminal: Terminal<'a>,
    pub(super) port: u16,
    pub(super) socket: Socket,
    pub(super) sdk: Sdk,
    /// What was thought before the question that was asked last.
    thought: String,
}

impl<'a> Party<'a> {
    pub(super) fn meet(place: &'a Place, kind: Kind) -> Self {
        let terminal = seat::show(place, &["--approval-mode", "ask", "--a2a-port", "0"]);
        let port = port(&terminal);
        let socket = Socket::join(port);
        let sdk = Sdk::join(kind, &place.scratch, port, socket.task());
        terminal.shows("connected").unwrap();
        Self { place, terminal, port, socket, sdk, thought: String::new() }
    }

    pub(super) fn guests(&mut self) -> [&mut dyn Guest; 2] {
        [&mut self.socket, &mut self.sdk]
    }

    pub(super) fn guest(&mut self, side: Side) -> Option<&mut dyn Guest> {
        match side {
            Side::Terminal => None,
            Side::Socket => Some(&mut self.socket),
            Side::Sdk => Some(&mut self.sdk),
        }
    }

    /// What both guests are told, up to what fits.
    pub(super) fn told(&mut self, what: &str, fits: impl Fn(&Value) -> bool) -> [Vec<Value>; 2] {
        self.guests().map(|guest| guest.until(what, &fits))
    }

    /// Somebody prompts: the terminal shows whose it is, the guests are told.
    pub(super) fn prompt(&mut self, side: Side, text: &str) {
        match self.guest(side) {
            None => self.terminal.enter(text).unwrap(),
            Some(guest) => guest.prompt(text),
        }
        for told in self.told("prompt", |event| frames::prompted(event, text).is_some()) {
            assert_eq!(frames::prompted(told.last().unwrap(), text), Some(side.who()), "{told:#?}");
        }
        self.terminal.shows(&side.shown(text)).unwrap();
    }

    /// Somebody asks for a file: all of them see the question, and nothing is written yet.
    pub(super) fn ask(&mut self, side: Side, file: &str) -> Asked {
        let path = self.place.path(file);
        self.place.model.push(Reply::think(THOUGHT).then_call(Tool::write(&path, &content(file))));
        self.place.model.push(Reply::text(&done(file)));
        self.prompt(side, &format!("please write {file}"));
        let told = self.told("question", |event| frames::is_state(event, "input-required"));
        let [by_socket, by_sdk] = told.map(|told| {
            let asked = told.iter().find_map(frames::asked).unwrap_or_else(|| panic!("nothing is asked: {told:#?}"));
            (frames::thoughts(&told), frames::thought_words(&told), asked)
        });
        assert_eq!(by_socket, by_sdk, "they are told the same");
        let (thoughts, thought, asked) = by_socket;
        // The ACP agent's question does not wait for its thought: it may overtake all or the end of it.
        assert!(thoughts == [SUBJECT] || self.place.agent == Agent::Acp, "{thoughts:?}");
        let is_asked = |screen: &str| {
            [ASKING, content(file).trim()].iter().all(|words| screen.contains(words))
                && (thoughts != [SUBJECT] || screen.contains(SUBJECT))
        };
        self.terminal.until("the question", is_asked).unwrap();
        assert!(!self.place.scratch.path(file).exists());
        self.thought = thought;
        asked
    }

    /// Somebody answers, and does not wait. The terminal has a key for it.
    pub(super) fn answer(&mut self, side: Side, asked: &Asked, option: &str) {
        assert!(asked.options.iter().any(|offered| offered == option), "{asked:?}");
        match (self.guest(side), option) {
            (Some(guest), _) => guest.answer(asked, option),
            (None, "cancel") => self.terminal.press(&["Escape"]).unwrap(),
            (None, _) => self.terminal.press(&["Enter"]).unwrap(),
        }
    }

    /// The question is closed everywhere by one answer alone, the agent does as it was told, and the turn ends. Returns
    /// whose answer it was, and what it said.
    pub(super) fn closed(&mut self, asked: &Asked, file: &str) -> (Side, String) {
        let told = self.told("end of the turn", |event| frames::is_state(event, "completed"));
        let settled = told[0].iter().find_map(frames::settled).unwrap_or_else(|| panic!("no ruling: {told:#?}"));
        let side = Side::ALL.into_iter().find(|side| side.who() == settled.0).unwrap();
        let option = settled.1.to_owned();
        let is_allowed = option != "cancel";
        for told in &told {
            let expected: &[&str] = if is_allowed { &["EXECUTING", "SUCCEEDED"] } else { &["CANCELLED"] };
            assert_eq!(frames::statuses(told), expected, "{told:#?}");
            for (event, tool) in told.iter().filter_map(|event| Some((event, frames::tool(event)?))) {
                assert_eq!(frames::settled(event), Some(settled), "{event:#}");
                assert_eq!(tool["tool_call_id"], asked.call.as_str(), "{event:#}");
            }
            assert_eq!(frames::text(told), done(file), "{told:#?}");
            let thought = format!("{}{}", self.thought, frames::thought_words(told));
            assert_eq!(thought, frames::words(THOUGHT), "it is told once: {told:#?}");
        }
        let is_closed = |screen: &str| {
            let (_, since) = screen.rsplit_once(&format!("please write {file}")).unwrap_or_default();
            since.contains(&side.answered()) && since.contains(&done(file)) && !since.contains(ASKING)
        };
        self.terminal.until("the question's end", is_closed).unwrap();
        self.rests("completed");
        let written = self.place.scratch.read(file).ok();
        assert_eq!(written, is_allowed.then(|| content(file)), "{file}");
        (side, option)
    }

    /// Nothing runs, wherever one looks.
    pub(super) fn rests(&mut self, state: &str) {
        seat::rests(&self.terminal);
        for guest in self.guests() {
            assert_eq!(guest.state(), state);
        }
    }

    /// Everybody leaves, the terminal last, and nothing is left. Returns the log.
    pub(super) fn part(self) -> Vec<Value> {
        let Self { place, terminal, socket, sdk, .. } = self;
        drop((socket, sdk));
        terminal.hides("connected").unwrap();
        seat::leave(place, &terminal)
    }
}

/// What is written into a file.
fn content(file: &str) -> String {
    format!("words of {file}\n")
}

/// What the agent says at the end.
fn done(file: &str) -> String {
    format!("That was {file}.")
}
