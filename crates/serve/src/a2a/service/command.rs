//! Slash commands: listed, and run as prompts of their own.

use multitap_a2a::devtool::{CommandExecution, CommandStatus, ToolCallConfirmation};
use multitap_a2a::{CommandExecute, Error, Request};
use multitap_event::{AgentCommand, Details, SessionId};
use multitap_hub::Session;
use serde_json::{Value, json};

use super::listed::slash_command;
use super::opening::{Action, Opening, Prepared};
use super::{Answer, Call, Item, Service, message};
use crate::a2a::follow::Follow;
use crate::a2a::frame::{Body, Ends};
use crate::a2a::name;
use crate::host::Wanted;
use crate::http::Shared;

impl Service {
    /// `commands/get`
    pub(super) async fn commands(&self, door: &Shared, call: &Call, context: Option<String>) -> Result<String, Error> {
        let session = self.command_session(door, call, context).await?;
        let commands = self.list_commands(door, call, session.as_ref()).await?.into_iter().map(slash_command);
        Ok(json!({ "commands": commands.collect::<Vec<_>>() }).to_string())
    }

    async fn command_session(
        &self,
        door: &Shared,
        call: &Call,
        context: Option<String>,
    ) -> Result<Option<Session>, Error> {
        let shared = door.host.shared();
        let Some(context) = context.filter(|context| !context.is_empty()) else { return Ok(shared) };
        let unknown = || Error::invalid_params(format!("contextId: there is no context {context}"));
        let id = SessionId::from(context.as_str());
        if shared.as_ref().is_some_and(|shared| *shared.id() != id) {
            return Err(unknown());
        }
        self.live(door, call, &id).await?.map(Some).ok_or_else(unknown)
    }

    /// `command/execute`: the command, ready to run; or why it cannot run.
    pub(super) async fn command(
        &self,
        door: &Shared,
        call: &Call,
        execute: &CommandExecute,
    ) -> Result<Prepared, Error> {
        let id = name::fresh_command();
        let session = match self.command_session(door, call, execute.context_id.clone()).await? {
            Some(session) => check(&self.list_commands(door, call, Some(&session)).await?, execute).map(|()| session),
            None => self.open_for(door, call, execute).await?,
        };
        let session = match session {
            Ok(session) => session,
            Err(why) => return Ok(Prepared::Result(not_started(id.as_str(), why))),
        };
        let stage = self.stage(door, &session).await?;
        let notices = self.notices.take(session.id());
        Ok(Prepared::frames(Opening {
            follow: Follow::turn(id.as_str()),
            after: stage.now().cursor,
            form: self.form(door, call, session.id()),
            task: id.as_str().into(),
            by: call.client(),
            view: self.view(door, call, session.id(), id.as_str()),
            action: Action::Command { line: line(execute), notices },
            push: None,
            stage,
        }))
    }

    /// A session for a command without one; `None` for an unknown command.
    async fn open_for(
        &self,
        door: &Shared,
        call: &Call,
        execute: &CommandExecute,
    ) -> Result<Result<Session, String>, Error> {
        if let Err(why) = check(&self.list_commands(door, call, None).await?, execute) {
            return Ok(Err(why));
        }
        Ok(Ok(self.open(door, call, Wanted::bare(call.client())).await?))
    }

    /// Runs a command until it ends or asks something.
    pub(crate) async fn run_command(&self, door: &Shared, call: Call, execute: CommandExecute) -> Result<Ran, Error> {
        let is_bare = execute.context_id.is_none();
        let mut stream = match self.answer(door, call, Request::ExecuteCommand(execute)).await? {
            Answer::Command(stream) => stream,
            Answer::Stream(_) => return Err(Error::internal("a command has no other stream")),
            Answer::Result(failed) => {
                let why = serde_json::from_str::<CommandExecution>(&failed).ok().and_then(|failed| failed.message);
                return Ok(Ran::NotStarted { why: why.unwrap_or(failed) });
            }
        };
        let (mut said, mut asked) = (String::new(), None);
        let mut execution_id = String::new();
        while let Some(item) = stream.next().await {
            match item {
                Item::First(first) => {
                    let first = serde_json::from_str::<CommandExecution>(&first);
                    execution_id = first.map(|first| first.execution_id).unwrap_or_default();
                }
                Item::Frame(frame) => {
                    if let Body::Text { text, by_user: false, .. } = &frame.body {
                        said.push_str(text);
                    }
                    asked = awaited_confirmation(&frame.body).or(asked);
                    if frame.ends == Some(Ends::Turn) {
                        asked = None;
                    }
                }
                // A command has no results of its own.
                Item::Artifact(_) => {}
                Item::Failed(error) => return Err(error),
            }
        }
        let session = stream.session();
        if let (Some(status), Some(session)) = (asked, session) {
            let context_id = session.id().to_string();
            return Ok(Ran::Asked { said, status, execution_id, context_id });
        }
        // No client knows the session that was opened for it.
        if let Some(session) = session.filter(|_| is_bare && door.host.shared().is_none()) {
            close(session).await;
        }
        Ok(Ran::Done { said })
    }

    /// `toolCall/confirm`: an answer without a stream.
    pub(super) async fn confirm(
        &self,
        door: &Shared,
        call: &Call,
        confirmation: &Value,
        task: Option<String>,
        context: Option<String>,
    ) -> Result<Value, Error> {
        let answer = ToolCallConfirmation::read(confirmation)?;
        let session = match (task, context) {
            (Some(task), _) => self.session_of(door, call, &task).await?.0,
            (None, context) => self
                .command_session(door, call, context)
                .await?
                .ok_or_else(|| Error::invalid_params("taskId or contextId: say which session the question is of"))?,
        };
        let stage = self.stage(door, &session).await?;
        let decide = message::decision(&stage, &answer, answer.correlation_id.clone(), &call.client()).await?;
        let task = stage.now().task;
        let ruling = message::decide_on(&session, decide, call.client()).await?;
        let status = if ruling.kind.allows() { "EXECUTING" } else { "CANCELLED" };
        Ok(json!({ "taskId": &*task, "status": status }))
    }
}

/// The outcome of a command that ran to its end.
#[derive(Debug)]
pub(crate) enum Ran {
    Done {
        said: String,
    },
    /// The command asked a question, and continues after the answer.
    Asked {
        said: String,
        status: CommandStatus,
        execution_id: String,
        context_id: String,
    },
    NotStarted {
        why: String,
    },
}

/// Ends a session that is not needed any more.
pub(super) async fn close(session: &Session) {
    if let Err(error) = session.stop().await {
        tracing::debug!(session = %session.id(), %error, "it has ended already");
    }
}

/// The answer to a command that cannot run.
pub(super) fn not_started(id: &str, why: String) -> String {
    let status = CommandStatus::FailedToStart;
    let failed = CommandExecution { execution_id: id.to_owned(), status, message: Some(why) };
    serde_json::to_string(&failed).unwrap_or_default()
}

/// The confirmation that a command waits for, if the frame asks for one.
pub(super) fn awaited_confirmation(body: &Body) -> Option<CommandStatus> {
    let Body::Tool(tool) = body else { return None };
    Some(match tool.asked.as_ref()?.details {
        Details::Command { .. } => CommandStatus::AwaitingShellConfirmation,
        Details::FileEdit { .. }
        | Details::Mcp { .. }
        | Details::Plan { .. }
        | Details::Input { .. }
        | Details::Text { .. } => CommandStatus::AwaitingActionConfirmation,
    })
}

/// The command line that a user would type.
fn line(execute: &CommandExecute) -> String {
    let path = execute.command_path.join(" ");
    let path = path.trim().trim_start_matches('/');
    let args = execute.args.trim();
    if args.is_empty() { format!("/{path}") } else { format!("/{path} {args}") }
}

/// Checks that the command exists and has its required arguments. A sub-command may be a part of the path, or of a name
/// with spaces.
fn check(commands: &[AgentCommand], execute: &CommandExecute) -> Result<(), String> {
    let path = execute.command_path.join(" ");
    let path = path.trim().trim_start_matches('/');
    if path.is_empty() {
        return Err("command_path: name a command".to_owned());
    }
    let (mut below, mut found) = (commands, None);
    for name in path.split_whitespace() {
        let command = below.iter().find(|command| command.name == name);
        let command = command.ok_or_else(|| format!("there is no command /{path}; commands/get lists them"))?;
        (below, found) = (command.sub_commands.as_slice(), Some(command));
    }
    let required = found.and_then(|command| command.arguments.iter().find(|argument| argument.is_required));
    match required.filter(|_| execute.args.trim().is_empty()) {
        Some(argument) => Err(format!("/{path} needs {}", argument.name)),
        None => Ok(()),
    }
}
