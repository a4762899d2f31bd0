//! Small POSIX shell programs that tests write and run.

use std::ffi::OsStr;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, Result, ensure};

/// Writes a program and makes it executable.
pub fn executable(path: &Path, text: &str) -> Result<PathBuf> {
    write_with_mode(path, text, "755")
}

/// Writes a file with these permission bits.
///
/// A shell does the writing. A file that any process has open for writing cannot be run, and when another thread
/// starts a child at the wrong moment, that child would hold a file open that we write ourselves.
pub(crate) fn write_with_mode(path: &Path, text: &str, mode: &str) -> Result<PathBuf> {
    let mut child = crate::command(OsStr::new("/bin/sh"))
        .args(["-c", "cat > \"$1\" && chmod \"$2\" \"$1\"", "sh"])
        .arg(path)
        .arg(mode)
        .stdin(Stdio::piped())
        .spawn()
        .context("start a shell")?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(text.as_bytes()).with_context(|| format!("write {}", path.display()))?;
    }
    ensure!(child.wait().context("wait for the shell")?.success(), "cannot write {}", path.display());
    Ok(path.to_owned())
}

/// The text as one word for the shell.
pub(crate) fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
