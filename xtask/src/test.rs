//! The one test command: its parts in order, the first failure ends it, the times are printed at the end.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use crate::interop;
use crate::run::{cargo, line, succeed};

/// A part that went through.
pub(crate) enum Done {
    Whole,
    /// So many tests were skipped, or all of it.
    Skipped(String),
}

struct Part {
    name: &'static str,
    run: fn() -> Result<Done>,
}

const PARTS: &[Part] = &[
    Part { name: "fmt", run: || shown(&mut cargo(&["fmt", "--all", "--check"])) },
    Part {
        name: "clippy",
        run: || shown(&mut cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])),
    },
    Part { name: "tests", run: || shown(plain(&mut cargo(&["test", "--workspace", "--all-targets"]))) },
    Part { name: "doctests", run: || shown(plain(&mut cargo(&["test", "--workspace", "--doc"]))) },
    Part {
        name: "docs",
        run: || shown(cargo(&["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings")),
    },
    Part { name: "interop", run: interop::interop },
];

/// Runs the named parts, or all.
pub(crate) fn test(names: &[String]) -> Result<()> {
    let parts = chosen(names)?;
    let start = Instant::now();
    let mut report = Vec::new();
    let mut failure = None;
    for part in &parts {
        println!("\n== {} ==", part.name);
        let start = Instant::now();
        let outcome = (part.run)();
        let word = match &outcome {
            Ok(Done::Whole) => "ok".to_owned(),
            Ok(Done::Skipped(what)) => format!("SKIPPED {what}"),
            Err(_) => "FAILED".to_owned(),
        };
        report.push((part.name, start.elapsed(), word));
        if let Err(error) = outcome {
            failure = Some(error.context(format!("{} failed", part.name)));
            break;
        }
    }
    println!();
    for (name, time, word) in report {
        println!("{name:10} {:>8}  {word}", seconds(time));
    }
    println!("{:10} {:>8}", "all", seconds(start.elapsed()));
    failure.map_or(Ok(()), Err)
}

fn chosen(names: &[String]) -> Result<Vec<&'static Part>> {
    if names.is_empty() {
        return Ok(PARTS.iter().collect());
    }
    let find = |name: &String| PARTS.iter().find(|part| part.name == *name);
    let known = || PARTS.iter().map(|part| part.name).collect::<Vec<_>>().join(", ");
    names
        .iter()
        .map(|name| find(name).with_context(|| format!("no part named {name}; there are {}", known())))
        .collect()
}

/// Says what it runs, and runs it.
pub(crate) fn shown(command: &mut Command) -> Result<Done> {
    println!("{}", line(command));
    succeed(command)?;
    Ok(Done::Whole)
}

/// Tests without the real CLIs: those have a part of their own.
fn plain(command: &mut Command) -> &mut Command {
    command.env_remove(interop::WISH)
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}
