//! The rows that an agent cannot do, each with the reason; where it refuses them by name, the refusal is tested.

/// Why an agent cannot do a row.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Cannot {
    /// It is asked for by options or settings, and refuses them by name.
    Refuses(Refusal),
    /// It has no such thing that anybody could ask for; the words say so to whoever reads the table.
    #[expect(dead_code, reason = "read by people")]
    Lacks(&'static str),
}

/// How an agent refuses a row: the options that ask for it, or its own settings, and words of the error.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Refusal {
    pub(crate) options: &'static [&'static str],
    pub(crate) settings: &'static [(&'static str, &'static str)],
    pub(crate) says: &'static str,
}

impl Refusal {
    const fn of(options: &'static [&'static str], says: &'static str) -> Cannot {
        Cannot::Refuses(Self { options, settings: &[], says })
    }
}

/// Permission through a tool is a setting, not an option.
const BY_TOOL: Cannot =
    Cannot::Refuses(Refusal { options: &[], settings: &[("permission", "mcp")], says: "permission by MCP tool" });

pub(super) const CODEX: &[(&str, Cannot)] = &[
    ("tools_are_allowed_and_blocked_by_name", Refusal::of(&["--allow-tool", "shell"], "allowed tools")),
    ("too_many_turns", Refusal::of(&["--max-turns", "2"], "max turns")),
    ("resume_at_a_message", Refusal::of(&["-r", "01a1", "--at", "turn"], "resume at a message")),
    ("permission_goes_through_an_mcp_tool", BY_TOOL),
    ("always_holds_for_the_mcp_tool_too", BY_TOOL),
    ("an_answer_that_does_not_fit_is_refused", Cannot::Lacks("its model has no tool to ask with")),
    ("the_agent_asks_something_back", Cannot::Lacks("its model has no tool to ask with")),
    ("a_plan_is_approved", Cannot::Lacks("its plans are not approved, they are told")),
    ("a_slash_command", Cannot::Lacks("none of its commands answers without the model")),
    ("work_in_the_background_has_a_turn_of_its_own", Cannot::Lacks("its sub-agents report within the turn")),
];

/// Any schema that is there.
pub(super) const SCHEMA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../event/tests/it/unified-event.schema.json");

pub(super) const GEMINI: &[(&str, Cannot)] = &[
    ("the_answer_fits_a_schema", Refusal::of(&["--output-schema", SCHEMA], "output schema")),
    ("the_system_prompt_is_ours_to_choose", Refusal::of(&["--append-system-prompt", "x"], "append system prompt")),
    ("too_many_turns", Refusal::of(&["--max-turns", "2"], "max turns")),
    ("fork_in_a_new_process", Refusal::of(&["-r", "1", "--fork"], "fork")),
    ("resume_at_a_message", Refusal::of(&["-r", "1", "--at", "m"], "resume at a message")),
    ("permission_goes_through_an_mcp_tool", BY_TOOL),
    ("always_holds_for_the_mcp_tool_too", BY_TOOL),
    ("a_tool_fails", Cannot::Lacks("it tells no exit code: a command that ended has ended well")),
    ("a_long_tool_tells_its_progress", Cannot::Lacks("it shows what a command wrote when it has ended")),
    ("the_agent_asks_something_back", Cannot::Lacks("over ACP its questions take a yes or a no")),
    ("an_answer_that_does_not_fit_is_refused", Cannot::Lacks("over ACP its questions take a yes or a no")),
    ("a_plan_is_approved", Cannot::Lacks("over ACP it asks about a plan without showing it")),
    ("a_plan_is_kept", Cannot::Lacks("over ACP its plan has a title and nothing else")),
    ("work_in_the_background_has_a_turn_of_its_own", Cannot::Lacks("its sub-agents report within the turn")),
    ("the_agent_tells_about_itself", Cannot::Lacks("it tells of its commands and models only")),
    ("too_many_requests_then_fine", Cannot::Lacks("it tries again without a word")),
    ("the_stream_breaks_off", Cannot::Lacks("it gives up when a stream breaks off")),
];

/// What the protocol has no word for.
pub(super) const ACP: &[(&str, Cannot)] = &[
    ("the_answer_fits_a_schema", Refusal::of(&["--output-schema", SCHEMA], "output schema")),
    ("the_system_prompt_is_ours_to_choose", Refusal::of(&["--system-prompt", "x"], "system prompt")),
    ("tools_are_allowed_and_blocked_by_name", Refusal::of(&["--allow-tool", "Bash"], "allowed tools")),
    ("too_many_turns", Refusal::of(&["--max-turns", "2"], "max turns")),
    ("resume_at_a_message", Refusal::of(&["-r", "1", "--at", "m"], "resume at a message")),
    ("permission_goes_through_an_mcp_tool", BY_TOOL),
    ("always_holds_for_the_mcp_tool_too", BY_TOOL),
    ("a_command_is_allowed_always", Cannot::Lacks("it does not offer that for every command, nor for this one")),
    (
        "an_answer_that_does_not_fit_is_refused",
        Cannot::Lacks("its questions are forms, which the tests of the adapter fill in"),
    ),
    ("the_agent_asks_something_back", Cannot::Lacks("its questions are forms, which the tests of the adapter fill in")),
    ("work_in_the_background_has_a_turn_of_its_own", Cannot::Lacks("what ends in the background ends its turn later")),
    ("the_agent_tells_about_itself", Cannot::Lacks("it tells of its commands, models and context only")),
    ("too_many_requests_then_fine", Cannot::Lacks("it tries again without a word")),
    ("what_was_said_is_read_back_from_the_store", Cannot::Lacks(NO_STORE)),
    ("a_turn_that_was_cut_off_is_read_back", Cannot::Lacks(NO_STORE)),
];

/// That this is said is tested with the stores.
const NO_STORE: &str = "where it keeps its conversations is no part of the protocol";

/// The same for every API.
pub(super) const BUILTIN: &[(&str, Cannot)] = &[
    ("resume_at_a_message", Refusal::of(&["-r", "1", "--at", "m"], "resume at a message")),
    ("permission_goes_through_an_mcp_tool", BY_TOOL),
    ("always_holds_for_the_mcp_tool_too", BY_TOOL),
    ("a_plan_is_approved", Cannot::Lacks("its plans are not approved, they are told")),
    ("work_in_the_background_has_a_turn_of_its_own", Cannot::Lacks("it has no sub-agents")),
    ("every_native_line_is_kept", Cannot::Lacks("it runs inside Multitap and writes no lines")),
    ("the_agent_is_killed_from_outside", Cannot::Lacks("it runs inside Multitap, and ends with it")),
    ("what_was_said_is_read_back_from_the_store", Cannot::Lacks(OUR_LOG)),
    ("a_turn_that_was_cut_off_is_read_back", Cannot::Lacks(OUR_LOG)),
];

/// That it is found there is tested beside the table.
const OUR_LOG: &str = "what it said is read back from Multitap's own log";
