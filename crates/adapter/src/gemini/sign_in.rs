//! How it shows that somebody is signed in with Gemini CLI.

use std::path::Path;

use crate::project::{Contents, contents};
use crate::sign_in::Places;

pub(crate) const SIGN_IN: Places<'static> = Places {
    variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_GCA"],
    files: &["oauth_creds.json", "gemini-credentials.json"],
    fix: "run `gemini` once and sign in, or set GEMINI_API_KEY",
};

/// A file of variables that has a key.
pub(crate) fn says_sign_in(home: &Path) -> Option<String> {
    let files = [home.join(".env"), home.parent().unwrap_or(home).join(".env")];
    let has_key = |file: &&std::path::PathBuf| match contents(file) {
        Contents::Text(text) => SIGN_IN.variables.iter().any(|name| text.contains(name)),
        Contents::Unknown | Contents::Absent => false,
    };
    files.iter().find(has_key).map(|file| file.display().to_string())
}
