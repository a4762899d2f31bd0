//! The slash commands of agents: of a session's agent, or of the agent that a new session would have.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use multitap_a2a::devtool::{SlashArgument, SlashCommand};
use multitap_a2a::{Error, ErrorKind};
use multitap_event::{ClientRef, ClientRole, Door, EventKind, Query, SystemSubtype};
use multitap_hub::{Join, JoinFrom, Session, Told};
use serde_json::Value;
use tokio::sync::Semaphore;

use super::command::close;
use super::{Call, Service};
use crate::error;
use crate::http::Shared;

/// Time limit for an agent to list its commands.
const LIST_PATIENCE: Duration = Duration::from_secs(10);
/// Most levels of a name with spaces. Further spaces belong to the last level.
const DEEPEST: usize = 8;
/// How long the list of an agent that had to be started is used.
const FRESH: Duration = Duration::from_secs(600);

/// The commands of the agent that a new session would have, as last listed.
#[derive(Debug)]
pub(super) struct Listed {
    known: Mutex<Option<(Instant, Vec<SlashCommand>)>>,
    /// Only one agent at a time is started for its list.
    asking: Semaphore,
}

impl Default for Listed {
    fn default() -> Self {
        Self { known: Mutex::default(), asking: Semaphore::new(1) }
    }
}

impl Listed {
    fn known(&self) -> Option<Vec<SlashCommand>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.as_ref().filter(|(at, _)| at.elapsed() < FRESH).map(|(_, commands)| commands.clone())
    }

    fn learn(&self, commands: &[SlashCommand]) {
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), commands.to_vec()));
    }
}

impl Service {
    /// The commands of a session's agent; without a session, of the agent that a new one would have.
    pub(crate) async fn list_commands(
        &self,
        door: &Shared,
        call: &Call,
        session: Option<&Session>,
    ) -> Result<Vec<SlashCommand>, Error> {
        if let Some(session) = session {
            return Ok(told_by(session).await?.unwrap_or_default());
        }
        if let Some(known) = door.host().commands().await.map_err(|error| error::from_refusal(&error))? {
            return Ok(known);
        }
        let Ok(_turn) = self.listed.asking.acquire().await else { return Ok(Vec::new()) };
        if let Some(known) = self.listed.known() {
            return Ok(known);
        }
        if call.caller.role == ClientRole::Observer {
            let why = "the agent has to be started to list its commands, and an observer may not start it";
            return Err(Error::new(ErrorKind::NotController, why));
        }
        let session = door.host().ask_agent(call.client()).await.map_err(|error| error::from_refusal(&error))?;
        let told = told_by(&session).await;
        close(&session).await;
        let told = told?;
        // An agent that did not answer is asked again.
        told.iter().for_each(|commands| self.listed.learn(commands));
        Ok(told.unwrap_or_default())
    }
}

/// The commands that a session's agent lists; `None` if it does not answer.
async fn told_by(session: &Session) -> Result<Option<Vec<SlashCommand>>, Error> {
    let me = ClientRef::new("a2a", Door::Host);
    let join = Join { client: me.clone(), from: JoinFrom::Now, patience: None, announce: false };
    let mut feed = session.join(join).await.map_err(|error| error::from_refusal(&error))?.feed;
    session.query(Query::Commands, me).await.map_err(|error| error::from_refusal(&error))?;
    let answer = async {
        while let Some(told) = feed.next().await {
            let Told::Event(entry) = told else { continue };
            if let Some(EventKind::System(note)) = entry.event().map(|event| &event.kind)
                && note.subtype == SystemSubtype::COMMANDS
            {
                return Some(read_commands(&note.data));
            }
        }
        None
    };
    Ok(tokio::time::timeout(LIST_PATIENCE, answer).await.unwrap_or_default())
}

/// The commands as listed by an agent; the format differs between agents.
fn read_commands(data: &serde_json::Map<String, Value>) -> Vec<SlashCommand> {
    let list = data.get("commands").and_then(Value::as_array);
    nested(list.into_iter().flatten().filter_map(read_command))
}

/// Turns names with spaces into sub-commands: some agents list `memory show` beside `memory`.
fn nested(flat: impl Iterator<Item = SlashCommand>) -> Vec<SlashCommand> {
    let mut top = Level::default();
    flat.for_each(|command| top.add(command, 1));
    top.into_commands()
}

/// Commands of one level, each with its sub-commands.
#[derive(Default)]
struct Level {
    commands: Vec<(SlashCommand, Self)>,
    places: HashMap<String, usize>,
}

impl Level {
    fn add(&mut self, mut command: SlashCommand, depth: usize) {
        if let Some((above, below)) = command.name.split_once(char::is_whitespace).filter(|_| depth < DEEPEST) {
            let (above, below) = (above.to_owned(), below.trim().to_owned());
            command.name = below;
            self.named(above).1.add(command, depth + 1);
            return;
        }
        let (known, below) = self.named(command.name.clone());
        std::mem::take(&mut command.sub_commands).into_iter().for_each(|command| below.put(command));
        // It may exist without a description, because a sub-command came first.
        *known = command;
    }

    /// Adds a command by its whole name.
    fn put(&mut self, command: SlashCommand) {
        self.add(command, DEEPEST);
    }

    fn named(&mut self, name: String) -> &mut (SlashCommand, Self) {
        let place = *self.places.entry(name.clone()).or_insert(self.commands.len());
        if place == self.commands.len() {
            self.commands.push((SlashCommand { name, ..SlashCommand::default() }, Self::default()));
        }
        &mut self.commands[place]
    }

    fn into_commands(self) -> Vec<SlashCommand> {
        let whole =
            |(command, below): (SlashCommand, Self)| SlashCommand { sub_commands: below.into_commands(), ..command };
        self.commands.into_iter().map(whole).collect()
    }
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// R000-45: Gemini lists its sub-commands beside their commands, in any order.
    #[test]
    fn a_name_with_spaces_is_a_sub_command() {
        let told = json!({ "commands": [
            { "name": "memory show", "description": "Show" },
            { "name": "memory", "description": "Memory" },
            { "name": "/extensions list" },
            { "name": "memory  add", "input": { "hint": "text" } },
            "init",
        ] });
        let commands = read_commands(told.as_object().unwrap());
        let names = |commands: &[SlashCommand]| -> Vec<String> {
            commands.iter().map(|command| command.name.clone()).collect()
        };
        assert_eq!(names(&commands), ["memory", "extensions", "init"]);
        assert_eq!(commands[0].description, "Memory");
        assert_eq!(names(&commands[0].sub_commands), ["show", "add"]);
        assert_eq!(commands[0].sub_commands[1].arguments[0].name, "text");
        assert_eq!(names(&commands[1].sub_commands), ["list"]);
    }

    /// Each name was once compared with all others.
    #[test]
    fn an_agent_may_have_very_many_commands() {
        let names: Vec<Value> =
            (0..100_000).flat_map(|number| [format!("c{number}"), format!("all s{number}")].map(Value::from)).collect();
        let told = json!({ "commands": names });
        let commands = read_commands(told.as_object().unwrap());
        assert_eq!((commands.len(), commands[1].sub_commands.len()), (100_001, 100_000));
    }

    /// Each space was once a level, and a long name took all of the stack.
    #[test]
    fn a_name_makes_few_levels_whatever_it_holds() {
        let told = json!({ "commands": ["a ".repeat(1_000_000)] });
        let mut level = read_commands(told.as_object().unwrap());
        let mut depth = 0;
        while let Some(command) = level.pop() {
            (depth, level) = (depth + 1, command.sub_commands);
        }
        assert_eq!(depth, DEEPEST);
    }
}
