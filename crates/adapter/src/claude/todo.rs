//! The agent's plan: `TodoWrite` of older versions, `TaskCreate`, `TaskUpdate` and `TaskList` of newer ones.

use multitap_event::{TodoItem, TodoList};
use serde_json::Value;
use serde_json::value::RawValue;

use super::tools::OpenTool;
use crate::emit::todo_status;
use crate::json::{JsonFields, text_of};

/// Maximum number of items. Each change reports the whole plan, so the total cost of a plan without a limit would be
/// quadratic.
const MOST_ITEMS: usize = 500;

#[derive(Debug, Default)]
pub(super) struct Todos {
    items: Vec<TodoItem>,
}

impl Todos {
    /// A tool call succeeded. Returns the whole plan if the call changed it.
    pub(super) fn tool_ended(&mut self, tool: &OpenTool, structured: Option<&RawValue>) -> Option<TodoList> {
        // A sub-agent has a plan of its own.
        if tool.parent.is_some()
            || !matches!(tool.name.as_str(), "TodoWrite" | "TaskCreate" | "TaskUpdate" | "TaskList")
        {
            return None;
        }
        let structured = structured.and_then(|structured| serde_json::from_str(structured.get()).ok());
        let structured: &Value = &structured.unwrap_or_default();
        let before = self.items.clone();
        match tool.name.as_str() {
            "TodoWrite" => self.written(structured.get("newTodos").or(tool.arguments.get("todos"))),
            "TaskCreate" => self.created(tool, structured),
            "TaskUpdate" => self.updated(tool, structured),
            _ => self.written(structured.get("tasks")),
        }
        (self.items != before).then(|| TodoList { items: self.items.clone(), explanation: None })
    }

    fn written(&mut self, list: Option<&Value>) {
        let Some(list) = list.and_then(Value::as_array) else { return };
        self.items = list.iter().filter_map(item).take(MOST_ITEMS).collect();
    }

    fn created(&mut self, tool: &OpenTool, structured: &Value) {
        let reported = item(structured.field("task"));
        let Some(mut item) = reported.or_else(|| item(&tool.arguments)) else { return };
        if item.id.is_none() {
            item.id = Some((self.items.len() + 1).to_string());
        }
        self.items.retain(|other| other.id != item.id);
        if self.items.len() == MOST_ITEMS {
            self.items.remove(0);
        }
        self.items.push(item);
    }

    fn updated(&mut self, tool: &OpenTool, structured: &Value) {
        let id = word(structured, "taskId").or_else(|| word(&tool.arguments, "taskId"));
        let to = structured.field("statusChange").text("to").or(tool.arguments.text("status"));
        let Some(at) = self.items.iter().position(|item| item.id == id) else { return };
        if to == Some("deleted") {
            self.items.remove(at);
            return;
        }
        let item = &mut self.items[at];
        if to.is_some() {
            item.status = todo_status(to);
        }
        if let Some(subject) = tool.arguments.string("subject") {
            item.text = subject;
        }
    }
}

/// A word, which may be a number.
fn word<'a>(fields: impl JsonFields<'a>, key: &str) -> Option<String> {
    fields.field(key).filter(|value| value.is_string() || value.is_number()).map(text_of)
}

fn item<'a>(fields: impl JsonFields<'a>) -> Option<TodoItem> {
    Some(TodoItem {
        text: word(fields, "content").or_else(|| word(fields, "subject"))?,
        status: todo_status(fields.text("status")),
        id: word(fields, "id"),
    })
}
