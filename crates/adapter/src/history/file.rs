//! An agent's files, read in bounded pieces: they may be large, broken, or written to at this moment.

use std::fs::{self, File};
use std::io::{self, Read, Seek as _, SeekFrom};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use multitap_event::Timestamp;
use multitap_process::{Line, LineBuffer, MAX_LINE};
use serde::Deserialize;

use crate::line::{bounded, repaired};

const READ: usize = 64 * 1024;
/// Maximum number of bytes read to find out what a file is about.
const HEAD: u64 = 4 * 1024 * 1024;
/// Bytes to read from the end of a file to find its last time and model.
const TAIL: u64 = 256 * 1024;

/// Lines one at a time, without the blank ones.
pub(crate) type Lines = Box<dyn Iterator<Item = io::Result<Line>> + Send>;

pub(crate) fn lines(path: &Path) -> io::Result<Lines> {
    Ok(lines_of(open(path)?))
}

/// The lines of any reader. Ends after an error.
pub(crate) fn lines_of(mut file: impl Read + Send + 'static) -> Lines {
    let (mut buffer, mut chunk, mut over) = (LineBuffer::new(MAX_LINE), vec![0; READ], false);
    let lines = std::iter::from_fn(move || {
        loop {
            if let Some(line) = buffer.pop() {
                return Some(Ok(bounded(line)));
            }
            if over {
                return None;
            }
            match file.read(&mut chunk) {
                Ok(0) => {
                    over = true;
                    buffer.finish();
                }
                Ok(read) => buffer.push(&chunk[..read]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    over = true;
                    return Some(Err(error));
                }
            }
        }
    });
    Box::new(lines.filter(|line| !matches!(line, Ok(Line::Text(text)) if text.trim().is_empty())))
}

#[cfg(test)]
thread_local! {
    /// Files and folders that this thread has opened, for tests of growth.
    pub(crate) static OPENED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Opens regular files only: a FIFO would block.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    #[cfg(test)]
    OPENED.with(|opened| opened.set(opened.get() + 1));
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a file"));
    }
    File::open(path)
}

/// Passes on lines from the beginning of a file until `look` has seen enough.
pub(crate) fn head(path: &Path, look: impl FnMut(&str) -> ControlFlow<()>) -> io::Result<()> {
    look_at(open(path)?, look)
}

/// Like [`head`], for any reader.
pub(crate) fn look_at(
    file: impl Read + Send + 'static,
    mut look: impl FnMut(&str) -> ControlFlow<()>,
) -> io::Result<()> {
    for line in lines_of(file.take(HEAD)) {
        if let Line::Text(line) = line?
            && look(&repaired(&line)).is_break()
        {
            break;
        }
    }
    Ok(())
}

/// The whole lines at the end of a file, the last one first.
pub(crate) fn tail(path: &Path) -> io::Result<Vec<String>> {
    let mut file = open(path)?;
    let from = file.metadata()?.len().saturating_sub(TAIL);
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(TAIL).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    // The first one may lack its beginning.
    let whole = text.split_once('\n').filter(|_| from > 0).map_or(text.as_ref(), |(_, rest)| rest);
    Ok(whole.lines().rev().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect())
}

/// The time of the last write to a file.
pub(crate) fn changed(path: &Path) -> Option<Timestamp> {
    let since = fs::metadata(path).ok()?.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some(Timestamp::from_millis(i64::try_from(since.as_millis()).ok()?))
}

/// The entries of a folder, in order of name; none if it cannot be read.
pub(crate) fn entries(folder: &Path) -> Vec<PathBuf> {
    #[cfg(test)]
    OPENED.with(|opened| opened.set(opened.get() + 1));
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    entries.sort();
    entries
}

pub(crate) fn name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

/// The time at which an entry was written, in the format of any of the agents.
pub(crate) fn time_of(line: &str) -> Option<Timestamp> {
    #[derive(Deserialize)]
    struct Stamped {
        timestamp: Option<serde_json::Value>,
        #[serde(rename = "startTime")]
        start_time: Option<String>,
        #[serde(rename = "$set")]
        set: Option<Set>,
    }
    #[derive(Deserialize)]
    struct Set {
        #[serde(rename = "lastUpdated")]
        last_updated: Option<String>,
    }
    let stamped: Stamped = serde_json::from_str(line).ok()?;
    let own = stamped.timestamp.as_ref().and_then(|value| value.as_str());
    let set = stamped.set.and_then(|set| set.last_updated);
    Timestamp::parse(own.or(stamped.start_time.as_deref()).or(set.as_deref())?)
}
