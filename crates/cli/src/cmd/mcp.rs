//! `multitap mcp`: remote A2A agents as an MCP server, on stdin and stdout or over HTTP.

use std::path::Path;
use std::time::Duration;

use multitap_bridge::{Bridge, BridgeOptions, Hops, Loaded};
use multitap_event::{A2aServer, visible_line};
use multitap_serve::{Limits, OpenDoor, ServiceConfig};
use serde_json::Value;

use crate::args::McpArgs;
use crate::exit::{Exit, Problem};
use crate::live::{self, Note};
use crate::out::{self, Out, Unwritten};
use crate::signals::Signals;
use crate::{door, host, token};

/// URL path of MCP over HTTP.
const PATH: &str = "/mcp";
/// Number of characters of a session's id in the names of its tools.
const SHORT_ID: usize = 13;
/// Larger files are rejected.
const LARGEST: u64 = 1024 * 1024;

/// Serves until the client leaves or a signal comes.
pub(crate) async fn mcp(args: McpArgs) -> Result<Exit, Problem> {
    let mut signals = Signals::new()?;
    let mut entries = entries(&args)?;
    for session in &args.session {
        entries.push(of_session(session)?);
    }
    let bridge = Bridge::new(BridgeOptions {
        load_timeout: Duration::from_millis(args.load_timeout),
        allow_private: args.allow_private_addresses,
        hops: args.hops_file.clone().map_or(Hops::None, Hops::File),
        ..BridgeOptions::default()
    });
    let served = async {
        report(&bridge.load(entries).await);
        match args.http {
            Some(port) => over_http(&args, port, &bridge).await,
            None => over_stdio(&bridge).await,
        }
    };
    let served = tokio::select! {
        served = served => served,
        () = signals.next() => Ok(if args.http.is_some() { Exit::Completed } else { Exit::Interrupted }),
    };
    bridge.close().await;
    served
}

async fn over_stdio(bridge: &Bridge) -> Result<Exit, Problem> {
    let served = bridge.serve(tokio::io::stdin(), tokio::io::stdout()).await;
    served.map_err(|error| Problem::new(Exit::Failed, format!("{:#}", anyhow::Error::new(error))))?;
    Ok(Exit::Completed)
}

/// Serves until dropped.
async fn over_http(args: &McpArgs, port: u16, bridge: &Bridge) -> Result<Exit, Problem> {
    let access = door::access(&args.access)?;
    let config = ServiceConfig { host: args.http_host.clone(), port, access, limits: Limits::default() };
    let service = bridge.http();
    let handle = move |request| {
        let service = service.clone();
        async move { service.handle(request).await }
    };
    let door = OpenDoor::open_service(config, PATH, door::identify, handle).await.map_err(door::not_opened)?;
    let line = format!("multitap mcp listening on {}{PATH}\n", door.url());
    match Out::new().write(&line).await {
        // The reader of the address has seen enough.
        Ok(()) | Err(Unwritten::ReaderGone) => std::future::pending().await,
        Err(error) => Err(Problem::new(Exit::Failed, error.to_string())),
    }
}

/// The agents given by the options.
fn entries(args: &McpArgs) -> Result<Vec<A2aServer>, Problem> {
    let (option, text) = match (&args.agents, &args.agents_file) {
        (Some(text), _) => ("--agents".to_owned(), text.clone()),
        (None, Some(path)) => (format!("--agents-file {}", path.display()), read(path)?),
        (None, None) => return Ok(Vec::new()),
    };
    let wrong = |why: String| Problem::usage(format!("{option}: {why}"));
    // The parser's error would quote the text, which may contain a token.
    let value: Value = serde_json::from_str(&text)
        .map_err(|error| wrong(format!("is not JSON (line {}, column {})", error.line(), error.column())))?;
    let mut notes = Vec::new();
    let mut entries = A2aServer::read_list(&value, "agents", &mut notes)
        .map_err(|error| wrong(visible_line(&error.to_string()).into_owned()))?;
    for note in notes {
        out::say(&format!("multitap mcp: {option}: {}", visible_line(&note)));
    }
    for entry in &mut entries {
        entry.resolve_token(|name| std::env::var(name).ok()).map_err(|error| wrong(error.to_string()))?;
    }
    Ok(entries)
}

/// A running session as an agent.
fn of_session(session: &str) -> Result<A2aServer, Problem> {
    let access_token = token::usable();
    if let Some(url) = door::url_of(session) {
        return Ok(A2aServer { access_token, ..A2aServer::new(url) });
    }
    let notes = host::data().map(|data| live::notes(&data)).unwrap_or_default();
    let found: Vec<&Note> = notes.iter().filter(|note| note.session_id.as_str().starts_with(session)).collect();
    let note = match found.as_slice() {
        [note] => *note,
        [] => {
            let why = format!(
                "--session {session}: no running session on this machine matches; list them with: multitap attach"
            );
            return Err(Problem::new(Exit::Failed, why));
        }
        _ => return Err(Problem::usage(format!("--session {session}: {} running sessions match", found.len()))),
    };
    let unshared = || {
        let why = "is not shared over A2A: start it with --a2a-port, or type /share in its terminal";
        Problem::new(Exit::Failed, format!("--session {session}: {why}"))
    };
    let url = note.address.clone().ok_or_else(unshared)?;
    let name = note.session_id.as_str().get(..SHORT_ID).map(|id| format!("session_{id}"));
    Ok(A2aServer { name, access_token, context_id: Some(note.session_id.to_string()), ..A2aServer::new(url) })
}

fn read(path: &Path) -> Result<String, Problem> {
    let cannot = |why: String| Problem::usage(format!("--agents-file {}: {why}", path.display()));
    let size = std::fs::metadata(path).map_err(|error| cannot(format!("cannot be read: {error}")))?;
    if !size.is_file() || size.len() > LARGEST {
        return Err(cannot(format!("is not a file of at most {LARGEST} bytes")));
    }
    std::fs::read_to_string(path).map_err(|error| cannot(format!("cannot be read: {error}")))
}

/// Reports on stderr which agents were loaded: stdout belongs to the protocol.
fn report(loaded: &[Loaded]) {
    let ready = loaded.iter().filter(|loaded| loaded.error.is_none()).count();
    out::say(&format!("multitap mcp: {ready} of {} agents loaded", loaded.len()));
    for Loaded { name, address, error } in loaded {
        match error {
            None => out::say(&format!("multitap mcp: {name} from {address}")),
            Some(why) => {
                out::say(&format!("multitap mcp: {name} from {address} is not there, and is tried again: {why}"))
            }
        }
    }
}
