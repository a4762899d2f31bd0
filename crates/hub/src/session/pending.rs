//! Changes of mode and model that the agent has not answered yet. Pure.
//!
//! A change counts when the agent confirms it: until then neither the configuration nor anybody's rights change. The
//! agent refuses it with an error that names the setting. An agent that ends leaves no change pending.

use std::collections::VecDeque;

use multitap_event::{AgentType, ApprovalMode, ClientRef, Command, Mode, Setting};

/// Most unanswered changes. The oldest one is dropped first: an agent that answers nothing changed nothing.
const UNANSWERED: usize = 64;

/// A requested change.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Change {
    Mode(Mode),
    Model(String),
}

#[derive(Debug, Default)]
pub(super) struct Pending {
    changes: VecDeque<(Change, ClientRef)>,
}

impl Pending {
    /// A command was handed to the agent. Only changes of the configuration are remembered.
    pub(super) fn sent(&mut self, command: &Command, agent: AgentType, by: ClientRef) {
        let change = match command {
            // The agent refuses an unknown word.
            Command::SetMode { mode } => match Mode::parse(agent, mode) {
                Ok(mode) => Change::Mode(mode),
                Err(_) => return,
            },
            Command::SetModel { model } => Change::Model(model.clone()),
            // How the agent thinks is not part of the configuration: only the agent has it.
            Command::SetThinking { .. }
            | Command::SetThinkingLevel { .. }
            | Command::Prompt(_)
            | Command::Steer(_)
            | Command::Decide(_)
            | Command::Cancel
            | Command::Query { .. } => return,
        };
        if self.changes.len() == UNANSWERED {
            self.changes.pop_front();
        }
        self.changes.push_back((change, by));
    }

    /// The agent confirmed that mode: returns the mode as requested, and who requested it.
    pub(super) fn mode_confirmed(
        &mut self,
        agent: AgentType,
        mode: Option<ApprovalMode>,
        native: Option<&str>,
    ) -> Option<(Mode, ClientRef)> {
        let fits = |wanted: &Mode| is_mode(wanted, agent, mode, native);
        let (change, by) = self.take(|change| matches!(change, Change::Mode(wanted) if fits(wanted)))?;
        match change {
            Change::Mode(mode) => Some((mode, by)),
            Change::Model(_) => None,
        }
    }

    /// The agent confirmed that model: returns who requested it. The agent may put its provider before the name.
    pub(super) fn model_confirmed(&mut self, model: &str) -> Option<ClientRef> {
        self.take(|change| matches!(change, Change::Model(wanted) if is_model(wanted, model))).map(|(_, by)| by)
    }

    /// The agent refused a change of that setting: the change to that value, else the oldest. A refusal may overtake
    /// the answer to an older change and must not remove that one: otherwise a nonsense request would undo an owner's
    /// choice.
    pub(super) fn refused(&mut self, agent: AgentType, setting: Setting, value: Option<&str>) {
        let parsed = value.map(|word| Mode::parse(agent, word));
        if setting == Setting::Mode && matches!(parsed, Some(Err(_))) {
            // No such change is pending.
            return;
        }
        let unified = match parsed {
            Some(Ok(Mode::Unified(mode))) => Some(mode),
            _ => None,
        };
        let named = self.take(|change| match change {
            Change::Mode(wanted) => setting == Setting::Mode && is_mode(wanted, agent, unified, value),
            Change::Model(wanted) => setting == Setting::Model && value.is_some_and(|model| is_model(wanted, model)),
        });
        if named.is_none() {
            self.take(|change| match change {
                Change::Mode(_) => setting == Setting::Mode,
                Change::Model(_) => setting == Setting::Model,
            });
        }
    }

    /// The agent is gone, and will answer nothing.
    pub(super) fn clear(&mut self) {
        self.changes.clear();
    }

    fn take(&mut self, fits: impl Fn(&Change) -> bool) -> Option<(Change, ClientRef)> {
        let at = self.changes.iter().position(|(change, _)| fits(change))?;
        self.changes.remove(at)
    }
}

/// Whether the agent means that mode, by either of its names.
fn is_mode(wanted: &Mode, agent: AgentType, mode: Option<ApprovalMode>, native: Option<&str>) -> bool {
    match wanted {
        Mode::Unified(wanted) => {
            mode == Some(*wanted) || wanted.native(agent).is_some_and(|own| native == Some(own.word))
        }
        Mode::Native(word) => native.is_some_and(|native| native.eq_ignore_ascii_case(word)),
    }
}

/// Whether the agent means that model. It may put its provider before the name.
fn is_model(wanted: &str, model: &str) -> bool {
    model.strip_suffix(wanted).is_some_and(|provider| provider.is_empty() || provider.ends_with('/'))
}

#[cfg(test)]
mod tests {
    use multitap_event::Door;

    use super::*;

    fn by(name: &str) -> ClientRef {
        ClientRef::new(name, Door::Library)
    }

    fn sent(pending: &mut Pending, mode: &str, who: &str) {
        pending.sent(&Command::SetMode { mode: mode.to_owned() }, AgentType::Codex, by(who));
    }

    /// Codex has one word for two of its modes, and tells the sandbox beside it.
    #[test]
    fn a_mode_is_confirmed_by_either_name() {
        let mut pending = Pending::default();
        sent(&mut pending, "plan", "ann");
        sent(&mut pending, "on-request", "bob");
        sent(&mut pending, "nonsense", "eve");
        let mut told = |mode, native| {
            let confirmed = pending.mode_confirmed(AgentType::Codex, mode, native);
            confirmed.map(|(mode, by)| (mode.to_string(), by.client))
        };
        let pair = |mode: &str, who: &str| Some((mode.to_owned(), who.to_owned()));
        assert_eq!(told(Some(ApprovalMode::AutoAll), Some("untrusted")), None);
        assert_eq!(told(None, Some("on-request")), pair("askDangerous", "bob"));
        assert_eq!(told(Some(ApprovalMode::Plan), Some("never/read-only")), pair("plan", "ann"));
        assert_eq!(told(None, Some("nonsense")), None);
    }

    #[test]
    fn a_model_is_confirmed_by_its_name_with_or_without_its_provider() {
        let mut pending = Pending::default();
        for model in ["haiku", "anthropic/opus"] {
            pending.sent(&Command::SetModel { model: model.to_owned() }, AgentType::Builtin, by("ann"));
        }
        assert_eq!(pending.model_confirmed("anthropic/sonnet"), None);
        assert_eq!(pending.model_confirmed("not-haiku"), None);
        assert_eq!(pending.model_confirmed("anthropic/haiku"), Some(by("ann")));
        assert_eq!(pending.model_confirmed("anthropic/opus"), Some(by("ann")));
        assert_eq!(pending.model_confirmed("anthropic/opus"), None, "once");
    }

    #[test]
    fn a_refusal_takes_the_oldest_change_of_its_setting() {
        let mut pending = Pending::default();
        pending.sent(&Command::SetModel { model: "m".to_owned() }, AgentType::Codex, by("ann"));
        sent(&mut pending, "plan", "bob");
        sent(&mut pending, "plan", "eve");
        pending.refused(AgentType::Codex, Setting::Thinking, None);
        pending.refused(AgentType::Codex, Setting::Mode, None);
        let (_, who) = pending.mode_confirmed(AgentType::Codex, Some(ApprovalMode::Plan), None).unwrap();
        assert_eq!(who.client, "eve");
        assert_eq!(pending.model_confirmed("m"), Some(by("ann")));
    }

    #[test]
    fn a_refusal_that_overtakes_takes_only_what_it_names() {
        let mut pending = Pending::default();
        sent(&mut pending, "plan", "ann");
        sent(&mut pending, "ask", "bob");
        sent(&mut pending, "nonsense", "eve");
        pending.refused(AgentType::Codex, Setting::Mode, Some("nonsense"));
        pending.refused(AgentType::Codex, Setting::Mode, Some("untrusted"));
        assert_eq!(pending.mode_confirmed(AgentType::Codex, Some(ApprovalMode::Ask), None), None, "by its own word");
        assert!(pending.mode_confirmed(AgentType::Codex, Some(ApprovalMode::Plan), None).is_some());
    }

    #[test]
    fn what_is_never_answered_is_bounded() {
        let mut pending = Pending::default();
        for _ in 0..2 * UNANSWERED {
            sent(&mut pending, "plan", "ann");
        }
        assert_eq!(pending.changes.len(), UNANSWERED);
    }
}
