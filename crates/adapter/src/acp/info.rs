//! Facts about ACP agents that are known before a start.

use multitap_event::AgentType;

use super::{AcpCodec, Flavor};
use crate::info::{AgentFeatures, AgentInfo, McpAbilities, ProjectFiles};

pub(crate) static INFO: AgentInfo = AgentInfo {
    agent: AgentType::Acp,
    program: None,
    // The features that the protocol requires; every other one depends on the agent.
    features: AgentFeatures {
        cost: false,
        usage_per_model: false,
        structured_output: false,
        resume: false,
        resume_at_message: false,
        fork: false,
        hooks: false,
        reasoning: false,
        edited_approval: false,
        set_mode: false,
        set_model: false,
        images: false,
        partial_text: true,
        mcp: true,
        permission_questions: true,
        cancel: true,
    },
    steers: false,
    mcp: McpAbilities {
        timeout: false,
        trust: false,
        include_tools: false,
        exclude_tools: false,
        cwd: false,
        rules_misread_underscores: false,
    },
    home: None,
    sign_in: None,
    store: None,
    project: ProjectFiles {
        look: None,
        acts_in_added: false,
        leave_out: |_, _| Err("an ACP agent cannot ignore project files"),
        trust: None,
    },
    launch: |start| Box::pin(super::launch(start)),
    recorded: || Box::new(AcpCodec::recorded(Flavor::Plain)),
};
