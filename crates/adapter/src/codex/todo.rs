//! The agent's plan.

use multitap_event::{EventKind, TodoItem, TodoList, TodoStatus};
use serde_json::Value;

use super::wire::Fields;
use crate::codec::Step;
use crate::emit::todo_status;
use crate::json::JsonFields as _;

#[derive(Debug, Default)]
pub(super) struct Todos {
    reported: Option<TodoList>,
}

impl Todos {
    /// `turn/plan/updated`, or the `plan_update` of a stored session.
    pub(super) fn planned(&mut self, plan: &Fields, out: &mut Step) {
        let item = |step: &Value| {
            let step = Fields::of(Some(step));
            Some(TodoItem { text: step.string("step")?, status: todo_status(step.text("status")), id: None })
        };
        let items = plan.list("plan").iter().filter_map(item).collect();
        self.report(TodoList { items, explanation: plan.string("explanation") }, out);
    }

    /// A `todo_list` item, whose steps are only done or not done.
    pub(super) fn listed(&mut self, list: &Fields, out: &mut Step) {
        let item = |entry: &Value| {
            let status = if entry.flag("completed") { TodoStatus::Completed } else { TodoStatus::Pending };
            Some(TodoItem { text: entry.string("text")?, status, id: None })
        };
        let items = list.list("items").iter().filter_map(item).collect();
        self.report(TodoList { items, explanation: None }, out);
    }

    /// Emits a plan, unless it equals the previous one.
    fn report(&mut self, list: TodoList, out: &mut Step) {
        if self.reported.as_ref() != Some(&list) {
            self.reported = Some(list.clone());
            out.events.push(EventKind::TodoList(list));
        }
    }
}
