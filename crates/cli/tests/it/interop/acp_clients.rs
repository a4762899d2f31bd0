//! The ACP door with the clients that others wrote, for every agent: `multitap acp` on stdio and `multitap serve` on a
//! WebSocket.
//!
//! One table of agents and rows. Each agent meets another SDK and transport, so that each of these meets every row. All
//! that we send in these tests must fit the schema that comes with the official SDK.

mod acpx;
mod client;
mod place;
mod rows;
mod together;
mod wire;

use multitap_testkit::interop;
use multitap_testkit::peer::Kind;

use self::place::{Meeting, Way};
use super::agent::{Agent, Api};

/// One test for each row, for one agent and one client.
macro_rules! column {
    ($agent:expr, $kind:expr, $way:expr; $($row:ident)+) => {
        use crate::interop::acp_clients::*;

        $(#[test] fn $row() { run($agent, $kind, $way, rows::$row); })+
    };
}

macro_rules! table {
    ($($rows:tt)+) => {
        mod claude { column!(Agent::Claude, Kind::AcpJs, Way::Stdio; $($rows)+); }
        mod codex { column!(Agent::Codex, Kind::AcpPython, Way::Stdio; $($rows)+); }
        mod gemini { column!(Agent::Gemini, Kind::AcpJs, Way::Socket; $($rows)+); }
        mod builtin { column!(Agent::Builtin(Api::Anthropic), Kind::AcpPython, Way::Socket; $($rows)+); }
    };
}

table! {
    a_prompt_is_answered a_write_is_allowed_and_refused a_turn_is_cancelled history_is_replayed
    the_mode_is_switched the_level_of_thinking_is_set a_slash_command_runs a_picture_reaches_the_model what_a_client_declares_is_used
}

fn run(agent: Agent, kind: Kind, way: Way, row: fn(&Meeting)) {
    // What is not here was said loudly, and counted. The schema comes with one of the SDKs.
    if agent.program().is_some() && [kind, Kind::AcpJs].into_iter().all(|kind| interop::peer(kind).is_some()) {
        row(&Meeting::new(agent, kind, way));
    }
}
