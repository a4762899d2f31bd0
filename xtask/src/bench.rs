//! `cargo xtask bench`: builds a bench as it is released, lets callgrind count its instructions, then runs it.
//!
//! What is measured, and against what, is the bench's own business; it lives with the crate it measures. Its goals
//! are goals, not gates: whatever the figures, the chore succeeds.

use std::process::Stdio;

use anyhow::{Context as _, Result, bail, ensure};

use crate::run::{built, cargo, exists, program, succeed};

const AGENTS: [&str; 3] = ["claude", "codex", "gemini"];
/// The two ways in which a bench reads, and the function that does nothing else.
const WAYS: [(&str, &str); 2] = [("events", "*measure::to_events*"), ("derive", "*measure::by_derive*")];
const BENCH: [&str; 8] = ["bench", "--quiet", "--profile", "dist", "--package", "multitap-adapter", "--bench", "parse"];

/// Runs the named bench; without a name, the one that needs no disk.
pub(crate) fn bench(args: &[String]) -> Result<()> {
    let options = match args.split_first() {
        Some((name, options)) if name == "parse" => options,
        Some((name, options)) if name == "log" => return example("multitap-store", "bench_log", options),
        Some((name, options)) if name == "hub" => return example("multitap", "bench_hub", options),
        Some((name, options)) if name == "door" => return example("multitap", "bench_door", options),
        Some((name, options)) if name == "tui" => return tui(options),
        Some((name, _)) if !name.starts_with('-') => bail!("no bench {name}: there are parse, log, hub, door and tui"),
        _ => args,
    };
    parse(options)
}

fn example(package: &str, example: &str, options: &[String]) -> Result<()> {
    let run = ["run", "--quiet", "--profile", "dist", "--package", package, "--example", example, "--"];
    succeed(cargo(&run).args(options))
}

/// The screen by itself, and the whole program until it shows one.
fn tui(options: &[String]) -> Result<()> {
    let program = built(&["build", "--profile", "dist", "--package", "multitap", "--bin", "multitap"])?;
    let mut all = vec!["--start".to_owned(), program];
    all.extend_from_slice(options);
    example("multitap-tui", "bench_tui", &all)
}

fn parse(options: &[String]) -> Result<()> {
    succeed(cargo(&BENCH).arg("--no-run"))?;
    let output = cargo(&BENCH).args(["--", "where"]).stderr(Stdio::inherit()).output().context("find the bench")?;
    ensure!(output.status.success(), "the bench does not run ({})", output.status);
    let path = String::from_utf8(output.stdout)?;
    let path = path.trim();
    let mut command = program(path.into());
    // Without it the bench says that nothing was counted.
    if exists("valgrind") {
        for agent in AGENTS {
            let [events, derive] = WAYS.map(|(way, function)| count(path, agent, way, function));
            command.args(["--instructions", &format!("{agent}={}/{}", events?, derive?)]);
        }
    }
    succeed(command.args(options).arg("--bench"))
}

/// The instructions that one agent's lines take, read in one way.
fn count(path: &str, agent: &str, way: &str, function: &str) -> Result<u64> {
    let mut command = program("valgrind".into());
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(format!("--toggle-collect={function}"));
    command.args([path, "count", agent, way, "--bench"]);
    let output = command.output().context("cannot start valgrind")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "callgrind failed ({}):\n{said}", output.status);
    let counted = said.lines().find_map(|line| line.split_once("Collected : ")?.1.trim().parse().ok());
    counted.filter(|count| *count > 0).with_context(|| format!("callgrind counted nothing:\n{said}"))
}
