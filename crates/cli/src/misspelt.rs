//! Detects misspelt subcommands, which must not become prompts.

use clap::CommandFactory as _;

use crate::args::{Cli, RunArgs};

/// Minimum length of a command for which two wrong letters count as a typo.
const LONG: usize = 5;

/// The hint if the first word looks like a misspelt command. Prompts after `-p` and prompts with spaces never do.
pub(crate) fn hint(run: &RunArgs) -> Option<String> {
    suggestion(run.words.as_deref().filter(|_| run.print.is_none())?)
}

/// Like [`hint`], for arguments that cannot be parsed: without the command, its options are unknown.
pub(crate) fn hint_of_unparsed(mut arguments: impl Iterator<Item = String>) -> Option<String> {
    suggestion(&arguments.nth(1)?)
}

fn suggestion(word: &str) -> Option<String> {
    let word = Some(word).filter(|word| is_word(word))?;
    let commands = Cli::command();
    if commands.find_subcommand(word).is_some() {
        return None;
    }
    let names = commands.get_subcommands().map(clap::Command::get_name);
    let (name, _) = names.filter_map(|name| Some((name, slip(word, name)?))).min_by_key(|(_, slips)| *slips)?;
    Some(format!(
        "there is no command \"{word}\". Did you mean: multitap {name}? To send it as a prompt: multitap -p {word}"
    ))
}

fn is_word(word: &str) -> bool {
    word.chars().all(|c| c.is_ascii_alphabetic() || c == '-')
}

/// The number of wrong letters, if few enough for a typo.
fn slip(word: &str, name: &str) -> Option<usize> {
    // A prompt may be far longer than any command.
    if word.len() > 2 * name.len() {
        return None;
    }
    let slips = strsim::osa_distance(&word.to_ascii_lowercase(), name);
    let most = if name.len() >= LONG { 2 } else { 1 };
    (slips <= most && word != name).then_some(slips)
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[test]
    fn a_slip_is_no_prompt_and_a_prompt_is_no_slip() {
        let hint = |line: &[&str]| hint(&Cli::parse_from(std::iter::once(&"multitap").chain(line)).run);
        for (word, name) in [
            ("sesions", "sessions"),
            ("sessoins", "sessions"),
            ("Doctor", "doctor"),
            ("docter", "doctor"),
            ("srve", "serve"),
            ("atach", "attach"),
            ("agent", "agents"),
            ("mna", "man"),
        ] {
            let reported = hint(&[word]).unwrap_or_else(|| panic!("{word}"));
            assert!(
                reported.contains(&format!("multitap {name}?")) && reported.ends_with(&format!("-p {word}")),
                "{reported}"
            );
        }
        assert!(hint(&["sesions", "list"]).is_some(), "what follows belongs to the command");
        for line in [&["hello"][..], &["fix"], &["sesions of mine"], &["explain"], &["-p", "sesions"], &["test"]] {
            assert_eq!(hint(line), None, "{line:?}");
        }
    }

    /// An option of a command is unknown to a word that is none, and the parser complains about the option alone.
    #[test]
    fn a_slip_with_options_is_found_in_the_arguments() {
        let hint = |line: &str| hint_of_unparsed(line.split(' ').map(str::to_owned));
        assert!(hint("multitap doctr --json").unwrap().contains("multitap doctor?"));
        for line in [
            "multitap hello --json",
            "multitap --json doctr",
            "multitap doctor --jsn",
            "multitap acp --jsn",
            "multitap",
        ] {
            assert_eq!(hint(line), None, "{line}");
        }
    }
}
