//! A place for each test: home, workspace and environment, independent of the person who runs the test.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};
use serde_json::json;
use tempfile::TempDir;

use crate::model::ModelServer;
use crate::shell::{executable, quote};

/// The variable whose value marks every process of one test.
pub const MARKER: &str = "MULTITAP_TEST_MARKER";

/// A temporary home and workspace, and the whole environment to run a CLI in. Removed on drop.
///
/// The environment points all three CLIs to the model server. It holds nothing of the caller's but PATH, so no
/// key, account or setting can get in, and a [`MARKER`] that children inherit.
#[derive(Debug)]
pub struct Scratch {
    folder: TempDir,
    env: BTreeMap<OsString, OsString>,
    marker: String,
}

impl Scratch {
    /// A new place whose CLIs use this server.
    pub fn new(server: &ModelServer) -> Result<Self> {
        let scratch = Self::without_model()?;
        scratch.point_to(&server.url())
    }

    /// A fresh place without any model.
    pub fn without_model() -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("multitap-").tempdir().context("make a scratch folder")?;
        let marker = uuid::Uuid::new_v4().simple().to_string();
        let mut scratch = Self { folder, env: BTreeMap::new(), marker };
        for name in ["home", "workspace", "tmp"] {
            fs::create_dir(scratch.root().join(name)).with_context(|| format!("make {name}"))?;
        }
        let vars = [
            ("PATH", std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into())),
            ("HOME", scratch.home().into()),
            ("TMPDIR", scratch.root().join("tmp").into()),
            ("LANG", "C.UTF-8".into()),
            ("TERM", "dumb".into()),
            (MARKER, scratch.marker.clone().into()),
        ];
        scratch.env = vars.into_iter().map(|(name, value)| (name.into(), value)).collect();
        Ok(scratch)
    }

    fn point_to(mut self, url: &str) -> Result<Self> {
        let codex_home = self.home().join(".codex");
        let vars: [(&str, OsString); 15] = [
            ("ANTHROPIC_BASE_URL", url.into()),
            ("ANTHROPIC_API_KEY", "dummy".into()),
            ("DISABLE_TELEMETRY", "1".into()),
            ("DISABLE_AUTOUPDATER", "1".into()),
            ("DISABLE_ERROR_REPORTING", "1".into()),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".into()),
            // A test of errors must not wait for ten attempts.
            ("CLAUDE_CODE_MAX_RETRIES", "2".into()),
            // Lets every mode run as root in a container.
            ("IS_SANDBOX", "1".into()),
            ("FAKE_KEY", "dummy".into()),
            ("CODEX_HOME", codex_home.clone().into()),
            ("GEMINI_API_KEY", "dummy".into()),
            ("GOOGLE_GEMINI_BASE_URL", url.into()),
            ("GEMINI_CLI_TRUST_WORKSPACE", "true".into()),
            ("NO_PROXY", "127.0.0.1,localhost".into()),
            ("no_proxy", "127.0.0.1,localhost".into()),
        ];
        self.env.extend(vars.into_iter().map(|(name, value)| (name.into(), value)));
        fs::create_dir(&codex_home).context("make the Codex home")?;
        fs::write(codex_home.join("config.toml"), codex_config(url)).context("write the Codex settings")?;
        let gemini = self.home().join(".gemini");
        fs::create_dir(&gemini).context("make the Gemini home")?;
        fs::write(gemini.join("settings.json"), gemini_settings().to_string()).context("write the Gemini settings")?;
        Ok(self)
    }

    /// The folder that contains all others.
    pub fn root(&self) -> &Path {
        self.folder.path()
    }

    pub fn home(&self) -> PathBuf {
        self.root().join("home")
    }

    /// The folder the agent works in.
    pub fn workspace(&self) -> PathBuf {
        self.root().join("workspace")
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.workspace().join(name)
    }

    /// Writes a file in the workspace, and the folders above it.
    pub fn write(&self, name: &str, content: &str) -> Result<PathBuf> {
        let path = self.path(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).with_context(|| format!("make {}", parent.display()))?;
        }
        fs::write(&path, content).with_context(|| format!("write {}", path.display()))?;
        Ok(path)
    }

    pub fn read(&self, name: &str) -> Result<String> {
        let path = self.path(name);
        fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))
    }

    pub fn set(&mut self, name: &str, value: impl Into<OsString>) -> &mut Self {
        self.env.insert(name.into(), value.into());
        self
    }

    pub fn env(&self) -> Vec<(OsString, OsString)> {
        self.env.iter().map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// The value of [`MARKER`] in every process of this place. See [`crate::wait::marked`].
    pub fn marker(&self) -> &str {
        &self.marker
    }

    /// A command in the workspace with this environment and nothing else, stdin closed.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = crate::command(program.as_ref());
        command.env_clear().envs(&self.env).current_dir(self.workspace()).stdin(Stdio::null());
        command
    }

    /// A program that runs `program` with this environment, whatever environment it is started from.
    /// Variables named in `pass` come through from the caller.
    ///
    /// For code under test that starts the CLI from its own environment.
    pub fn launcher(&self, program: &Path, pass: &[&str]) -> Result<PathBuf> {
        let ours = self.env.iter().map(|(name, value)| quote(&format!("{}={}", name.display(), value.display())));
        let theirs = pass.iter().map(|name| format!("${{{name}+\"{name}=${name}\"}}"));
        let words: Vec<String> = ours.chain(theirs).chain([quote(&program.to_string_lossy())]).collect();
        let text = format!("#!/bin/sh\nexec /usr/bin/env -i {} \"$@\"\n", words.join(" "));
        let name = program.file_name().unwrap_or(OsStr::new("agent"));
        let folder = self.root().join("bin");
        fs::create_dir_all(&folder).context("make the folder for launchers")?;
        executable(&folder.join(name), &text)
    }
}

fn codex_config(url: &str) -> String {
    format!(
        r#"model = "gpt-5.5"
model_provider = "fake"
check_for_update_on_startup = false

[model_providers.fake]
name = "fake"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "FAKE_KEY"
supports_websockets = false
request_max_retries = 2
stream_max_retries = 2

[features]
enable_request_compression = false
apps = false
plugins = false

[analytics]
enabled = false
"#
    )
}

fn gemini_settings() -> serde_json::Value {
    json!({
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "general": {"enableAutoUpdate": false, "maxAttempts": 2},
        "privacy": {"usageStatisticsEnabled": false},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launcher_lets_through_only_what_it_was_told() {
        let mut scratch = Scratch::without_model().unwrap();
        scratch.set("ODD", "it's \"odd\" $HOME");
        let launcher = scratch.launcher(Path::new("/usr/bin/env"), &["PASSED", "ABSENT"]).unwrap();
        let output = crate::command(launcher.as_os_str())
            .env_clear()
            .envs([("PASSED", "two words"), ("SECRET", "leaks"), ("HOME", "/nobody")])
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains("PASSED=two words\n") && text.contains("ODD=it's \"odd\" $HOME\n"), "{text}");
        assert!(text.contains(&format!("HOME={}\n", scratch.home().display())), "{text}");
        assert!(!text.contains("SECRET") && !text.contains("ABSENT"), "{text}");
    }
}
