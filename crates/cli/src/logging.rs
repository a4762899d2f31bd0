//! Logs, on stderr only: stdout is a wire.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

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
    let color = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    // A stderr that is gone, as with its terminal, is no reason to panic.
    let log = tracing_subscriber::fmt().with_env_filter(filter).log_internal_errors(false);
    log.with_writer(std::io::stderr).with_ansi(color).init();
    if let Some(error) = bad {
        tracing::warn!(%error, "MULTITAP_LOG is not understood; logging warnings");
    }
}
