//! The methods of 1.0 and their parameters, both ways.

use serde_json::{Value, json};

use super::{read, state_word, write};
use crate::error::Error;
use crate::model::{Map, TaskState};
use crate::read::{MOST, Node, short};
use crate::request::{ListTasks, Request, SendConfiguration, SendMessage};
use crate::write::tree;

/// All of them.
pub(crate) const METHODS: [&str; 11] = [
    "SendMessage",
    "SendStreamingMessage",
    "GetTask",
    "ListTasks",
    "CancelTask",
    "SubscribeToTask",
    "CreateTaskPushNotificationConfig",
    "GetTaskPushNotificationConfig",
    "ListTaskPushNotificationConfigs",
    "DeleteTaskPushNotificationConfig",
    "GetExtendedAgentCard",
];

/// What a client asks for; none if 1.0 has no such method.
pub(crate) fn read(method: &str, params: &Node<'_>) -> Option<Result<Request, Error>> {
    Some(match method {
        "SendMessage" => send_message(params).map(Request::SendMessage),
        "SendStreamingMessage" => send_message(params).map(Request::StreamMessage),
        "GetTask" => get_task(params),
        "ListTasks" => list_tasks(params).map(Request::ListTasks),
        "CancelTask" => cancel_task(params),
        "SubscribeToTask" => params.id("id").map(|id| Request::Subscribe { id }),
        "CreateTaskPushNotificationConfig" => {
            read::task_push_config(params).map(|(task_id, config)| Request::CreatePushConfig { task_id, config })
        }
        "GetTaskPushNotificationConfig" => get_push_config(params),
        "ListTaskPushNotificationConfigs" => params.id("taskId").map(|task_id| Request::ListPushConfigs { task_id }),
        "DeleteTaskPushNotificationConfig" => delete_push_config(params),
        "GetExtendedAgentCard" => Ok(Request::GetExtendedCard),
        _ => return None,
    })
}

fn send_message(params: &Node<'_>) -> Result<SendMessage, Error> {
    Ok(SendMessage {
        message: params.inside("message", read::message)?,
        configuration: params.opt_inside("configuration", configuration)?.unwrap_or_default(),
        metadata: params.map("metadata")?,
    })
}

fn configuration(node: &Node<'_>) -> Result<SendConfiguration, Error> {
    Ok(SendConfiguration {
        return_immediately: node.flag("returnImmediately")?,
        history_length: node.number_or_digits("historyLength", &(0..=MOST))?,
        accepted_output_modes: node.strings("acceptedOutputModes")?,
        push: node.opt_inside("taskPushNotificationConfig", read::push_config)?,
    })
}

fn get_task(params: &Node<'_>) -> Result<Request, Error> {
    Ok(Request::GetTask {
        id: params.id("id")?,
        history_length: params.number_or_digits("historyLength", &(0..=MOST))?,
    })
}

fn list_tasks(params: &Node<'_>) -> Result<ListTasks, Error> {
    let text = |key| Ok::<_, Error>(params.opt_string(key)?.filter(|text| !text.is_empty()));
    Ok(ListTasks {
        context_id: text("contextId")?,
        state: params.get("status").map(|node| state(&node)).transpose()?.flatten(),
        page_size: params.number_or_digits("pageSize", &(1..=100))?,
        page_token: text("pageToken")?,
        history_length: params.number_or_digits("historyLength", &(0..=MOST))?,
        status_timestamp_after: text("statusTimestampAfter")?,
        include_artifacts: params.flag("includeArtifacts")?,
    })
}

/// A state to choose tasks by; unspecified is none.
fn state(node: &Node<'_>) -> Result<Option<TaskState>, Error> {
    match read::state(node.str()?) {
        Some(TaskState::Unknown) => Ok(None),
        Some(state) => Ok(Some(state)),
        None => {
            let known = TaskState::ALL.into_iter().map(state_word).collect::<Vec<_>>().join(", ");
            Err(node.wrong(format_args!("must be one of {known}, not {}", short(node.value()))))
        }
    }
}

fn cancel_task(params: &Node<'_>) -> Result<Request, Error> {
    Ok(Request::CancelTask { id: params.id("id")?, metadata: params.map("metadata")? })
}

fn get_push_config(params: &Node<'_>) -> Result<Request, Error> {
    Ok(Request::GetPushConfig {
        task_id: params.id("taskId")?,
        config_id: params.opt_string("id")?.filter(|id| !id.is_empty()),
    })
}

fn delete_push_config(params: &Node<'_>) -> Result<Request, Error> {
    Ok(Request::DeletePushConfig { task_id: params.id("taskId")?, config_id: params.id("id")? })
}

/// The method for what is asked and its parameters; none if 1.0 has no words for it.
pub(crate) fn write(request: &Request) -> Option<(&'static str, Value)> {
    Some(match request {
        Request::SendMessage(send) => ("SendMessage", write_send(send)),
        Request::StreamMessage(send) => ("SendStreamingMessage", write_send(send)),
        Request::GetTask { id, history_length } => {
            let mut params = Map::from_iter([("id".to_owned(), json!(id))]);
            params.extend(history_length.map(|length| ("historyLength".to_owned(), json!(length))));
            ("GetTask", Value::Object(params))
        }
        Request::CancelTask { id, metadata } => {
            let mut params = Map::from_iter([("id".to_owned(), json!(id))]);
            if !metadata.is_empty() {
                params.insert("metadata".to_owned(), Value::Object(metadata.clone()));
            }
            ("CancelTask", Value::Object(params))
        }
        Request::Subscribe { id } => ("SubscribeToTask", json!({ "id": id })),
        Request::CreatePushConfig { task_id, config } => {
            ("CreateTaskPushNotificationConfig", write::push_config(Some(task_id), config))
        }
        Request::GetPushConfig { task_id, config_id } => {
            let mut params = Map::from_iter([("taskId".to_owned(), json!(task_id))]);
            params.extend(config_id.as_ref().map(|id| ("id".to_owned(), json!(id))));
            ("GetTaskPushNotificationConfig", Value::Object(params))
        }
        Request::ListPushConfigs { task_id } => ("ListTaskPushNotificationConfigs", json!({ "taskId": task_id })),
        Request::DeletePushConfig { task_id, config_id } => {
            ("DeleteTaskPushNotificationConfig", json!({ "taskId": task_id, "id": config_id }))
        }
        Request::GetExtendedCard => ("GetExtendedAgentCard", json!({})),
        Request::ListTasks(list) => ("ListTasks", write_list(list)),
        Request::GetCommands { .. } | Request::ExecuteCommand(_) | Request::ConfirmToolCall { .. } => return None,
    })
}

fn write_send(send: &SendMessage) -> Value {
    let configuration = &send.configuration;
    let mut inner = Map::new();
    if configuration.return_immediately {
        inner.insert("returnImmediately".to_owned(), json!(true));
    }
    inner.extend(configuration.history_length.map(|length| ("historyLength".to_owned(), json!(length))));
    if !configuration.accepted_output_modes.is_empty() {
        inner.insert("acceptedOutputModes".to_owned(), json!(configuration.accepted_output_modes));
    }
    let push = configuration.push.as_ref().map(|push| write::push_config(None, push));
    inner.extend(push.map(|push| ("taskPushNotificationConfig".to_owned(), push)));
    let mut params = Map::from_iter([("message".to_owned(), tree(&write::Wire(&send.message)))]);
    if !inner.is_empty() {
        params.insert("configuration".to_owned(), Value::Object(inner));
    }
    if !send.metadata.is_empty() {
        params.insert("metadata".to_owned(), Value::Object(send.metadata.clone()));
    }
    Value::Object(params)
}

fn write_list(list: &ListTasks) -> Value {
    let mut params = Map::new();
    let mut text = |key: &str, value: Option<&str>| {
        params.extend(value.map(|value| (key.to_owned(), json!(value))));
    };
    text("contextId", list.context_id.as_deref());
    text("status", list.state.map(state_word));
    text("pageToken", list.page_token.as_deref());
    text("statusTimestampAfter", list.status_timestamp_after.as_deref());
    params.extend(list.page_size.map(|size| ("pageSize".to_owned(), json!(size))));
    params.extend(list.history_length.map(|length| ("historyLength".to_owned(), json!(length))));
    if list.include_artifacts {
        params.insert("includeArtifacts".to_owned(), json!(true));
    }
    Value::Object(params)
}
