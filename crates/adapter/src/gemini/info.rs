//! Facts about Gemini CLI that are known before a start.

use std::path::Path;

use multitap_event::{AgentKind, AgentType, Transport};

use super::history::{Stored, list, numbered};
use super::{GeminiCodec, project};
use crate::info::{AgentFeatures, AgentInfo, Home, McpAbilities, ProgramInfo, ProjectFiles, SignInPlaces, Store};
use crate::project::{Contents, contents};

/// Variables that sign in.
const KEYS: [&str; 4] = ["GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_GCA"];

pub(crate) static INFO: AgentInfo = AgentInfo {
    agent: AgentType::Gemini,
    program: Some(ProgramInfo {
        name: "gemini",
        variable: "MULTITAP_GEMINI_BIN",
        install: "npm install -g @google/gemini-cli",
        tested_version: "0.61.0",
        kind: AgentKind::Gemini,
    }),
    features: AgentFeatures {
        cost: false,
        structured_output: false,
        resume_at_message: false,
        fork: false,
        hooks: false,
        edited_approval: false,
        usage_per_model: true,
        resume: true,
        partial_text: true,
        reasoning: true,
        mcp: true,
        permission_questions: true,
        cancel: true,
        set_mode: true,
        set_model: true,
        images: true,
    },
    steers: false,
    mcp: McpAbilities {
        timeout: false,
        trust: true,
        include_tools: false,
        exclude_tools: true,
        cwd: false,
        rules_misread_underscores: true,
    },
    home: Some(Home { variable: "GEMINI_CLI_HOME", variable_is_parent: true, folder: ".gemini" }),
    sign_in: Some(SignInPlaces {
        variables: &KEYS,
        files: &["oauth_creds.json", "gemini-credentials.json"],
        fix: "run `gemini` once and sign in, or set GEMINI_API_KEY",
        in_settings: says_sign_in,
        uses_keychain: false,
    }),
    store: Some(Store { list, entries: |session| Box::new(Stored::new(session)), numbered: Some(numbered) }),
    project: ProjectFiles {
        look: Some(project::look),
        acts_in_added: false,
        leave_out: |config, _| match config.transport {
            Transport::Default => {
                project::leave_out(&mut config.environment);
                Ok(())
            }
            Transport::OneShot => Err("its one-shot form does not start in such a folder"),
        },
        trust: None,
    },
    launch: |start| Box::pin(super::launch(start)),
    recorded: || Box::new(GeminiCodec::recorded()),
};

/// A file of variables that contains a key.
fn says_sign_in(home: &Path) -> Option<String> {
    let files = [home.join(".env"), home.parent().unwrap_or(home).join(".env")];
    let has_key = |file: &&std::path::PathBuf| match contents(file) {
        Contents::Text(text) => KEYS.iter().any(|name| text.contains(name)),
        Contents::Unknown | Contents::Absent => false,
    };
    files.iter().find(has_key).map(|file| file.display().to_string())
}
