//! `write_todos`: the agent's plan, visible to every client.

use multitap_event::{TodoItem, TodoList, TodoStatus, ToolKind};
use serde::Deserialize;
use serde_json::json;

use super::BadCall;
use crate::tool::{Outcome, Spec};

pub(crate) const NAME: &str = "write_todos";
/// Maximum number of steps. Each is shown, stored and sent to the model again.
pub(crate) const MAX_STEPS: usize = 500;

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Todos {
    todos: Vec<Todo>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct Todo {
    description: String,
    #[serde(with = "Status")]
    status: TodoStatus,
}

/// How models spell [`TodoStatus`].
#[derive(Deserialize)]
#[serde(remote = "TodoStatus", rename_all = "snake_case")]
enum Status {
    Pending,
    InProgress,
    Completed,
    Cancelled,
}

pub(super) fn spec() -> Spec {
    let todo = json!({
        "type": "object",
        "properties": {
            "description": { "type": "string", "description": "What is to be done." },
            "status": { "type": "string", "enum": ["pending", "in_progress", "completed", "cancelled"] }
        },
        "required": ["description", "status"]
    });
    super::spec(
        NAME,
        ToolKind::Todo,
        "Writes down the steps of the work, for yourself and for the user, in place of the list before. Use it for \
         work of several steps: one step at most is in progress, and a step is set to completed as soon as it is done.",
        &json!({ "todos": { "type": "array", "items": todo, "description": "All steps, in their order." } }),
        &["todos"],
    )
}

pub(super) fn prepare(todos: Todos) -> Result<Todos, BadCall> {
    if todos.todos.len() > MAX_STEPS {
        return Err(BadCall(format!("{} steps are too many: a plan has at most {MAX_STEPS}", todos.todos.len())));
    }
    let under_way = todos.todos.iter().filter(|todo| todo.status == TodoStatus::InProgress).count();
    if under_way > 1 {
        return Err(BadCall(format!("{under_way} steps are in progress: one at a time")));
    }
    Ok(todos)
}

impl Todos {
    pub(crate) fn title(&self) -> String {
        match self.todos.len() {
            0 => "Clear the plan".to_owned(),
            1 => "Plan of 1 step".to_owned(),
            count => format!("Plan of {count} steps"),
        }
    }

    pub(super) fn run(self) -> Outcome {
        let item = |Todo { description: text, status }| TodoItem { text, status, id: None };
        let items: Vec<_> = self.todos.into_iter().map(item).collect();
        let text = if items.is_empty() { "The plan is empty." } else { "The plan is written down." };
        Outcome { todos: Some(TodoList { items, explanation: None }), ..Outcome::done(text) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_has_a_limit() {
        let plan = |steps| {
            let todo = Todo { description: "a".to_owned(), status: TodoStatus::Pending };
            prepare(Todos { todos: vec![todo; steps] })
        };
        assert!(plan(MAX_STEPS).is_ok());
        assert_eq!(plan(MAX_STEPS + 1).unwrap_err().0, "501 steps are too many: a plan has at most 500");
    }
}
