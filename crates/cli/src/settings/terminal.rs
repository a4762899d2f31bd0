//! Settings of the terminal UI.

use multitap_tui::{Notifications, TerminalPreferences};
use serde_json::Value;

use super::{boolean, object, text, wrong_word};

pub(super) fn take(
    preferences: &mut TerminalPreferences,
    value: &Value,
    notes: &mut Vec<String>,
) -> Result<(), String> {
    for (key, value) in object(value, "terminal")? {
        let path = format!("terminal.{key}");
        match key.as_str() {
            "notify" => preferences.notify = notify(value, &path)?,
            "mouse" => preferences.mouse = boolean(value, &path)?,
            _ => notes.push(format!("'{path}' is not known to this version and is ignored")),
        }
    }
    Ok(())
}

fn notify(value: &Value, path: &str) -> Result<Notifications, String> {
    match text(value, path)?.as_str() {
        "off" => Ok(Notifications::Off),
        "bell" => Ok(Notifications::Bell),
        "desktop" => Ok(Notifications::Desktop),
        "both" => Ok(Notifications::Both),
        _ => Err(wrong_word(path, "\"off\", \"bell\", \"desktop\" or \"both\"", value)),
    }
}
