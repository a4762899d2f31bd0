//! How it shows that somebody is signed in with Codex.

use std::path::Path;

use crate::project::{Contents, contents};
use crate::sign_in::Places;

pub(crate) const SIGN_IN: Places<'static> =
    Places { variables: &["CODEX_API_KEY", "CODEX_ACCESS_TOKEN"], files: &["auth.json"], fix: "codex login" };

/// Settings that choose another provider, or keep the sign-in with the system.
pub(crate) fn says_sign_in(home: &Path) -> Option<String> {
    let file = home.join("config.toml");
    let Contents::Text(text) = contents(&file) else { return None };
    let sets = |line: &str, key: &str| {
        line.trim_start().strip_prefix(key).is_some_and(|rest| rest.trim_start().starts_with('='))
    };
    let elsewhere = |line: &str| {
        sets(line, "model_provider")
            || sets(line, "profile")
            || (sets(line, "cli_auth_credentials_store") && !line.contains("\"file\""))
    };
    text.lines().any(elsewhere).then(|| file.display().to_string())
}
