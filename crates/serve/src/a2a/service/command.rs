//! Slash commands: listed, and run as prompts of their own.

use std::sync::Arc;
use std::time::Duration;

use multitap_a2a::devtool::{CommandExecution, CommandStatus, SlashCommand, ToolCallConfirmation};
use multitap_a2a::{CommandExecute, Error, Request};
use multitap_event::{AgentError, ClientRef, Details, Prompt, PromptId, SessionId};
use multitap_hub::{Journal, Session, WhenBusy};
use serde_json::{Value, json};

use super::opening::{Beginning, Begun, Opening};
use super::{Answer, Call, Item, Service, plan};
use crate::a2a::cursor::Cursor;
use crate::a2a::follow::{Follow, Step};
use crate::a2a::frame::{Body, Ends, Form};
use crate::a2a::stage::Stage;
use crate::a2a::{keep, name};
use crate::host::Wanted;
use crate::http::Shared;

/// How long a command has to ask something, before it is said to have started.
const ASK_PATIENCE: Duration = Duration::from_secs(1);

impl Service {
    /// `commands/get`.
    pub(super) async fn commands(&self, door: &Shared, call: &Call, context: Option<String>) -> Result<String, Error> {
        let session = self.command_session(door, call, context).await?;
        Ok(json!({ "commands": self.list_commands(door, call, session.as_ref()).await? }).to_string())
    }

    async fn command_session(
        &self,
        door: &Shared,
        call: &Call,
        context: Option<String>,
    ) -> Result<Option<Session>, Error> {
        let shared = door.host().shared();
        let Some(context) = context.filter(|context| !context.is_empty()) else { return Ok(shared) };
        let unknown = || Error::invalid_params(format!("contextId: there is no context {context}"));
        let id = SessionId::from(context.as_str());
        if shared.as_ref().is_some_and(|shared| *shared.id() != id) {
            return Err(unknown());
        }
        self.live(door, call, &id).await?.map(Some).ok_or_else(unknown)
    }

    /// `command/execute`: the command, ready to be run; or what it comes to if it cannot be.
    pub(super) async fn execution(
        &self,
        door: &Shared,
        call: &Call,
        execute: &CommandExecute,
    ) -> Result<Beginning, Error> {
        let id = name::fresh_command();
        let session = match self.command_session(door, call, execute.context_id.clone()).await? {
            Some(session) => check(&self.list_commands(door, call, Some(&session)).await?, execute).map(|()| session),
            None => self.open_for(door, call, execute).await?,
        };
        let session = match session {
            Ok(session) => session,
            Err(why) => return Ok(Beginning::Result(not_started(&id, why))),
        };
        let stage = self.stage(door, &session).await?;
        let form = self.form(door, call, session.id());
        let after = stage.now().cursor;
        let (line, by, journal) = (line(execute), call.client(), door.host().journal());
        let notices = self.notices.take(session.id());
        let execution = Execution { stage, form, after, id, line, notices, by, journal };
        Ok(Beginning::Opening(Opening::Command(execution)))
    }

    /// A session for a command that comes without one; none for a command that there is not.
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
                    asked = awaits(&frame.body).or(asked);
                    if frame.ends == Some(Ends::Turn) {
                        asked = None;
                    }
                }
                Item::Failed(error) => return Err(error),
            }
        }
        let session = stream.session();
        if let (Some(status), Some(session)) = (asked, session) {
            let context_id = session.id().to_string();
            return Ok(Ran::Asked { said, status, execution_id, context_id });
        }
        // Nobody was told of the session that was opened for it.
        if let Some(session) = session.filter(|_| is_bare && door.host().shared().is_none()) {
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
        let decide = plan::decision(&stage, &answer, answer.correlation_id.clone(), &call.client()).await?;
        let task = stage.now().task;
        let ruling = plan::decide_on(&session, decide, call.client()).await?;
        let status = if ruling.kind.allows() { "EXECUTING" } else { "CANCELLED" };
        Ok(json!({ "taskId": &*task, "status": status }))
    }
}

/// What became of a command that was run to its end.
#[derive(Debug)]
pub(crate) enum Ran {
    Done {
        said: String,
    },
    /// It asked something, and goes on once somebody answers.
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

/// Lets a session end that nobody needs any more.
pub(super) async fn close(session: &Session) {
    if let Err(error) = session.stop().await {
        tracing::debug!(session = %session.id(), %error, "it has ended already");
    }
}

/// A command that is known and complete, not yet run.
#[derive(Debug)]
pub(crate) struct Execution {
    pub(crate) stage: Arc<Stage>,
    pub(crate) form: Form,
    pub(crate) after: Cursor,
    id: PromptId,
    line: String,
    notices: Vec<AgentError>,
    by: ClientRef,
    journal: Arc<dyn Journal>,
}

impl Execution {
    pub(crate) fn follow(&self) -> Follow {
        Follow::turn(self.id.as_str())
    }

    /// Runs it, and says what became of it at once; its frames follow after the place it was made at.
    pub(super) async fn run(self) -> Begun {
        let (mut reader, mut follow) = (self.stage.read(self.after), self.follow());
        let prompt = Prompt { prompt_id: Some(self.id.clone()), notices: self.notices, ..Prompt::text(self.line) };
        let session = self.stage.session();
        let begun = keep::NewTask::before(session, self.id.as_str());
        if let Err(error) = session.prompt(prompt, WhenBusy::Queue, self.by).await {
            return Begun::Result(not_started(&self.id, error.to_string()));
        }
        begun.accepted(&self.journal).await;
        let asked = async {
            let mut status = CommandStatus::Started;
            // The stream that follows reports an unreadable log.
            while let Ok(Some(frame)) = reader.next().await {
                match follow.step(&frame) {
                    Step::Skip => {}
                    Step::Pass => status = awaits(&frame.body).unwrap_or(status),
                    Step::Last if frame.ends == Some(Ends::Asked) => return status,
                    Step::Last => return CommandStatus::Started,
                }
            }
            CommandStatus::Started
        };
        let status = tokio::time::timeout(ASK_PATIENCE, asked).await.unwrap_or(CommandStatus::Started);
        let execution = CommandExecution { execution_id: self.id.to_string(), status, message: None };
        Begun::Stream { first: serde_json::to_string(&execution).ok(), after: self.after }
    }
}

fn not_started(id: &PromptId, why: String) -> String {
    let status = CommandStatus::FailedToStart;
    let failed = CommandExecution { execution_id: id.to_string(), status, message: Some(why) };
    serde_json::to_string(&failed).unwrap_or_default()
}

/// What a command waits for, if a frame asks.
fn awaits(body: &Body) -> Option<CommandStatus> {
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

/// The command as somebody would type it.
fn line(execute: &CommandExecute) -> String {
    let path = execute.command_path.join(" ");
    let path = path.trim().trim_start_matches('/');
    let args = execute.args.trim();
    if args.is_empty() { format!("/{path}") } else { format!("/{path} {args}") }
}

/// Whether there is such a command, and what it cannot do without is there. A sub-command may be a part of the path or
/// of a name with spaces.
fn check(commands: &[SlashCommand], execute: &CommandExecute) -> Result<(), String> {
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
