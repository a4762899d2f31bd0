//! What the user wants of their terminal.

use multitap_tui::{Notify, Preferences};
use serde_json::Value;

use super::{boolean, object, text, wrong_word};

pub(super) fn take(preferences: &mut Preferences, value: &Value, notes: &mut Vec<String>) -> Result<(), String> {
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

fn notify(value: &Value, path: &str) -> Result<Notify, String> {
    match text(value, path)?.as_str() {
        "off" => Ok(Notify::Off),
        "bell" => Ok(Notify::Bell),
        "desktop" => Ok(Notify::Desktop),
        "both" => Ok(Notify::Both),
        _ => Err(wrong_word(path, "\"off\", \"bell\", \"desktop\" or \"both\"", value)),
    }
}
