//! Project files that make Gemini CLI run or allow something when it starts.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::project::{Contents, Project};

/// Variables that Gemini reads from a file in any folder.
const TAKEN_FROM_ALL: [&str; 4] = ["GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION"];
/// Marks the folder as not trusted, whatever else says that it is.
const UNTRUSTED: [(&str, &str); 2] = [("GEMINI_RESTRICTED_MODE", "true"), ("GEMINI_CLI_TRUST_WORKSPACE", "false")];

pub(crate) fn look(project: &mut Project) {
    let own = project.folder().join(".gemini");
    if !project.is_own(&own) {
        project.look_at_json(&own.join("settings.json"), |key, value| match key {
            [key] => matches!(*key, "$schema" | "model" | "privacy" | "ui"),
            ["general", key] => {
                matches!(*key, "checkpointing" | "enableAutoUpdate" | "vimMode")
            }
            ["context", "fileFiltering"] => true,
            ["context", "fileName"] => is_plain_name(value),
            _ => false,
        });
        project.look_into(&own.join("commands"), |_, text| {
            // TOML reads `\u0021` as an exclamation mark.
            let escaped = [r"\u", r"\U", r"\x"].iter().any(|escape| text.contains(escape));
            let runs = text.contains("!{").then_some("runs a command");
            runs.or(escaped.then_some("escaped characters"))
        });
        for (name, what) in [("agents", "an agent"), ("extensions", "an extension"), ("policies", "a rule")] {
            project.look_into(&own.join(name), move |_, _| Some(what));
        }
        for name in ["sandbox.bashrc", "sandbox.Dockerfile"] {
            if !matches!(project.contents(&own.join(name)), Contents::Absent) {
                project.found(&own.join(name), "runs in its sandbox");
            }
        }
    }
    for folder in project.ancestors() {
        if project.is_home(&folder) {
            return;
        }
        for file in [folder.join(".gemini/.env"), folder.join(".env")] {
            match project.contents(&file) {
                Contents::Absent => continue,
                Contents::Unknown => project.found(&file, "cannot be read"),
                Contents::Text(text) if sets_others(&text) => project.found(&file, "variables"),
                Contents::Text(_) => {}
            }
            // Gemini reads only the first such file.
            return;
        }
    }
}

/// Whether the names of context files have no folder: otherwise files outside the project would be read.
fn is_plain_name(value: &Value) -> bool {
    let is_plain = |name: &Value| name.as_str().is_some_and(|name| !name.contains(['/', '\\']));
    match value {
        Value::Array(names) => names.iter().all(is_plain),
        name => is_plain(name),
    }
}

/// The characters that end a line for Gemini's parser of such files, which is written in JavaScript.
const LINE_ENDS: [char; 4] = ['\n', '\r', '\u{2028}', '\u{2029}'];

/// Whether the file sets a variable that Gemini does not read from every folder. A line that cannot be parsed counts.
fn sets_others(text: &str) -> bool {
    let lines = text.split(LINE_ENDS).map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let name = |line: &'_ str| {
        let line = line.strip_prefix("export ").unwrap_or(line).trim_start();
        line.split(['=', ':']).next().unwrap_or_default().trim().to_owned()
    };
    lines.map(name).any(|name| !TAKEN_FROM_ALL.contains(&name.as_str()))
}

/// Marks the folder as not trusted.
pub(crate) fn leave_out(environment: &mut BTreeMap<String, String>) {
    environment.extend(UNTRUSTED.map(|(name, value)| (name.to_owned(), value.to_owned())));
}

pub(crate) fn is_left_out(environment: &BTreeMap<String, String>) -> bool {
    UNTRUSTED.iter().all(|(name, value)| environment.get(*name).is_some_and(|set| set == value))
}
