//! Earlier prompts, of this session and others: walked through, searched, and stored in a private file of JSON lines.
//!
//! The file is bounded and has no pictures, nor the words that stand for them. The pictures of the last prompts of this
//! session stay in memory.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use multitap_event::Prompt;
use serde_json::{Value, json};

use crate::composer::{Composer, Move};

/// Maximum number of prompts.
const PROMPTS: usize = 1000;
/// Longer prompts are not stored in the file.
const LONGEST: usize = 64 * 1024;
/// Maximum size of the pictures in memory.
const PICTURES: usize = 32 * 1024 * 1024;

/// Earlier prompts, the latest last.
#[derive(Debug, Default)]
pub(crate) struct History {
    entries: Vec<Prompt>,
    /// The prompt that is shown.
    at: Option<usize>,
    /// The text that was typed before the walk.
    draft: Option<Composer>,
    pub(crate) search: Option<Search>,
}

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Search {
    pub(crate) words: String,
    found: Option<usize>,
    draft: Composer,
}

impl Search {
    pub(crate) fn is_found(&self) -> bool {
        self.found.is_some() || self.words.is_empty()
    }
}

impl History {
    pub(crate) fn new(entries: Vec<String>) -> Self {
        Self { entries: entries.into_iter().map(Prompt::text).collect(), ..Self::default() }
    }

    /// Adds a prompt that is sent. Returns the text to store in the file, if any.
    pub(crate) fn add(&mut self, prompt: &Prompt) -> Option<String> {
        (self.at, self.draft) = (None, None);
        let is_last = |last: &Prompt| last.text == prompt.text && last.images == prompt.images;
        if prompt.text.trim().is_empty() || self.entries.last().is_some_and(is_last) {
            return None;
        }
        // A very long prompt stays until another is sent.
        self.entries.pop_if(|last| last.text.len() > LONGEST);
        if self.entries.len() >= PROMPTS {
            self.entries.remove(0);
        }
        self.entries.push(prompt.clone());
        self.drop_pictures();
        Some(bare(prompt)).filter(|words| !words.trim().is_empty() && words.len() <= LONGEST)
    }

    /// Adds a text that was not sent: pressing Up next recalls it. The draft of a walk through the history stays.
    pub(crate) fn add_unsent(&mut self, prompt: Prompt) {
        self.entries.push(prompt);
        self.at = self.at.map(|_| self.entries.len());
    }

    fn drop_pictures(&mut self) {
        let mut held = 0;
        for entry in self.entries.iter_mut().rev().filter(|entry| !entry.images.is_empty()) {
            held += entry.images.iter().map(|image| image.data.len()).sum::<usize>();
            if held > PICTURES {
                *entry = Prompt::text(bare(entry));
            }
        }
    }

    pub(crate) fn last(&self) -> Option<&Prompt> {
        self.entries.last()
    }

    /// Shows the prompt before or after. What was typed is stored meanwhile.
    pub(crate) fn walk(&mut self, composer: &mut Composer, direction: Move) {
        let at = match (direction, self.at) {
            (Move::Up, None) => self.entries.len().checked_sub(1),
            (Move::Up, Some(at)) => Some(at.saturating_sub(1)),
            (_, Some(at)) if at + 1 < self.entries.len() => Some(at + 1),
            _ => None,
        };
        match at.and_then(|at| self.entries.get(at)) {
            Some(entry) => {
                let shown = std::mem::replace(composer, Composer::of(entry));
                if self.at.is_none() {
                    self.draft = Some(shown);
                }
            }
            None if self.at.is_some() => *composer = self.draft.take().unwrap_or_default(),
            None => composer.go(if direction == Move::Up { Move::Start } else { Move::End }),
        }
        self.at = at;
    }

    /// Starts a search, or goes to the next older match.
    pub(crate) fn search(&mut self, composer: &mut Composer) {
        match self.search.as_ref().map(|search| search.found) {
            Some(found) => self.seek(composer, found),
            None => self.search = Some(Search { draft: composer.clone(), ..Search::default() }),
        }
    }

    pub(crate) fn search_for(&mut self, composer: &mut Composer, change: impl FnOnce(&mut String)) {
        let Some(search) = &mut self.search else { return };
        change(&mut search.words);
        search.found = None;
        self.seek(composer, None);
    }

    /// Shows the latest match before that prompt. Without one, what is shown stays.
    fn seek(&mut self, composer: &mut Composer, before: Option<usize>) {
        let Some(search) = &mut self.search else { return };
        let words = search.words.to_lowercase();
        let older = &self.entries[..before.unwrap_or(self.entries.len())];
        let found = older.iter().rposition(|entry| !words.is_empty() && entry.text.to_lowercase().contains(&words));
        match found {
            Some(at) => {
                search.found = found;
                *composer = Composer::of(&self.entries[at]);
            }
            None if before.is_none() => *composer = search.draft.clone(),
            None => {}
        }
    }

    /// Ends the search with the match, or with what was typed before.
    pub(crate) fn end_search(&mut self, composer: &mut Composer, accept: bool) {
        if let Some(search) = self.search.take()
            && !accept
        {
            *composer = search.draft;
        }
    }
}

/// The text of a prompt without the placeholders of images.
fn bare(prompt: &Prompt) -> String {
    if prompt.images.is_empty() { prompt.text.clone() } else { Composer::of(prompt).without_pictures().whole() }
}

/// Reads the file. Lines that are not ours are skipped.
pub(crate) fn load(file: &Path) -> Vec<String> {
    let Ok(text) = fs::read_to_string(file) else { return Vec::new() };
    let entry = |line: &str| Some(serde_json::from_str::<Value>(line).ok()?.get("text")?.as_str()?.to_owned());
    let entries: Vec<String> = text.lines().filter_map(entry).collect();
    let (many, first) = (entries.len() > 2 * PROMPTS, entries.len().saturating_sub(PROMPTS));
    let entries = entries.into_iter().skip(first).collect::<Vec<_>>();
    if many && let Err(error) = rewrite(file, &entries) {
        tracing::warn!(%error, "the history cannot be shortened");
    }
    entries
}

pub(crate) fn append(file: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    // One write, so that lines of concurrent writers stay whole.
    private(OpenOptions::new().create(true).append(true)).open(file)?.write_all(line(text).as_bytes())
}

/// Replaces the file in one step.
fn rewrite(file: &Path, entries: &[String]) -> io::Result<()> {
    let beside = file.with_extension(format!("{}.tmp", std::process::id()));
    let text: String = entries.iter().map(|entry| line(entry)).collect();
    private(OpenOptions::new().create(true).write(true).truncate(true)).open(&beside)?.write_all(text.as_bytes())?;
    fs::rename(&beside, file)
}

fn line(text: &str) -> String {
    format!("{}\n", json!({ "text": text }))
}

/// Readable for the user alone.
fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

#[cfg(test)]
mod tests {
    use multitap_event::Image;

    use super::*;

    fn history() -> History {
        History::new(["fix the tests", "explain main.rs", "Fix the build"].map(str::to_owned).to_vec())
    }

    #[test]
    fn walking_gives_back_what_was_under_way() {
        let (mut history, mut composer) = (history(), Composer::with("half a thou"));
        for (direction, shown) in [
            (Move::Up, "Fix the build"),
            (Move::Up, "explain main.rs"),
            (Move::Down, "Fix the build"),
            (Move::Down, "half a thou"),
            (Move::Up, "Fix the build"),
        ] {
            history.walk(&mut composer, direction);
            assert_eq!(composer.text(), shown, "{direction:?}");
        }
    }

    #[test]
    fn what_is_put_by_during_a_walk_comes_next() {
        let (mut history, mut composer) = (history(), Composer::with("half a thou"));
        history.walk(&mut composer, Move::Up);
        history.walk(&mut composer, Move::Up);
        history.add_unsent(Prompt::text("put by"));
        assert_eq!(composer.text(), "explain main.rs", "what is shown stays");
        for (direction, shown) in [(Move::Up, "put by"), (Move::Up, "Fix the build"), (Move::Down, "put by")] {
            history.walk(&mut composer, direction);
            assert_eq!(composer.text(), shown, "{direction:?}");
        }
        history.walk(&mut composer, Move::Down);
        assert_eq!(composer.text(), "half a thou");
    }

    #[test]
    fn a_search_goes_back_in_time_and_can_be_given_up() {
        let (mut history, mut composer) = (history(), Composer::with("draft"));
        history.search(&mut composer);
        history.search_for(&mut composer, |words| words.push_str("fix"));
        assert_eq!(composer.text(), "Fix the build");
        history.search(&mut composer);
        assert_eq!(composer.text(), "fix the tests");
        history.search(&mut composer);
        assert_eq!(composer.text(), "fix the tests", "there is nothing older");
        history.search_for(&mut composer, |words| words.push_str("zzz"));
        assert!(!history.search.as_ref().unwrap().is_found());
        history.end_search(&mut composer, false);
        assert_eq!(composer.text(), "draft");
    }

    #[test]
    fn the_same_again_is_remembered_once() {
        let mut history = history();
        assert_eq!(history.add(&Prompt::text("new")).as_deref(), Some("new"));
        assert_eq!(history.add(&Prompt::text("new")), None);
        assert_eq!(history.add(&Prompt::text("  ")), None);
        assert_eq!(history.last(), Some(&Prompt::text("new")));
    }

    #[test]
    fn pictures_come_back_in_this_session_and_nothing_pretends_in_others() {
        let image = |bytes: usize| Image { media_type: "image/png".to_owned(), data: "A".repeat(bytes) };
        let sent = |bytes| Prompt { images: vec![image(bytes)], ..Prompt::text("see [Image #1: cat.png] here") };
        let (mut history, mut composer) = (history(), Composer::default());
        assert_eq!(history.add(&sent(8)).as_deref(), Some("see here"));
        history.walk(&mut composer, Move::Up);
        assert_eq!(composer.prompt(), sent(8));
        // One that needs all the room there is.
        history.add(&sent(PICTURES));
        let mut composer = Composer::default();
        history.walk(&mut composer, Move::Up);
        assert_eq!(composer.prompt().images.len(), 1);
        history.walk(&mut composer, Move::Up);
        assert_eq!(composer.prompt(), Prompt::text("see here"));
    }

    #[test]
    fn what_is_very_long_is_at_hand_until_something_else_is_sent() {
        let (mut history, long) = (history(), Prompt::text("x".repeat(LONGEST + 1)));
        assert_eq!(history.add(&long), None, "it is not kept for others");
        assert_eq!(history.last(), Some(&long));
        history.add(&Prompt::text("next"));
        assert!(!history.entries.contains(&long));
    }

    #[test]
    fn the_file_outlives_us_stays_private_and_stays_small() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("multitap/history.jsonl");
        assert_eq!(load(&file), Vec::<String>::new());
        append(&file, "two\nlines").unwrap();
        append(&file, "日本").unwrap();
        assert_eq!(load(&file), ["two\nlines", "日本"]);
        #[cfg(unix)]
        assert_eq!(std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&file).unwrap().permissions()) & 0o777, 0o600);
        fs::write(&file, format!("not ours\n{}", line("x").repeat(2 * PROMPTS + 1))).unwrap();
        assert_eq!(load(&file).len(), PROMPTS);
        assert_eq!(fs::read_to_string(&file).unwrap().lines().count(), PROMPTS);
    }
}
