//! What can be set in a session, and its slash commands, in ACP's words.

use agent_client_protocol_schema::v1::{
    AvailableCommand, AvailableCommandInput, SessionConfigOption, SessionConfigOptionCategory,
    SessionConfigSelectOption, SessionMode, SessionModeState, UnstructuredCommandInput,
};
use multitap_event::{AgentCommand, ApprovalMode};
use multitap_hub::{AgentSummary, ModeLimit, State};

/// Ids of the options.
pub(super) const MODE: &str = "mode";
pub(super) const MODEL: &str = "model";
pub(super) const THINKING: &str = "thought_level";
pub(super) const AGENT: &str = "agent";

/// What a client may choose from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Choices {
    pub(super) modes: ModeLimit,
    /// The agents that a session may have; empty if this client cannot change it.
    pub(super) agents: Vec<AgentSummary>,
}

/// The mode's id: the unified word, or the agent's own where there is none.
pub(super) fn current_mode(state: &State) -> Option<String> {
    state.mode.map(|mode| mode.as_str().to_owned()).or_else(|| state.native_mode.clone())
}

/// The modes that the client can switch the agent to, and the current one.
pub(super) fn modes(state: &State, limit: ModeLimit) -> Option<SessionModeState> {
    let start = state.start.as_ref()?;
    let offered = state.capabilities.modes.as_deref();
    let works = |mode: &ApprovalMode| {
        state.mode == Some(*mode) || mode.works_for(start, offered) && limit.allows(*mode, start.agent_type)
    };
    let mut modes: Vec<SessionMode> = ApprovalMode::ALL.into_iter().filter(works).map(unified).collect();
    let current = current_mode(state).unwrap_or_else(|| ApprovalMode::Ask.as_str().to_owned());
    if !modes.iter().any(|mode| *mode.id.0 == *current) {
        modes.insert(0, SessionMode::new(current.clone(), current.clone()));
    }
    Some(SessionModeState::new(current, modes))
}

fn unified(mode: ApprovalMode) -> SessionMode {
    let (name, description) = match mode {
        ApprovalMode::Ask => ("Ask", "Ask before every change"),
        ApprovalMode::AskDangerous => ("Ask if dangerous", "Ask only about what looks dangerous"),
        ApprovalMode::AutoEdit => ("Edit automatically", "Edit files without asking"),
        ApprovalMode::AutoAll => ("Do everything", "Do everything without asking"),
        ApprovalMode::Plan => ("Plan", "Read and plan, change nothing"),
        ApprovalMode::DontAsk => ("Don't ask", "Never ask; deny what no rule allows"),
    };
    SessionMode::new(mode.as_str(), name).description(description.to_owned())
}

/// Everything that the client can set, with its current value.
pub(super) fn options(state: &State, choices: &Choices) -> Vec<SessionConfigOption> {
    let mode = modes(state, choices.modes).map(|modes| {
        let select = modes
            .available_modes
            .into_iter()
            .map(|mode| SessionConfigSelectOption::new(mode.id.0.to_string(), mode.name).description(mode.description));
        let select: Vec<SessionConfigSelectOption> = select.collect();
        SessionConfigOption::select(MODE, "Approval mode", modes.current_mode_id.0.to_string(), select)
            .category(SessionConfigOptionCategory::Mode)
    });
    let (model, thinking) = (model(state, choices.modes), thinking(state, choices.modes));
    mode.into_iter().chain(model).chain(thinking).chain(agent(state, &choices.agents)).collect()
}

/// How thoroughly the agent thinks, if it can be set with its model.
fn thinking(state: &State, limit: ModeLimit) -> Option<SessionConfigOption> {
    let offered = state.capabilities.thinking_levels.as_deref()?;
    // Before it is set, an agent may not say which one it uses.
    let current = state.capabilities.thinking_level.as_deref().or(offered.first().map(String::as_str))?;
    let levels = offered.iter().filter(|level| limit != ModeLimit::None || *level == current);
    let select: Vec<_> = levels.map(|level| SessionConfigSelectOption::new(level.clone(), level.clone())).collect();
    let is_known = select.iter().any(|level| *level.value.0 == *current);
    is_known.then(|| {
        SessionConfigOption::select(THINKING, "Thinking", current.to_owned(), select)
            .category(SessionConfigOptionCategory::ThoughtLevel)
    })
}

/// The agent, which can change until the first prompt.
fn agent(state: &State, agents: &[AgentSummary]) -> Option<SessionConfigOption> {
    let current = state.start.as_ref()?.agent_type.as_str();
    let can_change = state.is_unprompted();
    let select: Vec<SessionConfigSelectOption> = agents
        .iter()
        .filter(|agent| agent.name == current || can_change && agent.is_installed)
        .map(|agent| SessionConfigSelectOption::new(agent.name.clone(), agent.name.clone()))
        .collect();
    let is_known = select.iter().any(|agent| *agent.value.0 == *current);
    is_known.then(|| SessionConfigOption::select(AGENT, "Agent", current.to_owned(), select))
}

fn model(state: &State, limit: ModeLimit) -> Option<SessionConfigOption> {
    let models = state.capabilities.models.as_deref().filter(|models| !models.is_empty())?;
    let mut select: Vec<SessionConfigSelectOption> = models
        .iter()
        .map(|model| {
            let name = model.name.clone().unwrap_or_else(|| model.id.clone());
            let description = Some(model.description.clone()).filter(|text| !text.is_empty());
            SessionConfigSelectOption::new(model.id.clone(), name).description(description)
        })
        .collect();
    if limit == ModeLimit::None {
        // An observer sees the current one.
        select.retain(|model| state.model.as_deref().is_some_and(|current| *model.value.0 == *current));
    }
    // An agent may report its model under another name than it lists.
    let current = state.model.clone().unwrap_or_else(|| models[0].id.clone());
    if !select.iter().any(|model| *model.value.0 == *current) {
        select.insert(0, SessionConfigSelectOption::new(current.clone(), current.clone()));
    }
    Some(SessionConfigOption::select(MODEL, "Model", current, select).category(SessionConfigOptionCategory::Model))
}

/// The commands. A group is one command, and its sub-commands are hints: editors take the first word as the name.
pub(super) fn commands(commands: &[AgentCommand]) -> Vec<AvailableCommand> {
    let command = |command: &AgentCommand| {
        let hint = hint(command);
        let input =
            (!hint.is_empty()).then(|| AvailableCommandInput::Unstructured(UnstructuredCommandInput::new(hint)));
        AvailableCommand::new(command.name.clone(), command.description.clone()).input(input)
    };
    commands.iter().map(command).collect()
}

/// What may follow a command: its arguments, or one of its sub-commands with theirs.
fn hint(command: &AgentCommand) -> String {
    let arguments = command.arguments.iter().map(|argument| argument.name.as_str()).collect::<Vec<_>>().join(" ");
    let subs = command.sub_commands.iter().map(|sub| match hint(sub) {
        hint if hint.is_empty() => sub.name.clone(),
        hint => format!("{} {hint}", sub.name),
    });
    Some(arguments).filter(|text| !text.is_empty()).into_iter().chain(subs).collect::<Vec<_>>().join(" | ")
}
