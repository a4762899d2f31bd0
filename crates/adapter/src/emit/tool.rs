//! Tool calls from their start to their one end.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use multitap_event::{
    Denial, EventKind, FileChange, SystemNote, Timestamp, TodoList, ToolCompleted, ToolId, ToolKind, ToolOutcome,
    ToolProgress, ToolStarted,
};
use serde_json::{Map, Value};

use super::ended::Ended;
use crate::codec::Step;

/// Maximum number of open calls. An agent that starts more has forgotten to end the oldest ones; clients hold every open
/// call and look through them.
const MAX_OPEN: usize = 1024;

/// The tool calls of one agent. `T` is what its codec keeps beside each. No id begins twice, and each call costs the same
/// however many there are.
#[derive(Debug)]
pub(crate) struct Tools<T> {
    /// By number: a later call has a higher one.
    open: BTreeMap<u64, OpenTool<T>>,
    numbers: HashMap<Arc<str>, u64>,
    next: u64,
    ended: Ended,
    /// Calls of this turn that were denied.
    denials: Vec<Denial>,
}

#[derive(Debug)]
pub(crate) struct OpenTool<T> {
    pub(crate) id: ToolId,
    pub(crate) name: String,
    pub(crate) kind: ToolKind,
    pub(crate) title: Option<String>,
    pub(crate) arguments: Map<String, Value>,
    pub(crate) server: Option<String>,
    /// The call that started the sub-agent which makes this one.
    pub(crate) parent: Option<ToolId>,
    pub(crate) started: Timestamp,
    /// Whether a person or a rule denied the call.
    pub(crate) denied: bool,
    /// Whether `toolStarted` was emitted.
    pub(crate) reported: bool,
    pub(crate) native: T,
}

impl<T: Default> OpenTool<T> {
    pub(crate) fn new(id: impl Into<ToolId>, name: impl Into<String>, kind: ToolKind, now: Timestamp) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
            kind,
            title: None,
            arguments: Map::new(),
            server: None,
            parent: None,
            started: now,
            denied: false,
            reported: false,
            native: T::default(),
        }
    }
}

impl<T> OpenTool<T> {
    fn report(&mut self, out: &mut Step) {
        if std::mem::replace(&mut self.reported, true) {
            return;
        }
        out.events.push(EventKind::ToolStarted(ToolStarted {
            tool_id: self.id.clone(),
            tool_name: self.name.clone(),
            tool_kind: self.kind,
            title: self.title.clone(),
            arguments: self.arguments.clone(),
            server: self.server.clone(),
            parent_tool_id: self.parent.clone(),
        }));
    }

    fn denial(&self) -> Denial {
        Denial { tool_name: self.name.clone(), tool_id: Some(self.id.clone()), arguments: self.arguments.clone() }
    }
}

#[derive(Debug)]
pub(crate) struct ToolEnd {
    pub(crate) outcome: ToolOutcome,
    /// Emitted if the call succeeded.
    pub(crate) result: Option<Value>,
    /// Emitted if the call did not succeed.
    pub(crate) error: Option<String>,
    pub(crate) exit_code: Option<i32>,
    /// The duration by the agent's clock.
    pub(crate) duration_ms: Option<u64>,
    /// The changes made by a call that succeeded.
    pub(crate) changes: Vec<FileChange>,
    pub(crate) todos: Option<TodoList>,
}

impl ToolEnd {
    pub(crate) fn of(outcome: ToolOutcome) -> Self {
        let (result, error, exit_code, duration_ms, changes, todos) = (None, None, None, None, Vec::new(), None);
        Self { outcome, result, error, exit_code, duration_ms, changes, todos }
    }

    fn emit(self, id: ToolId, elapsed: Option<u64>, out: &mut Step) {
        let success = self.outcome == ToolOutcome::Completed;
        if success {
            out.events.extend(self.changes.into_iter().map(EventKind::FileChanged));
            out.events.extend(self.todos.map(EventKind::TodoList));
        }
        out.events.push(EventKind::ToolCompleted(ToolCompleted {
            tool_id: id,
            success,
            outcome: self.outcome,
            result: self.result.filter(|_| success),
            error: self.error.filter(|_| !success),
            exit_code: self.exit_code,
            duration_ms: self.duration_ms.or(elapsed),
        }));
    }
}

/// Why calls end without a report of the agent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NoEnd {
    why: &'static str,
    /// The reason for denied calls that the agent does not report itself: they count as denials of the turn.
    why_denied: Option<&'static str>,
}

impl NoEnd {
    pub(crate) const UNKNOWN: Self = Self { why: "the agent did not report how this call ended", why_denied: None };
    pub(crate) const CANCELLED: Self = Self { why: "cancelled", why_denied: None };

    /// The end of calls of an agent that never reports the end of a denied call.
    pub(crate) fn of_silent_agent(cancelling: bool) -> Self {
        let why = if cancelling { "the turn was cancelled" } else { Self::UNKNOWN.why };
        Self { why, why_denied: Some("this call was denied") }
    }
}

impl<T> Default for Tools<T> {
    fn default() -> Self {
        Self { open: BTreeMap::new(), numbers: HashMap::new(), next: 0, ended: Ended::default(), denials: Vec::new() }
    }
}

impl<T> Tools<T> {
    pub(crate) fn find(&self, id: &str) -> Option<&OpenTool<T>> {
        self.open.get(self.numbers.get(id)?)
    }

    pub(crate) fn find_mut(&mut self, id: &str) -> Option<&mut OpenTool<T>> {
        self.open.get_mut(self.numbers.get(id)?)
    }

    /// The open calls, the oldest first.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &OpenTool<T>> {
        self.open.values()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut OpenTool<T>> {
        self.open.values_mut()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    pub(crate) fn has_seen(&self, id: &str) -> bool {
        self.numbers.contains_key(id) || self.is_over(id)
    }

    pub(crate) fn is_over(&self, id: &str) -> bool {
        self.ended.contains(id)
    }

    /// Begins a call; [`Tools::report`] emits its start. A known call does not begin again.
    pub(crate) fn begin(&mut self, tool: OpenTool<T>) {
        if !self.has_seen(tool.id.as_str()) {
            self.numbers.insert(tool.id.as_str().into(), self.next);
            self.open.insert(self.next, tool);
            self.next += 1;
        }
    }

    /// Begins a call and emits its start. A known call does not begin again.
    pub(crate) fn start(&mut self, tool: OpenTool<T>, out: &mut Step) {
        let id = tool.id.clone();
        self.begin(tool);
        self.report(id.as_str(), out);
    }

    /// Emits the start of a call, once.
    pub(crate) fn report(&mut self, id: &str, out: &mut Step) {
        if let Some(tool) = self.find_mut(id) {
            tool.report(out);
        }
        let surplus = self.open.first_key_value().filter(|_| self.open.len() > MAX_OPEN);
        if let Some(forgotten) = surplus.map(|(_, tool)| tool.id.clone()).and_then(|id| self.remove(id.as_str())) {
            self.end_without_end(forgotten, NoEnd::UNKNOWN, None, out);
        }
    }

    /// Marks the call as denied. Returns `false` if no such call is open.
    pub(crate) fn deny(&mut self, id: &str) -> bool {
        self.find_mut(id).map(|tool| tool.denied = true).is_some()
    }

    pub(crate) fn progress(&self, id: &str, message: impl Into<String>, out: &mut Step) {
        if self.find(id).is_some() {
            let progress = ToolProgress { message: Some(message.into()), ..ToolProgress::of(id.into()) };
            out.events.push(EventKind::ToolProgress(progress));
        }
    }

    pub(crate) fn output(&self, id: &str, piece: &str, out: &mut Step) {
        if !piece.is_empty() && self.find(id).is_some() {
            let progress = ToolProgress { output: Some(piece.to_owned()), ..ToolProgress::of(id.into()) };
            out.events.push(EventKind::ToolProgress(progress));
        }
    }

    /// Closes an open call. The caller ends it with [`Tools::end`].
    pub(crate) fn take(&mut self, id: &str, out: &mut Step) -> Option<OpenTool<T>> {
        let mut tool = self.remove(id)?;
        tool.report(out);
        Some(tool)
    }

    fn remove(&mut self, id: &str) -> Option<OpenTool<T>> {
        let number = self.numbers.remove(id)?;
        self.ended.insert(id);
        self.open.remove(&number)
    }

    /// Emits the end of a call that was taken. `clock` is the time, unless it is meaningless.
    pub(crate) fn end(&mut self, tool: &OpenTool<T>, end: ToolEnd, clock: Option<Timestamp>, out: &mut Step) {
        if end.outcome == ToolOutcome::Denied {
            self.denials.push(tool.denial());
        }
        end.emit(tool.id.clone(), clock.map(|now| now.millis_since(tool.started)), out);
    }

    /// Emits the end of a call that never began. Returns `false` if the call is known.
    pub(crate) fn end_unbegun(&mut self, id: &str, end: ToolEnd, out: &mut Step) -> bool {
        let is_new = !self.numbers.contains_key(id) && self.ended.insert(id);
        if is_new {
            end.emit(id.into(), None, out);
        }
        is_new
    }

    /// Emits data of a call that came after its end.
    pub(crate) fn late<'a>(id: &str, data: impl IntoIterator<Item = (&'a str, Option<Value>)>, out: &mut Step) {
        let data = data.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
        let data = [("toolId".to_owned(), Value::from(id))].into_iter().chain(data).collect();
        out.events.push(EventKind::System(SystemNote { subtype: "lateToolResult".to_owned(), message: None, data }));
    }

    pub(crate) fn take_denials(&mut self) -> Vec<Denial> {
        std::mem::take(&mut self.denials)
    }

    /// Ends the open calls that `is_over` selects without a report of the agent.
    pub(crate) fn close(
        &mut self,
        mut is_over: impl FnMut(&OpenTool<T>) -> bool,
        no_end: NoEnd,
        clock: Option<Timestamp>,
        out: &mut Step,
    ) {
        let over: Vec<ToolId> = self.iter().filter(|tool| is_over(tool)).map(|tool| tool.id.clone()).collect();
        for tool in over.iter().filter_map(|id| self.remove(id.as_str())).collect::<Vec<_>>() {
            self.end_without_end(tool, no_end, clock, out);
        }
    }

    fn end_without_end(&mut self, mut tool: OpenTool<T>, no_end: NoEnd, clock: Option<Timestamp>, out: &mut Step) {
        tool.report(out);
        let outcome = if tool.denied { ToolOutcome::Denied } else { ToolOutcome::Cancelled };
        let why_denied = no_end.why_denied.filter(|_| tool.denied);
        if why_denied.is_some() {
            self.denials.push(tool.denial());
        }
        let error = Some(why_denied.unwrap_or(no_end.why).to_owned());
        let elapsed = clock.map(|now| now.millis_since(tool.started));
        ToolEnd { error, ..ToolEnd::of(outcome) }.emit(tool.id, elapsed, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The state of a session holds every open call and counts their bytes at each start.
    #[test]
    fn an_agent_that_ends_no_call_leaves_only_so_many_open() {
        let (mut tools, mut out) = (Tools::<()>::default(), Step::default());
        for number in 0..4 * MAX_OPEN {
            tools.start(OpenTool::new(number.to_string(), "read", ToolKind::Read, Timestamp::from_millis(0)), &mut out);
            assert!(tools.iter().count() <= MAX_OPEN);
        }
        let ended = out.events.iter().filter_map(|kind| match kind {
            EventKind::ToolCompleted(end) => Some(end.tool_id.as_str()),
            _ => None,
        });
        let forgotten: Vec<String> = (0..3 * MAX_OPEN).map(|number| number.to_string()).collect();
        assert!(ended.eq(forgotten.iter().map(String::as_str)), "the oldest first, each once");
        assert!(tools.take("0", &mut out).is_none(), "its own end comes too late");
    }

    fn call(id: &str) -> OpenTool<()> {
        OpenTool::new(id, "read", ToolKind::Read, Timestamp::from_millis(0))
    }

    fn open<T>(tools: &Tools<T>) -> String {
        tools.iter().map(|tool| tool.id.as_str()).collect()
    }

    #[test]
    fn a_call_begins_once() {
        let (mut tools, mut out) = (Tools::default(), Step::default());
        tools.begin(call("a"));
        tools.begin(OpenTool { denied: true, ..call("a") });
        assert!(!tools.find("a").unwrap().denied && tools.has_seen("a") && !tools.is_over("a"));
        let end = || ToolEnd::of(ToolOutcome::Completed);
        assert!(!tools.end_unbegun("a", end(), &mut out));
        assert!(tools.take("a", &mut out).is_some());
        tools.begin(call("a"));
        assert!(tools.find("a").is_none() && tools.is_over("a"));
        assert!(tools.end_unbegun("b", end(), &mut out) && !tools.end_unbegun("b", end(), &mut out));
        tools.begin(call("b"));
        assert!(tools.is_empty());
    }

    #[test]
    fn open_calls_keep_their_order() {
        let (mut tools, mut out) = (Tools::default(), Step::default());
        ["a", "b", "c", "d"].into_iter().for_each(|id| tools.begin(call(id)));
        tools.take("b", &mut out);
        assert_eq!(open(&tools), "acd");
        tools.close(|tool| tool.id.as_str() != "c", NoEnd::UNKNOWN, None, &mut out);
        assert_eq!(open(&tools), "c");
        assert!(tools.is_over("d") && !tools.is_over("c"));
    }

    /// A session lasts for days: an open call is never forgotten, and what is stored of the others is bounded.
    #[test]
    fn nothing_is_left_of_calls_that_ended() {
        let (mut tools, mut out) = (Tools::default(), Step::default());
        tools.begin(call("open"));
        for number in 0..1000 {
            tools.begin(call(&number.to_string()));
            tools.take(&number.to_string(), &mut out);
        }
        assert_eq!((tools.numbers.len(), tools.open.len()), (1, 1));
        assert!(tools.find("open").is_some());
    }

    /// Open calls were once searched one by one: with this many that does not end.
    #[test]
    fn a_call_costs_the_same_however_many_are_open() {
        let ids: Vec<String> = (0..100_000).map(|number| format!("call-{number}")).collect();
        let (mut tools, mut out) = (Tools::default(), Step::default());
        ids.iter().for_each(|id| tools.begin(call(id)));
        for id in ids.iter().rev().chain(&ids) {
            assert_eq!(tools.find_mut(id).unwrap().id.as_str(), id);
        }
        let odd = |id: &str| id.ends_with(['1', '3', '5', '7', '9']);
        tools.close(|tool| odd(tool.id.as_str()), NoEnd::UNKNOWN, None, &mut out);
        assert_eq!(tools.iter().count(), ids.len() / 2);
        ids.iter().filter(|id| !odd(id)).for_each(|id| assert!(tools.take(id, &mut out).is_some()));
        assert!(tools.is_empty());
    }
}
