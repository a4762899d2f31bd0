//! What a session is now: its numbered log, its turn, its waiting prompts, its questions.
//!
//! Pure: the session task calls in with what happened and gets the events to tell. No channels, clock or task here.

use std::collections::VecDeque;

use multitap_event::{
    ClientRef, Decide, Draft, Event, EventKind, Prompt, PromptId, Refused, Ruling, SessionEnd, SessionEndReason,
    SessionId, SystemSubtype, Timestamp, TurnStatus, UserMessage, Withdrawal,
};

use crate::arbiter::Arbiter;

/// How many prompts may wait for the running turn to end.
pub(crate) const PROMPT_QUEUE: usize = 64;

#[derive(Debug)]
pub(crate) struct State {
    session: SessionId,
    seq: u64,
    phase: Phase,
    /// The agent said that a turn runs.
    running: bool,
    /// A prompt was handed over and its turn has not ended.
    in_flight: bool,
    /// The first prompt, until the agent has said that the session started.
    held: Option<Draft>,
    waiting: VecDeque<Waiting>,
    arbiter: Arbiter,
    native: Option<String>,
    last_turn: Option<TurnStatus>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The agent has not said yet that the session started.
    Starting,
    Started,
    Ended,
}

#[derive(Debug)]
struct Waiting {
    prompt: Prompt,
    from: ClientRef,
}

/// Where a prompt takes its place when it has to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    First,
    Last,
}

/// No more prompts can wait.
#[derive(Debug)]
pub(crate) struct Full;

impl State {
    pub(crate) fn new(session: SessionId) -> Self {
        Self {
            session,
            seq: 0,
            phase: Phase::Starting,
            running: false,
            in_flight: false,
            held: None,
            waiting: VecDeque::new(),
            arbiter: Arbiter::default(),
            native: None,
            last_turn: None,
        }
    }

    /// Whether a turn runs or is about to.
    pub(crate) fn busy(&self) -> bool {
        self.running || self.in_flight
    }

    /// Whether the agent said that a turn runs.
    pub(crate) fn running(&self) -> bool {
        self.running
    }

    /// Whether a waiting prompt can be handed to the agent.
    pub(crate) fn can_hand_over(&self) -> bool {
        !self.busy() && !self.waiting.is_empty() && self.phase != Phase::Ended
    }

    /// Whether nothing runs and nothing waits.
    pub(crate) fn at_rest(&self) -> bool {
        !self.busy() && self.waiting.is_empty()
    }

    pub(crate) fn ended(&self) -> bool {
        self.phase == Phase::Ended
    }

    /// The agent's own id of the conversation, once it told.
    pub(crate) fn native(&self) -> Option<&str> {
        self.native.as_deref()
    }

    /// The agent told something.
    pub(crate) fn told(&mut self, draft: Draft) -> Vec<Event> {
        if self.ended() {
            return Vec::new();
        }
        let mut before = Vec::new();
        let mut after = Vec::new();
        match &draft.kind {
            EventKind::SessionStarted(start) => {
                self.phase = Phase::Started;
                if start.native_session_id.is_some() {
                    self.native.clone_from(&start.native_session_id);
                }
                after.extend(self.held.take());
            }
            EventKind::System(note) => {
                let id = note.data.get("nativeSessionId").and_then(|id| id.as_str());
                if let Some(id) = id.filter(|_| note.subtype == SystemSubtype::NATIVE_SESSION) {
                    self.native = Some(id.to_owned());
                }
            }
            EventKind::TurnStarted { .. } => {
                before.extend(self.held.take());
                self.running = true;
            }
            EventKind::TurnCompleted(end) => {
                before.extend(self.held.take());
                self.running = false;
                self.last_turn = Some(end.status);
                // A turn that something else began does not answer the prompt.
                if end.origin.is_none() {
                    self.in_flight = false;
                }
            }
            EventKind::SessionEnded(_) => before.extend(self.close(draft.at)),
            EventKind::PermissionAsked(question) => self.arbiter.asked(question.clone()),
            EventKind::PermissionWithdrawn(gone) => self.arbiter.withdrawn(&gone.question_id, draft.at),
            EventKind::PermissionSettled(ruling) => self.arbiter.settled(ruling.clone()),
            EventKind::RawDelta { .. } | EventKind::AuthStatus(_) | EventKind::Unrecognized { .. } => {}
            EventKind::TextChunk(_)
            | EventKind::Reasoning(_)
            | EventKind::ToolStarted(_)
            | EventKind::ToolProgress(_)
            | EventKind::ToolCompleted(_)
            | EventKind::FileChanged(_)
            | EventKind::TodoList(_)
            | EventKind::Error(_)
            | EventKind::Retry(_)
            | EventKind::UserMessage(_)
            | EventKind::PromptQueued { .. }
            | EventKind::PromptWithdrawn { .. }
            | EventKind::ModeChanged { .. }
            | EventKind::ModelChanged { .. }
            | EventKind::ClientJoined { .. }
            | EventKind::ClientLeft { .. } => before.extend(self.held.take()),
        }
        before.into_iter().chain([draft]).chain(after).map(|draft| self.stamp(draft)).collect()
    }

    /// The agent is gone without a last word: says so in its place.
    pub(crate) fn gone(&mut self, now: Timestamp) -> Vec<Event> {
        let end = SessionEnd {
            reason: self.last_turn.map_or(SessionEndReason::Failed, SessionEndReason::from),
            error: Some("the agent is gone without a word".to_owned()),
            final_usage: None,
            exit_code: None,
        };
        self.told(Draft::new(now, EventKind::SessionEnded(end)))
    }

    /// Something of our own to tell, such as an error a client made.
    pub(crate) fn note(&mut self, kind: EventKind, now: Timestamp) -> Option<Event> {
        if self.ended() {
            return None;
        }
        Some(self.stamp(Draft::new(now, kind)))
    }

    /// A prompt that goes to the agent now.
    pub(crate) fn hand_over(&mut self, mut prompt: Prompt, from: ClientRef, now: Timestamp) -> (Prompt, Vec<Event>) {
        self.in_flight = true;
        let draft = Draft::new(now, EventKind::UserMessage(spoken(&mut prompt, from)));
        // The agent's own start comes first in the log, also where the agent says it only after the first prompt.
        if self.phase == Phase::Starting && self.held.is_none() {
            self.held = Some(draft);
            return (prompt, Vec::new());
        }
        (prompt, vec![self.stamp(draft)])
    }

    /// A prompt that joins the running turn.
    pub(crate) fn steer(&mut self, mut prompt: Prompt, from: ClientRef, now: Timestamp) -> (PromptId, Prompt, Event) {
        let message = UserMessage { steering: true, ..spoken(&mut prompt, from) };
        let id = prompt.prompt_id.get_or_insert_with(PromptId::fresh).clone();
        let event = self.stamp(Draft::new(now, EventKind::UserMessage(message)));
        (id, prompt, event)
    }

    /// The waiting prompt whose turn it is, if the agent rests.
    pub(crate) fn hand_over_next(&mut self, now: Timestamp) -> Option<(Prompt, Vec<Event>)> {
        if !self.can_hand_over() {
            return None;
        }
        let Waiting { prompt, from } = self.waiting.pop_front()?;
        Some(self.hand_over(prompt, from, now))
    }

    /// A prompt that has to wait.
    pub(crate) fn queue(
        &mut self,
        mut prompt: Prompt,
        from: ClientRef,
        place: Place,
        now: Timestamp,
    ) -> Result<(PromptId, Event), Full> {
        if self.waiting.len() >= PROMPT_QUEUE {
            return Err(Full);
        }
        let id = prompt.prompt_id.get_or_insert_with(PromptId::fresh).clone();
        let kind = EventKind::PromptQueued { prompt: prompt.clone(), from: Some(from.clone()) };
        let waiting = Waiting { prompt, from };
        match place {
            Place::First => self.waiting.push_front(waiting),
            Place::Last => self.waiting.push_back(waiting),
        }
        Ok((id, self.stamp(Draft::new(now, kind))))
    }

    /// A waiting prompt will not be sent. Nothing if it does not wait.
    pub(crate) fn withdraw(&mut self, id: &PromptId, by: ClientRef, now: Timestamp) -> Option<Event> {
        let at = self.waiting.iter().position(|waiting| waiting.prompt.prompt_id.as_ref() == Some(id))?;
        self.waiting.remove(at);
        let kind = EventKind::PromptWithdrawn { prompt_id: id.clone(), by: Some(by) };
        Some(self.stamp(Draft::new(now, kind)))
    }

    /// None of the waiting prompts will be sent.
    pub(crate) fn withdraw_waiting(&mut self, now: Timestamp) -> Vec<Event> {
        let drafts = self.take_back(now);
        drafts.into_iter().map(|draft| self.stamp(draft)).collect()
    }

    /// Rules on an answer.
    pub(crate) fn decide(
        &mut self,
        decide: &Decide,
        by: ClientRef,
        now: Timestamp,
    ) -> Result<(Ruling, Event), Refused> {
        let ruling = self.arbiter.answer(decide, by, now)?;
        let event = self.stamp(Draft::new(now, EventKind::PermissionSettled(ruling.clone())));
        Ok((ruling, event))
    }

    /// What has to be told before the end: prompts that will not be sent, questions nobody needs to answer.
    fn close(&mut self, now: Timestamp) -> Vec<Draft> {
        self.phase = Phase::Ended;
        self.running = false;
        self.in_flight = false;
        let mut drafts: Vec<Draft> = self.held.take().into_iter().collect();
        for question_id in self.arbiter.withdraw_all(now) {
            let reason = Some("the session ended".to_owned());
            drafts.push(Draft::new(now, EventKind::PermissionWithdrawn(Withdrawal { question_id, reason })));
        }
        drafts.extend(self.take_back(now));
        drafts
    }

    fn take_back(&mut self, now: Timestamp) -> Vec<Draft> {
        let ids = self.waiting.drain(..).filter_map(|waiting| waiting.prompt.prompt_id);
        ids.map(|prompt_id| Draft::new(now, EventKind::PromptWithdrawn { prompt_id, by: None })).collect()
    }

    fn stamp(&mut self, draft: Draft) -> Event {
        self.seq += 1;
        draft.stamp(self.session.clone(), self.seq)
    }
}

/// What the log says of a prompt that goes to the agent, which has an id from now on.
fn spoken(prompt: &mut Prompt, from: ClientRef) -> UserMessage {
    let id = prompt.prompt_id.get_or_insert_with(PromptId::fresh).clone();
    UserMessage {
        content: prompt.text.clone(),
        images: prompt.images.clone(),
        prompt_id: Some(id),
        from: Some(from),
        steering: false,
        message_id: None,
    }
}

#[cfg(test)]
mod tests;
