//! Applies rules to a shell command, and creates rules from "always" answers.

use super::rule::Rule;
use crate::command::{Candidates, Script, Simple, is_runner, runs_others};

/// The verdict of the block rules on a shell command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Blocked<'a> {
    No,
    By(&'a Rule),
    /// Part of it cannot be parsed, and there are block rules.
    CannotTell,
}

/// With more commands than this, an "always" answer covers exactly this shell command.
const MANY: usize = 4;

/// Programs whose first argument is a subcommand.
const WITH_COMMANDS: &str = "apt brew bundle cargo composer docker dotnet gh git go gradle helm kubectl make mvn npm pip pip3 pnpm podman \
     poetry systemctl terraform uv yarn";

/// Programs that can do harm by their arguments alone: a rule covers exactly this shell command.
const HARMFUL: &[&str] = &[
    "chmod", "chown", "curl", "dd", "kill", "killall", "ln", "mkfs", "mv", "nc", "pkill", "rm", "rmdir", "rsync",
    "scp", "shred", "ssh", "tee", "truncate", "wget",
];

/// Whether the rules allow every command in it. One that cannot be parsed is allowed only by an exact rule.
pub(super) fn allowed(rules: &[Rule], line: &str) -> bool {
    if rules.iter().any(|rule| matches!(rule, Rule::Line(allowed) if allowed == line.trim())) {
        return true;
    }
    let Ok(script) = Script::parse(line) else { return false };
    script.commands.iter().all(|simple| rules.iter().any(|rule| allows(rule, simple)))
}

fn allows(rule: &Rule, simple: &Simple) -> bool {
    match rule {
        Rule::Begins(words) => simple.begins_with(words) && !says_what_to_run(simple, words),
        Rule::Line(line) => Script::parse(line).is_ok_and(|script| script.commands == [simple.clone()]),
        Rule::Tool(_) | Rule::Edits | Rule::Host(_) | Rule::Server(_) | Rule::McpTool { .. } => false,
    }
}

/// Whether the command names another program to run and the rule does not name it: allowing `tar` does not allow `tar
/// --to-command=…`. Build tools are allowed with everything they run.
fn says_what_to_run(simple: &Simple, rule: &[String]) -> bool {
    let name = simple.name();
    (name == "git" || !has_commands(name)) && simple.runs_others() && !runs_others(rule)
}

/// Whether the rules block any command in it. An exact rule blocks every command that begins with it: a user who blocks
/// `rm` does not mean only `rm` without arguments.
pub(super) fn blocked<'a>(rules: &'a [Rule], line: &str) -> Blocked<'a> {
    let blocking: Vec<_> = rules.iter().filter_map(|rule| Some((rule, beginnings(rule)?))).collect();
    if blocking.is_empty() {
        return Blocked::No;
    }
    let plain = Script::parse(line).ok().filter(|script| !script.hides_commands());
    let seen = plain.as_ref().map_or_else(|| Candidates::through(line), Candidates::of);
    let hit = |begin: &Vec<String>| seen.begins_with(begin);
    let by_line = |rule: &Rule| matches!(rule, Rule::Line(blocked) if blocked == line.trim());
    match blocking.iter().find(|(rule, begins)| by_line(rule) || begins.iter().any(hit)) {
        Some((rule, _)) => Blocked::By(rule),
        None if blocking.iter().flat_map(|(_, begins)| begins).any(|begin| seen.may_begin_with(begin)) => {
            Blocked::CannotTell
        }
        None if plain.is_some() => Blocked::No,
        None => Blocked::CannotTell,
    }
}

fn words_of(simple: &Simple) -> Vec<String> {
    without_folder(simple.words.iter().map(|word| word.text.clone()).collect())
}

/// A command's words, with the program's name but not its folder.
fn without_folder(mut words: Vec<String>) -> Vec<String> {
    if let Some(name) = words.first_mut()
        && let Some((_, base)) = name.rsplit_once('/')
    {
        *name = base.to_owned();
    }
    words
}

/// The prefixes that the rule blocks; `None` if it is not about commands.
fn beginnings(rule: &Rule) -> Option<Vec<Vec<String>>> {
    match rule {
        Rule::Begins(words) => Some(vec![without_folder(words.clone())]),
        Rule::Line(line) => Some(match Script::parse(line) {
            Ok(script) if script.commands.len() == 1 => script.commands.iter().map(words_of).collect(),
            _ => Vec::new(),
        }),
        Rule::Tool(_) | Rule::Edits | Rule::Host(_) | Rule::Server(_) | Rule::McpTool { .. } => None,
    }
}

/// The rules that allow this shell command and similar ones from now on.
pub(super) fn always(line: &str) -> Vec<Rule> {
    let exactly = || vec![Rule::Line(line.trim().to_owned())];
    let Ok(script) = Script::parse(line) else { return exactly() };
    if script.commands.len() > MANY {
        return exactly();
    }
    let Some(begins) = script.commands.iter().map(beginning).collect::<Option<Vec<_>>>() else { return exactly() };
    let mut rules: Vec<Rule> = Vec::new();
    for rule in begins.into_iter().map(Rule::Begins) {
        if !rules.contains(&rule) {
            rules.push(rule);
        }
    }
    rules
}

fn has_commands(name: &str) -> bool {
    WITH_COMMANDS.split(' ').any(|program| program == name)
}

/// The words that identify this kind of command; `None` if a rule must cover the whole command.
fn beginning(simple: &Simple) -> Option<Vec<String>> {
    let certain = |place: usize| {
        let word = simple.words.get(place).filter(|word| !word.glob)?;
        let plain = |char: char| char.is_ascii_alphanumeric() || "-_:.".contains(char);
        let command = word.text.starts_with(|char: char| char.is_ascii_alphanumeric()) && word.text.chars().all(plain);
        command.then(|| word.text.clone())
    };
    let name = simple.name();
    if is_runner(name) || name.contains('/') {
        return None;
    }
    if !has_commands(name) {
        return (!HARMFUL.contains(&name)).then(|| vec![name.to_owned()]);
    }
    let command = certain(1)?;
    let mut words = vec![name.to_owned(), command.clone()];
    if command == "run" || command == "exec" || command == "x" {
        words.push(certain(2)?);
    }
    Some(words)
}
