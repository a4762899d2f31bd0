//! `multitap serve`: hosts sessions that clients open and share over HTTP.

mod idle;
mod request;
mod served;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use multitap_serve::OpenDoor;

pub(crate) use self::served::{Served, ServedOptions};
use crate::args::{DoorOptions, ServeArgs, SessionArgs};
use crate::exit::{Exit, Problem};
use crate::host::Host;
use crate::out::{self, Out, Unwritten};
use crate::settings::Trust;
use crate::signals::Signals;
use crate::{door, launch, settings};

/// Serves until a signal comes.
pub(crate) async fn serve(args: ServeArgs) -> Result<Exit, Problem> {
    let mut signals = Signals::new()?;
    let roots = roots(&args.root)?;
    let settings = settings::of(&roots[0], Trust::of(args.with.trust))?;
    // Report bad options now rather than to the first client.
    launch::config(&SessionArgs::of(args.with.clone()), &settings, roots[0].clone(), None)?;
    let options = DoorOptions { access: &args.access, public: &args.public, push: args.push };
    let config = door::config(&args.host, args.port, options, &settings)?;
    let host = Host::open().await?;
    let options = ServedOptions {
        with: args.with,
        trust_client_settings: args.trust_client_settings,
        question_timeout: args.question_timeout,
        max_sessions: args.max_sessions as usize,
    };
    let served = Arc::new(Served::new(host, roots, options));
    let door = tokio::select! {
        door = OpenDoor::open(config, served.clone()) => door,
        () = signals.next() => return Ok(Exit::Interrupted),
    };
    let door = match door {
        Ok(door) => door,
        Err(error) => {
            served.shutdown().await;
            return Err(door::not_opened(error));
        }
    };
    served.is_at(door::address(&door));
    let reported = Out::new().write(&format!("multitap listening on {}\n", door.url())).await;
    match reported {
        // The reader of the address has seen enough.
        Ok(()) | Err(Unwritten::ReaderGone) => tokio::select! {
            () = signals.next() => {}
            () = served.retire(Duration::from_secs(u64::from(args.idle) * 60)) => {}
        },
        Err(error) => out::say(&format!("multitap: {error}")),
    }
    let stopped = async { tokio::join!(door.stop(), served.shutdown()) };
    tokio::select! {
        _ = stopped => Ok(Exit::Completed),
        // The supervisors end what is left of the agents.
        () = signals.next() => Ok(Exit::Interrupted),
    }
}

/// The folders that sessions may work in, with links resolved.
fn roots(chosen: &[PathBuf]) -> Result<Vec<PathBuf>, Problem> {
    let here = std::env::current_dir().context("find the current folder")?;
    let chosen = if chosen.is_empty() { &[here][..] } else { chosen };
    let real = chosen.iter().map(|root| {
        let folder = root.canonicalize().ok().filter(|folder| folder.is_dir());
        folder.ok_or_else(|| Problem::usage(format!("--root {}: there is no such folder", root.display())))
    });
    real.collect()
}
