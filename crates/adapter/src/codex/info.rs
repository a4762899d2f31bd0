//! Facts about Codex that are known before a start.

use std::path::Path;

use multitap_event::{AgentKind, AgentType};

use super::history::{Stored, list};
use super::{CodexCodec, project};
use crate::info::{AgentFeatures, AgentInfo, Home, McpAbilities, ProgramInfo, ProjectFiles, SignInPlaces, Store};
use crate::project::{Contents, contents};

pub(crate) static INFO: AgentInfo = AgentInfo {
    agent: AgentType::Codex,
    program: Some(ProgramInfo {
        name: "codex",
        variable: "MULTITAP_CODEX_BIN",
        install: "npm install -g @openai/codex",
        tested_version: "0.166.0",
        kind: AgentKind::Codex,
    }),
    features: AgentFeatures {
        // Codex reports no prices, counts tokens for all models together, rewinds only in a fork, and accepts no edited
        // calls.
        cost: false,
        usage_per_model: false,
        resume_at_message: false,
        edited_approval: false,
        structured_output: true,
        resume: true,
        fork: true,
        hooks: true,
        partial_text: true,
        reasoning: true,
        mcp: true,
        permission_questions: true,
        cancel: true,
        set_mode: true,
        set_model: true,
        images: true,
    },
    steers: true,
    mcp: McpAbilities::ALL,
    home: Some(Home { variable: "CODEX_HOME", variable_is_parent: false, folder: ".codex" }),
    sign_in: Some(SignInPlaces {
        variables: &["CODEX_API_KEY", "CODEX_ACCESS_TOKEN"],
        files: &["auth.json"],
        fix: "codex login",
        in_settings: says_sign_in,
        uses_keychain: false,
    }),
    store: Some(Store { list, entries: |session| Box::new(Stored::new(session)), numbered: None }),
    project: ProjectFiles {
        look: Some(project::look),
        acts_in_added: false,
        leave_out: |config, folder| {
            project::mark(config, folder, project::UNTRUSTED);
            Ok(())
        },
        trust: Some(|config, folder| project::mark(config, folder, project::TRUSTED)),
    },
    launch: |start| Box::pin(super::launch(start)),
    recorded: || Box::new(CodexCodec::recorded()),
};

/// Settings that choose another provider, or store the sign-in with the system.
fn says_sign_in(home: &Path) -> Option<String> {
    let file = home.join("config.toml");
    let Contents::Text(text) = contents(&file) else { return None };
    let sets = |line: &str, key: &str| {
        line.trim_start().strip_prefix(key).is_some_and(|rest| rest.trim_start().starts_with('='))
    };
    let elsewhere = |line: &str| {
        sets(line, "model_provider")
            || sets(line, "profile")
            || (sets(line, "cli_auth_credentials_store") && !line.contains("\"file\""))
    };
    text.lines().any(elsewhere).then(|| file.display().to_string())
}
