//! Where rules come from, and how far each may go: what the user says now, the user's settings, the project's.

use multitap_event::ApprovalMode;

use super::{Policy, Rule};
use crate::command::Trust;

/// What one source says.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wish {
    pub(crate) mode: Option<ApprovalMode>,
    pub(crate) allow: Vec<Rule>,
    pub(crate) block: Vec<Rule>,
}

/// All that was said.
#[derive(Debug, Clone)]
pub(crate) struct Sources {
    /// On the command line or at a door: the user's own word for this session.
    pub(crate) session: Wish,
    /// In the user's settings.
    pub(crate) user: Wish,
    /// In the folder's settings, which whoever made the folder wrote.
    pub(crate) project: Wish,
    pub(crate) trust: Trust,
}

impl Sources {
    /// The rules that hold, and what was not listened to, for people.
    ///
    /// The project's settings go before the user's. In a folder that is not trusted they can take rights away, but
    /// give none; what the user says for the session holds everywhere.
    pub(crate) fn policy(self) -> (Policy, Vec<String>) {
        let Self { session, user, project, trust } = self;
        let mut ignored = Vec::new();
        let otherwise = user.mode.unwrap_or(ApprovalMode::Ask);
        let mut mode = session.mode.or(project.mode).unwrap_or(otherwise);
        let mut allow = [session.allow, user.allow].concat();
        if trust == Trust::Trusted {
            allow.extend(project.allow);
        } else {
            if !project.allow.is_empty() {
                ignored.push(format!("{} of its rules that allow something", project.allow.len()));
            }
            if session.mode.is_none() && project.mode.is_some_and(|wish| freedom(wish) > freedom(otherwise)) {
                ignored.push(format!("its approval mode {}", mode.as_str()));
                mode = otherwise;
            }
        }
        let block = [session.block, user.block, project.block].concat();
        (Policy::new(mode, allow, block).in_folder(trust), ignored)
    }
}

/// How much a mode lets pass; more is more.
fn freedom(mode: ApprovalMode) -> u8 {
    match mode {
        ApprovalMode::Plan => 0,
        ApprovalMode::DontAsk => 1,
        ApprovalMode::Ask => 2,
        ApprovalMode::AskDangerous => 3,
        ApprovalMode::AutoEdit => 4,
        ApprovalMode::AutoAll => 5,
    }
}
