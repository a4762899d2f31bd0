//! Multitap's own chores: `cargo xtask help` lists them.
//!
//! Little but std, so that it builds in a moment. What needs the testkit runs as one of its examples.

#![expect(clippy::print_stdout, reason = "a program for people")]

mod bench;
mod film;
mod interop;
mod run;
mod test;

use std::env;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};

use self::run::{cargo, succeed};

const HELP: &str = "\
cargo xtask test [PART…]       everything that must hold: fmt, clippy, tests, doctests, docs, interop
                               (only the parts named, if any; each with the time it took)
cargo xtask record AGENT CASE… record fixtures from a real CLI into crates/adapter/tests/fixtures
                               (--all: every case; --list: names them; --to DIR: record elsewhere)
cargo xtask bench [parse]      how fast native lines become events, beside a plain derive, with the goals
                               (--scale N: more lines; --repeats N; --json; valgrind counts instructions)
cargo xtask bench log          what keeping events costs, beside a plain file, with the goals
cargo xtask bench hub [PART…]  what a kept session costs, with the goals: fan-out, latency, stalled, history
cargo xtask bench door [PART…] what the doors cost, with the goals: stream, acp, fan-out, idle
                               (only the parts named, if any; --seconds N; --events N in the history)
cargo xtask bench tui          what a frame of the terminal costs in a long session, and the start to the first one
                               (--lines N in the session; --frames N)
cargo xtask film               plays a shared session in real terminals and makes the README's moving picture of it
                               (needs tmux and curl; --draw: only the picture, from the recording that is there)
cargo xtask soak               the tests that can be run longer, in full: killed writers, crashed sessions
cargo xtask fuzz [SECONDS]     any text at all as settings, for that long (60)
cargo xtask help               this text

The real CLIs and A2A and ACP clients come from npm, PyPI and crates.io at pinned versions and are kept in
MULTITAP_TEST_CACHE, or in the multitap/npm folder of your cache. Without npm the interop part is
skipped, or fails where CI is set; without Python its A2A and ACP clients are skipped.
";

fn main() -> ExitCode {
    match chore() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("\nerror: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn chore() -> Result<()> {
    let args: Vec<String> = env::args().skip(1).collect();
    match args.split_first().map(|(verb, rest)| (verb.as_str(), rest)) {
        Some(("test", parts)) => test::test(parts),
        Some(("record", args)) => record(args),
        Some(("bench", args)) => bench::bench(args),
        Some(("film", args)) => film::film(args),
        Some(("soak", _)) => soak(),
        Some(("fuzz", args)) => fuzz(args),
        Some(("help" | "--help" | "-h", _)) => {
            print!("{HELP}");
            Ok(())
        }
        Some((verb, _)) => bail!("no chore named {verb}\n\n{HELP}"),
        None => bail!("which chore?\n\n{HELP}"),
    }
}

fn soak() -> Result<()> {
    for (package, tests) in [("multitap-store", "crash"), ("multitap", "crash")] {
        let mut command = cargo(&["test", "--package", package, "--test", "it", "--", tests]);
        succeed(command.env("MULTITAP_SOAK", "1"))?;
    }
    Ok(())
}

fn fuzz(args: &[String]) -> Result<()> {
    let seconds: u64 = args.first().map_or(Ok(60), |seconds| seconds.parse()).context("SECONDS is a number")?;
    let mut command = cargo(&["test", "--package", "multitap", "--bin", "multitap", "--", "settings::tests::fuzz"]);
    succeed(command.env("MULTITAP_FUZZ", seconds.to_string()))
}

fn record(args: &[String]) -> Result<()> {
    if let Some(agent) = args.first().filter(|_| !args.iter().any(|arg| arg == "--list")) {
        interop::install(&[agent])?;
    }
    let mut command = cargo(&["run", "--quiet", "--package", "multitap-testkit", "--example", "record", "--"]);
    succeed(command.args(args))
}
