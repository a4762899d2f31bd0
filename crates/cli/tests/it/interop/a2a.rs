//! The A2A door with every agent behind it: the worked example of the `development-tool` extension from its first step
//! to its last, and what else a question can be about.
//!
//! One table again, agents and rows. What a client sees is the same whatever the agent; where an agent cannot do a
//! thing, [`cast`] says so, and the refusal is what is tested. The client here is no SDK: it opens a connection for
//! each request, so that whoever answers is never on the connection that asked.

mod cast;
mod client;
mod commands;
mod details;
mod host;
mod image;
mod told;
mod write;

use self::cast::Cast;
use super::agent::{Agent, Api};

/// One test for each row, for one agent.
macro_rules! column {
    ($cast:expr; $($room:ident: $($row:ident)+;)+) => {
        use crate::interop::a2a::*;

        $($(#[test] fn $row() { run($cast, $room::$row); })+)+
    };
}

/// One column for each agent; the built-in one has two, since it needs no program: with a model, and as a rehearsal.
macro_rules! table {
    ($($rows:tt)+) => {
        mod claude { column!(Cast::Agent(Agent::Claude); $($rows)+); }
        mod codex { column!(Cast::Agent(Agent::Codex); $($rows)+); }
        mod gemini { column!(Cast::Agent(Agent::Gemini); $($rows)+); }
        mod acp { column!(Cast::Agent(Agent::Acp); $($rows)+); }
        mod builtin { column!(Cast::Agent(Agent::Builtin(Api::Anthropic)); $($rows)+); }
        mod rehearsal { column!(Cast::Rehearsal; $($rows)+); }
    };
}

table! {
    write: the_worked_example_from_first_to_last
        other_content_and_then_a_no
        the_shipped_spelling
        version_1_0;
    details: every_kind_of_details;
    commands: the_agents_own_commands_are_listed_and_run;
    image: an_image_by_its_uri_reaches_the_model;
}

fn run(cast: Cast, row: fn(Cast)) {
    if cast.agent().program().is_some() {
        row(cast); // else it was said loudly, and counted
    }
}
