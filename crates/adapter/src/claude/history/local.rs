//! Tells what the user typed from other entries in the user's name: commands that Claude ran itself, and text that
//! Claude wrote.

use super::wire::{Entry, other_speaker};
use crate::json::JsonFields as _;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Typed {
    /// A prompt, or a command as it was typed.
    Prompt(String),
    /// The output of a command that Claude ran itself.
    Printed(String),
    /// A note that the user stopped the turn.
    Stopped,
    /// Text that nobody typed.
    Nothing,
}

pub(super) fn typed(text: &str) -> Typed {
    let trimmed = text.trim();
    if trimmed.starts_with("[Request interrupted by user") {
        return Typed::Stopped;
    }
    if let Some(command) = inside(trimmed, "command-name") {
        let arguments = inside(trimmed, "command-args").unwrap_or_default();
        return Typed::Prompt(format!("{} {}", command.trim(), arguments.trim()).trim().to_owned());
    }
    if let Some(command) = inside(trimmed, "bash-input") {
        return Typed::Prompt(format!("!{}", command.trim()));
    }
    for tag in ["local-command-stdout", "local-command-stderr", "bash-stdout"] {
        if let Some(printed) = inside(trimmed, tag) {
            let errors = inside(trimmed, "bash-stderr").unwrap_or_default();
            return Typed::Printed(format!("{printed}{errors}").trim().to_owned());
        }
    }
    let own = ["<local-command-caveat>", "<system-reminder>", "<task-notification>"];
    if trimmed.is_empty() || own.iter().any(|tag| trimmed.starts_with(tag)) {
        return Typed::Nothing;
    }
    Typed::Prompt(text.to_owned())
}

/// Content of the tag at the beginning of a text, or after other tags.
pub(super) fn inside<'a>(text: &'a str, tag: &str) -> Option<&'a str> {
    if !text.starts_with('<') {
        return None;
    }
    let (_, rest) = text.split_once(&format!("<{tag}>"))?;
    rest.split_once(&format!("</{tag}>")).map(|(inner, _)| inner)
}

/// The text of an entry that begins a turn, if the user typed it.
pub(super) fn prompt_of(entry: &Entry) -> Option<String> {
    let is_user = match entry.kind() {
        "user" => entry.message().is_some(),
        "message" => entry.text("role") == Some("user"),
        _ => false,
    };
    if !is_user || other_speaker(entry).is_some() || entry.is_meta() || entry.flag("isCompactSummary") {
        return None;
    }
    match typed(&entry.words()) {
        Typed::Prompt(text) => Some(text),
        Typed::Printed(_) | Typed::Stopped | Typed::Nothing => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read_as_they_were_typed() {
        let command = "<command-name>/model</command-name>\n  <command-message>model</command-message>\n  <command-args>opus</command-args>";
        assert_eq!(typed(command), Typed::Prompt("/model opus".to_owned()));
        assert_eq!(typed("<bash-input>ls -l</bash-input>"), Typed::Prompt("!ls -l".to_owned()));
        assert_eq!(
            typed("<local-command-stdout>Compacted </local-command-stdout>"),
            Typed::Printed("Compacted".to_owned())
        );
        assert_eq!(typed("<bash-stdout>a</bash-stdout><bash-stderr>b</bash-stderr>"), Typed::Printed("ab".to_owned()));
    }

    #[test]
    fn what_claude_writes_is_no_prompt() {
        assert_eq!(typed("[Request interrupted by user for tool use]"), Typed::Stopped);
        assert_eq!(typed("<system-reminder>\nx</system-reminder>"), Typed::Nothing);
        assert_eq!(typed(" "), Typed::Nothing);
        // A prompt may speak of tags.
        let prompt = "what is <command-name>x</command-name>?";
        assert_eq!(typed(prompt), Typed::Prompt(prompt.to_owned()));
        assert_eq!(typed("<div>fix this</div>"), Typed::Prompt("<div>fix this</div>".to_owned()));
    }
}
