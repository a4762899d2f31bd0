//! The token in the environment: `MULTITAP_TOKEN`, a controller's for a door, or the one that `attach` sends.
//!
//! It is removed from the environment first of all, so that no command of an agent reads it in `/proc`.

use std::ffi::OsString;
use std::sync::OnceLock;

use crate::exit::Problem;

pub(crate) const VARIABLE: &str = "MULTITAP_TOKEN";

/// Process-wide, like the environment.
static TAKEN: OnceLock<OsString> = OnceLock::new();

/// Removes it from the environment. Call it first in `main`: this process may execute its own binary again.
#[cfg(unix)]
pub(crate) fn take() -> Result<(), Problem> {
    let failed = |error| Problem::usage(format!("cannot hide {VARIABLE} from the commands of agents: {error}"));
    if let Some(token) = multitap_process::take_from_environment(VARIABLE).map_err(failed)? {
        multitap_process::hide_from_others().map_err(failed)?;
        TAKEN.get_or_init(|| token);
    }
    Ok(())
}

/// Other processes cannot read the environment here.
#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "the same call as on Unix, where it can fail")]
pub(crate) fn take() -> Result<(), Problem> {
    if let Some(token) = std::env::var_os(VARIABLE) {
        TAKEN.get_or_init(|| token);
    }
    Ok(())
}

/// The token as given.
pub(crate) fn of_environment() -> Option<OsString> {
    TAKEN.get().cloned()
}

/// The token, if it is valid.
pub(crate) fn usable() -> Option<String> {
    TAKEN.get()?.to_str().filter(|token| !token.is_empty()).map(str::to_owned)
}
