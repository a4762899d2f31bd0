//! How it shows that somebody is signed in with Claude Code.

use std::path::Path;

use crate::project::{Contents, contents};
use crate::sign_in::Places;

pub(crate) const SIGN_IN: Places<'static> = Places {
    variables: &[
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "CLAUDE_CODE_OAUTH_TOKEN",
        "CLAUDE_CODE_USE_BEDROCK",
        "CLAUDE_CODE_USE_VERTEX",
        "CLAUDE_CODE_USE_FOUNDRY",
    ],
    files: &[".credentials.json"],
    fix: "claude auth login, or set ANTHROPIC_API_KEY",
};

/// A file of its own that names a key, or another way to one.
pub(crate) fn says_sign_in(home: &Path) -> Option<String> {
    let settings = home.join("settings.json");
    let state = home.parent().unwrap_or(home).join(".claude.json");
    let beside = home.join(".claude.json");
    let words: [(&Path, &[&str]); 3] = [
        (&settings, &["\"apiKeyHelper\"", "\"ANTHROPIC_API_KEY\"", "\"ANTHROPIC_AUTH_TOKEN\"", "\"CLAUDE_CODE_USE_"]),
        (&state, &["\"primaryApiKey\"", "\"oauthAccount\""]),
        (&beside, &["\"primaryApiKey\"", "\"oauthAccount\""]),
    ];
    let says = |(file, words): &(&Path, &[&str])| match contents(file) {
        Contents::Text(text) => words.iter().any(|word| text.contains(word)),
        // It is too large to be read, and so not that of somebody new.
        Contents::Unknown => true,
        Contents::Absent => false,
    };
    words.iter().find(|one| says(one)).map(|(file, _)| file.display().to_string())
}
