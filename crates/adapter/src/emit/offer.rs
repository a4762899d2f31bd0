//! The commands and models that agents list, each in its own format, as capabilities.

use std::collections::HashMap;

use multitap_event::{AgentCapabilities, AgentCommand, AgentModel, CommandArgument, EventKind};
use serde::Deserialize as _;
use serde_json::Value;

use crate::json::JsonFields as _;

/// Maximum number of levels in a name with spaces. Further spaces belong to the last name.
const DEEPEST: usize = 8;

pub(crate) fn commands_event(list: &[Value]) -> EventKind {
    EventKind::Capabilities(AgentCapabilities { commands: Some(commands(list)), ..AgentCapabilities::default() })
}

pub(crate) fn models_event(models: Vec<AgentModel>) -> EventKind {
    EventKind::Capabilities(AgentCapabilities { models: Some(models), ..AgentCapabilities::default() })
}

/// Turns commands with spaces in their names into sub-commands: some agents list `memory show` after `memory`.
pub(crate) fn commands(list: &[Value]) -> Vec<AgentCommand> {
    let mut top = Level::default();
    list.iter().filter_map(command).for_each(|command| top.add(command, 1));
    top.into_commands()
}

/// Models that an agent hides are left out.
pub(crate) fn models(list: &[Value]) -> Vec<AgentModel> {
    let model = |value: &Value| {
        let ids = ["value", "modelId", "id", "model", "name"];
        let id = value.as_str().or_else(|| ids.into_iter().find_map(|key| value.text(key)))?.to_owned();
        let name = value.string("displayName").or(value.string("name")).filter(|name| *name != id);
        let description = value.string("description").unwrap_or_default();
        (!value.flag("hidden")).then_some(AgentModel { id, name, description })
    };
    list.iter().filter_map(model).collect()
}

fn command(value: &Value) -> Option<AgentCommand> {
    let name = value.as_str().or(value.text("name"))?.trim_start_matches('/').to_owned();
    let description = value.string("description").unwrap_or_default();
    let arguments = match value.field("arguments").or(value.field("args")).and_then(Value::as_array) {
        Some(listed) => listed.iter().filter_map(|argument| CommandArgument::deserialize(argument).ok()).collect(),
        // Some agents give only a hint about the arguments.
        None => {
            let hint = value.string("argumentHint").or(value.field("input").string("hint"));
            let hint = hint.filter(|hint| !hint.is_empty());
            hint.map(|name| CommandArgument { name, ..CommandArgument::default() }).into_iter().collect()
        }
    };
    let below = value.field("subCommands").or(value.field("sub_commands")).and_then(Value::as_array);
    let sub_commands = below.into_iter().flatten().filter_map(command).collect();
    (!name.is_empty()).then_some(AgentCommand { name, description, arguments, sub_commands })
}

/// Commands of one level, each with its sub-commands.
#[derive(Default)]
struct Level {
    commands: Vec<(AgentCommand, Self)>,
    places: HashMap<String, usize>,
}

impl Level {
    fn add(&mut self, mut command: AgentCommand, depth: usize) {
        if let Some((above, below)) = command.name.split_once(char::is_whitespace).filter(|_| depth < DEEPEST) {
            let (above, below) = (above.to_owned(), below.trim().to_owned());
            command.name = below;
            self.named(above).1.add(command, depth + 1);
            return;
        }
        let (known, below) = self.named(command.name.clone());
        for sub_command in std::mem::take(&mut command.sub_commands) {
            below.add(sub_command, DEEPEST);
        }
        // A sub-command that came first may have added the command without its description.
        *known = command;
    }

    fn named(&mut self, name: String) -> &mut (AgentCommand, Self) {
        let place = *self.places.entry(name.clone()).or_insert(self.commands.len());
        if place == self.commands.len() {
            self.commands.push((AgentCommand { name, ..AgentCommand::default() }, Self::default()));
        }
        &mut self.commands[place]
    }

    fn into_commands(self) -> Vec<AgentCommand> {
        let whole =
            |(command, below): (AgentCommand, Self)| AgentCommand { sub_commands: below.into_commands(), ..command };
        self.commands.into_iter().map(whole).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn names(commands: &[AgentCommand]) -> Vec<&str> {
        commands.iter().map(|command| command.name.as_str()).collect()
    }

    fn read(list: &Value) -> Vec<AgentCommand> {
        commands(list.as_array().unwrap())
    }

    /// R000-45: Gemini lists its sub-commands beside their commands, in any order.
    #[test]
    fn a_name_with_spaces_is_a_sub_command() {
        let commands = read(&json!([
            { "name": "memory show", "description": "Show" },
            { "name": "memory", "description": "Memory" },
            { "name": "/extensions list" },
            { "name": "memory  add", "input": { "hint": "text" } },
            "init",
        ]));
        assert_eq!(names(&commands), ["memory", "extensions", "init"]);
        assert_eq!(commands[0].description, "Memory");
        assert_eq!(names(&commands[0].sub_commands), ["show", "add"]);
        assert_eq!(commands[0].sub_commands[1].arguments[0].name, "text");
        assert_eq!(names(&commands[1].sub_commands), ["list"]);
    }

    #[test]
    fn the_words_of_every_agent_are_understood() {
        let commands = read(&json!([
            "/init",
            { "name": "review", "description": "Look", "argumentHint": "FILE" },
            { "name": "memory", "subCommands": [{ "name": "add", "arguments": [{ "name": "text", "isRequired": true }] }] },
            { "description": "nothing" },
        ]));
        assert_eq!(names(&commands), ["init", "review", "memory"]);
        assert_eq!(commands[1].arguments[0].name, "FILE");
        assert!(commands[2].sub_commands[0].arguments[0].is_required);

        let list = [json!("haiku"), json!({ "value": "opus", "displayName": "Opus", "description": "Large" })];
        let hidden = json!({ "id": "old", "hidden": true });
        let models = models(&[&list[..], &[hidden]].concat());
        let opus = AgentModel { id: "opus".into(), name: Some("Opus".into()), description: "Large".into() };
        assert_eq!(models, [AgentModel { id: "haiku".into(), ..AgentModel::default() }, opus]);
    }

    /// Each name was once compared with all others.
    #[test]
    fn an_agent_may_have_very_many_commands() {
        let names = (0..100_000).flat_map(|number| [format!("c{number}"), format!("all s{number}")].map(Value::from));
        let commands = commands(&names.collect::<Vec<_>>());
        assert_eq!((commands.len(), commands[1].sub_commands.len()), (100_001, 100_000));
    }

    /// Each space was once a level, and a long name took all of the stack.
    #[test]
    fn a_name_makes_few_levels_whatever_it_holds() {
        let mut level = commands(&["a ".repeat(1_000_000).into()]);
        let mut depth = 0;
        while let Some(command) = level.pop() {
            (depth, level) = (depth + 1, command.sub_commands);
        }
        assert_eq!(depth, DEEPEST);
    }
}
