//! Project files that make Codex run or allow something when it starts.

use std::path::Path;

use multitap_event::SessionConfig;
use serde_json::Value;

use crate::project::{Contents, Project, up_to_repository};

/// Codex's words for whether a folder is trusted.
pub(super) const TRUSTED: &str = "trusted";
pub(super) const UNTRUSTED: &str = "untrusted";

pub(super) fn look(project: &mut Project) {
    for folder in project.up_to_repository() {
        let own = folder.join(".codex");
        if project.is_own(&own) {
            continue;
        }
        let file = own.join("config.toml");
        match project.contents(&file) {
            Contents::Absent => {}
            Contents::Unknown => project.found(&file, "cannot be read"),
            Contents::Text(text) => {
                let says = |line: &str| !line.trim().is_empty() && !line.trim().starts_with('#');
                if text.lines().any(says) {
                    project.found(&file, "settings");
                }
            }
        }
        project.look_at_json(&own.join("hooks.json"), |_, _| false);
        project.look_into(&own.join("rules"), |_, _| Some("a rule"));
        project.look_into(&own.join("agents"), |_, _| Some("an agent"));
    }
}

/// Marks the folder, and those above it in its repository, as trusted or not. Without a mark, Codex trusts the folder
/// as soon as a client lets it write there, and records that in the user's own settings.
pub(super) fn mark(config: &mut SessionConfig, folder: &Path, level: &str) {
    let quoted = |folder: &Path| Value::from(folder.to_string_lossy()).to_string();
    let mut folders: Vec<String> = up_to_repository(folder).iter().map(|folder| quoted(folder)).collect();
    let as_given = quoted(folder);
    if !folders.contains(&as_given) {
        folders.push(as_given);
    }
    let marks: Vec<String> = folders.iter().map(|folder| format!(r#"{folder}={{trust_level="{level}"}}"#)).collect();
    config.program.get_or_insert_default().args.extend(["-c".to_owned(), format!("projects={{{}}}", marks.join(","))]);
}
