//! The methods of the `development-tool` extension, which are the same in every dialect. Read in `snake_case` and in
//! `camelCase`, written as its specification has them.

use serde_json::{Value, json};

use super::{CommandExecute, Request};
use crate::error::Error;
use crate::read::Node;
use crate::write::present;

const GET: &str = "commands/get";
const EXECUTE: &str = "command/execute";
const CONFIRM: &str = "toolCall/confirm";

pub(crate) const NAMES: [&str; 3] = [GET, EXECUTE, CONFIRM];

pub(crate) fn read(method: &str, params: &Node<'_>) -> Result<Request, Error> {
    match method {
        GET => Ok(Request::GetCommands { context_id: params.any_string(&["context_id", "contextId"])? }),
        EXECUTE => execute(params).map(Request::ExecuteCommand),
        _ => confirm(params),
    }
}

fn execute(params: &Node<'_>) -> Result<CommandExecute, Error> {
    let key = if params.has("commandPath") { "commandPath" } else { "command_path" };
    let command_path = params.strings(key)?;
    if command_path.iter().all(String::is_empty) {
        return Err(params.wrong_field(key, "must name a command, such as [\"memory\", \"show\"]"));
    }
    Ok(CommandExecute {
        command_path,
        args: params.opt_string("args")?.unwrap_or_default(),
        context_id: params.any_string(&["context_id", "contextId"])?,
    })
}

fn confirm(params: &Node<'_>) -> Result<Request, Error> {
    Ok(Request::ConfirmToolCall {
        confirmation: params.value().clone(),
        task_id: params.any_string(&["task_id", "taskId"])?,
        context_id: params.any_string(&["context_id", "contextId"])?,
    })
}

/// The method and parameters of a request; `None` if it is not of the extension.
pub(crate) fn write(request: &Request) -> Option<(&'static str, Value)> {
    let (method, params) = match request {
        Request::GetCommands { context_id } => (GET, present(json!({ "context_id": context_id }))),
        Request::ExecuteCommand(CommandExecute { command_path, args, context_id }) => {
            (EXECUTE, present(json!({ "command_path": command_path, "args": args, "context_id": context_id })))
        }
        Request::ConfirmToolCall { confirmation, task_id, context_id } => {
            let mut params = confirmation.as_object().cloned().unwrap_or_default();
            params.extend(present(json!({ "taskId": task_id, "contextId": context_id })));
            (CONFIRM, params)
        }
        Request::SendMessage(_)
        | Request::StreamMessage(_)
        | Request::GetTask { .. }
        | Request::ListTasks(_)
        | Request::CancelTask { .. }
        | Request::Subscribe { .. }
        | Request::CreatePushConfig { .. }
        | Request::GetPushConfig { .. }
        | Request::ListPushConfigs { .. }
        | Request::DeletePushConfig { .. }
        | Request::GetExtendedCard => return None,
    };
    Some((method, Value::Object(params)))
}
