//! Logs, on stderr: stdout is a wire. While a screen has the terminal they go to a file, or they would be drawn into it.

use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal as _, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use tracing_subscriber::EnvFilter;

/// Where logs go instead of stderr.
static ELSEWHERE: Mutex<Option<Arc<File>>> = Mutex::new(None);

/// Starts logging: `MULTITAP_LOG`, else `RUST_LOG`, else warnings.
pub(crate) fn init() {
    let chosen = ["MULTITAP_LOG", "RUST_LOG"].into_iter().find_map(|name| std::env::var(name).ok());
    let filter = chosen.filter(|filter| !filter.is_empty()).unwrap_or_else(|| "warn".to_owned());
    // The library that speaks to models repeats what they and their providers say.
    let filter = if filter.contains("genai") { filter } else { format!("{filter},genai=off") };
    let (filter, bad) = match EnvFilter::try_new(&filter) {
        Ok(filter) => (filter, None),
        Err(error) => (EnvFilter::new("warn"), Some(error)),
    };
    let color = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    // A stderr that is gone, as with its terminal, is no reason to panic.
    let log = tracing_subscriber::fmt().with_env_filter(filter).log_internal_errors(false);
    log.with_writer(writer).with_ansi(color).init();
    if let Some(error) = bad {
        tracing::warn!(%error, "MULTITAP_LOG is not understood; logging warnings");
    }
}

fn writer() -> Box<dyn Write> {
    match ELSEWHERE.lock().unwrap_or_else(PoisonError::into_inner).clone() {
        Some(file) => Box::new(file),
        None => Box::new(io::stderr()),
    }
}

/// Logs go to that file, for the user's eyes only, until this is dropped.
#[derive(Debug)]
pub(crate) struct ToFile;

impl ToFile {
    /// Nothing changes where stderr is not the terminal.
    pub(crate) fn begin(file: &Path) -> Option<Self> {
        if !io::stderr().is_terminal() {
            return None;
        }
        let mut options = OpenOptions::new();
        options.create(true).append(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        // Where there is no such file, what is logged is lost rather than drawn.
        let file = options.open(file).or_else(|_| OpenOptions::new().write(true).open("/dev/null")).ok()?;
        *ELSEWHERE.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(file));
        Some(Self)
    }

    /// They go there until the process ends.
    pub(crate) fn for_good(self) {
        std::mem::forget(self);
    }
}

impl Drop for ToFile {
    fn drop(&mut self) {
        *ELSEWHERE.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}
