//! Decides what may run without asking: by the approval mode, allow and block rules, and "always" answers.
//!
//! Judges a job by what it would touch, never by what the model says about it. Pure, except that it resolves the
//! paths of read-only commands on disk.

mod approved;
mod rule;
mod shell;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use multitap_event::{ApprovalMode, OptionId, option};

pub(crate) use self::approved::{Approved, Consent};
pub(crate) use self::rule::Rule;
use self::shell::Blocked;
use crate::command::{Script, Trust};
use crate::job::{Access, Job};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    Run,
    Ask,
    /// Denied without asking; says why, for the model and for people.
    Deny(String),
}

/// The rules that an "always" answer creates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Always {
    pub(crate) rules: Vec<Rule>,
    /// To be stored in the user's settings.
    pub(crate) save: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Policy {
    pub(crate) mode: ApprovalMode,
    allow: Vec<Rule>,
    block: Vec<Rule>,
    /// Block rules that cannot be parsed. They may be about any command.
    unread: Vec<String>,
    trust: Trust,
    /// Whether the sandbox is read-only: no permission allows writing.
    read_only: bool,
    /// Folders in which no permission allows writing.
    protected: Vec<PathBuf>,
}

impl Policy {
    pub(crate) fn new(mode: ApprovalMode, allow: Vec<Rule>, block: Vec<Rule>) -> Self {
        Self { mode, allow, block, unread: Vec::new(), trust: Trust::Trusted, read_only: false, protected: Vec::new() }
    }

    /// The policy for an agent that has its own rules: only the block rules, as that agent spells them.
    pub(crate) fn beside_agent(mode: ApprovalMode, blocked: &[String]) -> Self {
        let mut policy = Self::new(mode, Vec::new(), Vec::new());
        for text in blocked {
            match Rule::of_agent(text) {
                Ok(rule) => policy.block.push(rule),
                Err(_) if is_about_commands(text) => policy.unread.push(text.clone()),
                // Rules about anything but commands and file changes do not apply here.
                Err(_) => {}
            }
        }
        policy
    }

    #[must_use]
    pub(crate) fn in_folder(mut self, trust: Trust) -> Self {
        self.trust = trust;
        self
    }

    /// The policy for a sandbox in which nothing may be written.
    #[must_use]
    pub(crate) fn reading_only(mut self) -> Self {
        self.read_only = true;
        self
    }

    /// The policy for a sandbox in which these folders may not be changed.
    #[must_use]
    pub(crate) fn protecting(mut self, folders: &[PathBuf]) -> Self {
        let real = |folder: &PathBuf| folder.canonicalize().unwrap_or_else(|_| folder.clone());
        self.protected = folders.iter().map(real).collect();
        self
    }

    pub(crate) fn judge(&self, tool: &str, job: &Job) -> Verdict {
        self.judge_access(tool, job.access())
    }

    /// Judges what one call of that tool would touch.
    pub(crate) fn judge_access(&self, tool: &str, access: Access<'_>) -> Verdict {
        if let Some(rule) = self.block.iter().find(|rule| rule.touches(tool, access)) {
            return Verdict::Deny(format!("{tool} is blocked for this session (rule {rule})"));
        }
        match access {
            Access::Own | Access::Read => return Verdict::Run,
            Access::Ask if self.mode == ApprovalMode::DontAsk => {
                return Verdict::Deny("this mode asks no questions".to_owned());
            }
            Access::Ask => return Verdict::Ask,
            Access::Change { .. }
            | Access::Remember { .. }
            | Access::Shell { .. }
            | Access::Fetch { .. }
            | Access::Mcp { .. } => {}
        }
        if self.read_only && matches!(access, Access::Change { .. } | Access::Remember { .. }) {
            return Verdict::Deny("the sandbox of this session is read-only".to_owned());
        }
        if let Access::Change { file } = access
            && self.protected.iter().any(|folder| file.starts_with(folder))
        {
            return Verdict::Deny("the sandbox of this session protects Multitap's own files".to_owned());
        }
        let mut must_ask = false;
        if let Access::Shell { command, .. } = access {
            match shell::blocked(&self.block, command) {
                Blocked::No => {}
                Blocked::By(rule) => {
                    return Verdict::Deny(format!("the command is blocked for this session (rule {rule})"));
                }
                Blocked::CannotTell => must_ask = true,
            }
            if let Some(rule) = self.unread.first() {
                return Verdict::Deny(format!("the rule {rule} cannot be parsed and may block this command"));
            }
        }
        if self.mode == ApprovalMode::Plan {
            // Reading is part of planning, but this command was not allowed yet.
            return match self.is_read_only(access) {
                true => Verdict::Ask,
                false => Verdict::Deny("the session is in plan mode: look and plan, change nothing".to_owned()),
            };
        }
        match self.mode {
            _ if !must_ask && self.unasked(tool, access) => Verdict::Run,
            ApprovalMode::DontAsk if must_ask => Verdict::Deny(
                "it is not certain what the command would run, some commands are blocked, and this mode asks no questions"
                    .to_owned(),
            ),
            ApprovalMode::DontAsk => Verdict::Deny(format!("no rule allows {tool}, and this mode asks no questions")),
            _ => Verdict::Ask,
        }
    }

    /// Whether a rule or the mode lets the job run without asking.
    fn unasked(&self, tool: &str, access: Access<'_>) -> bool {
        let by_rule = match access {
            Access::Shell { command, .. } => shell::allowed(&self.allow, command),
            _ => false,
        };
        by_rule
            || self.allow.iter().any(|rule| rule.allows(tool, access))
            || match (self.mode, access) {
                (ApprovalMode::AutoAll, _) | (_, Access::Mcp { trusted: true, .. }) => true,
                (ApprovalMode::AutoEdit, Access::Change { file }) => !is_delicate(file),
                (ApprovalMode::AskDangerous, access) => self.is_read_only(access),
                _ => false,
            }
    }

    fn is_read_only(&self, access: Access<'_>) -> bool {
        let Access::Shell { command, directory } = access else { return false };
        Script::parse(command)
            .is_ok_and(|script| script.is_read_only(directory, self.trust) && script.leads_nowhere_else(directory))
    }

    /// Applies an "always" answer. Returns what it allows from now on, if anything.
    pub(crate) fn answered(&mut self, option: &OptionId, tool: &str, job: &Job) -> Option<Always> {
        let rules = always(option.as_str(), tool, job);
        if rules.is_empty() {
            return None;
        }
        for rule in &rules {
            if !self.allow.contains(rule) {
                self.allow.push(rule.clone());
            }
        }
        Some(Always { rules, save: option.as_str() == option::PROCEED_ALWAYS_AND_SAVE })
    }
}

/// Files and folders that configure other programs: Git, Multitap, the agents it drives, shells, package managers and
/// editors.
const DELICATE: &str = "
    .agents .bash_login .bash_profile .bashrc .cargo .claude .claude.json .codex .config .devcontainer .env .envrc
    .gemini .git .gitconfig .gitmodules .husky .idea .mcp.json .multitap .npmrc .profile .ssh .vscode .yarnrc.yml
    .zprofile .zshenv .zshrc
";

/// Whether changing that file amounts to running something. Some file systems ignore case.
pub(super) fn is_delicate(file: &Path) -> bool {
    let is_named = |name: &str| DELICATE.split_whitespace().any(|known| name.eq_ignore_ascii_case(known));
    file.components().any(|part| part.as_os_str().to_str().is_some_and(is_named))
}

/// The rules that an "always" answer creates; none for any other answer.
pub(crate) fn always(option: &str, tool: &str, job: &Job) -> Vec<Rule> {
    match (option, job.access()) {
        (option::PROCEED_ALWAYS_SERVER, Access::Mcp { server, .. }) => vec![Rule::Server(server.to_owned())],
        (option::PROCEED_ALWAYS_TOOL, Access::Shell { .. } | Access::Fetch { .. } | Access::Change { .. }) => {
            vec![Rule::Tool(tool.to_owned())]
        }
        (option::PROCEED_ALWAYS | option::PROCEED_ALWAYS_TOOL | option::PROCEED_ALWAYS_AND_SAVE, access) => {
            match access {
                // No rule for all edits covers such a file.
                Access::Change { file } if is_delicate(file) => Vec::new(),
                Access::Change { .. } => vec![Rule::Edits],
                Access::Remember { .. } => vec![Rule::Tool(tool.to_owned())],
                Access::Shell { command, .. } => shell::always(command),
                Access::Fetch { urls } => {
                    let hosts: BTreeSet<String> = urls.iter().filter_map(|url| rule::host_of(url)).collect();
                    hosts.into_iter().map(Rule::Host).collect()
                }
                Access::Mcp { server, tool, .. } => {
                    vec![Rule::McpTool { server: server.to_owned(), tool: tool.to_owned() }]
                }
                Access::Own | Access::Read | Access::Ask => Vec::new(),
            }
        }
        _ => Vec::new(),
    }
}

/// Whether a rule that cannot be parsed may be about commands: any agent's name for a shell tool.
fn is_about_commands(rule: &str) -> bool {
    let name = rule.split('(').next().unwrap_or(rule).to_lowercase();
    name.contains("shell") || name.contains("bash")
}

#[cfg(test)]
mod tests;
