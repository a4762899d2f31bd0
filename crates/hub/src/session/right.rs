//! Who may do what in a session. Pure.
//!
//! Those who brought no role are of the process that has the session: it is theirs. Whoever comes through a door has the
//! role that the door gave.

use std::collections::VecDeque;

use multitap_event::{AgentType, ApprovalMode, ClientId, ClientRef, ClientRole, Mode};

use super::error::{Barred, CommandError, KickError};
use crate::rule::Rule;

/// How many of those who were sent away are remembered.
const SENT_AWAY: usize = 4096;

/// What is allowed in a session, and to whom.
#[derive(Debug)]
pub(super) struct Rights {
    agent: AgentType,
    /// The mode that an owner chose last: nobody else goes beyond it.
    ceiling: Option<Mode>,
    sent_away: VecDeque<ClientId>,
}

impl Rights {
    pub(super) fn new(agent: AgentType, ceiling: Option<Mode>) -> Self {
        Self { agent, ceiling, sent_away: VecDeque::new() }
    }

    /// Whether a client may do more than look.
    pub(super) fn may_act(&self, client: &ClientRef) -> Result<(), Barred> {
        if client.role == Some(ClientRole::Observer) {
            return Err(Barred::Observer);
        }
        match &client.client_id {
            Some(id) if self.sent_away.contains(id) => Err(Barred::SentAway),
            Some(_) | None => Ok(()),
        }
    }

    /// How far a client may go in what it lets run unasked; nothing says as far as it likes.
    pub(super) fn within(&self, client: &ClientRef) -> Option<ApprovalMode> {
        (!client.is_owner()).then(|| Mode::bound(self.ceiling.as_ref()))
    }

    /// Whether a client may choose that mode. What an owner chooses is how far the others may go from now on.
    pub(super) fn choose(&mut self, word: &str, by: &ClientRef) -> Result<(), CommandError> {
        // What the agent does not know it refuses itself.
        let Ok(mode) = Mode::parse(self.agent, word) else { return Ok(()) };
        let Some(most) = self.within(by) else {
            self.ceiling = Some(mode);
            return Ok(());
        };
        let fits = match &mode {
            Mode::Unified(mode) => mode.is_within(most, self.agent),
            // Nobody knows what it lets run: it may be put back where the owner had it.
            Mode::Native(_) => self.ceiling.as_ref() == Some(&mode),
        };
        if fits { Ok(()) } else { Err(CommandError::Beyond { word: mode.to_string(), most }) }
    }

    /// An owner changed the mode in another way.
    pub(super) fn chosen(&mut self, mode: ApprovalMode) {
        self.ceiling = Some(Mode::Unified(mode));
    }

    /// Whether a client may take that rule back.
    pub(super) fn may_revoke(rule: &Rule, by: &ClientRef) -> bool {
        by.is_owner() || (by.client_id.is_some() && by.client_id == rule.by.client_id)
    }

    /// Sends a client away, if that may be.
    pub(super) fn send_away(&mut self, client: &ClientRef, by: &ClientRef) -> Result<(), KickError> {
        if by.client_id.is_none() || by.client_id != client.client_id {
            if !by.is_owner() {
                return Err(KickError::NotOwner);
            }
            if client.role.is_none() {
                return Err(KickError::AtHome);
            }
        }
        if self.sent_away.len() == SENT_AWAY {
            self.sent_away.pop_front();
        }
        self.sent_away.extend(client.client_id.clone());
        Ok(())
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
        let may = |rights: &mut Rights, word: &str| rights.choose(word, &controller()).is_ok();
        for (word, fits) in [("plan", true), ("ask", true), ("default", true), ("acceptEdits", false), ("auto", false)]
        {
            assert_eq!(may(&mut rights, word), fits, "{word}, with a host that chose nothing and so asks");
        }
        assert!(may(&mut rights, "flyAway"), "the agent says that it has none");
        for owner in [None, Some(ClientRole::Owner)] {
            rights.choose("auto-edit", &client("ann", owner)).unwrap();
            assert!(may(&mut rights, "auto-edit") && !may(&mut rights, "bypassPermissions"));
            rights.choose("plan", &client("ann", owner)).unwrap();
            assert!(may(&mut rights, "plan") && !may(&mut rights, "ask"));
        }
        rights.choose("auto", &client("ann", None)).unwrap();
        assert!(may(&mut rights, "auto") && may(&mut rights, "ask") && !may(&mut rights, "auto-edit"));
        let refused = rights.choose("auto-all", &controller()).unwrap_err().to_string();
        assert!(refused.contains("autoAll") && refused.contains("than ask"), "{refused}");
    }

    #[test]
    fn owners_send_others_away_and_nobody_the_host() {
        let mut rights = Rights::new(AgentType::Builtin, None);
        let (owner, screen) = (client("own", Some(ClientRole::Owner)), client("ann", None));
        let other = client("con-2", Some(ClientRole::Controller));
        assert_eq!(rights.send_away(&other, &controller()), Err(KickError::NotOwner));
        assert_eq!(rights.send_away(&screen, &controller()), Err(KickError::NotOwner));
        assert_eq!(rights.send_away(&screen, &owner), Err(KickError::AtHome));
        assert_eq!(rights.may_act(&other), Ok(()));
        for by in [&owner, &screen, &other] {
            assert_eq!(rights.send_away(&other, by), Ok(()), "{by:?}");
        }
        assert_eq!(rights.may_act(&other), Err(Barred::SentAway));
        assert_eq!(rights.may_act(&controller()), Ok(()));
    }

    #[test]
    fn those_who_were_sent_away_do_not_grow_without_end() {
        let mut rights = Rights::new(AgentType::Builtin, None);
        for number in 0..2 * SENT_AWAY {
            let other = client(&number.to_string(), Some(ClientRole::Controller));
            rights.send_away(&other, &client("ann", None)).unwrap();
        }
        assert_eq!(rights.sent_away.len(), SENT_AWAY);
    }
}
