//! Tool calls from their start to their one end.

use multitap_event::{Denial, EventKind, Timestamp, ToolCompleted, ToolId, ToolKind, ToolOutcome, ToolStarted};
use serde_json::{Map, Value};

use super::calls::Calls;
use crate::codec::Step;

/// The calls that have begun. `X` is what a codec keeps beside each.
#[derive(Debug)]
pub(crate) struct Tools<X> {
    calls: Calls<OpenTool<X>>,
    /// Calls of this turn that were refused.
    denials: Vec<Denial>,
}

#[derive(Debug)]
pub(crate) struct OpenTool<X> {
    pub(crate) id: ToolId,
    pub(crate) name: String,
    pub(crate) kind: ToolKind,
    pub(crate) title: Option<String>,
    pub(crate) arguments: Map<String, Value>,
    pub(crate) server: Option<String>,
    pub(crate) parent: Option<ToolId>,
    pub(crate) started: Timestamp,
    /// Somebody said no to it.
    pub(crate) denied: bool,
    /// Its start is in the log.
    pub(crate) told: bool,
    pub(crate) more: X,
}

impl<X> OpenTool<X> {
    fn tell(&mut self, out: &mut Step) {
        if std::mem::replace(&mut self.told, true) {
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
}

impl<X> Default for Tools<X> {
    fn default() -> Self {
        Self { calls: Calls::default(), denials: Vec::new() }
    }
}

impl<X> Tools<X> {
    pub(crate) fn find(&self, id: &str) -> Option<&OpenTool<X>> {
        self.calls.find(id)
    }

    pub(crate) fn find_mut(&mut self, id: &str) -> Option<&mut OpenTool<X>> {
        self.calls.find_mut(id)
    }

    /// Whether no call is at work.
    pub(crate) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Whether a call of that id is over.
    pub(crate) fn is_over(&self, id: &str) -> bool {
        self.calls.is_over(id)
    }

    /// A call begins, to be told later by [`Tools::tell`]. One that is known already does not begin again.
    pub(crate) fn begin(&mut self, tool: OpenTool<X>) {
        self.calls.begin(tool.id.clone().as_str(), tool);
    }

    /// Tells the start of that call, once.
    pub(crate) fn tell(&mut self, id: &str, out: &mut Step) {
        if let Some(tool) = self.find_mut(id) {
            tool.tell(out);
        }
    }

    /// The call is over; its start is told if it was not yet. Who takes it tells its end.
    pub(crate) fn take(&mut self, id: &str, out: &mut Step) -> Option<OpenTool<X>> {
        let mut tool = self.calls.take(id)?;
        tool.tell(out);
        Some(tool)
    }

    /// The end of a call that never began: told once, and it does not begin after that.
    pub(crate) fn ends_unbegun(&mut self, id: &str) -> bool {
        self.calls.ends_unbegun(id)
    }

    /// A call was refused, as its end tells.
    pub(crate) fn refused(&mut self, tool: &OpenTool<X>) {
        self.denials.push(denial(tool));
    }

    /// The calls that were refused since this was last asked.
    pub(crate) fn take_denials(&mut self) -> Vec<Denial> {
        std::mem::take(&mut self.denials)
    }

    /// Ends the calls that the agent forgot, or those of them that somebody said no to. `why` is for the others.
    pub(crate) fn close(&mut self, which: Forgotten, why: &str, clock: Option<Timestamp>, out: &mut Step) {
        for mut tool in self.calls.take_if(|tool| tool.denied || which == Forgotten::All) {
            tool.tell(out);
            let (outcome, why) = if tool.denied {
                self.denials.push(denial(&tool));
                (ToolOutcome::Denied, "somebody said no to this call")
            } else {
                (ToolOutcome::Cancelled, why)
            };
            out.events.push(EventKind::ToolCompleted(ToolCompleted {
                duration_ms: clock.map(|now| now.millis_since(tool.started)),
                tool_id: tool.id,
                success: false,
                outcome,
                result: None,
                error: Some(why.to_owned()),
                exit_code: None,
            }));
        }
    }
}

fn denial<X>(tool: &OpenTool<X>) -> Denial {
    Denial { tool_name: tool.name.clone(), tool_id: Some(tool.id.clone()), arguments: tool.arguments.clone() }
}

/// Which open calls to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Forgotten {
    All,
    /// Only those that somebody said no to.
    Denied,
}
