//! `multitap acp`: an ACP agent on stdin and stdout, for an editor that starts it.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use multitap_event::{ClientRef, ClientRole, Door};
use multitap_hub::JournalError;
use multitap_remote::Attach;
use multitap_serve::{Host as ServeHost, serve_stdio};
use multitap_store::Store;
use tokio::io::BufReader;
use tokio_util::sync::CancellationToken;

use super::serve::{Served, ServedOptions};
use super::tui::attach;
use crate::args::{AcpArgs, SessionArgs};
use crate::door::Shared;
use crate::exit::{Exit, Problem};
use crate::host::Host;
use crate::launch;
use crate::settings::{self, Trust};
use crate::signals::Signals;

/// Most sessions that one editor may have open.
const SESSIONS: usize = 64;

/// Serves until the editor leaves or a signal comes.
pub(crate) async fn acp(args: AcpArgs) -> Result<Exit, Problem> {
    let mut signals = Signals::new()?;
    match args.attach.clone() {
        Some(to) => on_session(&to, &mut signals).await,
        None => on_own(args, &mut signals).await,
    }
}

/// Sessions of this process, as the editor opens them. It is the user's own program: any folder is allowed.
async fn on_own(args: AcpArgs, signals: &mut Signals) -> Result<Exit, Problem> {
    let folder = std::env::current_dir().context("find the current folder")?;
    let settings = settings::of(&folder, Trust::of(args.with.trust))?;
    // Report bad options now rather than to the editor.
    launch::config(&SessionArgs::of(args.with.clone()), &settings, folder.clone(), None)?;
    let host = Host::open().await?;
    let options = ServedOptions {
        with: args.with,
        trust_client_settings: false,
        question_timeout: args.question_timeout,
        max_sessions: SESSIONS,
    };
    let everywhere = PathBuf::from(std::path::MAIN_SEPARATOR_STR);
    let served = Arc::new(Served::new(host, vec![folder, everywhere], options));
    let exit = serve(served.clone(), signals).await;
    tokio::select! {
        () = served.shutdown() => Ok(exit),
        // The supervisors end what is left of the agents.
        () = signals.next() => Ok(Exit::Interrupted),
    }
}

/// One session that runs elsewhere. It goes on when the editor leaves.
async fn on_session(to: &str, signals: &mut Signals) -> Result<Exit, Problem> {
    let found = attach::find(to).await?;
    let attach = Attach { token: found.token(), address: found.address, client: "editor".to_owned(), door: Door::Acp };
    let attached = tokio::select! {
        attached = multitap_remote::attach(attach) => attached.map_err(attach::not_attached)?,
        () = signals.next() => return Ok(Exit::Interrupted),
    };
    let no_log = Store::unusable(JournalError::Other("the log of this session is elsewhere".to_owned()));
    let shared = Arc::new(Shared::of(attached.session.clone(), Arc::new(no_log)));
    let exit = serve(shared, signals).await;
    attached.leave().await;
    Ok(exit)
}

async fn serve(host: Arc<dyn ServeHost>, signals: &mut Signals) -> Exit {
    let client = ClientRef { role: Some(ClientRole::Owner), ..ClientRef::new("editor", Door::Acp) };
    let stop = CancellationToken::new();
    let (input, output) = (BufReader::new(tokio::io::stdin()), tokio::io::stdout());
    let served = serve_stdio(client, host, input, output, stop.clone());
    tokio::pin!(served);
    tokio::select! {
        () = &mut served => Exit::Completed,
        () = signals.next() => {
            stop.cancel();
            served.await;
            Exit::Interrupted
        }
    }
}
