//! Whether the user is signed in with an agent, by files and variables. Starts nothing, and asks nobody.

use std::collections::BTreeMap;
use std::path::Path;

use multitap_event::AgentType;

use crate::info::AgentInfo;

/// Whether an agent is signed in, as far as its files and variables show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignIn {
    /// The variable or file that shows it. Whether the vendor still accepts it is not known.
    Found(String),
    /// No variable or file shows a sign-in; `fix` says what to do.
    Missing { fix: &'static str },
    /// This machine may store the sign-in where it is not visible.
    Unknown,
}

/// Whether the user is signed in. `env` has the agent's variables in addition to our own.
pub fn sign_in(agent: AgentType, env: &BTreeMap<String, String>) -> SignIn {
    let Some(info) = AgentInfo::of(agent) else { return SignIn::Unknown };
    let Some(places) = &info.sign_in else { return SignIn::Unknown };
    let is_set = |name: &str| {
        let own = env.get(name).is_some_and(|value| !value.is_empty());
        own || std::env::var_os(name).is_some_and(|value| !value.is_empty())
    };
    if let Some(name) = places.variables.iter().find(|name| is_set(name)) {
        return SignIn::Found((*name).to_owned());
    }
    let Some(home) = info.home(env) else { return SignIn::Unknown };
    if let Some(file) = places.files.iter().map(|name| place(&home, name)).find(|file| file.is_file()) {
        return SignIn::Found(file.display().to_string());
    }
    match (places.in_settings)(&home) {
        Some(file) => SignIn::Found(file),
        None if places.uses_keychain && cfg!(target_os = "macos") => SignIn::Unknown,
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
            let places = AgentInfo::of(agent).unwrap().sign_in.as_ref().unwrap();
            if places.variables.iter().any(|name| std::env::var_os(name).is_some()) {
                continue;
            }
            if !(cfg!(target_os = "macos") && places.uses_keychain) {
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
        let says = |agent| (AgentInfo::of(agent).unwrap().sign_in.as_ref().unwrap().in_settings)(&folder).is_some();
        assert!(![AgentType::Claude, AgentType::Codex, AgentType::Gemini].into_iter().any(says));
        put("settings.json", r#"{"apiKeyHelper": "x"}"#);
        assert!(says(AgentType::Claude));
        put("config.toml", "model = \"x\"\n model_provider = \"mine\"\n");
        assert!(says(AgentType::Codex));
        put(".env", "GEMINI_API_KEY=k\n");
        assert!(says(AgentType::Gemini));
    }
}
