//! The real CLIs and the built-in agent on the scripted model, through the real binary: one table of scenarios for
//! every agent.
//!
//! A scenario speaks only of unified events, so the same assertions hold for each agent; a switch of `--agent`
//! needs no other change. An agent joins by a variant of [`agent::Agent`]; a row it cannot do is named in
//! [`agent::Agent::cannot`] with the reason, and then the refusal is what is tested.

mod a2a;
mod a2a_peers;
mod acp_clients;
pub(crate) mod agent;
mod builtin;
mod cancelled_command;
mod codex_threads;
mod gemini_remote_agent;
mod hangup;
mod invariants;
mod kill;
mod mcp_clients;
mod one_shot;
mod sample_agents;
mod sandbox;
mod scenario;
mod seat;
mod shared;
mod shell_lines;
mod stage;
mod trust;

use agent::{Agent, Api, Cannot};

/// One test for each scenario, for one agent.
macro_rules! column {
    ($agent:expr; $($room:ident: $($scenario:ident)+;)+) => {
        use crate::interop::*;

        $($(#[test] fn $scenario() { run($agent, stringify!($scenario), scenario::$room::$scenario); })+)+
    };
}

/// One column for each agent. The built-in one has one for each API that models are asked by; it needs no program, so
/// it runs wherever tests run.
macro_rules! suite {
    ($($room:ident: $($scenario:ident)+;)+) => {
        /// Every row of the table.
        const ROWS: &[&str] = &[$($(stringify!($scenario)),+),+];

        mod claude {
            column!(Agent::Claude; $($room: $($scenario)+;)+);
        }

        mod codex {
            column!(Agent::Codex; $($room: $($scenario)+;)+);
        }

        mod gemini {
            column!(Agent::Gemini; $($room: $($scenario)+;)+);
        }

        mod acp {
            column!(Agent::Acp; $($room: $($scenario)+;)+);
        }

        mod builtin_on_anthropic {
            column!(Agent::Builtin(Api::Anthropic); $($room: $($scenario)+;)+);
        }

        mod builtin_on_openai {
            column!(Agent::Builtin(Api::OpenAi); $($room: $($scenario)+;)+);
        }

        mod builtin_on_gemini {
            column!(Agent::Builtin(Api::Gemini); $($room: $($scenario)+;)+);
        }
    };
}

suite! {
    text: plain_text deltas_come_once thinking_is_told chinese_text_and_emoji_pass_unharmed
        a_picture_reaches_the_model the_system_prompt_is_ours_to_choose the_answer_fits_a_schema;
    tools: a_command_is_allowed_once a_command_is_denied_with_feedback a_command_is_allowed_always
        a_command_is_edited_before_it_runs a_file_is_written_with_a_diff a_file_is_edited_with_a_diff
        a_written_file_gets_other_content a_tool_fails two_tools_run_in_one_reply an_mcp_tool_is_called
        a_long_tool_tells_its_progress;
    questions: an_answer_that_was_not_offered_approves_nothing an_answer_that_does_not_fit_is_refused
        an_edit_that_must_not_run_is_refused no_command_is_edited_in_plan_mode
        nobody_to_ask_is_a_refusal
        a_question_times_out the_agent_asks_something_back a_plan_is_approved permission_goes_through_an_mcp_tool
        always_holds_for_the_mcp_tool_too;
    turns: two_turns_in_one_process a_prompt_waits_its_turn cancel_in_mid_text cancel_in_a_running_tool
        cancel_with_a_question_open a_slash_command work_in_the_background_has_a_turn_of_its_own
        a_plan_is_kept;
    sessions: resume_in_a_new_process fork_in_a_new_process continue_in_a_new_process resume_at_a_message
        an_unknown_session_is_named mode_and_model_change_while_it_runs the_agent_tells_about_itself
        one_shot_with_piped_text every_native_line_is_kept;
    history: what_was_said_is_read_back_from_the_store a_turn_that_was_cut_off_is_read_back;
    settings: modes_do_what_they_say tools_are_allowed_and_blocked_by_name a_setting_it_cannot_honour_is_named;
    failures: too_many_requests_then_fine the_model_fails_for_good the_key_is_wrong the_stream_breaks_off
        too_many_turns the_agent_is_killed_from_outside;
}

/// Runs one row, or shows that the agent refuses it.
fn run(agent: Agent, row: &str, scenario: fn(Agent)) {
    if agent.program().is_none() {
        return; // said loudly, and counted
    }
    match agent.cannot(row) {
        Some(Cannot::Refuses(refusal)) => stage::check_refusal(agent, refusal),
        Some(Cannot::Lacks(_)) => {}
        None => scenario(agent),
    }
}

#[test]
fn every_exception_is_a_row() {
    for agent in Agent::ALL {
        for (row, why) in agent.exceptions() {
            assert!(ROWS.contains(row), "{agent:?} excepts {row}, which is no scenario: {why:?}");
        }
    }
}
