//! The questions without an answer.

use multitap_event::{AgentError, AgentErrorKind, AgentType, Choice, Decide, EventKind, Question, Withdrawal};

use crate::codec::Step;

/// Questions of one agent. `N` is what the agent needs to hear to take an answer.
#[derive(Debug)]
pub(crate) struct Questions<N> {
    open: Vec<Open<N>>,
}

#[derive(Debug, Clone)]
pub(crate) struct Open<N> {
    pub(crate) question: Question,
    pub(crate) native: N,
}

impl<N> Default for Questions<N> {
    fn default() -> Self {
        Self { open: Vec::new() }
    }
}

impl<N> Questions<N> {
    /// Tells a question and keeps it open.
    pub(crate) fn ask(&mut self, question: Question, native: N, out: &mut Step) {
        out.events.push(EventKind::PermissionAsked(question.clone()));
        self.open.push(Open { question, native });
    }

    /// The question that an answer is to, and the choice it makes, if it fits; else why it does not count.
    pub(crate) fn answered(&self, decide: &Decide, agent: AgentType) -> Result<(&Open<N>, &Choice), AgentError> {
        let id = &decide.question_id;
        let refused = |why: String| AgentError::new(AgentErrorKind::ProtocolError, why).of(agent);
        let open = self.open.iter().find(|open| open.question.question_id == *id);
        let open = open.ok_or_else(|| refused(format!("there is no open question {id}")))?;
        let choice = open.question.check(decide).map_err(|why| refused(why.to_string()))?;
        Ok((open, choice))
    }

    /// The answer was handed on.
    pub(crate) fn settle(&mut self, decide: &Decide) {
        self.open.retain(|open| open.question.question_id != decide.question_id);
    }

    /// Takes back those that `moot` picks, and gives them back.
    pub(crate) fn withdraw(&mut self, reason: &str, moot: impl Fn(&Open<N>) -> bool, out: &mut Step) -> Vec<Open<N>> {
        let gone: Vec<Open<N>> = self.open.extract_if(.., |open| moot(open)).collect();
        for open in &gone {
            let (question_id, reason) = (open.question.question_id.clone(), Some(reason.to_owned()));
            out.events.push(EventKind::PermissionWithdrawn(Withdrawal { question_id, reason }));
        }
        gone
    }

    /// A tool ended although somebody was still asked about it: the answer came from elsewhere.
    pub(crate) fn withdraw_about(&mut self, tool: &str, out: &mut Step) {
        self.withdraw("the agent went on without an answer from here", |open| open.is_about(tool), out);
    }

    /// Whether somebody is asked about that tool.
    pub(crate) fn any_about(&self, tool: &str) -> bool {
        self.open.iter().any(|open| open.is_about(tool))
    }
}

impl<N> Open<N> {
    fn is_about(&self, tool: &str) -> bool {
        self.question.tool_id.as_ref().is_some_and(|id| id.as_str() == tool)
    }
}
