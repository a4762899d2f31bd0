//! The tool calls of a turn, and which part of each clients have seen.

use std::sync::Arc;
use std::time::Duration;

use multitap_event::{
    Details, FileChange, Question, QuestionId, Ruling, Timestamp, ToolCompleted, ToolId, ToolKind, ToolOutcome,
    ToolProgress, ToolStarted,
};
use multitap_hub::{LiveOutput, State};

use super::super::cursor::Cursor;
use super::super::frame::{Body, ToolStatus, ToolView};

/// How many milliseconds a call waits for its question before it is shown.
const UNASKED: u64 = 100;
/// Milliseconds after which a call is shown as running even without a report. Some agents ask late, and a call shown as
/// running would have to go back to waiting.
const BEGUN: u64 = 3000;
/// Most calls of a turn in memory; the oldest finished ones are dropped first.
const CALLS: usize = 256;

#[derive(Debug, Clone, Default)]
pub(super) struct Tools {
    calls: Vec<Call>,
    live: LiveOutput,
}

#[derive(Debug, Clone)]
struct Call {
    view: ToolView,
    /// Its first event, and the time of that.
    cursor: Cursor,
    at: Timestamp,
    shown: Shown,
    /// Its last question.
    question: Option<QuestionId>,
}

/// The state of a call that clients have seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    Nothing,
    Pending,
    Executing,
    Over,
}

/// A frame that is due without an event.
#[derive(Debug)]
pub(super) struct Due {
    /// Its place in the log, if it has one.
    pub(super) cursor: Option<Cursor>,
    pub(super) at: Option<Timestamp>,
    pub(super) view: ToolView,
}

impl Call {
    fn new(call: ToolStarted, cursor: Cursor, at: Timestamp) -> Self {
        let (call, status) = (Arc::new(call), ToolStatus::Pending);
        let (changes, end) = (Vec::new(), None);
        let view = ToolView { call, status, live: None, asked: None, answered: None, ruling: None, changes, end };
        Self { view, cursor, at, shown: Shown::Nothing, question: None }
    }

    fn is(&self, id: &ToolId) -> bool {
        self.view.call.tool_id == *id
    }

    fn is_over(&self) -> bool {
        self.shown == Shown::Over
    }

    /// The time at which its next frame is due even if no event comes.
    fn due(&self) -> Option<Timestamp> {
        let after = match self.shown {
            Shown::Nothing => UNASKED,
            Shown::Pending => BEGUN,
            Shown::Executing | Shown::Over => return None,
        };
        let due = Timestamp::from_millis(self.at.as_millis().saturating_add(after.cast_signed()));
        Some(due).filter(|_| self.view.asked.is_none())
    }

    fn is_due(&self, now: Timestamp) -> bool {
        self.due().is_some_and(|due| due <= now)
    }

    fn pending(&mut self) -> ToolView {
        self.shown = Shown::Pending;
        self.view.clone()
    }

    fn executing(&mut self) -> ToolView {
        self.shown = Shown::Executing;
        self.view.status = ToolStatus::Executing;
        self.view.clone()
    }

    fn over(&mut self, status: ToolStatus) -> ToolView {
        self.shown = Shown::Over;
        self.view.status = status;
        (self.view.live, self.view.asked) = (None, None);
        self.view.clone()
    }
}

impl Tools {
    /// The calls of a session in the middle of a turn.
    pub(super) fn amid(state: &State) -> Self {
        let mut tools = Self::default();
        for tool in &state.tools {
            let mut call = Call::new(tool.started.clone(), Cursor::new(state.seq, 0), Timestamp::from_millis(0));
            call.shown = if tool.is_over() { Shown::Over } else { Shown::Executing };
            call.view.status = ToolStatus::Executing;
            if !tool.output.tail.is_empty() && !tool.is_over() {
                tools.live.add(&tool.started.tool_id, &tool.output.tail);
            }
            tools.calls.push(call);
        }
        for question in state.questions.open() {
            tools.asked(question);
        }
        tools
    }

    /// Another turn begins. Calls with an open question stay.
    pub(super) fn clear(&mut self) {
        self.calls.retain(|call| call.view.asked.is_some());
        self.live = LiveOutput::default();
    }

    /// Drops finished calls: no later event shows them again.
    pub(super) fn forget(&mut self) {
        self.calls.retain(|call| !call.is_over());
    }

    /// Whether all calls and their output are over.
    pub(super) fn is_clear(&self) -> bool {
        self.calls.iter().all(Call::is_over) && self.live.due().is_none()
    }

    pub(super) fn is_asking(&self) -> bool {
        self.calls.iter().any(|call| call.view.asked.is_some())
    }

    /// The question that a frame about a call belongs to: every frame since it was asked.
    pub(super) fn question_of(&self, body: &Body) -> Option<QuestionId> {
        let Body::Tool(view) = body else { return None };
        let call = self.calls.iter().rev().find(|call| call.is(&view.call.tool_id))?;
        call.question.clone()
    }

    pub(super) fn started(&mut self, call: &ToolStarted, seq: u64, at: Timestamp) {
        if self.calls.len() >= CALLS
            && let Some(over) = self.calls.iter().position(Call::is_over)
        {
            self.calls.remove(over);
        }
        // A question may come before the start of its call.
        match self.calls.iter_mut().find(|known| known.is(&call.tool_id) && !known.is_over()) {
            Some(known) => known.view.call = Arc::new(call.clone()),
            None => self.calls.push(Call::new(call.clone(), Cursor::new(seq, 0), at)),
        }
    }

    pub(super) fn changed(&mut self, change: &FileChange) {
        let Some(id) = &change.tool_id else { return };
        if let Some(call) = self.find(id) {
            call.view.changes.push(Arc::new(change.clone()));
        }
    }

    /// The time at which the next frame is due even if no event comes.
    pub(super) fn due(&self) -> Option<Timestamp> {
        let begins = self.calls.iter().filter_map(Call::due).min();
        let live = self.live.due().map(|since| Timestamp::from_millis(millis(since)));
        [begins, live].into_iter().flatten().min()
    }

    pub(super) fn take_due(&mut self, now: Timestamp) -> Vec<Due> {
        let mut due = Vec::new();
        for call in &mut self.calls {
            if call.shown == Shown::Nothing && call.is_due(now) {
                due.push(Due { cursor: Some(call.cursor), at: Some(call.at), view: call.pending() });
            }
            if call.is_due(now) {
                due.push(Due { cursor: None, at: call.due(), view: call.executing() });
            }
        }
        let since = Duration::from_millis(u64::try_from(now.as_millis()).unwrap_or(0));
        let live: Vec<(ToolId, Arc<str>)> =
            self.live.take_due(since).into_iter().map(|(tool, text)| (tool, text.into())).collect();
        for (tool, text) in live {
            let Some(call) = self.find(&tool) else { continue };
            // While a question is open, and after its end, a call shows no output.
            if call.shown == Shown::Executing {
                call.view.live = Some(text);
                due.push(Due { cursor: None, at: None, view: call.view.clone() });
            }
        }
        due
    }

    /// The calls that clients have not seen, except the one of the current question.
    pub(super) fn take_pending(&mut self, asked: Option<&ToolId>) -> Vec<(Cursor, Timestamp, ToolView)> {
        let unseen = self.calls.iter_mut().filter(|call| call.shown == Shown::Nothing);
        let unseen = unseen.filter(|call| asked.is_none_or(|asked| !call.is(asked)));
        unseen.map(|call| (call.cursor, call.at, call.pending())).collect()
    }

    /// The call reports progress: it is shown as running, if it was not yet.
    pub(super) fn progressed(&mut self, progress: &ToolProgress) -> Option<ToolView> {
        let call = self.calls.iter_mut().rev().find(|call| call.is(&progress.tool_id))?;
        if call.is_over() || call.view.asked.is_some() {
            return None;
        }
        let begun = (call.shown != Shown::Executing).then(|| call.executing());
        if let Some(output) = progress.output.as_deref().filter(|output| !output.is_empty()) {
            self.live.add(&progress.tool_id, output);
        }
        begun
    }

    /// The call is over: shown as running first, if it was not yet. Returns the frames and their part of the event.
    pub(super) fn completed(&mut self, done: &ToolCompleted) -> Vec<(u32, ToolView)> {
        self.live.finish(&done.tool_id);
        let Some(call) = self.find(&done.tool_id) else { return Vec::new() };
        // The client that denied it knows already.
        if call.is_over() {
            return Vec::new();
        }
        let mut views = Vec::new();
        let status = match done.outcome {
            ToolOutcome::Completed => ToolStatus::Succeeded,
            ToolOutcome::Failed => ToolStatus::Failed,
            ToolOutcome::Denied | ToolOutcome::Cancelled => ToolStatus::Cancelled,
        };
        call.view.asked = None;
        if call.shown != Shown::Executing && status != ToolStatus::Cancelled {
            views.push((0, call.executing()));
        }
        call.view.end = Some(Arc::new(done.clone()));
        views.push((1, call.over(status)));
        views
    }

    /// Cancels the calls that still wait for an answer.
    pub(super) fn close_questions(&mut self) -> Vec<ToolView> {
        let asking = self.calls.iter_mut().filter(|call| call.view.asked.is_some());
        asking.map(|call| call.over(ToolStatus::Cancelled)).collect()
    }

    /// Cancels all unfinished calls: their process is gone.
    pub(super) fn abandon(&mut self) -> Vec<(Timestamp, ToolView)> {
        let open = self.calls.iter_mut().filter(|call| !call.is_over());
        open.map(|call| (call.at, call.over(ToolStatus::Cancelled))).collect()
    }

    pub(super) fn asked(&mut self, question: &Question) -> ToolView {
        let id = question.tool_id.clone().unwrap_or_else(|| question.question_id.as_str().into());
        let known = self.calls.iter().rposition(|call| call.is(&id) && !call.is_over());
        let at = known.unwrap_or_else(|| {
            self.calls.push(Call::new(made_up(question, id), Cursor::default(), Timestamp::from_millis(0)));
            self.calls.len() - 1
        });
        let call = &mut self.calls[at];
        call.question = Some(question.question_id.clone());
        call.view.asked = Some(Arc::new(question.clone()));
        call.view.answered = None;
        call.view.status = ToolStatus::Pending;
        // A waiting call has no output. Its next live output is complete again.
        call.view.live = None;
        call.pending()
    }

    pub(super) fn settled(&mut self, ruling: &Ruling, at: Timestamp) -> Option<ToolView> {
        let call = self.asked_about(&ruling.question_id)?;
        let asked = call.view.asked.take()?;
        // Older logs do not have the edited call.
        call.view.answered = Some(asked.clone()).filter(|_| !ruling.edited);
        if let Some(runs) = &ruling.runs {
            // The call runs with the edits of the answer, and is shown with them from now on.
            let details = edited(&asked.details, &runs.details, ruling.new_content.as_ref());
            call.view.answered = Some(Arc::new(Question { details, ..(*asked).clone() }));
            let (title, arguments) = (Some(runs.title.clone()), runs.arguments.clone());
            call.view.call = Arc::new(ToolStarted { title, arguments, ..(*call.view.call).clone() });
        }
        call.view.ruling = Some(Arc::new(ruling.clone().without_edit()));
        call.at = at;
        Some(match (ruling.kind.allows(), asked.tool_id.is_some()) {
            (true, true) => call.executing(),
            // A question without a call ends with its answer.
            (true, false) => call.over(ToolStatus::Succeeded),
            (false, _) => call.over(ToolStatus::Cancelled),
        })
    }

    pub(super) fn withdrawn(&mut self, question: &QuestionId, at: Timestamp) -> Option<ToolView> {
        let call = self.asked_about(question)?;
        let asked = call.view.asked.take()?;
        call.view.answered = Some(asked.clone());
        call.at = at;
        Some(if asked.tool_id.is_some() { call.pending() } else { call.over(ToolStatus::Cancelled) })
    }

    fn asked_about(&mut self, question: &QuestionId) -> Option<&mut Call> {
        self.calls.iter_mut().rev().find(|call| call.question.as_ref() == Some(question))
    }

    fn find(&mut self, id: &ToolId) -> Option<&mut Call> {
        self.calls.iter_mut().rev().find(|call| call.is(id))
    }
}

/// The complete details of an edited call: the log has the old text in the question, and the new one in the answer.
fn edited(asked: &Details, runs: &Details, new_content: Option<&String>) -> Details {
    let mut details = runs.clone();
    if let Details::FileEdit { before, after, .. } = &mut details {
        if let Details::FileEdit { before: text, .. } = asked {
            before.clone_from(text);
        }
        *after = new_content.cloned();
    }
    details
}

/// A tool call for a question that has none.
fn made_up(question: &Question, tool_id: ToolId) -> ToolStarted {
    ToolStarted {
        tool_id,
        tool_name: question.tool_name.clone().unwrap_or_else(|| "ask".to_owned()),
        tool_kind: ToolKind::Other,
        title: Some(question.title.clone()),
        arguments: serde_json::Map::new(),
        server: None,
        parent_tool_id: None,
    }
}

fn millis(since: Duration) -> i64 {
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use multitap_event::{Choice, ChoiceKind, Details};

    use super::*;

    fn called() -> Tools {
        let mut tools = Tools::default();
        let call = ToolStarted {
            tool_id: "call".into(),
            tool_name: "write".to_owned(),
            tool_kind: ToolKind::Edit,
            title: None,
            arguments: serde_json::Map::new(),
            server: None,
            parent_tool_id: None,
        };
        tools.started(&call, 7, Timestamp::from_millis(0));
        tools
    }

    fn shown(tools: &mut Tools, now: i64) -> Vec<ToolStatus> {
        tools.take_due(Timestamp::from_millis(now)).into_iter().map(|due| due.view.status).collect()
    }

    #[test]
    fn a_call_is_seen_soon_and_runs_when_nobody_was_asked_for_long() {
        let mut tools = called();
        assert_eq!(tools.due(), Some(Timestamp::from_millis(100)));
        assert_eq!(shown(&mut tools, 99), []);
        assert_eq!(shown(&mut tools, 100), [ToolStatus::Pending]);
        assert_eq!(tools.due(), Some(Timestamp::from_millis(3000)));
        assert_eq!(shown(&mut tools, 2999), []);
        assert_eq!(shown(&mut tools, 3000), [ToolStatus::Executing]);
        assert_eq!(tools.due(), None);
        assert_eq!(shown(&mut called(), 5000), [ToolStatus::Pending, ToolStatus::Executing], "both, if nobody looked");
    }

    #[test]
    fn what_is_asked_about_late_has_not_run_meanwhile() {
        let mut tools = called();
        assert_eq!(shown(&mut tools, 1500), [ToolStatus::Pending]);
        let question = Question {
            question_id: "question".into(),
            tool_id: Some("call".into()),
            tool_name: None,
            title: "Write?".to_owned(),
            options: vec![Choice::new("cancel", "No", ChoiceKind::RejectOnce)],
            details: Details::Text { text: "Write?".to_owned(), arguments: serde_json::Map::new() },
            edits: Vec::new(),
            reason: None,
        };
        assert_eq!(tools.asked(&question).status, ToolStatus::Pending);
        assert_eq!((tools.due(), shown(&mut tools, 60_000)), (None, Vec::new()));
    }
}
