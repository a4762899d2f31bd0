//! Adds rules to the user's settings, preserving everything else in the file, comments included.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jsonc_parser::cst::CstRootNode;
use multitap_client::Save;

use super::SYNTAX;

/// A function that stores rules in that file.
pub(crate) fn into(file: PathBuf) -> Save {
    Arc::new(move |rule| save(&file, rule))
}

fn save(file: &Path, rule: &str) -> Result<(), String> {
    // A `$` in the rule must not be expanded as a variable.
    change(file, |text| with_entry(text, "tools.allowed", rule))
}

/// Stores in that file that the user trusts a folder.
pub(crate) fn trust(file: &Path, folder: &Path) -> Result<(), String> {
    // Settings expand `$NAME`: another folder would be trusted.
    let name = folder.to_str().filter(|name| !name.contains('$'));
    let name = name.ok_or_else(|| format!("the path {} cannot be written to the settings", folder.display()))?;
    change(file, |text| with_entry(text, "trustedFolders", name))
}

fn change(file: &Path, edit: impl FnOnce(&str) -> Result<String, String>) -> Result<(), String> {
    let said = |error: std::io::Error| format!("{}: {error}", file.display());
    let before = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(said(error)),
    };
    let after = edit(&before).map_err(|why| format!("{}: {why}", file.display()))?;
    if after == before {
        return Ok(());
    }
    // If the file is a link, its target is written.
    let file = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let folder = file.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(said)?;
    let mut new = tempfile::NamedTempFile::new_in(folder).map_err(said)?;
    new.write_all(after.as_bytes()).map_err(said)?;
    if let Ok(data) = std::fs::metadata(&file) {
        new.as_file().set_permissions(data.permissions()).map_err(said)?;
    }
    new.as_file().sync_all().map_err(said)?;
    new.persist(&file).map_err(|error| said(error.error))?;
    Ok(())
}

/// The text with the entry in the list of that name.
fn with_entry(text: &str, path: &str, entry: &str) -> Result<String, String> {
    let text = if text.trim().is_empty() { "{\n}\n" } else { text };
    let root = CstRootNode::parse(text, &SYNTAX).map_err(|error| format!("is not JSON: {error}"))?;
    let wrong = |path: &str, wanted: &str| format!("'{path}' must be {wanted}");
    let mut object = root.object_value_or_create().ok_or_else(|| wrong("the file", "an object"))?;
    let (parent, name) = path.split_once('.').map_or((None, path), |(parent, name)| (Some(parent), name));
    if let Some(parent) = parent {
        object = object.object_value_or_create(parent).ok_or_else(|| wrong(parent, "an object"))?;
    }
    let list = object.array_value_or_create(name).ok_or_else(|| wrong(path, "a list of strings"))?;
    let is_there = list.elements().iter().any(|element| {
        element.as_string_lit().and_then(|text| text.decoded_value().ok()).is_some_and(|text| text == entry)
    });
    if !is_there {
        list.append(entry.into());
    }
    Ok(root.to_string())
}

#[cfg(test)]
mod tests {
    use super::super::{Settings, Source};
    use super::*;

    #[test]
    fn a_rule_is_added_once_and_all_else_stays() {
        let before =
            "{\n  // mine\n  \"agent\": \"claude\",\n  \"tools\": { \"exclude\": [\"web_fetch\"] }, // so far\n}\n";
        let after = with_entry(before, "tools.allowed", "run_shell_command(git log:*)").unwrap();
        assert!(after.contains("// mine") && after.contains("// so far"), "{after}");
        assert_eq!(with_entry(&after, "tools.allowed", "run_shell_command(git log:*)").unwrap(), after);
        let both = with_entry(&after, "tools.allowed", "edit").unwrap();
        let mut settings = Settings::default();
        settings.take(&both, Source::User, &mut Vec::new()).unwrap();
        assert_eq!(settings.permissions.allowed, ["run_shell_command(git log:*)", "edit"]);
        assert_eq!(settings.permissions.excluded, ["web_fetch"]);
    }

    #[test]
    fn a_trusted_folder_is_added_once_and_all_else_stays() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("settings.json");
        let before = "{\n  // mine\n  \"trustedFolders\": [\"/a\"], // so far\n}\n";
        std::fs::write(&file, before).unwrap();
        trust(&file, Path::new("/work/b")).unwrap();
        let after = std::fs::read_to_string(&file).unwrap();
        assert!(after.contains("// mine") && after.contains("// so far"), "{after}");
        trust(&file, Path::new("/work/b")).unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), after);
        trust(&file, Path::new("/work/$HOME")).unwrap_err();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), after);
        let value: serde_json::Value = super::super::parsed(&after).unwrap();
        assert_eq!(value["trustedFolders"], serde_json::json!(["/a", "/work/b"]));
    }

    #[test]
    fn a_file_is_made_and_a_broken_one_is_left_alone() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("deep/settings.json");
        save(&file, "edit").unwrap();
        assert!(std::fs::read_to_string(&file).unwrap().contains("\"edit\""));
        for broken in ["{", "[]", "{\"tools\": 1}", "{\"tools\": {\"allowed\": {}}}"] {
            std::fs::write(&file, broken).unwrap();
            save(&file, "edit").unwrap_err();
            assert_eq!(std::fs::read_to_string(&file).unwrap(), broken);
        }
    }
}
