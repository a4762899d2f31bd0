//! The agent's plan: `TodoWrite` of older versions, `TaskCreate`, `TaskUpdate` and `TaskList` of newer ones.

use multitap_event::{TodoItem, TodoList, TodoStatus};
use serde_json::Value;
use serde_json::value::RawValue;

use super::tools::OpenTool;

/// Items of a plan. Each change reports the whole plan, so one without an end would cost its square.
const MOST_ITEMS: usize = 500;

#[derive(Debug, Default)]
pub(super) struct Todos {
    items: Vec<TodoItem>,
}

impl Todos {
    /// A tool call succeeded. Returns the whole plan if the call changed it.
    pub(super) fn tool_ended(&mut self, tool: &OpenTool, structured: Option<&RawValue>) -> Option<TodoList> {
        // A sub-agent's plan is its own.
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
        let reported = structured.get("task").and_then(item);
        let Some(mut item) = reported.or_else(|| item(&Value::Object(tool.arguments.clone()))) else { return };
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
        let id = text(structured, "taskId").or_else(|| tool.arguments.get("taskId").and_then(word));
        let to = structured.get("statusChange").and_then(|change| text(change, "to"));
        let to = to.or_else(|| tool.arguments.get("status").and_then(word));
        let Some(at) = self.items.iter().position(|item| item.id == id) else { return };
        if to.as_deref() == Some("deleted") {
            self.items.remove(at);
            return;
        }
        let item = &mut self.items[at];
        if let Some(to) = to {
            item.status = status(&to);
        }
        if let Some(subject) = tool.arguments.get("subject").and_then(word) {
            item.text = subject;
        }
    }
}

fn word(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

fn text(value: &Value, key: &str) -> Option<String> {
    value.get(key).and_then(word)
}

fn item(value: &Value) -> Option<TodoItem> {
    Some(TodoItem {
        text: text(value, "content").or_else(|| text(value, "subject"))?,
        status: text(value, "status").map_or(TodoStatus::Pending, |word| status(&word)),
        id: text(value, "id"),
    })
}

fn status(word: &str) -> TodoStatus {
    match word {
        "in_progress" | "inProgress" => TodoStatus::InProgress,
        "completed" | "done" => TodoStatus::Completed,
        "cancelled" | "deleted" => TodoStatus::Cancelled,
        _ => TodoStatus::Pending,
    }
}
