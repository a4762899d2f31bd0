//! `@PATH` in a prompt: includes the file's text.

use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::Runner;
use crate::conversation::{Call, UserText};
use crate::policy::Consent;
use crate::tool::ToolContext;

/// Most files that one prompt includes.
const MOST: usize = 32;
/// A longer word is not a path.
const LONGEST_PATH: usize = 4096;

impl Runner {
    /// Appends the files that the prompt mentions. What cannot be read stays a plain word.
    pub(super) async fn expand(&self, mut said: UserText) -> UserText {
        let mut texts = Vec::new();
        for path in mentioned(&said.text) {
            for (name, argument) in [("read_file", "absolute_path"), ("list_directory", "path")] {
                let arguments = json!({ argument: path });
                let call = Call { id: String::new(), name: name.to_owned(), arguments, signature: None };
                let Ok(job) = self.parts.toolbox.prepare(&call).await else { continue };
                // The user wants it read; a rule may still forbid it.
                let Ok(job) = self.parts.policy.approve(name, job, Consent::Given) else { continue };
                let (progress, _nobody) = tokio::sync::mpsc::channel(1);
                let outcome =
                    self.parts.toolbox.run(job, ToolContext { progress, stop: CancellationToken::new() }).await;
                if outcome.outcome == multitap_event::ToolOutcome::Completed {
                    said.images.extend(outcome.images);
                    texts.push(format!("\n\n--- {path} ---\n{}", outcome.text));
                    break;
                }
            }
        }
        said.text.extend(texts);
        said
    }
}

/// The first paths after an `@` at the start of a word, as many as one prompt includes; `\ ` is a space in a path. Not
/// those in fenced code: that is often text of others, such as a file that an editor encloses.
fn mentioned(text: &str) -> Vec<String> {
    let mut paths = Vec::new();
    let mut fence = None;
    for line in text.split_inclusive('\n') {
        let ticks = line.trim_start().bytes().take_while(|byte| *byte == b'`').count();
        match fence {
            Some(open) if ticks >= open && line.trim().len() == ticks => fence = None,
            Some(_) => {}
            None if ticks >= 3 => fence = Some(ticks),
            None => mentioned_in(line, &mut paths),
        }
    }
    paths
}

fn mentioned_in(line: &str, paths: &mut Vec<String>) {
    let mut before = ' ';
    let mut chars = line.chars().peekable();
    while paths.len() < MOST
        && let Some(c) = chars.next()
    {
        if c == '@' && (before.is_whitespace() || before == '(') {
            let mut path = String::new();
            while let Some(next) = chars.next_if(|next| !next.is_whitespace()) {
                match next {
                    '\\' => path.extend(chars.next()),
                    other => path.push(other),
                }
            }
            let path = path.trim_end_matches(|c| ",;:!?)".contains(c)).to_owned();
            if !path.is_empty() && path.len() <= LONGEST_PATH && !paths.contains(&path) {
                paths.push(path);
            }
        }
        before = c;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_found_and_addresses_are_not() {
        assert_eq!(mentioned("look at @src/main.rs, and (@a\\ b.txt)"), ["src/main.rs", "a b.txt"]);
        assert_eq!(mentioned("@x @x"), ["x"]);
        assert!(mentioned("me@example.org @ nothing").is_empty());
    }

    #[test]
    fn fenced_code_mentions_nothing() {
        let text = "see @a.txt\n```py\n@cached\n@secret.txt\n```\nand @b.txt\n````\n```\n@c\n````\n```\n@open";
        assert_eq!(mentioned(text), ["a.txt", "b.txt"]);
    }

    #[test]
    fn a_prompt_of_many_words_is_read_to_the_last_file_it_may_take() {
        let words: String = (0..400_000).map(|word| format!("@w{word} ")).collect();
        assert_eq!(mentioned(&words).len(), MOST);
        assert_eq!(mentioned(&words).last().map(String::as_str), Some("w31"));
        assert!(mentioned(&format!("@{}", "x".repeat(LONGEST_PATH + 1))).is_empty());
    }
}
