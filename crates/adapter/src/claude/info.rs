//! Facts about Claude Code that are known before a start.

use std::path::Path;

use multitap_event::{AgentKind, AgentType};

use super::history::{Stored, list};
use super::{ClaudeCodec, project};
use crate::info::{AgentFeatures, AgentInfo, Home, McpAbilities, ProgramInfo, ProjectFiles, SignInPlaces, Store};
use crate::project::{Contents, contents};

pub(crate) static INFO: AgentInfo = AgentInfo {
    agent: AgentType::Claude,
    program: Some(ProgramInfo {
        name: "claude",
        variable: "MULTITAP_CLAUDE_BIN",
        install: "npm install -g @anthropic-ai/claude-code",
        tested_version: "2.1.325",
        kind: AgentKind::Claude,
    }),
    features: AgentFeatures {
        cost: true,
        usage_per_model: true,
        structured_output: true,
        resume: true,
        resume_at_message: true,
        fork: true,
        hooks: true,
        partial_text: true,
        reasoning: true,
        mcp: true,
        permission_questions: true,
        edited_approval: true,
        cancel: true,
        set_mode: true,
        set_model: true,
        images: true,
    },
    steers: false,
    mcp: McpAbilities {
        timeout: true,
        trust: true,
        include_tools: false,
        exclude_tools: true,
        cwd: false,
        rules_misread_underscores: false,
    },
    home: Some(Home { variable: "CLAUDE_CONFIG_DIR", variable_is_parent: false, folder: ".claude" }),
    sign_in: Some(SignInPlaces {
        variables: &[
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "CLAUDE_CODE_OAUTH_TOKEN",
            "CLAUDE_CODE_USE_BEDROCK",
            "CLAUDE_CODE_USE_VERTEX",
            "CLAUDE_CODE_USE_FOUNDRY",
        ],
        files: &[".credentials.json"],
        fix: "claude auth login, or set ANTHROPIC_API_KEY",
        in_settings: says_sign_in,
        uses_keychain: true,
    }),
    store: Some(Store { list, entries: |session| Box::new(Stored::new(session)), numbered: None }),
    project: ProjectFiles {
        look: Some(project::look),
        acts_in_added: true,
        leave_out: |config, _| {
            project::leave_out(config);
            Ok(())
        },
        trust: None,
    },
    launch: |start| Box::pin(super::launch(start)),
    recorded: || Box::new(ClaudeCodec::recorded()),
};

/// A settings file that contains a key, or names a program that provides one.
fn says_sign_in(home: &Path) -> Option<String> {
    let settings = home.join("settings.json");
    let state = home.parent().unwrap_or(home).join(".claude.json");
    let beside = home.join(".claude.json");
    let words: [(&Path, &[&str]); 3] = [
        (&settings, &["\"apiKeyHelper\"", "\"ANTHROPIC_API_KEY\"", "\"ANTHROPIC_AUTH_TOKEN\"", "\"CLAUDE_CODE_USE_"]),
        (&state, &["\"primaryApiKey\"", "\"oauthAccount\""]),
        (&beside, &["\"primaryApiKey\"", "\"oauthAccount\""]),
    ];
    let says = |(file, words): &(&Path, &[&str])| match contents(file) {
        Contents::Text(text) => words.iter().any(|word| text.contains(word)),
        // A new user's file is small: one that is too large to read belongs to somebody who has signed in.
        Contents::Unknown => true,
        Contents::Absent => false,
    };
    words.iter().find(|one| says(one)).map(|(file, _)| file.display().to_string())
}
