//! A client's settings for its session: found in its message and read strictly. The host decides what it grants.

use std::path::PathBuf;

use multitap_a2a::devtool::{AgentSettings, Spelling};
use multitap_a2a::{Error, SendMessage};
use multitap_event::ClientRef;
use multitap_hub::{OpenCall, Session};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::host::Wanted;

pub(super) type Settings = (AgentSettings, Spelling);

/// The settings of a message, from any of their places.
pub(super) fn settings(send: &SendMessage) -> Result<Option<Settings>, Error> {
    for metadata in [&send.message.metadata, &send.metadata] {
        if let Some(found) = AgentSettings::find(metadata)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// The wanted session. A setting of a wrong type is refused: ignoring it could grant more than was asked for.
pub(super) fn wanted(by: ClientRef, settings: Option<&Settings>) -> Result<Wanted, Error> {
    let Some((settings, _)) = settings else { return Ok(Wanted::bare(by)) };
    let more = &settings.more;
    let open = OpenCall {
        cwd: settings.workspace_path.clone().map(PathBuf::from),
        agent: wish(more, &["agent"], "a string")?,
        model: wish(more, &["model"], "a string")?,
        mode: wish(more, &["approval_mode", "approvalMode"], "a string")?,
        allowed_tools: wish(more, &["allowed_tools", "allowedTools"], "a list of strings")?.unwrap_or_default(),
        mcp_servers: wish(more, &["mcp_servers", "mcpServers"], "an object")?.unwrap_or_default(),
        environment: wish(more, &["environment", "env"], "an object")?.unwrap_or_default(),
        ..OpenCall::default()
    };
    Ok(Wanted { by, open })
}

/// One setting, by any of its names.
fn wish<T: DeserializeOwned>(settings: &Map<String, Value>, names: &[&str], kind: &str) -> Result<Option<T>, Error> {
    let given = names.iter().find_map(|name| Some((*name, settings.get(*name).filter(|value| !value.is_null())?)));
    let Some((name, value)) = given else { return Ok(None) };
    let wrong = |_| Error::invalid_params(format!("{name}: must be {kind}")).with("field", name);
    serde_json::from_value(value.clone()).map(Some).map_err(wrong)
}

/// A session has one folder: a client that names another one means another session.
pub(super) async fn check_folder(session: &Session, settings: Option<&Settings>) -> Result<(), Error> {
    let Some(path) = settings.and_then(|(settings, _)| settings.workspace_path.as_deref()) else { return Ok(()) };
    let Some(folder) = folder(session).await else { return Ok(()) };
    let real = |path: &str| std::fs::canonicalize(path).unwrap_or_else(|_| path.into());
    if real(path) == real(&folder) {
        return Ok(());
    }
    Err(Error::invalid_params(format!("workspace_path: this session works in {folder}")))
}

pub(super) async fn folder(session: &Session) -> Option<String> {
    session.snapshot().await?.start?.config?.working_directory
}
