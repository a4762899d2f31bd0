//! `multitap`: a session on this terminal, and beside it, with --a2a-port, for clients elsewhere.

pub(crate) mod attach;

use std::ffi::OsString;
use std::fs;
use std::io::{self, IsTerminal as _};
use std::path::Path;
use std::sync::Arc;

use multitap_event::{ClientRef, Door as Way, SessionId};
use multitap_hub::{Linger, Open};
use multitap_tui::{Editor, Options};

use crate::args::RunArgs;
use crate::door::{self, Shared};
use crate::exit::{Exit, Problem};
use crate::host::{self, Host};
use crate::signals::Signals;
use crate::take_up::TakeUp;
use crate::{launch, out, settings};

/// Whether there is a screen to show something on.
pub(crate) fn is_possible() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Runs a session on the screen.
pub(crate) async fn run(args: RunArgs) -> Result<Exit, Problem> {
    if let Some(option) = args.door.useless() {
        return Err(Problem::usage(format!("{option} is about a door: open one with --a2a-port")));
    }
    let mut signals = Signals::new()?;
    let folder = launch::folder(args.session.cwd.as_deref())?;
    let mut settings = settings::of(&folder)?;
    let prompt = args.prompt_words().map_err(Problem::usage)?;
    let host = Host::open().await?;
    let taken_up = TakeUp::find(&host, &args.session, &folder).await?;
    let (options, own) = taken_up.options(&args.session, folder.clone());
    if own != folder {
        settings = settings::of(&own)?;
    }
    let folder = own;
    let config = launch::config(&options, &settings, folder.clone(), prompt)?;
    for left_out in multitap_adapter::mcp_left_out(&config) {
        out::say(&format!("multitap: {left_out}"));
    }
    let which = taken_up.which(&host, &config, &folder, SessionId::fresh());
    // Before the screen changes: a port that is in use is said where it can be read.
    let door = Shared::open(&args.door, &settings, host.journal().clone(), folder.clone()).await?;
    let address = door.as_ref().map(|(door, _)| door::address(door));
    let me = ClientRef::new(who(), Way::Terminal);
    let open =
        Open { which, config, by: me.clone(), linger: Linger::UntilClosed, question_timeout: args.question_timeout };
    let session = tokio::select! {
        opened = host.open_for_all(open, address.as_deref(), ()) => opened.map_err(not_opened)?,
        () = signals.next() => return Ok(Exit::Interrupted),
    };
    if let Some((_, shared)) = &door {
        shared.share(session.clone());
    }
    let screen = Options {
        me,
        folder: short(&folder),
        branch: branch(&folder),
        door: address,
        colours: std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
        when_busy: args.when_busy(),
        editor: editor(),
    };
    let shown = tokio::select! {
        shown = multitap_tui::run(session, screen) => shown,
        // The terminal is gone, or somebody wants us gone.
        () = signals.next() => Ok(()),
    };
    host.shutdown().await;
    if let Some((door, _)) = door {
        door.stop().await;
    }
    shown.map_err(|error| Problem::new(Exit::Failed, format!("{:#}", anyhow::Error::new(error))))?;
    Ok(Exit::Completed)
}

fn not_opened(error: multitap_hub::OpenError) -> Problem {
    Problem::new(Exit::NotStarted, host::not_opened(error).to_string())
}

fn who() -> String {
    let name = ["USER", "LOGNAME", "USERNAME"].iter().find_map(|name| std::env::var(name).ok());
    name.filter(|name| !name.is_empty()).unwrap_or_else(|| "terminal".to_owned())
}

/// The folder as people write it.
fn short(folder: &Path) -> String {
    let home = std::env::var_os("HOME").map(std::path::PathBuf::from);
    match home.as_ref().and_then(|home| folder.strip_prefix(home).ok()) {
        Some(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
        Some(rest) => format!("~/{}", rest.display()),
        None => folder.display().to_string(),
    }
}

/// The branch that is checked out, read as git keeps it.
fn branch(folder: &Path) -> Option<String> {
    let head = folder.ancestors().find_map(|above| fs::read_to_string(above.join(".git/HEAD")).ok())?;
    let name = head.trim().strip_prefix("ref: refs/heads/");
    Some(name.map_or_else(|| head.trim().chars().take(8).collect(), str::to_owned))
}

/// The user's editor, on a file that is gone afterwards.
fn editor() -> Editor {
    Arc::new(|text| {
        let words = ["VISUAL", "EDITOR"].iter().find_map(|name| std::env::var(name).ok().filter(|it| !it.is_empty()));
        let words = shell_words::split(words.as_deref().unwrap_or("vi")).map_err(io::Error::other)?;
        let (program, args) = words.split_first().ok_or_else(|| io::Error::other("EDITOR names no program"))?;
        let file = tempfile::Builder::new().prefix("multitap-").suffix(".md").tempfile()?;
        fs::write(file.path(), text)?;
        let args = args.iter().map(OsString::from).chain([file.path().as_os_str().to_owned()]);
        let status = multitap_process::foreground(program.into(), args)?;
        if !status.success() {
            return Err(io::Error::other(format!("{program} ended with {status}")));
        }
        fs::read_to_string(file.path())
    })
}
