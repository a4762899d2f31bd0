//! The rights of clients in a session. Pure.
//!
//! Clients without a role belong to the process that owns the session, and are its owners. Clients of a door have the
//! role that the door assigned.

use std::collections::VecDeque;

use multitap_event::{
    AgentType, ApprovalMode, Choice, ChoiceKind, ClientId, ClientRef, ClientRole, Decide, Details, Mode, Question,
    Refused, Rule,
};

use crate::protocol::Refusal;

/// Most kicked clients that are remembered.
const KICKED: usize = 4096;

/// The approval modes that a client may choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModeLimit {
    Any,
    /// Those that let no more run without asking than this one.
    Within(ApprovalMode),
    None,
}

impl ModeLimit {
    /// `ceiling` is the mode that only owners may exceed.
    pub(super) fn of(client: &ClientRef, ceiling: ApprovalMode) -> Self {
        match client.role {
            None | Some(ClientRole::Owner) => Self::Any,
            Some(ClientRole::Controller) => Self::Within(ceiling),
            Some(ClientRole::Observer) => Self::None,
        }
    }

    pub fn allows(self, mode: ApprovalMode, agent: AgentType) -> bool {
        match self {
            Self::Any => true,
            Self::Within(most) => mode.is_within(most, agent),
            Self::None => false,
        }
    }
}

#[derive(Debug)]
pub(super) struct Rights {
    agent: AgentType,
    /// The mode that an owner chose last: nobody else may exceed it.
    ceiling: Option<Mode>,
    kicked: VecDeque<ClientId>,
}

impl Rights {
    pub(super) fn new(agent: AgentType, ceiling: Option<Mode>) -> Self {
        Self { agent, ceiling, kicked: VecDeque::new() }
    }

    /// Whether a client may do more than read.
    pub(super) fn may_act(&self, client: &ClientRef) -> Result<(), Refusal> {
        if client.role == Some(ClientRole::Observer) {
            return Err(Refusal::Observer);
        }
        match &client.client_id {
            Some(id) if self.kicked.contains(id) => Err(Refusal::Kicked),
            Some(_) | None => Ok(()),
        }
    }

    /// The mode that only owners may exceed.
    pub(super) fn bound(&self) -> ApprovalMode {
        Mode::bound(self.ceiling.as_ref())
    }

    /// The mode that limits what a client lets run unasked; `None` is no limit.
    pub(super) fn within(&self, client: &ClientRef) -> Option<ApprovalMode> {
        (!client.is_owner()).then(|| self.bound())
    }

    /// Whether a client may choose that mode.
    pub(super) fn may_choose(&self, word: &str, by: &ClientRef) -> Result<(), Refusal> {
        // The agent refuses unknown modes itself.
        let Ok(mode) = Mode::parse(self.agent, word) else { return Ok(()) };
        let Some(most) = self.within(by) else { return Ok(()) };
        let fits = match &mode {
            Mode::Unified(mode) => mode.is_within(most, self.agent),
            // The mode's strictness is unknown: only the owner's own choice may be restored.
            Mode::Native(_) => self.ceiling.as_ref() == Some(&mode),
        };
        if fits { Ok(()) } else { Err(Refusal::BeyondCeiling { mode: mode.to_string(), ceiling: most }) }
    }

    /// The agent confirmed a mode that a client chose. An owner's choice limits the others from now on.
    pub(super) fn chosen(&mut self, mode: &Mode, by: &ClientRef) {
        if by.is_owner() {
            self.ceiling = Some(mode.clone());
        }
    }

    /// Marks the options of a question that only an owner may choose.
    pub(super) fn mark(&self, question: &mut Question) {
        let most = self.bound();
        let details = &question.details;
        for choice in &mut question.options {
            let beyond = needs(details, choice).is_some_and(|mode| !mode.is_within(most, self.agent));
            choice.owner_only |= beyond;
        }
    }

    /// Whether a client may give that answer, under the mode that an owner chose last.
    pub(super) fn may_answer(&self, question: &Question, decide: &Decide, by: &ClientRef) -> Result<(), Refused> {
        let mut question = question.clone();
        self.mark(&mut question);
        // An option that was not offered is refused for that.
        if question.choice(&decide.option_id).is_none_or(|choice| choice.is_open_to(by)) {
            return Ok(());
        }
        let open = question.options.iter().filter(|choice| choice.is_open_to(by));
        Err(Refused::OwnerOnly {
            question: question.question_id.clone(),
            option: decide.option_id.clone(),
            offered: open.map(|choice| choice.id.clone()).collect(),
        })
    }

    pub(super) fn may_revoke(rule: &Rule, by: &ClientRef) -> bool {
        by.is_owner() || (by.client_id.is_some() && by.client_id == rule.by.client_id)
    }

    pub(super) fn kick(&mut self, client: &ClientRef, by: &ClientRef) -> Result<(), Refusal> {
        if by.client_id.is_none() || by.client_id != client.client_id {
            if !by.is_owner() {
                return Err(Refusal::NotOwner);
            }
            if client.role.is_none() {
                return Err(Refusal::HostClient);
            }
        }
        if self.kicked.len() == KICKED {
            self.kicked.pop_front();
        }
        self.kicked.extend(client.client_id.clone());
        Ok(())
    }
}

/// The strictest mode that an answer may switch to; `None` for an answer that does not change the mode. A rule for the
/// rest of the session does not: it covers similar calls only, and an owner can revoke it.
fn needs(details: &Details, choice: &Choice) -> Option<ApprovalMode> {
    match (details, choice.kind) {
        // An approved plan ends plan mode.
        (Details::Plan { .. }, ChoiceKind::AllowOnce) => Some(ApprovalMode::Ask),
        (Details::Plan { .. }, ChoiceKind::AllowAlways) => Some(ApprovalMode::AutoEdit),
        (Details::Plan { .. }, ChoiceKind::RejectOnce | ChoiceKind::RejectAlways)
        | (
            Details::Command { .. }
            | Details::FileEdit { .. }
            | Details::Mcp { .. }
            | Details::Input { .. }
            | Details::Text { .. },
            _,
        ) => None,
    }
}

#[cfg(test)]
mod tests {
    use multitap_event::Door;

    use super::*;

    fn client(name: &str, role: Option<ClientRole>) -> ClientRef {
        ClientRef { role, client_id: Some(name.into()), ..ClientRef::new(name, Door::A2a) }
    }

    fn controller() -> ClientRef {
        client("con", Some(ClientRole::Controller))
    }

    #[test]
    fn a_controller_goes_as_far_as_an_owner_went() {
        let mut rights = Rights::new(AgentType::Claude, None);
        let may = |rights: &Rights, word: &str| rights.may_choose(word, &controller()).is_ok();
        let chosen = |rights: &mut Rights, word: &str, by: &ClientRef| {
            rights.may_choose(word, by).unwrap();
            rights.chosen(&Mode::parse(AgentType::Claude, word).unwrap(), by);
        };
        for (word, fits) in [("plan", true), ("ask", true), ("default", true), ("acceptEdits", false), ("auto", false)]
        {
            assert_eq!(may(&rights, word), fits, "{word}, with a host that chose nothing and so asks");
        }
        assert!(may(&rights, "flyAway"), "the agent says that it has none");
        for owner in [None, Some(ClientRole::Owner)] {
            chosen(&mut rights, "auto-edit", &client("ann", owner));
            assert!(may(&rights, "auto-edit") && !may(&rights, "bypassPermissions"));
            chosen(&mut rights, "plan", &client("ann", owner));
            assert!(may(&rights, "plan") && !may(&rights, "ask"));
        }
        chosen(&mut rights, "plan", &controller());
        assert!(may(&rights, "plan") && !may(&rights, "auto-edit"), "a controller's choice changes nothing");
        chosen(&mut rights, "auto", &client("ann", None));
        assert!(may(&rights, "auto") && may(&rights, "ask") && !may(&rights, "auto-edit"));
        let refused = rights.may_choose("auto-all", &controller()).unwrap_err().to_string();
        assert!(refused.contains("autoAll") && refused.contains("than ask"), "{refused}");
    }

    #[test]
    fn owners_kick_others_and_nobody_kicks_the_host() {
        let mut rights = Rights::new(AgentType::Builtin, None);
        let (owner, screen) = (client("own", Some(ClientRole::Owner)), client("ann", None));
        let other = client("con-2", Some(ClientRole::Controller));
        assert_eq!(rights.kick(&other, &controller()), Err(Refusal::NotOwner));
        assert_eq!(rights.kick(&screen, &controller()), Err(Refusal::NotOwner));
        assert_eq!(rights.kick(&screen, &owner), Err(Refusal::HostClient));
        assert_eq!(rights.may_act(&other), Ok(()));
        for by in [&owner, &screen, &other] {
            assert_eq!(rights.kick(&other, by), Ok(()), "{by:?}");
        }
        assert_eq!(rights.may_act(&other), Err(Refusal::Kicked));
        assert_eq!(rights.may_act(&controller()), Ok(()));
    }

    #[test]
    fn kicked_clients_do_not_grow_without_end() {
        let mut rights = Rights::new(AgentType::Builtin, None);
        for number in 0..2 * KICKED {
            let other = client(&number.to_string(), Some(ClientRole::Controller));
            rights.kick(&other, &client("ann", None)).unwrap();
        }
        assert_eq!(rights.kicked.len(), KICKED);
    }
}
