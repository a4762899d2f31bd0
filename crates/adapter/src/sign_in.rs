//! Whether somebody is signed in with an agent, as far as files and variables show it. Nothing is started or asked.

use std::collections::BTreeMap;
use std::path::Path;

use multitap_event::AgentType;

use crate::history::History;
use crate::{claude, codex, gemini};

/// What is known about an agent's sign-in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignIn {
    /// What shows it: a variable or a file. Whether the vendor still accepts it is not known.
    Found(String),
    /// Nothing shows it; what to do about it.
    Missing { fix: &'static str },
    /// This machine may keep it where it cannot be seen.
    Unknown,
}

/// Where an agent notes that somebody signed in.
pub(crate) struct Places<'a> {
    /// Variables that are enough.
    pub(crate) variables: &'a [&'a str],
    /// Files in the agent's own folder, or beside it (`../NAME`).
    pub(crate) files: &'a [&'a str],
    pub(crate) fix: &'static str,
}

/// Whether somebody is signed in. `env` is what the agent is given beside our own variables.
pub fn sign_in(agent: AgentType, env: &BTreeMap<String, String>) -> SignIn {
    let places = match agent {
        AgentType::Claude => claude::SIGN_IN,
        AgentType::Codex => codex::SIGN_IN,
        AgentType::Gemini => gemini::SIGN_IN,
        AgentType::Acp | AgentType::Builtin => return SignIn::Unknown,
    };
    let is_set = |name: &str| {
        let own = env.get(name).is_some_and(|value| !value.is_empty());
        own || std::env::var_os(name).is_some_and(|value| !value.is_empty())
    };
    if let Some(name) = places.variables.iter().find(|name| is_set(name)) {
        return SignIn::Found((*name).to_owned());
    }
    let Ok(history) = History::of(agent, env) else { return SignIn::Unknown };
    let home = history.home();
    if let Some(file) = places.files.iter().map(|name| place(home, name)).find(|file| file.is_file()) {
        return SignIn::Found(file.display().to_string());
    }
    let says = match agent {
        AgentType::Claude => claude::says_sign_in(home),
        AgentType::Codex => codex::says_sign_in(home),
        _ => gemini::says_sign_in(home),
    };
    match says {
        Some(file) => SignIn::Found(file),
        None if agent == AgentType::Claude && cfg!(target_os = "macos") => SignIn::Unknown,
        None => SignIn::Missing { fix: places.fix },
    }
}

fn place(home: &Path, name: &str) -> std::path::PathBuf {
    match name.strip_prefix("../") {
        Some(name) => home.parent().unwrap_or(home).join(name),
        None => home.join(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sign_in_shows_in_variables_files_and_settings() {
        for (agent, file, variable) in [
            (AgentType::Claude, ".claude/.credentials.json", "ANTHROPIC_API_KEY"),
            (AgentType::Codex, ".codex/auth.json", "CODEX_API_KEY"),
            (AgentType::Gemini, ".gemini/oauth_creds.json", "GEMINI_API_KEY"),
        ] {
            let home = tempfile::tempdir().unwrap();
            let mut env = BTreeMap::from([("HOME".to_owned(), home.path().display().to_string())]);
            // Nothing of whoever runs the tests counts.
            for name in ["CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME"] {
                let own = home.path().join(match name {
                    "CLAUDE_CONFIG_DIR" => ".claude",
                    "CODEX_HOME" => ".codex",
                    _ => "",
                });
                env.insert(name.to_owned(), own.display().to_string());
            }
            let places = match agent {
                AgentType::Claude => claude::SIGN_IN,
                AgentType::Codex => codex::SIGN_IN,
                _ => gemini::SIGN_IN,
            };
            if places.variables.iter().any(|name| std::env::var_os(name).is_some()) {
                continue;
            }
            if !(cfg!(target_os = "macos") && agent == AgentType::Claude) {
                assert_eq!(sign_in(agent, &env), SignIn::Missing { fix: places.fix });
            }
            let with_key = env.clone().into_iter().chain([(variable.to_owned(), "k".to_owned())]).collect();
            assert_eq!(sign_in(agent, &with_key), SignIn::Found(variable.to_owned()));
            let file = home.path().join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, "{}").unwrap();
            assert!(matches!(sign_in(agent, &env), SignIn::Found(_)), "{agent}");
        }
    }

    #[test]
    fn another_way_to_a_model_counts_as_signed_in() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join(".x");
        std::fs::create_dir_all(&folder).unwrap();
        let put = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
        assert!(claude::says_sign_in(&folder).is_none() && codex::says_sign_in(&folder).is_none());
        assert!(gemini::says_sign_in(&folder).is_none());
        put("settings.json", r#"{"apiKeyHelper": "x"}"#);
        assert!(claude::says_sign_in(&folder).is_some());
        put("config.toml", "model = \"x\"\n model_provider = \"mine\"\n");
        assert!(codex::says_sign_in(&folder).is_some());
        put(".env", "GEMINI_API_KEY=k\n");
        assert!(gemini::says_sign_in(&folder).is_some());
    }
}
