//! What a client wishes its session to be: found in its message and read strictly. What of it is granted is the
//! host's business.

use std::path::PathBuf;

use multitap_a2a::devtool::{AgentSettings, Spelling};
use multitap_a2a::{Error, SendMessage};
use multitap_event::ClientRef;
use multitap_hub::Session;
use serde_json::{Map, Value};

use crate::host::Wanted;

/// Settings, and how they were spelled.
pub(super) type Settings = (AgentSettings, Spelling);

/// The settings that come with a message, wherever they stand.
pub(super) fn settings(send: &SendMessage) -> Result<Option<Settings>, Error> {
    for metadata in [&send.message.metadata, &send.metadata] {
        if let Some(found) = AgentSettings::find(metadata)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// What the settings wish for. One of a wrong type is refused: to pass over it could grant more than was asked for.
pub(super) fn wanted(by: ClientRef, settings: Option<&Settings>) -> Result<Wanted, Error> {
    let Some((settings, _)) = settings else { return Ok(Wanted::bare(by)) };
    let more = &settings.more;
    Ok(Wanted {
        by,
        workspace: settings.workspace_path.clone().map(PathBuf::from),
        agent: wish(more, &["agent"], "a string", as_text)?,
        model: wish(more, &["model"], "a string", as_text)?,
        approval_mode: wish(more, &["approval_mode", "approvalMode"], "a string", as_text)?,
        allowed_tools: wish(more, &["allowed_tools", "allowedTools"], "a list of strings", as_texts)?
            .unwrap_or_default(),
        mcp_servers: wish(more, &["mcp_servers", "mcpServers"], "an object", as_map)?.unwrap_or_default(),
        environment: wish(more, &["environment", "env"], "an object", as_map)?.unwrap_or_default(),
    })
}

/// One of the settings, by any of its names.
fn wish<T>(
    settings: &Map<String, Value>,
    names: &[&str],
    kind: &str,
    read: fn(&Value) -> Option<T>,
) -> Result<Option<T>, Error> {
    let given = names.iter().find_map(|name| Some((*name, settings.get(*name).filter(|value| !value.is_null())?)));
    let Some((name, value)) = given else { return Ok(None) };
    let wrong = || Error::invalid_params(format!("{name}: must be {kind}")).with("field", name);
    read(value).map(Some).ok_or_else(wrong)
}

fn as_text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn as_texts(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(as_text).collect()
}

fn as_map(value: &Value) -> Option<Map<String, Value>> {
    value.as_object().cloned()
}

/// A session has one folder: a client that names another means another session.
pub(super) async fn check_folder(session: &Session, settings: Option<&Settings>) -> Result<(), Error> {
    let Some(path) = settings.and_then(|(settings, _)| settings.workspace_path.as_deref()) else { return Ok(()) };
    let Some(folder) = folder(session).await else { return Ok(()) };
    let real = |path: &str| std::fs::canonicalize(path).unwrap_or_else(|_| path.into());
    if real(path) == real(&folder) {
        return Ok(());
    }
    Err(Error::invalid_params(format!("workspace_path: this session works in {folder}")))
}

/// The folder that a session works in.
pub(super) async fn folder(session: &Session) -> Option<String> {
    session.snapshot().await?.start?.config?.working_directory
}
