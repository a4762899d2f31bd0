//! Permissions of the built-in agent: `approvalMode`, `tools`, `trustedFolders`.
//!
//! A project may always forbid. It may allow only in a folder that the user trusts.

use std::path::{Path, PathBuf};

use multitap_event::ApprovalMode;
use serde_json::Value;

use super::{Source, boolean, object, text, texts, wrong_word};

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Permissions {
    /// Default mode of a session.
    pub(crate) mode: Option<ApprovalMode>,
    pub(crate) allowed: Vec<String>,
    pub(crate) excluded: Vec<String>,
    /// Whether `web_fetch` may reach this machine and its network.
    pub(crate) private_addresses: bool,
    trusted: Vec<PathBuf>,
    /// Keys of the project's file that apply only in a trusted folder, and so were ignored.
    pub(crate) withheld: Vec<String>,
}

impl Permissions {
    /// Whether the folder, or one above it, is trusted.
    pub(super) fn trusts(&self, folder: &Path) -> bool {
        let folder = real(folder);
        let covers = |trusted: PathBuf| folder == trusted || (folder.starts_with(&trusted) && !holds_home(&trusted));
        self.trusted.iter().any(|trusted| covers(real(trusted)))
    }

    /// Whether it lets nothing run without asking.
    #[cfg(test)]
    pub(super) fn gives_nothing(&self) -> bool {
        self.allowed.is_empty() && !self.private_addresses && self.trusted.is_empty() && self.mode.is_none_or(is_strict)
    }

    /// Notes that a key does not count here, and says why.
    pub(super) fn withhold(&mut self, path: &str) -> String {
        self.withheld.push(path.to_owned());
        format!("'{path}' is ignored here: this folder is not among your trustedFolders, so it cannot allow anything")
    }

    /// Applies one key of a file.
    pub(super) fn take(
        &mut self,
        key: &str,
        value: &Value,
        source: Source,
        notes: &mut Vec<String>,
    ) -> Result<(), String> {
        match (key, source) {
            ("approvalMode", _) => {
                let mode = mode(value)?;
                if may(source) || tightens(mode, self.mode) {
                    self.mode = Some(mode);
                } else {
                    notes.push(self.withhold("approvalMode"));
                }
            }
            ("tools", _) => self.take_tools(value, source, notes)?,
            (_, Source::User) => {
                self.trusted = texts(value, "trustedFolders")?.into_iter().map(PathBuf::from).collect();
                let wide = self.trusted.iter().filter(|folder| holds_home(&real(folder)));
                notes.extend(wide.map(|folder| {
                    format!(
                        "'trustedFolders': {} contains your home folder, so the folders below it are not trusted. \
                         List the folders of your projects instead",
                        folder.display()
                    )
                }));
            }
            (_, Source::Project { .. }) => {
                notes.push("'trustedFolders' is ignored here: only you can say whom you trust".to_owned());
            }
        }
        Ok(())
    }

    fn take_tools(&mut self, value: &Value, source: Source, notes: &mut Vec<String>) -> Result<(), String> {
        for (key, value) in object(value, "tools")? {
            let path = format!("tools.{key}");
            match key.as_str() {
                "exclude" => self.excluded.extend(texts(value, &path)?),
                "allowed" => {
                    let allowed = texts(value, &path)?;
                    if may(source) { self.allowed.extend(allowed) } else { notes.push(self.withhold(&path)) }
                }
                "privateAddresses" => {
                    let allowed = boolean(value, &path)?;
                    if may(source) || !allowed {
                        self.private_addresses = allowed
                    } else {
                        notes.push(self.withhold(&path))
                    }
                }
                _ => notes.push(format!("'{path}' is not known to this version and is ignored")),
            }
        }
        Ok(())
    }
}

/// Whether a folder is the user's home or above it: nearly everything lies below, downloads too.
pub(crate) fn holds_home(folder: &Path) -> bool {
    std::env::home_dir().is_some_and(|home| real(&home).starts_with(folder))
}

fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

fn mode(value: &Value) -> Result<ApprovalMode, String> {
    let known = || ApprovalMode::ALL.map(ApprovalMode::option_word).join(", ");
    text(value, "approvalMode")?.parse().map_err(|()| wrong_word("approvalMode", &format!("one of {}", known()), value))
}

/// Whether that file may grant permissions.
fn may(source: Source) -> bool {
    match source {
        Source::User => true,
        Source::Project { trusted } => trusted,
    }
}

/// Whether everything a mode asked about or denied before is still asked about or denied after.
fn tightens(after: ApprovalMode, before: Option<ApprovalMode>) -> bool {
    match (after, before) {
        (ApprovalMode::Plan, _) => true,
        (ApprovalMode::DontAsk, before) => before != Some(ApprovalMode::Plan),
        (ApprovalMode::Ask, before) => !matches!(before, Some(ApprovalMode::Plan | ApprovalMode::DontAsk)),
        (ApprovalMode::AskDangerous | ApprovalMode::AutoEdit | ApprovalMode::AutoAll, _) => false,
    }
}

/// Whether a mode runs nothing that `ask` would ask about.
#[cfg(test)]
fn is_strict(mode: ApprovalMode) -> bool {
    match mode {
        ApprovalMode::Ask | ApprovalMode::Plan | ApprovalMode::DontAsk => true,
        ApprovalMode::AskDangerous | ApprovalMode::AutoEdit | ApprovalMode::AutoAll => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Settings;
    use super::*;

    fn take(text: &str, source: Source) -> (Permissions, Vec<String>) {
        let mut settings = Settings::default();
        let mut notes = Vec::new();
        settings.take(text, source, &mut notes).unwrap();
        (settings.permissions, notes)
    }

    #[test]
    fn an_untrusted_project_can_forbid_and_never_allow() {
        let text = r#"{
            "approvalMode": "auto-all", "trustedFolders": ["/"],
            "tools": { "allowed": ["run_shell_command"], "exclude": ["web_fetch"], "privateAddresses": true }
        }"#;
        let (permissions, notes) = take(text, Source::Project { trusted: false });
        let withheld = ["approvalMode", "tools.allowed", "tools.privateAddresses"].map(str::to_owned).to_vec();
        let expected = Permissions { excluded: vec!["web_fetch".to_owned()], withheld, ..Permissions::default() };
        assert_eq!(permissions, expected, "what is withheld is asked about on a terminal");
        assert_eq!(notes.len(), 4, "{notes:?}");
        let (permissions, notes) = take(text, Source::Project { trusted: true });
        assert_eq!(permissions.mode, Some(ApprovalMode::AutoAll));
        assert!(permissions.private_addresses && permissions.allowed.len() == 1);
        assert_eq!(notes, ["'trustedFolders' is ignored here: only you can say whom you trust"]);
        let (permissions, notes) = take(r#"{"approvalMode": "plan"}"#, Source::Project { trusted: false });
        assert_eq!((permissions.mode, notes.len()), (Some(ApprovalMode::Plan), 0), "stricter is always fine");
    }

    #[test]
    fn an_untrusted_project_does_not_loosen_what_the_user_tightened() {
        for (users, projects, expected) in [
            (ApprovalMode::Plan, "ask", ApprovalMode::Plan),
            (ApprovalMode::Plan, "dont-ask", ApprovalMode::Plan),
            (ApprovalMode::DontAsk, "ask", ApprovalMode::DontAsk),
            (ApprovalMode::DontAsk, "plan", ApprovalMode::Plan),
            (ApprovalMode::AutoAll, "ask", ApprovalMode::Ask),
        ] {
            let mut permissions = Permissions { mode: Some(users), ..Permissions::default() };
            let mut notes = Vec::new();
            let mode = Value::String(projects.to_owned());
            permissions.take("approvalMode", &mode, Source::Project { trusted: false }, &mut notes).unwrap();
            assert_eq!(permissions.mode, Some(expected), "{users:?}, then {projects}");
            assert_eq!(notes.is_empty(), users != expected, "{notes:?}");
        }
    }

    #[test]
    fn trust_holds_for_what_lies_below_and_not_for_what_only_looks_so() {
        let home = tempfile::tempdir().unwrap();
        let (mine, other) = (home.path().join("mine"), home.path().join("mine-too"));
        std::fs::create_dir_all(mine.join("deep")).unwrap();
        std::fs::create_dir_all(&other).unwrap();
        let permissions = Permissions { trusted: vec![mine.clone()], ..Permissions::default() };
        assert!(permissions.trusts(&mine) && permissions.trusts(&mine.join("deep")));
        assert!(!permissions.trusts(&other) && !permissions.trusts(home.path()));
        #[cfg(unix)]
        {
            let link = mine.join("link");
            std::os::unix::fs::symlink(&other, &link).unwrap();
            assert!(!permissions.trusts(&link), "where it leads counts");
        }
    }

    #[test]
    fn a_word_that_is_no_mode_stops() {
        let mut settings = Settings::default();
        let error = settings.take(r#"{"approvalMode": "yolo!"}"#, Source::User, &mut Vec::new()).unwrap_err();
        assert!(error.contains("'approvalMode' must be one of ask, ask-dangerous"), "{error}");
    }
}
