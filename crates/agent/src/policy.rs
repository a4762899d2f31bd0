//! Who may do what without asking: the approval mode, what is allowed and blocked, what was answered for good.
//!
//! Pure. It judges a job by what the job would touch, never by what the model says about it.

use multitap_event::{ApprovalMode, OptionId, option};

use crate::job::{Access, Job};

/// What is to happen with a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    Run,
    Ask,
    /// Not even to be asked; says why, for the model and for people.
    Deny(String),
}

/// Something that is allowed or blocked.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Rule {
    /// That tool, whatever it is called with.
    Tool(String),
    /// All tools of that MCP server.
    Server(String),
    /// File changes.
    Edits,
}

/// The rules of a session.
#[derive(Debug, Clone)]
pub(crate) struct Policy {
    pub(crate) mode: ApprovalMode,
    allow: Vec<Rule>,
    block: Vec<Rule>,
}

impl Policy {
    pub(crate) fn new(mode: ApprovalMode, allow: Vec<Rule>, block: Vec<Rule>) -> Self {
        Self { mode, allow, block }
    }

    /// Judges one call of that tool.
    pub(crate) fn judge(&self, tool: &str, job: &Job) -> Verdict {
        let access = job.access();
        if self.block.iter().any(|rule| rule.covers(tool, access)) {
            return Verdict::Deny(format!("{tool} is blocked for this session"));
        }
        match access {
            Access::Own | Access::Look => return Verdict::Run,
            Access::Ask if self.mode == ApprovalMode::DontAsk => {
                return Verdict::Deny("nobody may be asked in this mode".to_owned());
            }
            Access::Ask => return Verdict::Ask,
            Access::Change { .. } | Access::Shell { .. } | Access::Fetch { .. } | Access::Mcp { .. } => {}
        }
        if self.mode == ApprovalMode::Plan {
            return Verdict::Deny("the session is in plan mode: look and plan, change nothing".to_owned());
        }
        if self.allow.iter().any(|rule| rule.covers(tool, access)) {
            return Verdict::Run;
        }
        let unasked = match (self.mode, access) {
            (ApprovalMode::AutoAll, _) | (_, Access::Mcp { trusted: true, .. }) => true,
            (ApprovalMode::AutoEdit, Access::Change { .. }) => true,
            _ => false,
        };
        match self.mode {
            _ if unasked => Verdict::Run,
            ApprovalMode::DontAsk => Verdict::Deny(format!("no rule allows {tool}, and nobody may be asked")),
            _ => Verdict::Ask,
        }
    }

    /// Takes in an answer for good; the rule it made, if it made one.
    pub(crate) fn answered(&mut self, option: &OptionId, tool: &str, job: &Job) -> Option<Rule> {
        let rule = match (option.as_str(), job.access()) {
            (option::PROCEED_ALWAYS_SERVER, Access::Mcp { server, .. }) => Rule::Server(server.to_owned()),
            (option::PROCEED_ALWAYS | option::PROCEED_ALWAYS_AND_SAVE, Access::Change { .. }) => Rule::Edits,
            (
                option::PROCEED_ALWAYS | option::PROCEED_ALWAYS_TOOL | option::PROCEED_ALWAYS_AND_SAVE,
                Access::Shell { .. } | Access::Fetch { .. } | Access::Mcp { .. },
            ) => Rule::Tool(tool.to_owned()),
            _ => return None,
        };
        if !self.allow.contains(&rule) {
            self.allow.push(rule.clone());
        }
        Some(rule)
    }
}

impl Rule {
    fn covers(&self, tool: &str, access: Access<'_>) -> bool {
        match self {
            Self::Tool(name) => name == tool,
            Self::Server(name) => matches!(access, Access::Mcp { server, .. } if server == name),
            Self::Edits => matches!(access, Access::Change { .. }),
        }
    }
}
