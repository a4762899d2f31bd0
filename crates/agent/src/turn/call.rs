//! The calls of one reply: read-only ones run together, all others one after the other, in the model's order.

use std::collections::VecDeque;

use multitap_event::{
    ChoiceKind, Decide, Denial, Details, EventKind, FileChange, Question, QuestionId, Timestamp, ToolId, ToolKind,
    ToolOutcome, ToolStarted, TurnStatus, Withdrawal,
};
use serde_json::{Map, Value};

use super::{Effect, Machine, Phase, PreparedCall, STOPPED, Step};
use crate::conversation::{Answer, Call, Message};
use crate::job::Job;
use crate::policy::{Consent, Verdict};
use crate::question::{answer, question};
use crate::tool::{Outcome, Progress};

#[derive(Debug, Default)]
pub(super) struct CallBatch {
    /// Whether the user made the call, not the model.
    users: bool,
    later: VecDeque<(usize, Call)>,
    active: Vec<Active>,
    /// Answers with the index of their call in the reply.
    answers: Vec<(usize, Answer)>,
}

/// A call that is being prepared, asked about or run.
#[derive(Debug)]
pub(super) struct Active {
    place: usize,
    tool_id: ToolId,
    call: Call,
    began: Timestamp,
    reported: bool,
    asked: Option<(Question, Job)>,
    runs: bool,
    /// It is being prepared again, with arguments of the user's.
    has_new_arguments: bool,
    server: Option<String>,
    /// Open requests of the MCP server to the user.
    pub(super) elicited: Vec<Question>,
}

/// The effect of an edited answer.
#[derive(Debug)]
pub(crate) enum Edited {
    /// The same call with the edited job, and the matching arguments.
    Job { job: Box<Job>, arguments: Map<String, Value> },
    /// Another call of the same tool, which has to be prepared.
    Call(Call),
}

impl CallBatch {
    pub(super) fn new(calls: Vec<Call>) -> Self {
        Self { later: calls.into_iter().enumerate().collect(), ..Self::default() }
    }

    pub(super) fn of_the_user(call: Call) -> Self {
        Self { users: true, ..Self::new(vec![call]) }
    }

    fn find(&mut self, id: &ToolId) -> Option<&mut Active> {
        self.active.iter_mut().find(|active| active.tool_id == *id)
    }

    fn asking(&mut self, id: &QuestionId) -> Option<&mut Active> {
        let asks = |active: &Active| active.asked.as_ref().is_some_and(|(question, _)| question.question_id == *id);
        self.active.iter_mut().find(|active| asks(active))
    }

    pub(super) fn running_of(&mut self, server: &str) -> Option<&mut Active> {
        self.active.iter_mut().find(|active| active.runs && active.server.as_deref() == Some(server))
    }

    /// Takes the question of a server, which is answered or withdrawn.
    pub(super) fn take_elicited(&mut self, id: &QuestionId) -> Option<Question> {
        self.active.iter_mut().find_map(|active| {
            let at = active.elicited.iter().position(|question| question.question_id == *id)?;
            Some(active.elicited.remove(at))
        })
    }
}

impl Machine {
    pub(super) fn work(&mut self) -> Option<&mut CallBatch> {
        match &mut self.turn.as_mut()?.stage {
            Phase::Working(work) | Phase::Stopping(work) => Some(work),
            Phase::Asking { .. } | Phase::Waiting { .. } | Phase::SummingUp { .. } => None,
        }
    }

    /// Starts the calls that can start, and asks the model again when all calls have answers.
    pub(super) fn next_calls(&mut self, step: &mut Step<'_>) {
        let looks = std::mem::take(&mut self.read_only);
        let may_begin = |work: &CallBatch| {
            let next = &work.later.front()?.1;
            let looking = looks.contains(&next.name);
            let together = looking && work.active.iter().all(|active| looks.contains(&active.call.name));
            (work.active.is_empty() || together).then_some(())
        };
        if let Some(work) = self.work() {
            while may_begin(work).is_some()
                && let Some((place, call)) = work.later.pop_front()
            {
                let tool_id = ToolId::from((step.id)());
                step.out.push(Effect::Prepare(tool_id.clone(), call.clone()));
                work.active.push(Active {
                    place,
                    tool_id,
                    call,
                    began: step.at,
                    reported: false,
                    asked: None,
                    runs: false,
                    has_new_arguments: false,
                    server: None,
                    elicited: Vec::new(),
                });
            }
        }
        self.read_only = looks;
        let Some(work) = self.work() else { return };
        if !work.active.is_empty() {
            return;
        }
        let users = work.users;
        self.keep_answers(step);
        if users { self.end(TurnStatus::Completed, None, None, step) } else { self.ask(step) }
    }

    fn keep_answers(&mut self, step: &mut Step<'_>) {
        let Some(work) = self.work() else { return };
        let mut answers = std::mem::take(&mut work.answers);
        answers.sort_by_key(|(place, _)| *place);
        let mut answers = answers.into_iter().map(|(_, answer)| answer);
        let mut reported = None;
        let message = if work.users {
            // The model did not make this call, so it gets the result as something that the user did.
            let Some(answer) = answers.next() else { return };
            reported = Some(answer.text.clone());
            Message::user(format!("I ran a command myself. It gave:\n\n{}", answer.text))
        } else {
            Message::Results { answers: answers.collect() }
        };
        if let (Some(text), Some(turn)) = (reported, &mut self.turn) {
            turn.text = Some(text);
        }
        self.used = None;
        self.keep(message, step);
    }

    pub(super) fn ready(&mut self, id: &ToolId, readied: PreparedCall, step: &mut Step<'_>) {
        let Some(active) = self.work().and_then(|work| work.find(id)) else { return };
        if std::mem::take(&mut active.has_new_arguments) {
            // The user gave them, and so consents.
            return match readied.job {
                Ok((job, _)) => step.out.push(run(active, job, Consent::Given)),
                Err(why) => self.done(id, Outcome::failed(why), step),
            };
        }
        if std::mem::replace(&mut active.reported, true) {
            return;
        }
        active.runs = matches!(readied.job, Ok((_, Verdict::Run)));
        let PreparedCall { kind, server, job } = readied;
        active.server.clone_from(&server);
        let title = job.as_ref().ok().map(|(job, _)| job.title());
        step.tell(started(active, kind, server, title));
        match job {
            Ok((job, Verdict::Run)) => step.out.push(run(active, job, Consent::Unasked)),
            Ok((job, Verdict::Ask)) => {
                let question = question(QuestionId::from((step.id)()), id.clone(), &active.call.name, &job);
                active.asked = Some((question.clone(), job));
                step.tell(EventKind::PermissionAsked(question));
            }
            Ok((_, Verdict::Deny(why))) => self.done(id, Outcome::denied(why), step),
            Err(why) => self.done(id, Outcome::failed(why), step),
        }
    }

    /// An answer that the owner of the session has validated.
    pub(super) fn decided(&mut self, decide: &Decide, step: &mut Step<'_>) {
        let Some(active) = self.work().and_then(|work| work.asking(&decide.question_id)) else { return };
        let Some((question, job)) = active.asked.take() else { return };
        let (id, call) = (active.tool_id.clone(), active.call.clone());
        let Ok(choice) = question.check(decide) else {
            // An option that was not offered approves nothing.
            return self.done(&id, Outcome::denied("the answer did not fit the question"), step);
        };
        if choice.kind.rejects() {
            let why = match decide.feedback.as_deref().filter(|words| !words.is_empty()) {
                Some(words) => format!("the user said no: {words}"),
                None => "the user said no".to_owned(),
            };
            return self.done(&id, Outcome::denied(why), step);
        }
        if matches!(question.details, Details::Input { .. }) {
            return self.done(&id, Outcome::done(answer(&question, decide)), step);
        }
        // An edit is allowed once, so a rule is always about the original job.
        if choice.kind == ChoiceKind::AllowAlways && !decide.is_edited() {
            let (option, tool) = (decide.option_id.clone(), call.name.clone());
            step.out.push(Effect::Always { option, tool, job: job.clone() });
        }
        let edited = match edit(&call, job, decide) {
            Ok(edited) => edited,
            Err(why) => return self.done(&id, Outcome::denied(why), step),
        };
        let Some(active) = self.work().and_then(|work| work.find(&id)) else { return };
        active.runs = true;
        match edited {
            Edited::Job { job, arguments } => {
                active.call.arguments = Value::Object(arguments);
                step.out.push(run(active, *job, Consent::Given));
            }
            // Other arguments make another call: prepare it from the start.
            Edited::Call(call) => {
                active.call.arguments.clone_from(&call.arguments);
                active.has_new_arguments = true;
                step.out.push(Effect::Prepare(id, call));
            }
        }
    }

    /// The call that an edited answer would run. Changes nothing.
    pub(crate) fn edited(&mut self, decide: &Decide) -> Result<(String, Edited), String> {
        let active = self.work().and_then(|work| work.asking(&decide.question_id));
        let asked = active.and_then(|active| Some((active.call.clone(), active.asked.as_ref()?.1.clone())));
        let (call, job) = asked.ok_or("the question is over")?;
        Ok((call.name.clone(), edit(&call, job, decide)?))
    }

    pub(super) fn runs(&mut self, id: &ToolId) -> bool {
        self.work().and_then(|work| work.find(id)).is_some_and(|active| active.runs)
    }

    pub(super) fn progress(&mut self, id: &ToolId, progress: Progress, step: &mut Step<'_>) {
        let Some(active) = self.work().and_then(|work| work.find(id)) else { return };
        step.tell(progress.event(id.clone(), step.at.millis_since(active.began)));
    }

    pub(super) fn done(&mut self, id: &ToolId, outcome: Outcome, step: &mut Step<'_>) {
        let Some(work) = self.work() else { return };
        let Some(at) = work.active.iter().position(|active| active.tool_id == *id) else { return };
        let mut active = work.active.remove(at);
        active.withdraw_elicited("the call is over", step);
        let denial = (outcome.outcome == ToolOutcome::Denied).then(|| denial(&active));
        let answer = tell(&active, outcome, step);
        work.answers.push((active.place, answer));
        let nothing_left = work.active.is_empty();
        let Some(turn) = &mut self.turn else { return };
        turn.denials.extend(denial);
        match &turn.stage {
            Phase::Stopping(_) if nothing_left => {
                self.keep_answers(step);
                self.stopped(step);
            }
            Phase::Stopping(_) => {}
            Phase::Working(_) | Phase::Asking { .. } | Phase::Waiting { .. } | Phase::SummingUp { .. } => {
                self.next_calls(step);
            }
        }
    }

    /// Ends every call that does not run yet. Returns whether there are others: those were asked to stop, and still report.
    pub(super) fn stop_calls(&mut self, step: &mut Step<'_>) -> bool {
        let Some(work) = self.work() else { return false };
        let (running, idle) = std::mem::take(&mut work.active).into_iter().partition(|active| active.runs);
        work.active = running;
        work.active.iter_mut().for_each(|active| active.withdraw_elicited("the turn was cancelled", step));
        for active in idle {
            if let Some((question, _)) = &active.asked {
                let (question_id, reason) = (question.question_id.clone(), Some("the turn was cancelled".to_owned()));
                step.tell(EventKind::PermissionWithdrawn(Withdrawal { question_id, reason }));
            }
            let answer = if active.reported {
                tell(&active, Outcome::cancelled(STOPPED), step)
            } else {
                active.call.unanswered(STOPPED)
            };
            work.answers.push((active.place, answer));
        }
        for (place, call) in std::mem::take(&mut work.later) {
            work.answers.push((place, call.unanswered(STOPPED)));
        }
        if work.active.is_empty() {
            self.keep_answers(step);
            return false;
        }
        let work = std::mem::take(work);
        if let Some(turn) = &mut self.turn {
            turn.stage = Phase::Stopping(work);
        }
        true
    }

    /// Reports calls that did not stop in time as cancelled.
    pub(super) fn give_up_calls(&mut self, step: &mut Step<'_>) {
        let Some(work) = self.work() else { return };
        for active in std::mem::take(&mut work.active) {
            let answer = tell(&active, Outcome::cancelled("it did not stop in time"), step);
            work.answers.push((active.place, answer));
        }
        self.keep_answers(step);
    }
}

fn run(active: &Active, job: Job, consent: Consent) -> Effect {
    Effect::Run { id: active.tool_id.clone(), tool: active.call.name.clone(), job, consent }
}

/// The call or its job with the edit applied.
fn edit(call: &Call, job: Job, decide: &Decide) -> Result<Edited, String> {
    if let Some(input) = decide.new_input.clone() {
        return Ok(Edited::Call(Call { arguments: Value::Object(input), ..call.clone() }));
    }
    let arguments = call.arguments.as_object().cloned().unwrap_or_default();
    let (job, arguments) = match decide.new_content.clone() {
        Some(content) => job.with_content(content, arguments)?,
        None => (job, arguments),
    };
    Ok(Edited::Job { job: Box::new(job), arguments })
}

fn started(active: &Active, kind: ToolKind, server: Option<String>, title: Option<String>) -> EventKind {
    EventKind::ToolStarted(ToolStarted {
        tool_id: active.tool_id.clone(),
        tool_name: active.call.name.clone(),
        tool_kind: kind,
        title,
        arguments: active.call.arguments.as_object().cloned().unwrap_or_default(),
        server,
        parent_tool_id: None,
    })
}

fn denial(active: &Active) -> Denial {
    Denial {
        tool_name: active.call.name.clone(),
        tool_id: Some(active.tool_id.clone()),
        arguments: active.call.arguments.as_object().cloned().unwrap_or_default(),
    }
}

/// Reports how a call ended; returns the answer for the model.
fn tell(active: &Active, outcome: Outcome, step: &mut Step<'_>) -> Answer {
    let tool_id = &active.tool_id;
    let completed = outcome.completed(tool_id.clone(), step.at.millis_since(active.began));
    for change in outcome.changes {
        step.tell(EventKind::FileChanged(FileChange { tool_id: Some(tool_id.clone()), ..change }));
    }
    outcome.todos.into_iter().for_each(|todos| step.tell(EventKind::TodoList(todos)));
    step.tell(completed);
    let failed = outcome.outcome != ToolOutcome::Completed;
    let Call { id, name, .. } = active.call.clone();
    Answer { id, name, text: outcome.text, images: outcome.images, failed }
}
