//! The methods of A2A and their parameters: reads and writes them.

use serde_json::{Value, json};

use crate::dialect::Dialect;
use crate::encoding::Encoding;
use crate::error::Error;
use crate::model::TaskState;
use crate::read::{MOST, Node, model, short};
use crate::request::{Authentication, ListTasks, PushConfig, Request, SendConfiguration, SendMessage};
use crate::write::{Wire, filled, present, tree};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    Send,
    Stream,
    GetTask,
    ListTasks,
    CancelTask,
    Subscribe,
    CreatePush,
    GetPush,
    ListPush,
    DeletePush,
    GetCard,
}

/// Their names in 0.3 and in 1.0.
const METHODS: [(Method, Option<&str>, &str); 11] = [
    (Method::Send, Some("message/send"), "SendMessage"),
    (Method::Stream, Some("message/stream"), "SendStreamingMessage"),
    (Method::GetTask, Some("tasks/get"), "GetTask"),
    (Method::ListTasks, None, "ListTasks"),
    (Method::CancelTask, Some("tasks/cancel"), "CancelTask"),
    (Method::Subscribe, Some("tasks/resubscribe"), "SubscribeToTask"),
    (Method::CreatePush, Some("tasks/pushNotificationConfig/set"), "CreateTaskPushNotificationConfig"),
    (Method::GetPush, Some("tasks/pushNotificationConfig/get"), "GetTaskPushNotificationConfig"),
    (Method::ListPush, Some("tasks/pushNotificationConfig/list"), "ListTaskPushNotificationConfigs"),
    (Method::DeletePush, Some("tasks/pushNotificationConfig/delete"), "DeleteTaskPushNotificationConfig"),
    (Method::GetCard, Some("agent/getAuthenticatedExtendedCard"), "GetExtendedAgentCard"),
];

impl Method {
    /// The method with that name, and its dialect.
    pub(crate) fn of_name(name: &str) -> Option<(Dialect, Self)> {
        METHODS.into_iter().find_map(|(method, v0_3, v1_0)| match name {
            name if v0_3 == Some(name) => Some((Dialect::V0_3, method)),
            name if v1_0 == name => Some((Dialect::V1_0, method)),
            _ => None,
        })
    }

    fn name(self, dialect: Dialect) -> Option<&'static str> {
        let (_, v0_3, v1_0) = METHODS.into_iter().find(|(method, ..)| *method == self)?;
        match dialect {
            Dialect::V0_3 => v0_3,
            Dialect::V1_0 => Some(v1_0),
        }
    }
}

/// The fields that name a task and its push config.
pub(crate) fn push_keys(dialect: Dialect) -> (&'static str, &'static str) {
    match dialect {
        Dialect::V0_3 => ("id", "pushNotificationConfigId"),
        Dialect::V1_0 => ("taskId", "id"),
    }
}

/// The field with the push config of a message.
fn push_key(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::V0_3 => "pushNotificationConfig",
        Dialect::V1_0 => "taskPushNotificationConfig",
    }
}

pub(crate) fn read(dialect: Dialect, method: Method, params: &Node<'_>) -> Result<Request, Error> {
    let (task, config) = push_keys(dialect);
    Ok(match method {
        Method::Send => Request::SendMessage(send_message(dialect, params)?),
        Method::Stream => Request::StreamMessage(send_message(dialect, params)?),
        Method::GetTask => Request::GetTask {
            id: params.id("id")?,
            history_length: params.number(dialect, "historyLength", &(0..=MOST))?,
        },
        Method::ListTasks => Request::ListTasks(list_tasks(dialect, params)?),
        Method::CancelTask => Request::CancelTask { id: params.id("id")?, metadata: params.map("metadata")? },
        Method::Subscribe => Request::Subscribe { id: params.id("id")? },
        Method::CreatePush => {
            let (task_id, config) = task_push_config(dialect, params)?;
            Request::CreatePushConfig { task_id, config }
        }
        Method::GetPush => Request::GetPushConfig {
            task_id: params.id(task)?,
            config_id: params.opt_string(config)?.filter(|id| dialect == Dialect::V0_3 || !id.is_empty()),
        },
        Method::ListPush => Request::ListPushConfigs { task_id: params.id(task)? },
        Method::DeletePush => Request::DeletePushConfig { task_id: params.id(task)?, config_id: params.id(config)? },
        Method::GetCard => Request::GetExtendedCard,
    })
}

fn send_message(dialect: Dialect, params: &Node<'_>) -> Result<SendMessage, Error> {
    Ok(SendMessage {
        message: params.inside("message", |node| model::message(dialect, node))?,
        configuration: params.opt_inside("configuration", |node| configuration(dialect, node))?.unwrap_or_default(),
        metadata: params.map("metadata")?,
    })
}

fn configuration(dialect: Dialect, node: &Node<'_>) -> Result<SendConfiguration, Error> {
    Ok(SendConfiguration {
        return_immediately: match dialect {
            Dialect::V0_3 => node.opt_flag("blocking")? == Some(false),
            Dialect::V1_0 => node.flag("returnImmediately")?,
        },
        push: node.opt_inside(push_key(dialect), |node| push_config(dialect, node))?,
        history_length: node.number(dialect, "historyLength", &(0..=MOST))?,
        accepted_output_modes: node.strings("acceptedOutputModes")?,
    })
}

fn list_tasks(dialect: Dialect, params: &Node<'_>) -> Result<ListTasks, Error> {
    let text = |key| Ok::<_, Error>(params.opt_string(key)?.filter(|text| !text.is_empty()));
    Ok(ListTasks {
        context_id: text("contextId")?,
        state: params.get("status").map(|node| state(dialect, &node)).transpose()?.flatten(),
        page_size: params.number(dialect, "pageSize", &(1..=100))?,
        page_token: text("pageToken")?,
        history_length: params.number(dialect, "historyLength", &(0..=MOST))?,
        status_timestamp_after: text("statusTimestampAfter")?,
        include_artifacts: params.flag("includeArtifacts")?,
    })
}

/// The state that selects tasks; unspecified selects all.
fn state(dialect: Dialect, node: &Node<'_>) -> Result<Option<TaskState>, Error> {
    match model::state(dialect, node.str()?) {
        Some(TaskState::Unknown) => Ok(None),
        Some(state) => Ok(Some(state)),
        None => {
            let known = TaskState::ALL
                .into_iter()
                .map(|state| Encoding::from(dialect).state_word(state))
                .collect::<Vec<_>>()
                .join(", ");
            Err(node.wrong(format_args!("must be one of {known}, not {}", short(node.value()))))
        }
    }
}

pub(crate) fn task_push_config(dialect: Dialect, node: &Node<'_>) -> Result<(String, PushConfig), Error> {
    let task = node.id("taskId")?;
    let config = match dialect {
        Dialect::V0_3 => node.inside("pushNotificationConfig", |node| push_config(dialect, node))?,
        Dialect::V1_0 => push_config(dialect, node)?,
    };
    Ok((task, config))
}

fn push_config(dialect: Dialect, node: &Node<'_>) -> Result<PushConfig, Error> {
    // In `ProtoJSON`, empty means absent.
    let is_given = |text: &String| dialect == Dialect::V0_3 || !text.is_empty();
    Ok(PushConfig {
        id: node.opt_string("id")?.filter(is_given),
        url: node.id("url")?,
        token: node.opt_string("token")?.filter(is_given),
        authentication: node.opt_inside("authentication", |node| {
            let schemes = match dialect {
                Dialect::V0_3 => node.strings("schemes")?,
                Dialect::V1_0 => node.opt_string("scheme")?.into_iter().collect(),
            };
            Ok(Authentication { schemes, credentials: node.opt_string("credentials")? })
        })?,
    })
}

pub(crate) fn write_task_push_config(dialect: Dialect, task_id: &str, config: &PushConfig) -> Value {
    match dialect {
        Dialect::V0_3 => {
            json!({ "taskId": task_id, "pushNotificationConfig": write_push_config(dialect, None, config) })
        }
        Dialect::V1_0 => write_push_config(dialect, Some(task_id), config),
    }
}

/// A config; in 1.0 with its task, unless it is part of a message.
pub(crate) fn write_push_config(dialect: Dialect, task_id: Option<&str>, config: &PushConfig) -> Value {
    let authentication = config.authentication.as_ref().map(|Authentication { schemes, credentials }| {
        present(match dialect {
            Dialect::V0_3 => json!({ "schemes": schemes, "credentials": credentials }),
            // Room for one scheme: the first, which a 0.3 client prefers.
            Dialect::V1_0 => json!({ "scheme": schemes.first(), "credentials": credentials }),
        })
    });
    Value::Object(present(json!({
        "id": config.id,
        "taskId": task_id,
        "url": config.url,
        "token": config.token,
        "authentication": authentication,
    })))
}

/// The method and parameters of a request; `None` if the dialect has none.
pub(crate) fn write(dialect: Dialect, request: &Request) -> Option<(&'static str, Value)> {
    let (task, config) = push_keys(dialect);
    let (method, params) = match request {
        Request::SendMessage(send) => (Method::Send, write_send(dialect, send)),
        Request::StreamMessage(send) => (Method::Stream, write_send(dialect, send)),
        Request::GetTask { id, history_length } => {
            (Method::GetTask, present(json!({ "id": id, "historyLength": history_length })).into())
        }
        Request::CancelTask { id, metadata } => {
            (Method::CancelTask, present(json!({ "id": id, "metadata": filled(metadata) })).into())
        }
        Request::Subscribe { id } => (Method::Subscribe, json!({ "id": id })),
        Request::CreatePushConfig { task_id, config } => {
            (Method::CreatePush, write_task_push_config(dialect, task_id, config))
        }
        Request::GetPushConfig { task_id, config_id } => {
            (Method::GetPush, present(json!({ task: task_id, config: config_id })).into())
        }
        Request::ListPushConfigs { task_id } => (Method::ListPush, json!({ task: task_id })),
        Request::DeletePushConfig { task_id, config_id } => {
            (Method::DeletePush, json!({ task: task_id, config: config_id }))
        }
        Request::GetExtendedCard => (Method::GetCard, json!({})),
        Request::ListTasks(list) => (Method::ListTasks, write_list(dialect, list)),
        Request::GetCommands { .. } | Request::ExecuteCommand(_) | Request::ConfirmToolCall { .. } => return None,
    };
    Some((method.name(dialect)?, params))
}

fn write_send(dialect: Dialect, send: &SendMessage) -> Value {
    let asked = &send.configuration;
    let is_old = dialect == Dialect::V0_3;
    let configuration = present(json!({
        // Always written: servers differ in the default.
        "blocking": is_old.then_some(!asked.return_immediately),
        "returnImmediately": (!is_old && asked.return_immediately).then_some(true),
        "historyLength": asked.history_length,
        "acceptedOutputModes": filled(&asked.accepted_output_modes),
        push_key(dialect): asked.push.as_ref().map(|push| write_push_config(dialect, None, push)),
    }));
    Value::Object(present(json!({
        "message": tree(&Wire(dialect.into(), &send.message)),
        "configuration": filled(&configuration),
        "metadata": filled(&send.metadata),
    })))
}

fn write_list(dialect: Dialect, list: &ListTasks) -> Value {
    Value::Object(present(json!({
        "contextId": list.context_id,
        "status": list.state.map(|state| Encoding::from(dialect).state_word(state)),
        "pageToken": list.page_token,
        "statusTimestampAfter": list.status_timestamp_after,
        "pageSize": list.page_size,
        "historyLength": list.history_length,
        "includeArtifacts": list.include_artifacts.then_some(true),
    })))
}
