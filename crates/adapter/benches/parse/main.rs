//! `cargo xtask bench parse`: native line to unified event, beside a plain derive that reads the same lines.
//!
//! An event here is one native line. The figures are ratios within one run, since a machine is never the same twice.
//! Run by `cargo test` it measures nothing: it only sees that both ways still read every line.

#![expect(clippy::unwrap_used, reason = "a bench that cannot go on fails")]
#![expect(clippy::print_stdout, reason = "a program for people")]

mod corpus;
mod measure;
mod plain;
mod report;
mod words;

use std::process::ExitCode;

use multitap_event::AgentType;

use self::corpus::Session;
use self::measure::AGENTS;
use self::report::{Instructions, Report, Row, Scaling};

const SEED: u64 = 1;
/// Bytes of lines for each agent, at scale 1.
const BYTES: f64 = 8e6;
/// The same where instructions are counted: callgrind is slow, and counts the same each time.
const COUNTED_BYTES: usize = 1_000_000;
/// The same for the test.
const TESTED_BYTES: usize = 100_000;
const REPEATS: usize = 9;
const SHORT_LINE: usize = 1_000;
const LONG_LINE: usize = 10_000_000;

const USAGE: &str = "\
parse [--scale N] [--repeats N] [--json] [--instructions AGENT=EVENTS/DERIVE]…
parse count AGENT events|derive     read the lines once, for callgrind to count
parse where                         print the path of this program";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    // `cargo bench` says so; `cargo test` does not.
    if !args.iter().any(|arg| arg == "--bench") {
        test();
        return ExitCode::SUCCESS;
    }
    let args: Vec<&str> = args.iter().map(String::as_str).filter(|arg| *arg != "--bench").collect();
    let done = match args.as_slice() {
        ["where"] => {
            println!("{}", std::env::current_exe().unwrap().display());
            Some(())
        }
        ["count", agent, way] => count(agent, way),
        args => Options::of(args).map(|options| bench(&options)),
    };
    if done.is_none() {
        println!("{USAGE}");
    }
    if done.is_some() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn lines(agent: AgentType, bytes: usize) -> Vec<Session> {
    corpus::sessions(agent, bytes, SEED)
}

fn all(bytes: usize) -> Vec<Vec<Session>> {
    AGENTS.map(|agent| lines(agent, bytes)).into()
}

/// Nothing that rots: the lines are made, the same ones each time, and both ways read them all.
fn test() {
    let sessions = all(TESTED_BYTES);
    assert_eq!(sessions, all(TESTED_BYTES), "the same seed makes other lines");
    for sessions in &sessions {
        assert_eq!(measure::unread(sessions), None);
    }
    let scaling = AGENTS.map(|agent| Scaling::measure(agent, SHORT_LINE, 10 * SHORT_LINE, 1));
    let rows = Row::all(&AGENTS, &sessions, &measure::times(&sessions, 1), &[]);
    let report = Report { rows, scaling: scaling.into() };
    assert!(report.table().contains("gemini") && report.json()["agents"].is_array());
}

/// Callgrind counts what happens within the one call.
fn count(agent: &str, way: &str) -> Option<()> {
    let sessions = lines(agent_named(agent)?, COUNTED_BYTES);
    match way {
        "events" => measure::to_events(&sessions),
        "derive" => measure::by_derive(&sessions),
        _ => return None,
    }
    Some(())
}

fn agent_named(name: &str) -> Option<AgentType> {
    AGENTS.into_iter().find(|agent| agent.as_str() == name)
}

struct Options {
    bytes: usize,
    repeats: usize,
    json: bool,
    counted: Vec<Instructions>,
}

impl Options {
    /// The options, if they are some of ours.
    fn of(args: &[&str]) -> Option<Self> {
        let (mut scale, mut repeats, mut json, mut counted) = (1.0, REPEATS, false, Vec::new());
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match *arg {
                "--scale" => scale = args.next()?.parse::<f64>().ok().filter(|scale| *scale > 0.0)?,
                "--repeats" => repeats = args.next()?.parse().ok().filter(|count| *count > 0)?,
                "--json" => json = true,
                "--instructions" => counted.push(instructions(args.next()?)?),
                _ => return None,
            }
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates")]
        let bytes = (BYTES * scale) as usize;
        Some(Self { bytes, repeats, json, counted })
    }
}

fn bench(options: &Options) {
    let sessions = all(options.bytes);
    for sessions in &sessions {
        assert_eq!(measure::unread(sessions), None);
    }
    let rows = Row::all(&AGENTS, &sessions, &measure::times(&sessions, options.repeats), &options.counted);
    let scaling = AGENTS.map(|agent| Scaling::measure(agent, SHORT_LINE, LONG_LINE, options.repeats));
    let report = Report { rows, scaling: scaling.into() };
    if options.json {
        println!("{:#}", report.json());
    } else {
        print!("{}", report.table());
    }
}

/// `claude=1200/3400`: how many instructions callgrind counted for each way.
fn instructions(text: &str) -> Option<Instructions> {
    let (name, counts) = text.split_once('=')?;
    let (events, derive) = counts.split_once('/')?;
    let agent = agent_named(name)?;
    let lines = lines(agent, COUNTED_BYTES).iter().map(|session| session.lines.len()).sum();
    Some(Instructions { agent, lines, events: events.parse().ok()?, derive: derive.parse().ok()? })
}
