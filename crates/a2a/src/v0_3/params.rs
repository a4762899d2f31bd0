//! The methods of 0.3 and their parameters, both ways.

use serde_json::{Value, json};

use super::{read, write};
use crate::error::Error;
use crate::model::Map;
use crate::read::{MOST, Node};
use crate::request::{Request, SendConfiguration, SendMessage};
use crate::write::tree;

/// All of them.
pub(crate) const METHODS: [&str; 10] = [
    "message/send",
    "message/stream",
    "tasks/get",
    "tasks/cancel",
    "tasks/resubscribe",
    "tasks/pushNotificationConfig/set",
    "tasks/pushNotificationConfig/get",
    "tasks/pushNotificationConfig/list",
    "tasks/pushNotificationConfig/delete",
    "agent/getAuthenticatedExtendedCard",
];

/// What a client asks for; none if 0.3 has no such method.
pub(crate) fn read(method: &str, params: &Node<'_>) -> Option<Result<Request, Error>> {
    Some(match method {
        "message/send" => send_message(params).map(Request::SendMessage),
        "message/stream" => send_message(params).map(Request::StreamMessage),
        "tasks/get" => get_task(params),
        "tasks/cancel" => cancel_task(params),
        "tasks/resubscribe" => params.id("id").map(|id| Request::Subscribe { id }),
        "tasks/pushNotificationConfig/set" => {
            read::task_push_config(params).map(|(task_id, config)| Request::CreatePushConfig { task_id, config })
        }
        "tasks/pushNotificationConfig/get" => get_push_config(params),
        "tasks/pushNotificationConfig/list" => params.id("id").map(|task_id| Request::ListPushConfigs { task_id }),
        "tasks/pushNotificationConfig/delete" => delete_push_config(params),
        "agent/getAuthenticatedExtendedCard" => Ok(Request::GetExtendedCard),
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
        return_immediately: node.opt_flag("blocking")? == Some(false),
        history_length: node.number("historyLength", &(0..=MOST))?,
        accepted_output_modes: node.strings("acceptedOutputModes")?,
        push: node.opt_inside("pushNotificationConfig", read::push_config)?,
    })
}

fn get_task(params: &Node<'_>) -> Result<Request, Error> {
    Ok(Request::GetTask { id: params.id("id")?, history_length: params.number("historyLength", &(0..=MOST))? })
}

fn cancel_task(params: &Node<'_>) -> Result<Request, Error> {
    Ok(Request::CancelTask { id: params.id("id")?, metadata: params.map("metadata")? })
}

fn get_push_config(params: &Node<'_>) -> Result<Request, Error> {
    Ok(Request::GetPushConfig { task_id: params.id("id")?, config_id: params.opt_string("pushNotificationConfigId")? })
}

fn delete_push_config(params: &Node<'_>) -> Result<Request, Error> {
    Ok(Request::DeletePushConfig { task_id: params.id("id")?, config_id: params.id("pushNotificationConfigId")? })
}

/// The method for what is asked and its parameters; none if 0.3 has no words for it.
pub(crate) fn write(request: &Request) -> Option<(&'static str, Value)> {
    Some(match request {
        Request::SendMessage(send) => ("message/send", write_send(send)),
        Request::StreamMessage(send) => ("message/stream", write_send(send)),
        Request::GetTask { id, history_length } => {
            let mut params = Map::from_iter([("id".to_owned(), json!(id))]);
            params.extend(history_length.map(|length| ("historyLength".to_owned(), json!(length))));
            ("tasks/get", Value::Object(params))
        }
        Request::CancelTask { id, metadata } => {
            let mut params = Map::from_iter([("id".to_owned(), json!(id))]);
            if !metadata.is_empty() {
                params.insert("metadata".to_owned(), Value::Object(metadata.clone()));
            }
            ("tasks/cancel", Value::Object(params))
        }
        Request::Subscribe { id } => ("tasks/resubscribe", json!({ "id": id })),
        Request::CreatePushConfig { task_id, config } => {
            ("tasks/pushNotificationConfig/set", write::task_push_config(task_id, config))
        }
        Request::GetPushConfig { task_id, config_id } => {
            let mut params = Map::from_iter([("id".to_owned(), json!(task_id))]);
            params.extend(config_id.as_ref().map(|id| ("pushNotificationConfigId".to_owned(), json!(id))));
            ("tasks/pushNotificationConfig/get", Value::Object(params))
        }
        Request::ListPushConfigs { task_id } => ("tasks/pushNotificationConfig/list", json!({ "id": task_id })),
        Request::DeletePushConfig { task_id, config_id } => {
            ("tasks/pushNotificationConfig/delete", json!({ "id": task_id, "pushNotificationConfigId": config_id }))
        }
        Request::GetExtendedCard => ("agent/getAuthenticatedExtendedCard", json!({})),
        Request::ListTasks(_)
        | Request::GetCommands { .. }
        | Request::ExecuteCommand(_)
        | Request::ConfirmToolCall { .. } => return None,
    })
}

fn write_send(send: &SendMessage) -> Value {
    let configuration = &send.configuration;
    let mut inner = Map::new();
    // Said always: servers differ in what they make of silence.
    inner.insert("blocking".to_owned(), json!(!configuration.return_immediately));
    inner.extend(configuration.history_length.map(|length| ("historyLength".to_owned(), json!(length))));
    if !configuration.accepted_output_modes.is_empty() {
        inner.insert("acceptedOutputModes".to_owned(), json!(configuration.accepted_output_modes));
    }
    let push = configuration.push.as_ref().map(write::push_config);
    inner.extend(push.map(|push| ("pushNotificationConfig".to_owned(), push)));
    let mut params = Map::from_iter([
        ("message".to_owned(), tree(&write::Wire(&send.message))),
        ("configuration".to_owned(), Value::Object(inner)),
    ]);
    if !send.metadata.is_empty() {
        params.insert("metadata".to_owned(), Value::Object(send.metadata.clone()));
    }
    Value::Object(params)
}
