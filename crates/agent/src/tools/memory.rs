//! `save_memory`: adds a fact to the user's own memory file, which every session reads.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use multitap_event::{Details, ToolKind};
use serde::Deserialize;
use serde_json::json;

use super::BadCall;
use crate::tool::{Outcome, Spec};

pub(crate) const NAME: &str = "save_memory";

/// Facts are stored below this heading.
const HEADING: &str = "## Multitap: remembered";
/// A fact is a line, not a document.
const LONGEST: usize = 2000;

#[derive(Debug, Deserialize)]
pub(super) struct Arguments {
    fact: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Remember {
    pub(crate) file: PathBuf,
    fact: String,
    /// The file as it is, and as it would be.
    before: Option<String>,
    after: String,
}

pub(super) fn spec() -> Spec {
    super::spec(
        NAME,
        ToolKind::Other,
        "Remembers a fact for all sessions to come. Only for what the user asks you to remember, or what is clearly \
         meant for good: short, and true without this conversation. Not for the work at hand.",
        &json!({ "fact": { "type": "string", "description": "One fact, in a sentence that stands by itself." } }),
        &["fact"],
    )
}

pub(super) async fn prepare(arguments: Arguments, file: &Path) -> Result<Remember, BadCall> {
    let fact = arguments.fact.split_whitespace().collect::<Vec<_>>().join(" ");
    let fact = fact.trim_start_matches(['-', '*', '#', ' ']).to_owned();
    if fact.is_empty() {
        return Err(BadCall("the fact is empty".to_owned()));
    }
    if fact.len() > LONGEST {
        return Err(BadCall(format!("the fact is too long: {} bytes, {LONGEST} at most", fact.len())));
    }
    let before = read(file).await.map_err(|error| BadCall(format!("cannot read {}: {error}", file.display())))?;
    let after = with_fact(before.as_deref().unwrap_or_default(), &fact);
    Ok(Remember { file: file.to_owned(), fact, before, after })
}

impl Remember {
    pub(crate) fn title(&self) -> String {
        format!("Remember: {}", self.fact)
    }

    pub(crate) fn details(&self) -> Details {
        let before = self.before.as_deref().unwrap_or_default();
        let name = self.file.display().to_string();
        let diff = multitap_diff::unified(&name, before, &name, &self.after);
        Details::FileEdit {
            file_path: name,
            before: self.before.clone(),
            after: Some(self.after.clone()),
            diff: Some(diff),
        }
    }

    pub(super) async fn run(self) -> Outcome {
        // The file may have grown since the question: preserve what was added meanwhile.
        let written = match read(&self.file).await {
            Ok(now) => write(&self.file, with_fact(now.as_deref().unwrap_or_default(), &self.fact)).await,
            Err(error) => Err(error),
        };
        match written {
            Ok(()) => Outcome::done(format!("It is written down in {}", self.file.display())),
            Err(error) => Outcome::failed(format!("cannot write {}: {error}", self.file.display())),
        }
    }
}

async fn read(file: &Path) -> io::Result<Option<String>> {
    match tokio::fs::read_to_string(file).await {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The text with one more fact, at the end of the section.
fn with_fact(text: &str, fact: &str) -> String {
    let Some(start) = text.find(HEADING) else {
        let gap = if text.is_empty() { "" } else { "\n\n" };
        return format!("{}{gap}{HEADING}\n\n- {fact}\n", text.trim_end());
    };
    let (head, under) = text.split_at(start + HEADING.len());
    // The section ends at the next heading; text of the user below it stays below.
    let end = under.find("\n#").unwrap_or(under.len());
    let (facts, rest) = under.split_at(end);
    let rest = rest.trim_start_matches('\n');
    let (facts, gap) = (facts.trim_end(), if rest.is_empty() { "" } else { "\n" });
    let facts = if facts.is_empty() { "\n".to_owned() } else { facts.to_owned() };
    format!("{head}{facts}\n- {fact}\n{gap}{rest}")
}

/// Writes the whole file or nothing of it. A link stays a link.
async fn write(file: &Path, text: String) -> io::Result<()> {
    let file = file.to_owned();
    let written = tokio::task::spawn_blocking(move || {
        let file = file.canonicalize().unwrap_or(file);
        let folder = file.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder)?;
        let mut new = tempfile::NamedTempFile::new_in(folder)?;
        new.write_all(text.as_bytes())?;
        new.as_file().sync_all()?;
        if let Ok(old) = std::fs::metadata(&file) {
            new.as_file().set_permissions(old.permissions())?;
        }
        new.persist(&file)?;
        Ok(())
    });
    written.await.unwrap_or_else(|error| Err(io::Error::other(error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fact(text: &str) -> Arguments {
        Arguments { fact: text.to_owned() }
    }

    #[test]
    fn facts_gather_under_their_heading() {
        let one = with_fact("", "tabs are 4 wide");
        assert_eq!(one, "## Multitap: remembered\n\n- tabs are 4 wide\n");
        let two = with_fact(&one, "no semicolons");
        assert_eq!(two, "## Multitap: remembered\n\n- tabs are 4 wide\n- no semicolons\n");
        let mine = format!("# Mine\n\ntext\n\n{two}\n# Below\n\nmore\n");
        let three = with_fact(&mine, "third");
        assert_eq!(three, mine.replace("- no semicolons\n", "- no semicolons\n- third\n"));
        assert_eq!(with_fact("text\n", "x"), "text\n\n## Multitap: remembered\n\n- x\n");
        assert_eq!(with_fact(HEADING, "x"), format!("{HEADING}\n\n- x\n"));
    }

    #[tokio::test]
    async fn a_fact_is_one_line_and_cannot_break_out_of_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("deep/MULTITAP.md");
        let remember = prepare(fact(" - # likes\n## Other\nthings "), &file).await.unwrap();
        assert_eq!(remember.title(), "Remember: likes ## Other things");
        let Details::FileEdit { before: None, after: Some(after), diff: Some(diff), .. } = remember.details() else {
            panic!("{:?}", remember.details())
        };
        assert!(diff.contains("+- likes ## Other things"), "{diff}");
        assert_eq!(remember.run().await.outcome, multitap_event::ToolOutcome::Completed);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), after);
        assert!(prepare(fact(" - "), &file).await.is_err());
        assert!(prepare(fact(&"x".repeat(LONGEST + 1)), &file).await.is_err());
    }

    #[tokio::test]
    async fn what_came_between_question_and_answer_stays() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("MULTITAP.md");
        let remember = prepare(fact("mine"), &file).await.unwrap();
        std::fs::write(&file, "yours\n").unwrap();
        remember.run().await;
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "yours\n\n## Multitap: remembered\n\n- mine\n");
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_link_stays_a_link_and_rights_stay_as_they_were() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("real.md"), folder.path().join("MULTITAP.md"));
        std::fs::write(&file, "").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        prepare(fact("x"), &link).await.unwrap().run().await;
        assert!(link.is_symlink());
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
        assert!(std::fs::read_to_string(&file).unwrap().ends_with("- x\n"));
    }
}
