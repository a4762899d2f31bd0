//! What the rules say about a line for the shell, and which rules an answer for good makes of it.

use super::rule::Rule;
use crate::command::{Script, Sight, Simple, is_runner, runs_others};

/// What rules that block say about a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Blocked<'a> {
    No,
    By(&'a Rule),
    /// Something of it cannot be seen, and there are commands that must not run.
    CannotTell,
}

/// How many commands a line may have before an answer for good is about that line alone.
const MANY: usize = 4;

/// Programs whose first argument says what they do.
const WITH_COMMANDS: &[&str] = &[
    "apt",
    "brew",
    "bundle",
    "cargo",
    "composer",
    "docker",
    "dotnet",
    "gh",
    "git",
    "go",
    "gradle",
    "helm",
    "kubectl",
    "make",
    "mvn",
    "npm",
    "pip",
    "pip3",
    "pnpm",
    "podman",
    "poetry",
    "systemctl",
    "terraform",
    "uv",
    "yarn",
];

/// Programs that can do harm by what they are given alone: an answer is about the line that was seen.
const HARMFUL: &[&str] = &[
    "chmod", "chown", "curl", "dd", "kill", "killall", "ln", "mkfs", "mv", "nc", "pkill", "rm", "rmdir", "rsync",
    "scp", "shred", "ssh", "tee", "truncate", "wget",
];

/// Whether the rules allow every command of the line. A line that nobody can be sure of is allowed only as it is.
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

/// Whether the command tells its program what else to run where the rule does not: who allows `tar` does not mean
/// `tar --to-command=…`. Programs that build a project are allowed with what they run.
fn says_what_to_run(simple: &Simple, rule: &[String]) -> bool {
    let name = simple.name();
    (name == "git" || !WITH_COMMANDS.contains(&name)) && simple.runs_others() && !runs_others(rule)
}

/// Whether the rules block any command of the line. In a rule that blocks, a line stands for all that begins with it:
/// who blocks `rm` does not mean `rm` without arguments.
pub(super) fn blocked<'a>(rules: &'a [Rule], line: &str) -> Blocked<'a> {
    let blocking: Vec<_> = rules.iter().filter_map(|rule| Some((rule, beginnings(rule)?))).collect();
    if blocking.is_empty() {
        return Blocked::No;
    }
    let plain = Script::parse(line).ok().filter(|script| !script.hides_commands());
    let seen = plain.as_ref().map_or_else(|| Sight::through(line), Sight::of);
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

/// A command's words, its name without the way to it.
fn without_folder(mut words: Vec<String>) -> Vec<String> {
    if let Some(name) = words.first_mut()
        && let Some((_, base)) = name.rsplit_once('/')
    {
        *name = base.to_owned();
    }
    words
}

/// How commands begin that the rule blocks; nothing if it is not about commands.
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

/// The rules that allow this line and its like from now on.
pub(super) fn always(line: &str) -> Vec<Rule> {
    let exactly = || vec![Rule::Line(line.trim().to_owned())];
    let Ok(script) = Script::parse(line) else { return exactly() };
    if script.commands.len() > MANY {
        return exactly();
    }
    let mut rules = Vec::new();
    for simple in &script.commands {
        match beginning(simple) {
            Some(words) if !rules.contains(&Rule::Begins(words.clone())) => rules.push(Rule::Begins(words)),
            Some(_) => {}
            None => return exactly(),
        }
    }
    rules
}

/// The words that say what kind of command it is; none if only all of it does.
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
    if !WITH_COMMANDS.contains(&name) {
        return (!HARMFUL.contains(&name)).then(|| vec![name.to_owned()]);
    }
    let command = certain(1)?;
    let mut words = vec![name.to_owned(), command.clone()];
    if command == "run" || command == "exec" || command == "x" {
        words.push(certain(2)?);
    }
    Some(words)
}
