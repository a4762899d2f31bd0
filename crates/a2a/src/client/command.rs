//! Slash commands of the `development-tool` extension, in the form of its specification (JSON-RPC methods) and in that
//! of Google's server (separate paths).

use reqwest::Method;
use reqwest::header::{ACCEPT, HeaderValue};
use serde_json::{Value, json};

use super::Client;
use super::binding::below;
use super::error::ClientError;
use super::http::Repeat;
use crate::devtool::{CommandExecution, SlashCommand};
use crate::error::ErrorKind;
use crate::request::{CommandExecute, Request};

/// The result of starting a command.
#[derive(Debug, Clone, PartialEq)]
pub enum Executed {
    /// The command runs as a task, which can be followed, read and cancelled.
    Started(CommandExecution),
    /// The command ran to its end, with this output. Google's server answers this way.
    Finished { name: String, data: Value },
}

impl Client {
    pub async fn commands(&self, context: Option<&str>) -> Result<Vec<SlashCommand>, ClientError> {
        let request = Request::GetCommands { context_id: context.map(str::to_owned) };
        let result = match self.ask(&request, self.timeouts.call, Repeat::Safe).await {
            Err(error) if is_unknown(&error) => {
                self.shipped(Method::GET, "listCommands", None, Repeat::Safe).await.map_err(|_| error)?
            }
            other => other?,
        };
        let list = result.get("commands").cloned().unwrap_or_default();
        let mut commands: Vec<SlashCommand> = serde_json::from_value(list).map_err(ClientError::malformed)?;
        for command in &mut commands {
            shorten(command, "");
        }
        Ok(commands)
    }

    pub async fn execute(&self, command: CommandExecute) -> Result<Executed, ClientError> {
        let request = Request::ExecuteCommand(command.clone());
        let error = match self.ask(&request, self.timeouts.call, Repeat::Never).await {
            Ok(result) => {
                return serde_json::from_value(result).map(Executed::Started).map_err(ClientError::malformed);
            }
            Err(error) if is_unknown(&error) => error,
            Err(error) => return Err(error),
        };
        let name = command.command_path.join(" ");
        let args: Vec<&str> = command.args.split_whitespace().collect();
        let body = json!({ "command": name, "args": args });
        let mut done = match self.shipped(Method::POST, "executeCommand", Some(body), Repeat::Never).await {
            Ok(done) => done,
            // The agent has neither address: its answer to the method counts.
            Err(ClientError::Http { status: 404 | 405, ref tail, .. }) if !tail.contains("\"error\"") => {
                return Err(error);
            }
            Err(other) => return Err(other),
        };
        let data = done.get_mut("data").map(Value::take).unwrap_or_default();
        Ok(Executed::Finished { name, data })
    }

    /// Calls an address that only Google's server has.
    async fn shipped(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
        repeat: Repeat,
    ) -> Result<Value, ClientError> {
        let (binding, http) = (&self.agent.binding, &self.agent.http);
        let limit = if repeat == Repeat::Safe { self.timeouts.call } else { self.timeouts.send };
        let mut call = binding.plain(method, below(&binding.url, &[path]));
        call.headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        call.body = body.map(|body| body.to_string());
        let answer = http.whole(&call, limit, repeat).await?;
        if !(200..300).contains(&answer.status) {
            return Err(http.http_error(&answer));
        }
        crate::json::parse(&answer.body).map_err(ClientError::malformed)
    }
}

/// Whether the agent, or the transport, has no such method.
fn is_unknown(error: &ClientError) -> bool {
    match error {
        ClientError::Agent(error) => error.kind == ErrorKind::MethodNotFound,
        ClientError::NotSpoken { .. } => true,
        _ => false,
    }
}

/// Google's server names a sub-command by its whole path.
fn shorten(command: &mut SlashCommand, above: &str) {
    let path = command.name.clone();
    if let Some(name) = path.strip_prefix(above) {
        name.clone_into(&mut command.name);
    }
    let below = format!("{path} ");
    for sub in &mut command.sub_commands {
        shorten(sub, &below);
    }
}
