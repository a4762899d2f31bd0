//! Logs go to stderr, since stdout carries protocols; while the terminal UI runs they go to a file.

use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal as _, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use multitap_event::{is_hidden, push_mark};
use tracing_subscriber::EnvFilter;

/// The file that replaces stderr.
static ELSEWHERE: Mutex<Option<Arc<File>>> = Mutex::new(None);

/// Starts logging: `MULTITAP_LOG`, else `RUST_LOG`, else warnings.
pub(crate) fn init() {
    let chosen = ["MULTITAP_LOG", "RUST_LOG"].into_iter().find_map(|name| std::env::var(name).ok());
    let filter = without_contents(chosen.filter(|filter| !filter.is_empty()).unwrap_or_else(|| "warn".to_owned()));
    let (filter, bad) = match EnvFilter::try_new(&filter) {
        Ok(filter) => (filter, None),
        Err(error) => (EnvFilter::new("warn"), Some(error)),
    };
    let color = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    // A closed stderr, as after its terminal, must not cause a panic.
    let log = tracing_subscriber::fmt().with_env_filter(filter).log_internal_errors(false);
    log.with_writer(writer).with_ansi(color).init();
    if let Some(error) = bad {
        tracing::warn!(%error, "MULTITAP_LOG is not understood; logging warnings");
    }
}

/// The filter without what libraries log of texts of people and models, unless it names them: `genai` logs requests and
/// replies of models, `rmcp` at `debug` what MCP tools are given and return.
fn without_contents(mut filter: String) -> String {
    let is_debug = filter.split(',').any(|part| matches!(part.trim().to_ascii_lowercase().as_str(), "debug" | "4"));
    for (library, level, is_loud) in [("genai", "off", true), ("rmcp", "info", is_debug)] {
        if is_loud && !filter.contains(library) {
            filter = format!("{filter},{library}={level}");
        }
    }
    filter
}

fn writer() -> Box<dyn Write> {
    match ELSEWHERE.lock().unwrap_or_else(PoisonError::into_inner).clone() {
        Some(file) => Box::new(Visible(file)),
        None => Box::new(Visible(io::stderr())),
    }
}

/// Makes control and hidden characters visible. The formatter escapes them in values, so remaining escape sequences
/// are its own colours.
struct Visible<W>(W);

impl<W: Write> Write for Visible<W> {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        let mut shown = String::with_capacity(text.len());
        for c in String::from_utf8_lossy(text).chars() {
            if is_hidden(c) && c != '\u{1b}' { push_mark(&mut shown, c) } else { shown.push(c) }
        }
        self.0.write_all(shown.as_bytes())?;
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Redirects logs to a file, readable by the user only, until dropped.
#[derive(Debug)]
pub(crate) struct ToFile;

impl ToFile {
    /// Does nothing unless stderr is the terminal.
    pub(crate) fn begin(file: &Path) -> Option<Self> {
        if !io::stderr().is_terminal() {
            return None;
        }
        let mut options = OpenOptions::new();
        options.create(true).append(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        // Without a file, logs are dropped rather than drawn on the screen.
        let file = options.open(file).or_else(|_| OpenOptions::new().write(true).open("/dev/null")).ok()?;
        *ELSEWHERE.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(file));
        Some(Self)
    }

    /// Keeps the redirection until the process ends.
    pub(crate) fn for_good(self) {
        std::mem::forget(self);
    }
}

impl Drop for ToFile {
    fn drop(&mut self) {
        *ELSEWHERE.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_logs_hold_no_contents() {
        for (chosen, expected) in [
            ("warn", "warn,genai=off"),
            ("multitap=debug", "multitap=debug,genai=off"),
            ("warn, DEBUG", "warn, DEBUG,genai=off,rmcp=info"),
            ("debug,rmcp=debug", "debug,rmcp=debug,genai=off"),
            ("trace", "trace,genai=off"),
        ] {
            assert_eq!(without_contents(chosen.to_owned()), expected);
        }
    }

    #[test]
    fn a_log_line_has_nothing_to_obey() {
        let mut lines = Vec::new();
        Visible(&mut lines).write_all("\u{1b}[2mWARN\u{1b}[0m a\u{202e}b\u{9b}c\r\u{7}\n".as_bytes()).unwrap();
        let expected = "\u{1b}[2mWARN\u{1b}[0m a\\u202eb\\u009bc␍␇\n";
        assert_eq!(String::from_utf8(lines).unwrap(), expected);
    }
}
