//! Starts Codex. The modules below have its dialects.

mod answer;
mod archive;
mod call;
mod change;
mod command;
mod decode;
mod encode;
mod exec;
mod history;
mod info;
mod item;
mod notice;
mod probe;
mod project;
mod question;
mod rpc;
mod sandbox;
mod session;
mod settings;
mod stored;
mod thinking;
mod threads;
mod todo;
mod tools;
mod turn;
mod usage;
mod wire;

use multitap_event::{AgentLink, LaunchError, SandboxMode, SessionConfig, Transport};

pub(crate) use archive::{ARGS as ARCHIVE_ARGS, archive};
pub use decode::CodexCodec;
pub(crate) use info::INFO;
pub use probe::sandbox_trouble;
use probe::{no_sandbox, probe_turns};
use sandbox::SandboxProbe;

use crate::codec::{DiskFiles, Files};
use crate::spec::{Plan, Start};

pub(crate) async fn launch(start: Start<'_>) -> Result<AgentLink, LaunchError> {
    let (config, keeper) = (&start.spec.config, &start.spec.keeper);
    let probed = start.program().filter(|_| may_need_sandbox(config));
    match config.transport {
        Transport::Default => {
            // Unsupported settings are refused before anything is started.
            plan(config, Box::new(DiskFiles), None)?;
            let no_sandbox = match probed {
                Some(codex) => no_sandbox(codex, keeper).await,
                None => None,
            };
            let plan = plan(config, Box::new(DiskFiles), no_sandbox)?;
            start.by(plan).await
        }
        Transport::OneShot => {
            exec::plan(config, Box::new(DiskFiles), SandboxProbe::default())?;
            let found = match probed {
                Some(codex) => probe_turns(codex, &config.agent_args, keeper).await,
                None => SandboxProbe::default(),
            };
            let plan = exec::plan(config, Box::new(DiskFiles), found)?;
            start.by(plan).await
        }
    }
}

/// The arguments and the codec for one session over the app-server. `no_sandbox` says why no sandbox works here.
fn plan(
    config: &SessionConfig,
    files: Box<dyn Files>,
    no_sandbox: Option<String>,
) -> Result<Plan<CodexCodec>, LaunchError> {
    let codec = CodexCodec::live(config, files, no_sandbox)?;
    let mut args = vec!["app-server".to_owned()];
    args.extend(config.agent_args.iter().cloned());
    Ok(Plan { args, ..Plan::new(codec) })
}

/// Whether the session may need a sandbox that does not work here: any session, unless it was configured to run without
/// one.
fn may_need_sandbox(config: &SessionConfig) -> bool {
    !matches!(config.sandbox, Some(SandboxMode::None | SandboxMode::FullAccess))
}
