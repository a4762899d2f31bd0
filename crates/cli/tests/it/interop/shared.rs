//! One session at a terminal and through two doors at once, with every agent: a person at the keyboard, a WebSocket,
//! and an A2A client that others wrote.
//!
//! One table again, agents and rows. Whoever asks and whoever answers, all three see the same; a row never says how,
//! [`party`] does. Each agent meets another A2A client, so that every client meets every row.

mod frames;
mod guest;
mod neighbour;
mod party;
mod question;
mod remote;
mod turn;

use multitap_testkit::interop;
use multitap_testkit::peer::Kind;

use super::agent::{Agent, Api};

/// One test for each row, for one agent and one client.
macro_rules! column {
    ($agent:expr, $kind:expr; $($room:ident: $($row:ident)+;)+) => {
        use crate::interop::shared::*;

        $($(#[test] fn $row() { run($agent, $kind, $room::$row); })+)+
    };
}

macro_rules! table {
    ($($rows:tt)+) => {
        mod claude { column!(Agent::Claude, Kind::JsV1; $($rows)+); }
        mod codex { column!(Agent::Codex, Kind::Python; $($rows)+); }
        mod gemini { column!(Agent::Gemini, Kind::JsV03; $($rows)+); }
        mod acp { column!(Agent::Acp, Kind::Python; $($rows)+); }
        mod builtin { column!(Agent::Builtin(Api::Anthropic), Kind::JsV03; $($rows)+); }
    };
}

table! {
    turn: what_is_said_anywhere_is_heard_everywhere who_leaves_changes_nothing;
    question: the_terminal_answers the_socket_answers the_sdk_answers answers_at_the_same_moment_leave_one_ruling;
    remote: a_remote_agent_is_called_and_asks_back a_remote_session_asks_for_permission a_cancelled_turn_cancels_the_remote_task a_turn_is_cancelled_while_a_remote_agent_asks;
}

fn run(agent: Agent, kind: Kind, row: fn(Agent, Kind)) {
    // What is not here was said loudly, and counted.
    if agent.program().is_some() && interop::tmux().is_some() && interop::peer(kind).is_some() {
        row(agent, kind);
    }
}
