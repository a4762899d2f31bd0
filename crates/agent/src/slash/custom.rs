//! Custom commands: `commands/NAME.md` in the settings folder, and in `.multitap` of the project.

use std::collections::BTreeMap;
use std::path::Path;

use multitap_event::{AgentCommand, CommandArgument};

/// The largest file that is read.
const MOST: u64 = 256 * 1024;
/// The most commands of one folder, and the longest description of one, in characters.
const MOST_COMMANDS: usize = 500;
const LONGEST_DESCRIPTION: usize = 500;
/// The largest expanded prompt: a template may contain its arguments many times.
const LARGEST_PROMPT: usize = 16 * 1024 * 1024;
const ARGUMENTS: [&str; 2] = ["$ARGUMENTS", "{{args}}"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CustomCommand {
    pub(crate) name: String,
    pub(crate) description: String,
    template: String,
}

impl CustomCommand {
    fn new(name: &str, text: &str) -> Self {
        let (head, body) = head(text);
        let described = head.and_then(|head| {
            let line = head.lines().find_map(|line| line.strip_prefix("description:"))?;
            Some(line.trim().trim_matches('"').chars().take(LONGEST_DESCRIPTION).collect())
        });
        let first = body.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        let first = first.trim_start_matches('#').trim().chars().take(80).collect();
        Self { name: name.to_owned(), description: described.unwrap_or(first), template: body.trim().to_owned() }
    }

    pub(super) fn shown(&self) -> AgentCommand {
        let argument = CommandArgument {
            name: "text".to_owned(),
            description: "Put into the command's text".to_owned(),
            is_required: false,
        };
        AgentCommand {
            name: self.name.clone(),
            description: self.description.clone(),
            arguments: vec![argument],
            sub_commands: Vec::new(),
        }
    }

    /// Expands the template in one pass: placeholders inside the arguments are not expanded.
    pub(super) fn prompt(&self, words: &str) -> Result<String, String> {
        let places = ARGUMENTS.iter().flat_map(|place| self.template.match_indices(place));
        let mut places: Vec<(usize, &str)> = places.collect();
        if places.is_empty() {
            let template = self.template.clone();
            return Ok(if words.is_empty() { template } else { format!("{template}\n\n{words}") });
        }
        places.sort_unstable();
        let made = self.template.len().saturating_add(words.len().saturating_mul(places.len()));
        if made > LARGEST_PROMPT {
            let name = &self.name;
            return Err(format!(
                "the prompt of /{name} would have {made} bytes; the limit is {LARGEST_PROMPT}: shorten the text after it"
            ));
        }
        let mut prompt = String::with_capacity(made);
        let mut from = 0;
        for (at, place) in places {
            prompt.push_str(&self.template[from..at]);
            prompt.push_str(words);
            from = at + place.len();
        }
        prompt.push_str(&self.template[from..]);
        Ok(prompt)
    }
}

/// The front matter between two lines `---`, and the rest.
fn head(text: &str) -> (Option<&str>, &str) {
    let parted = text.strip_prefix("---\n").and_then(|rest| rest.split_once("\n---"));
    match parted {
        Some((head, body)) => (Some(head), body),
        None => (None, text),
    }
}

/// The commands of the user and of the project, by name; on equal names the project's win.
pub(crate) fn load(config: Option<&Path>, folder: &Path) -> Vec<CustomCommand> {
    let mut all = BTreeMap::new();
    let places = config.map(|config| config.join("commands")).into_iter().chain([folder.join(".multitap/commands")]);
    for place in places {
        let Ok(entries) = std::fs::read_dir(&place) else { continue };
        let mut taken = 0;
        for entry in entries.flatten() {
            if taken == MOST_COMMANDS {
                tracing::warn!(folder = %place.display(), "it has more than {MOST_COMMANDS} commands; the rest is left out");
                break;
            }
            let file_name = entry.file_name();
            let Some(name) = file_name.to_str().and_then(|name| name.strip_suffix(".md")) else { continue };
            let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
            // Checked before it is opened: a link to a device never ends, and anybody may have written the project.
            let small = entry.metadata().is_ok_and(|data| data.is_file() && data.len() <= MOST);
            if !is_name || !small {
                continue;
            }
            let Ok(text) = std::fs::read_to_string(entry.path()) else { continue };
            taken += 1;
            all.insert(name.to_owned(), CustomCommand::new(name, &text));
        }
    }
    all.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_a_command() {
        let home = tempfile::tempdir().unwrap();
        let project = tempfile::tempdir().unwrap();
        let put = |folder: &Path, name: &str, text: &str| {
            std::fs::create_dir_all(folder).unwrap();
            std::fs::write(folder.join(name), text).unwrap();
        };
        put(&home.path().join("commands"), "review.md", "# Review\nLook at $ARGUMENTS closely");
        put(&home.path().join("commands"), "ship.md", "mine");
        put(&project.path().join(".multitap/commands"), "ship.md", "---\ndescription: Ship it\n---\nShip.");
        put(&project.path().join(".multitap/commands"), "bad name.md", "x");
        let own = load(Some(home.path()), project.path());
        let names: Vec<_> = own.iter().map(|own| (own.name.as_str(), own.description.as_str())).collect();
        assert_eq!(names, [("review", "Review"), ("ship", "Ship it")]);
        assert_eq!(own[0].prompt("src").unwrap(), "# Review\nLook at src closely");
        assert_eq!(own[1].prompt("now").unwrap(), "Ship.\n\nnow");
    }

    #[test]
    fn words_are_not_a_place_for_words() {
        let own = CustomCommand::new("x", "a $ARGUMENTS b {{args}} c");
        let words = "{{args}}$ARGUMENTS";
        assert_eq!(own.prompt(words).unwrap(), format!("a {words} b {words} c"));
    }

    #[test]
    fn a_prompt_does_not_grow_with_the_square_of_what_is_typed() {
        let own = CustomCommand::new("x", &"$ARGUMENTS".repeat(1000));
        assert_eq!(own.prompt(&"w".repeat(1000)).unwrap().len(), 1_000_000);
        let why = own.prompt(&"w".repeat(20_000)).unwrap_err();
        assert!(why.contains("would have 20010000 bytes"), "{why}");
    }

    #[test]
    fn a_project_brings_so_many_commands_and_no_more() {
        let (home, project) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let commands = project.path().join(".multitap/commands");
        std::fs::create_dir_all(&commands).unwrap();
        std::fs::create_dir_all(home.path().join("commands")).unwrap();
        std::fs::write(home.path().join("commands/mine.md"), "mine").unwrap();
        let text = format!("---\ndescription: {}\n---\nx", "d".repeat(10_000));
        for number in 0..MOST_COMMANDS + 100 {
            std::fs::write(commands.join(format!("c{number}.md")), &text).unwrap();
        }
        let own = load(Some(home.path()), project.path());
        assert_eq!(own.len(), MOST_COMMANDS + 1);
        assert!(own.iter().any(|own| own.name == "mine"), "the user's own are not crowded out");
        assert!(own.iter().all(|own| own.description.chars().count() <= LONGEST_DESCRIPTION));
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_not_opened() {
        let project = tempfile::tempdir().unwrap();
        let commands = project.path().join(".multitap/commands");
        std::fs::create_dir_all(&commands).unwrap();
        std::fs::write(project.path().join("outside.md"), "x").unwrap();
        std::os::unix::fs::symlink(project.path().join("outside.md"), commands.join("link.md")).unwrap();
        // Who opens a pipe that nobody writes to waits for ever.
        let pipe = project.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).unwrap();
        std::os::unix::fs::symlink(&pipe, commands.join("endless.md")).unwrap();
        assert_eq!(load(None, project.path()), []);
    }
}
