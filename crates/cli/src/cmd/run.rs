//! `multitap -p`: a session without a screen. Opens the session, and reports why it cannot.
//!
//! `headless` runs it: events to stdout in the chosen format, lines of stdin to the session.

mod headless;
mod input;
mod request;
mod show;
mod tally;

use std::io::IsTerminal as _;
use std::time::Duration;

use multitap_client::StartError;
use multitap_event::{
    AgentError, AgentErrorKind, Draft, EventKind, SessionEnd, SessionEndReason, SessionId, Timestamp,
};
use multitap_hub::Which;
use tokio::time::Instant;

use self::headless::{Headless, at};
use self::input::Input;
use self::show::Show;
use super::agents::welcome;
use crate::args::{InputFormat, OutputFormat, RunArgs};
use crate::door::{self, Shared};
use crate::exit::{Exit, Problem};
use crate::host::{Host, StartedSession};
use crate::out::{self, Out, Unwritten};
use crate::resume::ResumeTarget;
use crate::settings::Trust;
use crate::signals::Signals;
use crate::{launch, settings};

/// After a second interrupt: time limit for the agent. The supervisor ends the rest as soon as this process is gone.
const HURRY: Duration = Duration::from_millis(200);

/// Bare `multitap` without a terminal: the piped text is the prompt. Without any, it prints a welcome.
pub(crate) async fn without_words(args: RunArgs) -> Result<Exit, Problem> {
    if args.keep_serving {
        return Err(Problem::usage("--keep-serving needs a terminal"));
    }
    if let Some(prompt) = input::if_piped().await? {
        return run(RunArgs { print: Some(Some(prompt)), ..args }).await;
    }
    let opens = args.door.a2a_port.map(|_| "--a2a-port");
    if let Some(option) = opens.or_else(|| args.door.about_it()) {
        return Err(Problem::usage(format!("{option} needs a session: use multitap -p PROMPT or multitap serve")));
    }
    welcome().await
}

/// Runs a session without a screen.
pub(crate) async fn run(args: RunArgs) -> Result<Exit, Problem> {
    let folder = launch::folder(args.session.cwd.as_deref())?;
    let trust = Trust::of(args.session.with.trust);
    let mut settings = settings::of(&folder, trust)?;
    let mut id = SessionId::fresh();
    let mut show = Show::new(args.output_format, std::io::stdout().is_terminal());
    let mut out = Out::new();
    let mut signals = Signals::new()?;
    let words = args.prompt_words().map_err(Problem::usage)?;
    let (prompt, input) = match args.input_format {
        InputFormat::Text => tokio::select! {
            prompt = input::prompt(words) => (Some(prompt?), Input::none()),
            () = signals.next() => return Ok(interrupted_at_start(&id, &mut show, &mut out).await),
        },
        InputFormat::StreamJson => (input::first_prompt(words)?, Input::stdin()),
    };
    if let Some(option) = args.door.useless() {
        return Err(Problem::usage(format!("{option} needs --a2a-port")));
    }
    let host = Host::open().await?;
    let target = ResumeTarget::find(&host, &args.session, &folder).await?;
    let (options, own) = target.options(&args.session, folder.clone());
    if own != folder {
        // The session resumes in its own folder: that folder's trust and rules count, not those of the current one.
        settings = settings::of(&own, trust)?;
    }
    let folder = own;
    let config = match launch::config(&options, &settings, folder.clone(), prompt) {
        Err(problem) if problem.exit == Exit::NotStarted => {
            let error = AgentError::new(AgentErrorKind::SessionNotFound, problem.to_string());
            return Ok(not_started(StartError::Agent(error.into()), &id, args.output_format, &mut show, &mut out).await);
        }
        other => other?,
    };
    for left_out in launch::servers_left_out(&config) {
        out::say(&format!("multitap: {left_out}"));
    }
    // In the text format, the session's own warning goes to stderr.
    if args.output_format != OutputFormat::Text
        && let Some(left_out) = multitap_adapter::project_left_out(&config)
    {
        out::say(&format!("multitap: {left_out}"));
    }
    let which = target.which(&host, &config, &folder, id.clone());
    if let Which::Stored(stored) = &which {
        id = stored.clone();
    }
    let door = Shared::open(&args.door, &settings, host.journal().clone()).await?;
    let address = door.as_ref().map(|(door, _)| door::address(door));
    if let Some(address) = &address {
        out::say(&format!("multitap: others join this session at {address}"));
    }
    let started = tokio::select! {
        started = host.start(which, config, launch::headless(), address.as_deref()) => Some(started),
        () = signals.next() => None,
    };
    let mut in_a_hurry = false;
    let exit = match started {
        Some(Ok(StartedSession { session, note })) => {
            if let (Some((_, shared)), Some(session)) = (&door, host.find(&id)) {
                shared.share(session);
            }
            let headless = Headless::new(session, &args, input, &mut signals, &mut show, &mut out);
            let left = headless.run().await;
            drop(note);
            in_a_hurry = left.in_a_hurry;
            left.exit
        }
        Some(Err(error)) => not_started(error, &id, args.output_format, &mut show, &mut out).await,
        None => interrupted_at_start(&id, &mut show, &mut out).await,
    };
    let hurry = in_a_hurry.then(|| Instant::now() + HURRY);
    let closed = async {
        host.shutdown().await;
        // After the sessions: their last frames are sent first.
        if let Some((door, _)) = door {
            door.stop().await;
        }
    };
    tokio::select! {
        () = closed => {}
        () = signals.next() => {}
        () = at(hurry) => {}
    }
    Ok(exit)
}

/// Reports why there is no session, in the chosen format.
async fn not_started(error: StartError, id: &SessionId, format: OutputFormat, show: &mut Show, out: &mut Out) -> Exit {
    let exit = match &error {
        StartError::Unsupported(_) => Exit::Usage,
        StartError::Agent(_) | StartError::ShutDown => Exit::NotStarted,
    };
    let error = AgentError::from(error);
    // In the text format, the error itself is printed on stderr.
    if format != OutputFormat::Text {
        out::say(&format!("multitap: {}", show::with_native(&error)));
    }
    let reason = match error.kind {
        AgentErrorKind::Timeout => SessionEndReason::Timeout,
        _ => SessionEndReason::Failed,
    };
    let end = session_end(reason, error.message.clone());
    tell(&[EventKind::Error(error), end], id, show, out).await.unwrap_or(exit)
}

async fn interrupted_at_start(id: &SessionId, show: &mut Show, out: &mut Out) -> Exit {
    let end = session_end(SessionEndReason::Cancelled, "interrupted at the start".to_owned());
    tell(&[end], id, show, out).await.unwrap_or(Exit::Interrupted)
}

fn session_end(reason: SessionEndReason, error: String) -> EventKind {
    EventKind::SessionEnded(SessionEnd { error: Some(error), ..SessionEnd::of(reason) })
}

/// Writes events of a session that never started. If that fails, it decides how the process ends.
async fn tell(kinds: &[EventKind], id: &SessionId, show: &mut Show, out: &mut Out) -> Option<Exit> {
    let mut text = String::new();
    for (seq, kind) in (1..).zip(kinds) {
        let shown = show.event(&Draft::new(Timestamp::now(), kind.clone()).stamp(id.clone(), seq));
        text.push_str(&shown.stdout);
        shown.stderr.iter().for_each(|line| out::say(line));
    }
    text.push_str(&show.end());
    match out.write(&text).await {
        // Nobody reads the output: nothing else is lost.
        Ok(()) | Err(Unwritten::ReaderGone) => None,
        Err(error) => Some(lost(&error)),
    }
}

/// Reports that the output is lost.
fn lost(error: &Unwritten) -> Exit {
    out::say(&format!("multitap: {error}"));
    Exit::Failed
}
