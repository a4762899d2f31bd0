//! `multitap`: a session in this terminal, shared with other clients by --a2a-port.

pub(crate) mod attach;
mod branch;
mod editing;

use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use multitap_event::{AgentType, ClientRef, Door as Way, Mode, SessionConfig, SessionId};
use multitap_hub::{Linger, Open, Session, Which};
use multitap_tui::{ScreenExit, ScreenOptions, TerminalLease, WaitInterrupted};

use super::agents;
use crate::args::{RunArgs, SessionArgs};
use crate::around::Surroundings;
use crate::clipboard::clipboard;
use crate::exit::{Exit, Problem};
use crate::host::{self, Host};
use crate::logging::ToFile;
use crate::resume::ResumeTarget;
use crate::settings::{self, Settings, Trust};
use crate::signals::{Signal, Signals};
use crate::trust::{self, TrustAnswer};
use crate::{launch, out};

/// Whether stdin and stdout are a terminal.
pub(crate) fn is_possible() -> bool {
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    io::stdin().is_terminal() && io::stdout().is_terminal() && !is_dumb
}

/// Shows sessions, one after the other, until the user leaves.
pub(crate) async fn run(args: RunArgs) -> Result<Exit, Problem> {
    let mut signals = Signals::new()?;
    let _watch = Signals::let_go_in_time()?;
    let host = Host::open().await?;
    // Logs would disturb the screen, and the output after it: the store still logs while it closes.
    if let Some(logs) = host::data().and_then(|data| ToFile::begin(&data.join("terminal.log"))) {
        logs.for_good();
    }
    let me = ClientRef::new(who(), Way::Terminal);
    let mut prompt = args.prompt_words().map_err(Problem::usage)?;
    let mut wanted = args.session.clone();
    let mut around: Option<Arc<Surroundings>> = None;
    let mut lease = TerminalLease::default();
    let mut declined = Vec::new();
    let mut mode_left: Option<(AgentType, Mode)> = None;
    let exit = loop {
        // Finding the next session may ask about trust, and must stop when the terminal goes away.
        let found = tokio::select! {
            found = Next::find(&host, &wanted, prompt.take(), &mut lease, &mut declined) => found?,
            () = signals.next() => None,
        };
        let Some(mut next) = found else { break Exit::Interrupted };
        // A new session in place of one in plan mode must not begin in a more permissive mode.
        if let Some((agent, mode)) = mode_left.take()
            && agent == next.config.agent.agent_type()
        {
            next.config.mode = Some(mode);
        }
        if lease.is_held() {
            next.greeting = Some(next.notes.join("; ")).filter(|notes| !notes.is_empty()).or(next.greeting);
        } else {
            next.notes.iter().for_each(|note| out::say(&format!("multitap: {note}")));
        }
        // Done before the screen changes, so that the error for a port in use stays readable.
        let around = match &around {
            Some(around) => around.clone(),
            None => {
                let journal = host.journal().clone();
                let opened = Surroundings::open(&args.door, &next.settings, journal, next.folder.clone()).await?;
                around.insert(Arc::new(opened)).clone()
            }
        };
        let address = around.address();
        let open = Open {
            which: next.which,
            config: next.config,
            by: me.clone(),
            linger: Linger::UntilClosed,
            question_timeout: args.question_timeout,
            ceiling: None,
        };
        let session = tokio::select! {
            opened = lease.wait(host.open_for_all(open, address.clone(), ())) => match opened {
                Ok(opened) => opened.map_err(not_opened)?,
                Err(WaitInterrupted) => break Exit::Interrupted,
            },
            () = signals.next() => break Exit::Interrupted,
        };
        around.share(session.clone());
        let screen = ScreenOptions {
            me: me.clone(),
            folder: short(&next.folder),
            branch: branch::of(Some(next.folder.clone())),
            address: address.borrow().clone(),
            preferences: next.settings.terminal,
            when_busy: args.session.when_busy,
            editor: editing::editor(&signals.editor_state),
            root: Some(next.folder),
            history: host::data().map(|data| data.join("history.jsonl")),
            host: around.clone(),
            clipboard: clipboard(),
            is_host: true,
            greeting: next.greeting,
        };
        let shown = tokio::select! {
            shown = multitap_tui::run(&mut lease, session.clone(), screen) => shown,
            signal = signals.next_kind() => Ok(if signal == Signal::Hangup { ScreenExit::TerminalGone } else { ScreenExit::Quit }),
        };
        if !matches!(shown, Ok(ScreenExit::Resume(_) | ScreenExit::NewSession)) {
            lease.release();
        }
        let outcome = shown.map_err(|error| Problem::new(Exit::Failed, format!("{:#}", anyhow::Error::new(error))));
        match outcome {
            Ok(ScreenExit::Resume(id)) => wanted = instead(&host, &args.session, Some(id)).await,
            Ok(ScreenExit::NewSession) => {
                mode_left = mode_of(&session).await;
                wanted = instead(&host, &args.session, None).await;
            }
            Ok(ScreenExit::KeepServing) => break serve_on(&session, around.as_ref(), &mut signals).await,
            Ok(ScreenExit::TerminalGone) if args.keep_serving => {
                break serve_on(&session, around.as_ref(), &mut signals).await;
            }
            Ok(ScreenExit::TerminalGone | ScreenExit::Quit) => break Exit::Completed,
            Err(problem) => {
                host.shutdown().await;
                return Err(problem);
            }
        }
        if lease.wait(host.close(session.id())).await.is_err() {
            break Exit::Interrupted;
        }
    };
    lease.release();
    host.shutdown().await;
    if let Some(around) = around {
        around.close().await;
    }
    Ok(exit)
}

/// The next session on the screen.
struct Next {
    which: Which,
    config: SessionConfig,
    settings: Settings,
    folder: PathBuf,
    greeting: Option<String>,
    /// Settings that do not apply.
    notes: Vec<String>,
}

impl Next {
    /// Asks about trust first, where that matters; `None` if the user left.
    async fn find(
        host: &Host,
        args: &SessionArgs,
        prompt: Option<String>,
        lease: &mut TerminalLease,
        declined: &mut Vec<PathBuf>,
    ) -> Result<Option<Self>, Problem> {
        let folder = launch::folder(args.cwd.as_deref())?;
        let target = ResumeTarget::find(host, args, &folder).await?;
        let (options, own) = target.options(args, folder);
        // Judged by the session's own folder, which may differ from the current one.
        let mut settings = settings::quietly(&own, Trust::of(args.with.trust))?;
        let mut config = launch::config(&options, &settings, own.clone(), prompt.clone())?;
        match trust::ask(lease, &config, &settings, &own, declined).await? {
            TrustAnswer::NotTrusted => {}
            TrustAnswer::Left => return Ok(None),
            TrustAnswer::Trusted => {
                settings = settings::quietly(&own, Trust::ThisFolder)?;
                config = launch::config(&options, &settings, own.clone(), prompt)?;
            }
        }
        for added in config.add_dirs.clone() {
            match trust::ask_about_added(lease, &config, &settings, &added, declined).await? {
                TrustAnswer::NotTrusted => {}
                TrustAnswer::Left => return Ok(None),
                TrustAnswer::Trusted => config.trusted_dirs.push(added),
            }
        }
        settings.say_warnings();
        let notes = launch::servers_left_out(&config);
        let is_chosen = options.with.agent.is_some() || settings.agent.is_some();
        let greeting = (!is_chosen).then(|| agents::greeting(&config, &settings));
        let which = target.which(host, &config, &own, SessionId::fresh());
        Ok(Some(Self { which, config, settings, folder: own, greeting, notes }))
    }
}

/// The options for another session in place of the current one: the original ones, as far as they apply to any
/// session.
async fn instead(host: &Host, args: &SessionArgs, resume: Option<String>) -> SessionArgs {
    let mut wanted = SessionArgs { continue_latest: false, fork: false, at: None, image: Vec::new(), ..args.clone() };
    if let Some(id) = &resume {
        let agent = host.journal().find(id.clone()).await.ok().and_then(|found| Some(found.first()?.agent.to_string()));
        // Model names and the like belong to the agent they were given for.
        if wanted.with.agent != agent {
            (wanted.with.model, wanted.with.approval_mode) = (None, None);
            wanted.with.agent_arg.clear();
        }
        wanted.with.agent = None;
    }
    SessionArgs { resume, ..wanted }
}

/// The agent of a session and its mode, if known.
async fn mode_of(session: &Session) -> Option<(AgentType, Mode)> {
    let state = session.snapshot().await?;
    Some((state.start?.agent_type, Mode::Unified(state.mode?)))
}

/// Keeps the session running for connected clients, until it ends or a signal arrives. A closed terminal is ignored.
async fn serve_on(session: &Session, around: &Surroundings, signals: &mut Signals) -> Exit {
    if let Err(error) = multitap_tui::detach_stdin() {
        tracing::warn!(%error, "the terminal is still held");
    }
    let at = around.address().borrow().as_ref().map(|address| format!(" at {address}")).unwrap_or_default();
    let (id, pid) = (session.id(), std::process::id());
    out::say(&format!(
        "multitap: session {id} continues without a terminal{at}. To end it for all: Ctrl+C here, or kill {pid}"
    ));
    loop {
        tokio::select! {
            () = session.over() => return Exit::Completed,
            signal = signals.next_kind() => if signal != Signal::Hangup { return Exit::Completed },
        }
    }
}

fn not_opened(error: multitap_hub::OpenError) -> Problem {
    Problem::new(Exit::NotStarted, host::not_opened(error).to_string())
}

fn who() -> String {
    let name = ["USER", "LOGNAME", "USERNAME"].iter().find_map(|name| std::env::var(name).ok());
    name.filter(|name| !name.is_empty()).unwrap_or_else(|| "terminal".to_owned())
}

/// The folder, with `~` for the home folder.
fn short(folder: &Path) -> String {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    match home.as_ref().and_then(|home| folder.strip_prefix(home).ok()) {
        Some(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
        Some(rest) => format!("~/{}", rest.display()),
        None => folder.display().to_string(),
    }
}
