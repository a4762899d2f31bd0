//! `multitap serve`: a host for many sessions, which clients open and share over HTTP.

mod served;
mod wish;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use multitap_event::ClientRole;
use multitap_serve::{Access, Door, DoorConfig, DoorError, Limits, Scheme, Tokens};

use self::served::Served;
use crate::args::{ServeArgs, SessionArgs};
use crate::exit::{Exit, Problem};
use crate::host::Host;
use crate::out::{self, Out, Unwritten};
use crate::settings::Settings;
use crate::signals::Signals;
use crate::{launch, settings};

/// What the card calls this host.
const NAME: &str = "Multitap";
/// A token for a controller, for those who need only one.
const TOKEN: &str = "MULTITAP_TOKEN";

/// Serves until a signal comes.
pub(crate) async fn serve(args: ServeArgs) -> Result<Exit, Problem> {
    let mut signals = Signals::new()?;
    let roots = roots(&args.root)?;
    let settings = settings::of(&roots[0])?;
    // What was chosen for all sessions should be wrong now rather than with the first client.
    launch::config(&SessionArgs::of(args.with.clone()), &settings, roots[0].clone(), None)?;
    let config = door(&args, &settings)?;
    let host = Host::open().await?;
    let served = Arc::new(Served::new(host, roots, &args));
    let door = tokio::select! {
        door = Door::open(config, served.clone()) => door,
        () = signals.next() => return Ok(Exit::Interrupted),
    };
    let door = match door {
        Ok(door) => door,
        Err(error) => {
            served.shutdown().await;
            return Err(not_opened(error));
        }
    };
    served.is_at(address(&door));
    match Out::new().write(&format!("multitap listening on {}\n", door.url())).await {
        // Whoever wanted to know may have seen enough.
        Ok(()) | Err(Unwritten::ReaderGone) => signals.next().await,
        Err(error) => out::say(&format!("multitap: {error}")),
    }
    let stopped = async { tokio::join!(door.stop(), served.shutdown()) };
    tokio::select! {
        _ = stopped => Ok(Exit::Completed),
        // What is left of the agents ends with us: their supervisors see to it.
        () = signals.next() => Ok(Exit::Interrupted),
    }
}

/// The folders that sessions may work in, as they really are.
fn roots(chosen: &[PathBuf]) -> Result<Vec<PathBuf>, Problem> {
    let here = std::env::current_dir().context("find the current folder")?;
    let chosen = if chosen.is_empty() { &[here][..] } else { chosen };
    let real = chosen.iter().map(|root| {
        let folder = root.canonicalize().ok().filter(|folder| folder.is_dir());
        folder.ok_or_else(|| Problem::usage(format!("--root {}: there is no such folder", root.display())))
    });
    real.collect()
}

fn door(args: &ServeArgs, settings: &Settings) -> Result<DoorConfig, Problem> {
    let access = Access {
        allow_hosts: args.allow_host.clone(),
        allow_origins: args.allow_origin.clone(),
        scheme: Scheme::of(tokens(args)?),
    };
    Ok(DoorConfig {
        host: args.host.clone(),
        port: args.port,
        access,
        limits: Limits::default(),
        extension_required: settings.a2a.extension_required,
        name: NAME.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    })
}

/// The tokens of the file, and the one of the environment.
fn tokens(args: &ServeArgs) -> Result<Tokens, Problem> {
    let usage = |error: anyhow::Error| Problem::usage(format!("{error:#}"));
    let mut tokens = match &args.token_file {
        Some(file) => Tokens::read(file).context("--token-file").map_err(usage)?,
        None => Tokens::default(),
    };
    if let Some(token) = std::env::var_os(TOKEN) {
        // One that is set and empty was meant to be something: an open door was not.
        let token = token.to_string_lossy();
        tokens.add(&token, ClientRole::Controller, None).context(TOKEN).map_err(usage)?;
    }
    Ok(tokens)
}

fn not_opened(error: DoorError) -> Problem {
    let exit = match &error {
        DoorError::NeedsToken { .. } | DoorError::Access(_) => Exit::Usage,
        DoorError::InUse { .. } | DoorError::Bind { .. } | DoorError::Unknown { .. } => Exit::Failed,
    };
    Problem::new(exit, format!("{:#}", anyhow::Error::new(error)))
}

/// Where programs on this machine find the door.
fn address(door: &Door) -> String {
    let at = |ip: IpAddr, port| format!("http://{}", SocketAddr::new(ip, port));
    match door.addresses().first() {
        Some(first) if first.ip() == Ipv4Addr::UNSPECIFIED => at(Ipv4Addr::LOCALHOST.into(), first.port()),
        Some(first) if first.ip() == Ipv6Addr::UNSPECIFIED => at(Ipv6Addr::LOCALHOST.into(), first.port()),
        _ => door.url().to_owned(),
    }
}
