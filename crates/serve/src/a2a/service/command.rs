//! Slash commands: listed, and run as prompts of their own.

use std::sync::Arc;
use std::time::Duration;

use multitap_a2a::devtool::{CommandExecution, CommandStatus, SlashArgument, SlashCommand, ToolCallConfirmation};
use multitap_a2a::{CommandExecute, Error, Request};
use multitap_event::{ClientRef, Details, Door, EventKind, Prompt, PromptId, Query, SessionId, SystemSubtype};
use multitap_hub::{Join, JoinFrom, Journal, Session, Told, WhenBusy};
use serde_json::{Value, json};

use super::opening::{Beginning, Begun, Opening};
use super::{Answer, Call, Item, Service, plan, wish};
use crate::a2a::cursor::Cursor;
use crate::a2a::follow::{Follow, Step};
use crate::a2a::frame::{Body, Ends, Form};
use crate::a2a::stage::Stage;
use crate::a2a::{keep, name};
use crate::error;
use crate::http::Shared;

/// How long an agent may take to tell its commands.
const LIST_PATIENCE: Duration = Duration::from_secs(5);
/// How long a command has to ask something, before it is said to have started.
const ASK_PATIENCE: Duration = Duration::from_secs(1);

impl Service {
    /// `commands/get`.
    pub(super) async fn commands(&self, door: &Shared, call: &Call, context: Option<String>) -> Result<String, Error> {
        let session = self.command_session(door, call, context).await?;
        Ok(json!({ "commands": self.list_commands(door, session.as_ref()).await? }).to_string())
    }

    /// The commands of a session's agent; without a session, of one that would be opened now.
    pub(crate) async fn list_commands(
        &self,
        door: &Shared,
        session: Option<&Session>,
    ) -> Result<Vec<SlashCommand>, Error> {
        let Some(session) = session else { return Ok(door.host().commands()) };
        let me = ClientRef::new("a2a", Door::Host);
        let join = Join { client: me.clone(), from: JoinFrom::Now, patience: None, announce: false };
        let mut feed = session.join(join).await.map_err(|error| error::from_join(&error))?.feed;
        session.query(Query::Commands, me).await.map_err(|error| error::from_command(&error))?;
        let answer = async {
            while let Some(told) = feed.next().await {
                let Told::Event(entry) = told else { continue };
                if let Some(EventKind::System(note)) = entry.event().map(|event| &event.kind)
                    && note.subtype == SystemSubtype::COMMANDS
                {
                    return read_commands(&note.data);
                }
            }
            Vec::new()
        };
        // An agent that does not tell has none that anybody knows.
        Ok(tokio::time::timeout(LIST_PATIENCE, answer).await.unwrap_or_default())
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
            Some(session) => check(&self.list_commands(door, Some(&session)).await?, execute).map(|()| session),
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
        let execution = Execution { stage, form, after, id, line, by, journal };
        Ok(Beginning::Opening(Opening::Command(execution)))
    }

    /// A session for a command that comes without one; none for a command that there is not.
    async fn open_for(
        &self,
        door: &Shared,
        call: &Call,
        execute: &CommandExecute,
    ) -> Result<Result<Session, String>, Error> {
        let known = door.host().commands();
        // Some agents tell their commands only once they run.
        if !known.is_empty()
            && let Err(why) = check(&known, execute)
        {
            return Ok(Err(why));
        }
        let session = self.open(door, call, wish::bare(call.client())).await?.session;
        if known.is_empty()
            && let Err(why) = check(&self.list_commands(door, Some(&session)).await?, execute)
        {
            close(&session).await;
            return Ok(Err(why));
        }
        Ok(Ok(session))
    }

    /// Runs a command to its end, and gives back what it said; or why it did not run.
    pub(crate) async fn run_command(
        &self,
        door: &Shared,
        call: Call,
        execute: CommandExecute,
    ) -> Result<Result<String, String>, Error> {
        let is_bare = execute.context_id.is_none();
        let mut stream = match self.answer(door, call, Request::ExecuteCommand(execute)).await? {
            Answer::Command(stream) => stream,
            Answer::Stream(_) => return Err(Error::internal("a command has no other stream")),
            Answer::Result(failed) => {
                let why = serde_json::from_str::<CommandExecution>(&failed).ok().and_then(|failed| failed.message);
                return Ok(Err(why.unwrap_or(failed)));
            }
        };
        let mut said = String::new();
        while let Some(item) = stream.next().await {
            if let Item::Frame(frame) = item
                && let Body::Text { text, by_user: false, .. } = &frame.body
            {
                said.push_str(text);
            }
        }
        // Nobody was told of the session that was opened for it, and nobody answers what it may ask.
        if let Some(session) = stream.session().filter(|_| is_bare && door.host().shared().is_none()) {
            close(session).await;
        }
        Ok(Ok(said))
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
        let decide = plan::decision(&stage, &answer, answer.correlation_id.clone()).await?;
        let task = stage.now().task;
        let ruling = plan::decide_on(&session, decide, call.client()).await?;
        let status = if ruling.kind.allows() { "EXECUTING" } else { "CANCELLED" };
        Ok(json!({ "taskId": &*task, "status": status }))
    }
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
        let prompt = Prompt { prompt_id: Some(self.id.clone()), ..Prompt::text(self.line) };
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
    let args = execute.args.trim();
    if args.is_empty() { format!("/{path}") } else { format!("/{path} {args}") }
}

/// Whether there is such a command, and what it cannot do without is there.
fn check(commands: &[SlashCommand], execute: &CommandExecute) -> Result<(), String> {
    let Some((first, rest)) = execute.command_path.split_first() else {
        return Err("command_path: name a command".to_owned());
    };
    let mut command = find(commands, first).ok_or_else(|| format!("there is no command /{first}"))?;
    for part in rest {
        command = find(&command.sub_commands, part)
            .ok_or_else(|| format!("there is no command /{}", execute.command_path.join(" ")))?;
    }
    let required = command.arguments.iter().find(|argument| argument.is_required);
    match required.filter(|_| execute.args.trim().is_empty()) {
        Some(argument) => Err(format!("/{} needs {}", execute.command_path.join(" "), argument.name)),
        None => Ok(()),
    }
}

fn find<'a>(commands: &'a [SlashCommand], name: &str) -> Option<&'a SlashCommand> {
    commands.iter().find(|command| command.name == name.trim_start_matches('/'))
}

/// The commands as an agent told them, each agent in its own way.
fn read_commands(data: &serde_json::Map<String, Value>) -> Vec<SlashCommand> {
    let list = data.get("commands").and_then(Value::as_array);
    list.into_iter().flatten().filter_map(read_command).collect()
}

fn read_command(value: &Value) -> Option<SlashCommand> {
    if let Some(name) = value.as_str() {
        return Some(SlashCommand { name: name.trim_start_matches('/').to_owned(), ..SlashCommand::default() });
    }
    let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default();
    let name = text("name").trim_start_matches('/').to_owned();
    let listed = |keys: [&str; 2]| keys.into_iter().find_map(|key| value.get(key)?.as_array()).into_iter().flatten();
    let mut arguments: Vec<SlashArgument> =
        listed(["arguments", "args"]).filter_map(|argument| serde_json::from_value(argument.clone()).ok()).collect();
    // Some agents only hint at them.
    let hint = value.get("argumentHint").or_else(|| value.pointer("/input/hint")).and_then(Value::as_str);
    if let Some(hint) = hint.filter(|hint| !hint.is_empty() && arguments.is_empty()) {
        arguments.push(SlashArgument { name: hint.to_owned(), ..SlashArgument::default() });
    }
    let sub_commands = listed(["subCommands", "sub_commands"]).filter_map(read_command).collect();
    (!name.is_empty()).then(|| SlashCommand {
        name,
        description: text("description").to_owned(),
        arguments,
        sub_commands,
    })
}
