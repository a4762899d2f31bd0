//! Edits a text in the user's editor. What was written is never lost: a file that cannot be used is left on disk.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use multitap_tui::OpenEditor;
use tempfile::TempPath;

use crate::out;
use crate::signals::EditorState;

/// The longest text that is read back; no door accepts a longer one.
const MOST: u64 = 16 << 20;

/// The user's editor.
pub(super) fn editor(editor_state: &EditorState) -> OpenEditor {
    let editor_state = editor_state.clone();
    Arc::new(move |text| {
        // Ctrl+C in the editor is not meant for us.
        let typing = editor_state.begin();
        Box::pin(async move {
            let words =
                ["VISUAL", "EDITOR"].iter().find_map(|name| std::env::var(name).ok().filter(|it| !it.is_empty()));
            let edited = edit(words.as_deref().unwrap_or("vi"), text).await;
            drop(typing);
            edited
        })
    })
}

async fn edit(editor: &str, text: String) -> io::Result<String> {
    let words = shell_words::split(editor).map_err(io::Error::other)?;
    let (program, args) = words.split_first().ok_or_else(|| io::Error::other("EDITOR names no program"))?;
    let draft = Draft::new(text)?;
    let args = args.iter().map(OsString::from).chain([draft.path.as_os_str().to_owned()]);
    let status = multitap_process::foreground(program.into(), args).await?;
    if !status.success() {
        return Err(draft.failed(&format!("{program} ended with {status}")));
    }
    match read(&draft.path).map(String::from_utf8) {
        Ok(Ok(edited)) => {
            draft.used();
            Ok(edited)
        }
        Ok(Err(_)) => Err(draft.failed(&format!("{program} saved something that is not UTF-8"))),
        Err(error) => Err(draft.failed(&format!("what {program} saved cannot be read: {error}"))),
    }
}

/// Reads the saved file, unless that would block or never end.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let about = fs::metadata(path)?;
    match about {
        _ if !about.is_file() => Err(io::Error::other("it is not a regular file")),
        _ if about.len() > MOST => Err(io::Error::other(format!("it has more than {} MiB", MOST >> 20))),
        _ => fs::read(path),
    }
}

/// The edited file. It is deleted afterwards, unless it holds text that was not read back.
struct Draft {
    path: TempPath,
    /// The original text.
    text: String,
    is_used: bool,
}

impl Draft {
    fn new(text: String) -> io::Result<Self> {
        let path = tempfile::Builder::new().prefix("multitap-").suffix(".md").tempfile()?.into_temp_path();
        fs::write(&path, &text)?;
        Ok(Self { path, text, is_used: false })
    }

    /// The text was read back, so the file is no longer needed.
    fn used(mut self) {
        self.is_used = true;
    }

    /// The error message, with the path of a file that was left on disk.
    fn failed(mut self, why: &str) -> io::Error {
        match self.keep() {
            Some(path) => io::Error::other(format!("{why}; your text is saved in {}", path.display())),
            None => io::Error::other(why),
        }
    }

    /// Leaves the file on disk if it holds new text.
    fn keep(&mut self) -> Option<PathBuf> {
        if std::mem::replace(&mut self.is_used, true) || !self.is_written() {
            return None;
        }
        self.path.disable_cleanup(true);
        Some(Path::to_owned(&self.path))
    }

    fn is_written(&self) -> bool {
        match read(&self.path) {
            Ok(now) => !now.is_empty() && now != self.text.as_bytes(),
            // The editor deleted it; or it exists, and the user may still read it.
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        }
    }
}

impl Drop for Draft {
    /// Dropped while the editor runs: this program ends.
    fn drop(&mut self) {
        if let Some(path) = self.keep() {
            tracing::warn!(path = %path.display(), "the text of an editor was saved");
            out::say(&format!("multitap: your text is saved in {}", path.display()));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A script that gets the file as `$0`.
    fn script(lines: &str) -> String {
        shell_words::join(["sh", "-c", lines])
    }

    async fn failure(lines: &str) -> String {
        edit(&script(lines), "draft".to_owned()).await.unwrap_err().to_string()
    }

    /// The file that was kept, which is read and removed.
    fn kept(path: &str) -> Vec<u8> {
        let bytes = fs::read(path).unwrap();
        fs::remove_file(path).unwrap();
        bytes
    }

    #[tokio::test]
    async fn what_is_saved_comes_back_and_the_file_is_gone() {
        let edited = edit(&script(r#"printf %s "$0" > "$0""#), "draft".to_owned()).await.unwrap();
        assert!(edited.ends_with(".md") && !Path::new(&edited).exists(), "{edited}");
    }

    #[tokio::test]
    async fn what_is_no_text_is_kept_as_it_is() {
        let why = failure(r#"printf 'caf\351' > "$0""#).await;
        assert!(why.contains("not UTF-8"), "{why}");
        assert_eq!(kept(why.rsplit_once("saved in ").unwrap().1), b"caf\xe9");
    }

    #[tokio::test]
    async fn nothing_is_said_to_be_kept_where_nothing_is() {
        for lines in [r#"rm "$0""#, r#"rm "$0"; exit 3"#, "exit 3"] {
            let why = failure(lines).await;
            assert!(!why.contains("kept in"), "{lines}: {why}");
        }
    }

    #[tokio::test]
    async fn what_would_block_or_never_end_is_not_read() {
        for (lines, expected) in [
            (r#"rm "$0"; mkfifo "$0""#, "not a regular file"),
            (r#"rm "$0"; ln -s /dev/zero "$0""#, "not a regular file"),
            (r#"truncate -s 1G "$0""#, "more than 16 MiB"),
        ] {
            let why = tokio::time::timeout(Duration::from_secs(60), failure(lines)).await.unwrap();
            assert!(why.contains(expected), "{lines}: {why}");
            fs::remove_file(why.rsplit_once("saved in ").unwrap().1).unwrap();
        }
    }

    #[tokio::test]
    async fn what_was_saved_outlives_whoever_waits_for_it() {
        let folder = tempfile::tempdir().unwrap();
        for (saves, expected) in [(r#"echo half > "$0""#, Some("half\n")), ("true", None)] {
            let place = folder.path().join(format!("{}", saves.len()));
            let at = place.display();
            let editor =
                script(&format!(r#"{saves}; printf %s "$0" > '{at}.new'; mv '{at}.new' '{at}'; exec sleep 60"#));
            let has_saved = async {
                while !place.exists() {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            };
            tokio::select! {
                ended = edit(&editor, "draft".to_owned()) => panic!("{ended:?}"),
                () = has_saved => {}
            }
            let path = fs::read_to_string(&place).unwrap();
            let left = Path::new(&path).exists().then(|| String::from_utf8(kept(&path)).unwrap());
            assert_eq!(left.as_deref(), expected, "{saves}");
        }
    }
}
