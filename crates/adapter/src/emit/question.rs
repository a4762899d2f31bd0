//! Open questions.

use multitap_event::{AgentError, AgentErrorKind, AgentType, Choice, Decide, EventKind, Question, Withdrawal};

use crate::codec::Step;

/// Open questions of one agent. `N` is the data that its codec needs to send an answer.
#[derive(Debug)]
pub(crate) struct Questions<N> {
    agent: AgentType,
    open: Vec<OpenQuestion<N>>,
}

#[derive(Debug, Clone)]
pub(crate) struct OpenQuestion<N> {
    pub(crate) question: Question,
    pub(crate) native: N,
}

impl<N> Questions<N> {
    pub(crate) fn new(agent: AgentType) -> Self {
        Self { agent, open: Vec::new() }
    }

    pub(crate) fn ask(&mut self, question: Question, native: N, out: &mut Step) {
        out.events.push(EventKind::PermissionAsked(question.clone()));
        self.open.push(OpenQuestion { question, native });
    }

    /// The question and the choice of an answer, if the answer is valid; else the reason why not.
    pub(crate) fn answered(&self, decide: &Decide) -> Result<(&OpenQuestion<N>, &Choice), AgentError> {
        let id = &decide.question_id;
        let refused = |why: String| AgentError::new(AgentErrorKind::ProtocolError, why).of(self.agent);
        let open = self.open.iter().find(|open| open.question.question_id == *id);
        let open = open.ok_or_else(|| refused(format!("there is no open question {id}")))?;
        let choice = open.question.check(decide).map_err(|why| refused(why.to_string()))?;
        Ok((open, choice))
    }

    /// Like [`Self::answered`]; if the answer does not count, an event says why.
    pub(crate) fn answered_by(&self, decide: &Decide, out: &mut Step) -> Option<(&OpenQuestion<N>, &Choice)> {
        self.answered(decide).map_err(|refused| out.events.push(EventKind::Error(refused))).ok()
    }

    /// The answer was sent to the agent.
    pub(crate) fn settle(&mut self, decide: &Decide) {
        self.open.retain(|open| open.question.question_id != decide.question_id);
    }

    /// Withdraws the questions that `is_moot` selects, and returns them.
    pub(crate) fn withdraw(
        &mut self,
        reason: &str,
        is_moot: impl Fn(&OpenQuestion<N>) -> bool,
        out: &mut Step,
    ) -> Vec<OpenQuestion<N>> {
        let gone: Vec<OpenQuestion<N>> = self.open.extract_if(.., |open| is_moot(open)).collect();
        for open in &gone {
            let (question_id, reason) = (open.question.question_id.clone(), Some(reason.to_owned()));
            out.events.push(EventKind::PermissionWithdrawn(Withdrawal { question_id, reason }));
        }
        gone
    }

    /// A tool call ended while a question about it was open: the answer came from elsewhere.
    pub(crate) fn withdraw_about(&mut self, tool: &str, out: &mut Step) {
        self.withdraw("the agent went on without an answer from here", |open| open.is_about(tool), out);
    }

    pub(crate) fn any_about(&self, tool: &str) -> bool {
        self.open.iter().any(|open| open.is_about(tool))
    }
}

impl<N> OpenQuestion<N> {
    fn is_about(&self, tool: &str) -> bool {
        self.question.tool_id.as_ref().is_some_and(|id| id.as_str() == tool)
    }
}
