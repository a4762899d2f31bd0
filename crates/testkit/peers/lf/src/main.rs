//! The Rust client of the A2A project as a peer: one command per line on stdin, its results on stdout, in the format of
//! `lines.mjs`.

use std::collections::HashMap;
use std::sync::Arc;

use a2a::{
    A2AError, CancelTaskRequest, GetTaskRequest, ListTasksRequest, Message, Part, Role, SVC_PARAM_EXTENSIONS, SendMessageConfiguration,
    SendMessageRequest, StreamResponse, SubscribeToTaskRequest,
};
use a2a_client::agent_card::AgentCardResolver;
use a2a_client::middleware::CallInterceptor;
use a2a_client::{A2AClient, A2AClientFactory, BoxStream, ServiceParams, Transport};
use a2a_grpc::GrpcTransportFactory;
use futures::StreamExt as _;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader, stdin};
use tokio::task::{AbortHandle, LocalSet, spawn_local};

type Client = A2AClient<Box<dyn Transport>>;

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Command {
    id: u64,
    r#do: String,
    url: String,
    transport: Option<String>,
    extensions: Vec<String>,
    text: Option<String>,
    data: Option<Value>,
    task_id: Option<String>,
    context_id: Option<String>,
    metadata: Option<HashMap<String, Value>>,
    history_length: Option<i32>,
    blocking: Option<bool>,
    call: u64,
}

impl Command {
    fn request(self) -> SendMessageRequest {
        let parts = self.text.map(Part::text).into_iter().chain(self.data.map(Part::data)).collect();
        let mut message = Message::new(Role::User, parts);
        (message.task_id, message.context_id, message.metadata) = (self.task_id, self.context_id, self.metadata);
        let configuration = SendMessageConfiguration {
            accepted_output_modes: None,
            task_push_notification_config: None,
            history_length: None,
            return_immediately: self.blocking.map(|blocking| !blocking),
        };
        SendMessageRequest { message, configuration: Some(configuration), metadata: None, tenant: None }
    }
}

/// Activates extensions on every call.
struct Activate(Vec<String>);

#[async_trait::async_trait]
impl CallInterceptor for Activate {
    async fn before(&self, _method: &str, params: &mut ServiceParams) -> Result<(), A2AError> {
        if !self.0.is_empty() {
            params.insert(SVC_PARAM_EXTENSIONS.to_owned(), vec![self.0.join(",")]);
        }
        Ok(())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    LocalSet::new().run_until(listen()).await;
}

/// Commands run concurrently; only `card`, which creates the client, is awaited.
async fn listen() {
    let mut lines = BufReader::new(stdin()).lines();
    let mut client: Option<Arc<Client>> = None;
    let mut running: HashMap<u64, AbortHandle> = HashMap::new();
    while let Ok(Some(line)) = lines.next_line().await {
        let command: Command = serde_json::from_str(&line).expect("a command");
        let id = command.id;
        match command.r#do.as_str() {
            "card" => match open(command).await {
                Ok((opened, told)) => {
                    client = Some(Arc::new(opened));
                    say(json!({"id": id, "result": told}));
                }
                Err(error) => fail(id, &error),
            },
            "hangUp" => {
                if let Some(handle) = running.get(&command.call) {
                    handle.abort();
                    say(json!({"id": command.call, "error": {"name": "Aborted", "message": "hung up"}}));
                }
                say(json!({"id": id, "result": null}));
            }
            _ => {
                let client = client.clone().expect("the card was asked for first");
                let task = spawn_local(async move {
                    match run(&client, command).await {
                        Ok(result) => say(json!({"id": id, "result": result})),
                        Err(error) => fail(id, &error),
                    }
                });
                running.insert(id, task.abort_handle());
            }
        }
    }
}

async fn open(command: Command) -> Result<(Client, Value), A2AError> {
    let card = AgentCardResolver::new(None).resolve(&command.url).await?;
    let mut builder = A2AClientFactory::builder()
        .register(Arc::new(GrpcTransportFactory::new()))
        .with_interceptor(Arc::new(Activate(command.extensions)));
    if let Some(transport) = command.transport {
        builder = builder.preferred_bindings(vec![transport]);
    }
    let (client, interface) = builder.build().create_from_card_with_interface(&card).await?;
    let told =
        json!({"card": card, "transport": interface.protocol_binding, "version": interface.protocol_version});
    Ok((client, told))
}

async fn run(client: &Client, command: Command) -> Result<Value, A2AError> {
    let id = command.id;
    let task = command.task_id.clone().unwrap_or_default();
    match command.r#do.as_str() {
        "send" => client.send_message(&command.request()).await.map(to_json),
        "stream" | "answer" => tell(id, client.send_streaming_message(&command.request()).await?).await,
        "get" => {
            let request = GetTaskRequest { id: task, history_length: command.history_length, tenant: None };
            client.get_task(&request).await.map(to_json)
        }
        "cancel" => {
            client.cancel_task(&CancelTaskRequest { id: task, metadata: None, tenant: None }).await.map(to_json)
        }
        "list" => {
            let request = json!({"contextId": command.context_id, "includeArtifacts": true});
            let request: ListTasksRequest = serde_json::from_value(request).expect("a request");
            client.list_tasks(&request).await.map(to_json)
        }
        "resubscribe" => {
            let request = SubscribeToTaskRequest { id: task, tenant: None };
            tell(id, client.subscribe_to_task(&request).await?).await
        }
        unknown => Err(A2AError::internal(format!("no command {unknown}"))),
    }
}

async fn tell(id: u64, mut stream: BoxStream<'static, Result<StreamResponse, A2AError>>) -> Result<Value, A2AError> {
    while let Some(item) = stream.next().await {
        say(json!({"id": id, "event": item?}));
    }
    Ok(Value::Null)
}

fn to_json(value: impl Serialize) -> Value {
    serde_json::to_value(value).expect("JSON")
}

fn fail(id: u64, error: &A2AError) {
    let details = error.details.as_ref().map(to_json);
    say(json!({"id": id, "error": {
        "name": "A2AError", "message": error.message, "code": error.code, "data": details,
    }}));
}

/// Prints one line. Rust flushes stdout after each line, even to a pipe.
fn say(line: Value) {
    println!("{line}");
}
