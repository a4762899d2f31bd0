//! The settings that make Gemini drivable, in private files: the user's own are not touched.
//!
//! Gemini lays four files over each other: the machine's defaults, the user's, the folder's, and the machine's
//! settings, which win. The first and the last can be named by variables, so ours take their places and hold what
//! the machine's own files say as well.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use multitap_event::SessionConfig;
use serde_json::{Map, Value, json};
use tempfile::TempPath;

const SETTINGS: &str = "GEMINI_CLI_SYSTEM_SETTINGS_PATH";
const DEFAULTS: &str = "GEMINI_CLI_SYSTEM_DEFAULTS_PATH";
/// Names a file whose text stands in place of Gemini's own instructions.
const SYSTEM_PROMPT: &str = "GEMINI_SYSTEM_MD";

/// Files for one session, and the variables that name them.
pub(super) struct Private {
    pub(super) files: Vec<TempPath>,
    pub(super) env: Vec<(String, String)>,
}

pub(super) fn private(config: &SessionConfig) -> io::Result<Private> {
    let mut private = Private { files: Vec::new(), env: Vec::new() };
    let settings_path = variable(config, SETTINGS).map_or_else(machine_settings, PathBuf::from);
    let defaults_path =
        variable(config, DEFAULTS).map_or_else(|| settings_path.with_file_name("system-defaults.json"), PathBuf::from);
    let mut settings = read(&settings_path)?;
    lay_over(&mut settings, ours(config));
    private.add(SETTINGS, ".json", &settings.to_string())?;
    let mut defaults = read(&defaults_path)?;
    if let Some(sign_in) = sign_in(config) {
        // Only a default: how the user signed in counts for more.
        let mut wanted = json!({ "security": { "auth": { "selectedType": sign_in } } });
        lay_over(&mut wanted, defaults);
        defaults = wanted;
    }
    private.add(DEFAULTS, ".json", &defaults.to_string())?;
    if let Some(prompt) = &config.system_prompt {
        private.add(SYSTEM_PROMPT, ".md", prompt)?;
    }
    Ok(private)
}

impl Private {
    /// A file that only the user can read, named by that variable.
    fn add(&mut self, variable: &str, suffix: &str, text: &str) -> io::Result<()> {
        let mut file = tempfile::Builder::new().prefix("multitap-gemini-").suffix(suffix).tempfile()?;
        file.write_all(text.as_bytes())?;
        file.flush()?;
        self.env.push((variable.to_owned(), file.path().display().to_string()));
        self.files.push(file.into_temp_path());
        Ok(())
    }
}

fn ours(config: &SessionConfig) -> Value {
    let mut ours = json!({
        // Its clean-up takes every file of a conversation that was once taken up over ACP for broken, and deletes it.
        "general": { "sessionRetention": { "enabled": false } },
        // With the interactive shell a finished command shows no output.
        "tools": { "shell": { "enableInteractiveShell": false } },
    });
    if let Some(turns) = config.max_turns {
        ours["model"] = json!({ "maxSessionTurns": turns });
    }
    if !config.blocked_tools.is_empty() {
        ours["tools"]["exclude"] = json!(config.blocked_tools);
    }
    ours
}

/// How to sign in, where the environment has what it takes.
fn sign_in(config: &SessionConfig) -> Option<&'static str> {
    let given = |name: &str| variable(config, name).is_some_and(|value| !value.is_empty());
    let switched_on = |name: &str| variable(config, name).as_deref() == Some("true");
    if switched_on("GOOGLE_GENAI_USE_GCA") {
        Some("oauth-personal")
    } else if switched_on("GOOGLE_GENAI_USE_VERTEXAI") {
        Some("vertex-ai")
    } else if given("GEMINI_API_KEY") {
        Some("gemini-api-key")
    } else {
        None
    }
}

/// A variable as the agent will see it.
pub(super) fn variable(config: &SessionConfig, name: &str) -> Option<String> {
    let own = config.program.as_ref().and_then(|program| program.env.get(name));
    config.environment.get(name).or(own).cloned().or_else(|| std::env::var(name).ok()).filter(|value| !value.is_empty())
}

fn machine_settings() -> PathBuf {
    if cfg!(target_os = "macos") {
        "/Library/Application Support/GeminiCli/settings.json".into()
    } else if cfg!(windows) {
        r"C:\ProgramData\gemini-cli\settings.json".into()
    } else {
        "/etc/gemini-cli/settings.json".into()
    }
}

/// The settings in a file; none if there is no such file.
fn read(path: &Path) -> io::Result<Value> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Map::new().into()),
        Err(error) => return Err(error),
    };
    if text.trim().is_empty() {
        return Ok(Map::new().into());
    }
    let broken = |error| io::Error::new(io::ErrorKind::InvalidData, format!("{}: {error}", path.display()));
    serde_json::from_str(&without_comments(&text)).map_err(broken)
}

/// JSON without the comments that Gemini allows in its settings.
fn without_comments(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['"', '/']) {
        plain.push_str(&rest[..at]);
        rest = &rest[at..];
        let end = if rest.starts_with('"') {
            let end = end_of_string(rest);
            plain.push_str(&rest[..end]);
            end
        } else if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else {
            plain.push('/');
            1
        };
        rest = &rest[end..];
    }
    plain.push_str(rest);
    plain
}

/// Where the string ends that the text begins with.
fn end_of_string(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Puts settings on top of others: objects are merged, lists joined, anything else replaced.
fn lay_over(below: &mut Value, above: Value) {
    match (below, above) {
        (Value::Object(below), Value::Object(above)) => {
            for (key, value) in above {
                lay_over(below.entry(key).or_insert(Value::Null), value);
            }
        }
        (Value::Array(below), Value::Array(above)) => below.extend(above),
        (below, above) => *below = above,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_go_and_text_stays() {
        let text = "{ // one\n \"a\": \"http://x/*y*/\\\"\", /* two\n */ \"b\": 1 / 2 }";
        assert_eq!(without_comments(text), "{ \n \"a\": \"http://x/*y*/\\\"\",  \"b\": 1 / 2 }");
    }

    #[test]
    fn what_the_machine_says_stays_beside_ours() {
        let mut settings = json!({ "tools": { "exclude": ["a"], "core": ["b"] }, "general": { "vimMode": true } });
        lay_over(&mut settings, json!({ "tools": { "exclude": ["c"] }, "general": { "vimMode": false } }));
        let expected = json!({ "tools": { "exclude": ["a", "c"], "core": ["b"] }, "general": { "vimMode": false } });
        assert_eq!(settings, expected);
    }
}
