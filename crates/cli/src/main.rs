//! The `multitap` binary: parses the command line and runs one command.
//!
//! The only crate that knows all others. Must not come in: anything that a library of ours should do.

mod args;
mod around;
mod clipboard;
mod cmd;
#[cfg(unix)]
mod deadline;
mod door;
mod exit;
mod file_lists;
mod host;
mod image;
mod launch;
mod live;
mod logging;
mod misspelt;
mod out;
mod private;
mod remote_agents;
mod resume;
mod settings;
mod signals;
mod token;
mod trust;
mod words;

use std::process::ExitCode;

use anyhow::Context as _;

use crate::args::{Cli, Sub};
use crate::exit::{Exit, Problem};

/// Returns freed memory to the system. The allocator of glibc has a heap per thread and keeps freed memory there, so
/// that a host stayed as large as at its busiest moment. On Linux it also serves C code: most of what a large event
/// left behind was SQLite's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1).peekable();
    if args.next_if(|arg| arg == multitap_process::SUPERVISE).is_some() {
        return multitap_process::supervise(args);
    }
    if args.next_if(|arg| arg == multitap_agent::SANDBOXED).is_some() {
        return multitap_agent::sandboxed(args);
    }
    if let Err(problem) = token::take() {
        out::say(&format!("multitap: {problem}"));
        return problem.exit.into();
    }
    #[cfg(unix)]
    if let Err(error) = multitap_process::unblock_signals() {
        out::say(&format!("multitap: signals stay blocked: {error}"));
    }
    let words: Vec<_> = std::env::args_os().collect();
    let cli = match Cli::read(&words) {
        Ok(cli) => cli,
        Err(error) => match misspelt::hint_of_unparsed(words.iter().map(|word| word.display().to_string())) {
            Some(hint) if error.use_stderr() => {
                out::say(&format!("multitap: {hint}"));
                return Exit::Usage.into();
            }
            _ => error.exit(),
        },
    };
    logging::init();
    match command(cli) {
        Ok(exit) => exit.into(),
        Err(problem) => {
            out::say(&format!("multitap: {problem}"));
            problem.exit.into()
        }
    }
}

fn command(cli: Cli) -> Result<Exit, Problem> {
    if cli.command.is_none()
        && let Some(hint) = misspelt::hint(&cli.run)
    {
        return Err(Problem::usage(hint));
    }
    match cli.command {
        Some(Sub::Schema) => cmd::schema(),
        Some(Sub::Commands(args)) => cmd::commands(&args),
        Some(Sub::Completions { shell }) => cmd::completions(shell),
        Some(Sub::Man) => cmd::man(),
        Some(Sub::Decode(args)) => cmd::decode::decode(&args),
        Some(Sub::Sessions(args)) => cmd::sessions::sessions(args),
        Some(Sub::Serve(args)) => wait(cmd::serve::serve(*args)),
        Some(Sub::Attach(args)) => wait(cmd::tui::attach::attach(args)),
        Some(Sub::Acp(args)) => wait(cmd::acp::acp(*args)),
        Some(Sub::Agents(args)) => wait(cmd::agents::agents(&args)),
        Some(Sub::Mcp(args)) => wait(cmd::mcp::mcp(*args)),
        Some(Sub::Doctor(args)) => wait(cmd::doctor::doctor(&args)),
        None if cli.run.print.is_some() => wait(cmd::run::run(cli.run)),
        None if cmd::tui::is_possible() => wait(cmd::tui::run(cli.run)),
        None if cli.run.words.is_some() => Err(Problem::usage(
            "stdin is not a terminal. To run without one: multitap -p \"PROMPT\"\n(`multitap --help` lists the commands)",
        )),
        None => wait(cmd::run::without_words(cli.run)),
    }
}

/// Most threads for blocking work (disk, name resolution). Each has a heap, which a burst of work would leave behind:
/// tokio's default is 512. More than a few, because a search, a slow disk and an unresponsive name server occupy one
/// each, and the store is read on them too.
const BLOCKING_THREADS: usize = 32;

pub(crate) fn wait<T>(command: impl Future<Output = Result<T, Problem>>) -> Result<T, Problem> {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.worker_threads(2).max_blocking_threads(BLOCKING_THREADS).enable_all();
    let runtime = runtime.build().context("start the runtime")?;
    let exit = runtime.block_on(command);
    // A read of stdin may never return.
    runtime.shutdown_background();
    exit
}
