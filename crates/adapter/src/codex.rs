//! Codex: how it is started. Its dialects are in the files beside this one.

mod answer;
mod archive;
mod call;
mod change;
mod command;
mod decode;
mod encode;
pub(crate) mod exec;
mod form;
pub(crate) mod history;
mod item;
mod notice;
mod probe;
pub(crate) mod project;
mod question;
mod rpc;
mod sandbox;
mod session;
mod settings;
mod sign_in;
mod stored;
mod text;
mod threads;
mod todo;
mod tools;
mod turn;
mod usage;
mod wire;

use multitap_event::{LaunchError, SandboxMode, SessionConfig};

pub(crate) use archive::{ARGS as ARCHIVE_ARGS, archive};
pub use decode::CodexCodec;
pub use probe::sandbox_trouble;
pub(crate) use probe::{no_sandbox, probe_turns};
pub(crate) use sandbox::Found;
pub(crate) use sign_in::{SIGN_IN, says_sign_in};

use crate::codec::Files;
use crate::spec::Plan;

/// The arguments and the codec for one session over the app-server. `no_sandbox` says why no sandbox works here.
pub(crate) fn plan(
    config: &SessionConfig,
    files: Box<dyn Files>,
    no_sandbox: Option<String>,
) -> Result<Plan<CodexCodec>, LaunchError> {
    let codec = CodexCodec::live(config, files, no_sandbox)?;
    let mut args = vec!["app-server".to_owned()];
    args.extend(config.agent_args.iter().cloned());
    Ok(Plan { args, ..Plan::new(codec) })
}

/// Whether a session needs a sandbox that may not work here. Unless it goes without one, it may.
pub(crate) fn may_need_sandbox(config: &SessionConfig) -> bool {
    !matches!(config.sandbox, Some(SandboxMode::None | SandboxMode::FullAccess))
}
