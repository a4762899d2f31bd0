//! Slash commands of the `development-tool` extension: as its specification has them, and as Google's server ships them,
//! which has addresses of their own for it and no such methods.

use reqwest::Method;
use reqwest::header::{ACCEPT, HeaderValue};
use serde_json::{Value, json};

use super::error::ClientError;
use super::line::{Repeat, Reply};
use super::way::below;
use super::{Client, place};
use crate::devtool::{CommandExecution, SlashCommand};
use crate::error::ErrorKind;
use crate::request::{CommandExecute, Request};

/// What became of a command.
#[derive(Debug, Clone, PartialEq)]
pub enum Executed {
    /// It has a task of its own, which can be followed, asked for and stopped.
    Started(CommandExecution),
    /// It ran to its end, and this is what it brought: so does the shipped server.
    Finished { name: String, data: Value },
}

impl Client {
    /// The slash commands of the agent; those of a context, if it has its own.
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

    /// Runs a slash command.
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
            // It knows neither: what it said of the method counts.
            Err(ClientError::Http { status: 404 | 405, ref tail, .. }) if !tail.contains("\"error\"") => {
                return Err(error);
            }
            Err(other) => return Err(other),
        };
        let data = done.get_mut("data").map(Value::take).unwrap_or_default();
        Ok(Executed::Finished { name, data })
    }

    /// Asks at an address of the shipped server.
    async fn shipped(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
        repeat: Repeat,
    ) -> Result<Value, ClientError> {
        let (way, line) = (&self.agent.way, &self.agent.line);
        let limit = if repeat == Repeat::Safe { self.timeouts.call } else { self.timeouts.send };
        let mut call = way.plain(method, below(&way.url, &[path]));
        call.headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        call.body = body.map(|body| body.to_string());
        match line.exchange(&call, limit, repeat).await? {
            Reply::Whole(answer) if (200..300).contains(&answer.status) => {
                serde_json::from_slice(&answer.body).map_err(ClientError::malformed)
            }
            Reply::Whole(answer) => Err(line.http_error(&answer)),
            Reply::Stream(_) => {
                Err(ClientError::Malformed(format!("{} answered with a stream of events", place::shown(&call.url))))
            }
        }
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

/// The shipped server has the whole path in the name of a command below another.
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
