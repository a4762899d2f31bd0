//! Whatever the model holds and a dialect can say comes back the same; whatever comes in, nothing panics.

use multitap_a2a::{
    Artifact, ArtifactUpdate, Content, Dialect, Encoding, Map, Message, Part, Request, Role, Sent, StatusUpdate, Task,
    TaskList, TaskState, TaskStatus, Update,
};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use serde_json::Value;

fn word() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9 äß\"\\\\\n._-]{1,12}"
}

fn words() -> impl Strategy<Value = Vec<String>> {
    vec(word(), 0..3)
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        // Parsed floats are exact to the last bit but one: halves are exact anyway.
        any::<i32>().prop_map(|number| Value::from(f64::from(number) / 2.0)),
        word().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            btree_map(key(), inner, 0..4).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// The names that mean something are among them, so that arbitrary JSON gets deep into the readers.
fn key() -> impl Strategy<Value = String> {
    let known = [
        "kind",
        "message",
        "parts",
        "text",
        "data",
        "file",
        "role",
        "messageId",
        "task",
        "id",
        "status",
        "state",
        "artifact",
        "configuration",
        "metadata",
        "taskId",
        "statusUpdate",
        "history",
        "pageSize",
        "url",
        "value",
    ];
    prop_oneof![proptest::sample::select(known.to_vec()).prop_map(str::to_owned), word()]
}

fn metadata() -> impl Strategy<Value = Map> {
    vec((word(), json()), 0..3).prop_map(|entries| entries.into_iter().collect())
}

fn part(dialect: Dialect) -> impl Strategy<Value = Part> {
    let content = prop_oneof![
        word().prop_map(Content::Text),
        word().prop_map(Content::Raw),
        word().prop_map(Content::Url),
        json().prop_map(Content::Data),
    ];
    (content, option::of(word()), option::of(word()), metadata()).prop_map(
        move |(content, filename, media_type, metadata)| {
            let says = dialect == Dialect::V1_0 || matches!(content, Content::Raw(_) | Content::Url(_));
            Part { content, filename: filename.filter(|_| says), media_type: media_type.filter(|_| says), metadata }
        },
    )
}

fn message(dialect: Dialect) -> impl Strategy<Value = Message> {
    let role = prop_oneof![Just(Role::User), Just(Role::Agent)];
    let ids = (option::of(word()), option::of(word()));
    (word(), role, vec(part(dialect), 1..4), ids, words(), words(), metadata()).prop_map(
        |(message_id, role, parts, (context_id, task_id), reference_task_ids, extensions, metadata)| Message {
            message_id,
            role,
            parts,
            context_id,
            task_id,
            reference_task_ids,
            extensions,
            metadata,
        },
    )
}

fn status(dialect: Dialect) -> impl Strategy<Value = TaskStatus> {
    let state = proptest::sample::select(TaskState::ALL.to_vec());
    (state, option::of(message(dialect)), option::of(word())).prop_map(|(state, message, timestamp)| TaskStatus {
        state,
        message,
        timestamp,
    })
}

fn artifact(dialect: Dialect) -> impl Strategy<Value = Artifact> {
    (word(), option::of(word()), option::of(word()), vec(part(dialect), 0..3), words(), metadata()).prop_map(
        |(artifact_id, name, description, parts, extensions, metadata)| Artifact {
            artifact_id,
            name,
            description,
            parts,
            extensions,
            metadata,
        },
    )
}

fn task(dialect: Dialect) -> impl Strategy<Value = Task> {
    let lists = (vec(message(dialect), 0..3), vec(artifact(dialect), 0..2));
    (word(), word(), status(dialect), lists, metadata()).prop_map(
        |(id, context_id, status, (history, artifacts), metadata)| Task {
            id,
            context_id,
            status,
            history,
            artifacts,
            metadata,
        },
    )
}

fn update(dialect: Dialect) -> impl Strategy<Value = Update> {
    let of_status = (word(), word(), status(dialect), any::<bool>(), metadata()).prop_map(
        move |(task_id, context_id, status, is_final, metadata)| {
            let is_final = is_final && dialect == Dialect::V0_3;
            Update::Status(StatusUpdate { task_id, context_id, status, is_final, metadata })
        },
    );
    let of_artifact = (word(), word(), artifact(dialect), any::<(bool, bool)>(), metadata()).prop_map(
        |(task_id, context_id, artifact, (append, last_chunk), metadata)| {
            Update::Artifact(ArtifactUpdate { task_id, context_id, artifact, append, last_chunk, metadata })
        },
    );
    prop_oneof![
        task(dialect).prop_map(Update::Task),
        message(dialect).prop_map(Update::Message),
        of_status,
        of_artifact
    ]
}

fn spoken() -> impl Strategy<Value = (Dialect, Update)> {
    prop_oneof![Just(Dialect::V0_3), Just(Dialect::V1_0)]
        .prop_flat_map(|dialect| update(dialect).prop_map(move |update| (dialect, update)))
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

proptest! {
    #[test]
    fn what_is_written_is_read_back((dialect, update) in spoken()) {
        let text = Encoding::from(dialect).write_update(&update);
        prop_assert_eq!(&dialect.read_update(&parsed(&text)).unwrap(), &update);
        // The order of metadata is no part of equality: the text is.
        prop_assert_eq!(Encoding::from(dialect).write_update(&dialect.read_update(&parsed(&text)).unwrap()), text);
        if let Update::Task(task) = update {
            prop_assert_eq!(&dialect.read_task(&parsed(&Encoding::from(dialect).write_task(&task))).unwrap(), &task);
            let sent = Sent::Task(task.clone());
            prop_assert_eq!(&dialect.read_sent(&parsed(&Encoding::from(dialect).write_sent(&sent))).unwrap(), &sent);
            let list = TaskList { tasks: vec![task], next_page_token: "n".to_owned(), page_size: 1, total_size: 9 };
            prop_assert_eq!(&dialect.read_task_list(&parsed(&Encoding::from(dialect).write_task_list(&list))).unwrap(), &list);
        }
    }

    #[test]
    fn a_message_goes_from_one_dialect_to_the_other_and_back(message in message(Dialect::V0_3)) {
        let over = Dialect::V1_0.read_message(&Dialect::V1_0.write_message(&message)).unwrap();
        prop_assert_eq!(Dialect::V0_3.read_message(&Dialect::V0_3.write_message(&over)).unwrap(), message);
    }

    #[test]
    fn arbitrary_json_is_read_or_refused(value in json(), method in 0..24_usize) {
        let methods = [
            "message/send", "message/stream", "tasks/get", "tasks/cancel", "tasks/resubscribe",
            "tasks/pushNotificationConfig/set", "tasks/pushNotificationConfig/get",
            "tasks/pushNotificationConfig/list", "tasks/pushNotificationConfig/delete",
            "agent/getAuthenticatedExtendedCard", "SendMessage", "SendStreamingMessage", "GetTask", "ListTasks",
            "CancelTask", "SubscribeToTask", "CreateTaskPushNotificationConfig", "GetTaskPushNotificationConfig",
            "ListTaskPushNotificationConfigs", "DeleteTaskPushNotificationConfig", "GetExtendedAgentCard",
            "commands/get", "command/execute", "toolCall/confirm",
        ];
        if let Err(error) = Request::read(methods[method], Some(value.clone())) {
            prop_assert!(!error.message.is_empty());
        }
        for dialect in [Dialect::V0_3, Dialect::V1_0] {
            dialect.read_update(&value).ok();
            dialect.read_sent(&value).ok();
            dialect.read_task_list(&value).ok();
            dialect.read_message(&value).ok();
            dialect.read_push_configs(&value).ok();
        }
        prop_assert!(!Dialect::read_error(value).to_string().is_empty());
    }
}
