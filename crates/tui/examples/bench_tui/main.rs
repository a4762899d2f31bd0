//! What the screen costs, on this machine, now: `cargo xtask bench tui [--lines N] [--frames N] [--start PROGRAM]`.
//!
//! - `frames`: a transcript of 100 000 lines on a large screen while 500 events come in a second, then while somebody
//!   scrolls and searches in it; and its memory.
//! - `start`: from the start of the program to its first frame, in a terminal of its own, with the rehearsal.
//!
//! Goals, not gates: whatever the figures, it succeeds.

#![expect(clippy::print_stdout, reason = "what it measured")]

mod session;
mod start;

use std::error::Error;
use std::time::{Duration, Instant};

use multitap_tui::bench_screen::BenchScreen;

use self::session::{Endless, Session};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const COLUMNS: u16 = 160;
const ROWS: u16 = 50;
const EVENTS_PER_SECOND: u64 = 500;
/// The shortest time between two frames, as the program keeps it.
const FRAME: Duration = Duration::from_millis(16);
/// How many pieces an answer of 3000 lines comes in.
const LONG_ANSWER: usize = 6000;
/// How long a message without an empty line is.
const ENDLESS: usize = 5_000_000;
/// How many changed lines a question shows.
const QUESTION: usize = 2000;
const FRAME_GOAL: Duration = Duration::from_millis(8);

fn main() -> Outcome<()> {
    let (mut lines, mut frames, mut program) = (100_000, 2_000, None);
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(format!("{arg} needs a value"));
        match arg.as_str() {
            "--lines" => lines = value()?.parse()?,
            "--frames" => frames = value()?.parse()?,
            "--start" => program = Some(value()?),
            other => return Err(format!("{other}? There are --lines N, --frames N, --start PROGRAM").into()),
        }
    }
    measure_frames(lines, frames)?;
    match program {
        Some(program) => start::measure(&program),
        None => {
            println!("start to first frame: not measured, no program was named");
            Ok(())
        }
    }
}

fn measure_frames(lines: usize, frames: u64) -> Outcome<()> {
    println!("{lines} lines on a screen of {COLUMNS} by {ROWS}, {EVENTS_PER_SECOND} events a second");
    let before = memory();
    let mut screen = BenchScreen::new(COLUMNS, ROWS)?;
    let mut session = Session::default();
    let mut told = 0;
    while told < lines {
        told += session.turn(|event| screen.apply(event));
    }
    let mut first = vec![screen.draw()?];
    row("the first frame of it", &mut first, None);

    let mut times = Vec::new();
    let per_frame = EVENTS_PER_SECOND * FRAME.as_millis() as u64 / 1000;
    let bytes = screen.bytes();
    for _ in 0..frames {
        let began = Instant::now();
        for _ in 0..per_frame {
            screen.apply(session.chunk());
        }
        screen.draw()?;
        times.push(began.elapsed());
    }
    row("a frame while events come, with taking them in", &mut times, Some(FRAME_GOAL));
    println!("  {:<48} {:>12}", "bytes to the terminal, a frame", (screen.bytes() - bytes) / frames.max(1));

    let mut times = Vec::new();
    for _ in 0..LONG_ANSWER {
        screen.apply(session.more());
    }
    for _ in 0..100 {
        let began = Instant::now();
        for _ in 0..per_frame {
            screen.apply(session.more());
        }
        screen.draw()?;
        times.push(began.elapsed());
    }
    row("a frame while an answer of 3000 lines goes on", &mut times, Some(FRAME_GOAL));
    for endless in [Endless::Paragraph, Endless::Lines, Endless::Code] {
        measure_endless(&mut screen, &mut session, endless, per_frame)?;
    }

    let mut times = Vec::new();
    for _ in 0..200 {
        let began = Instant::now();
        screen.page_up();
        screen.apply(session.chunk());
        screen.draw()?;
        times.push(began.elapsed());
    }
    row("a page up", &mut times, Some(FRAME_GOAL));
    let mut times = Vec::new();
    for _ in 0..20 {
        let began = Instant::now();
        screen.to_top();
        screen.draw()?;
        screen.to_latest();
        screen.draw()?;
        times.push(began.elapsed() / 2);
    }
    row("to the top and back", &mut times, Some(FRAME_GOAL));
    let began = Instant::now();
    screen.search("nowhere to be found");
    row("a search through all of it, a letter at a time", &mut [began.elapsed()], None);
    screen.apply(session.question(QUESTION));
    let mut times = vec![screen.draw()?];
    for _ in 0..50 {
        let began = Instant::now();
        screen.page_down();
        screen.draw()?;
        times.push(began.elapsed());
    }
    row("a key in a question about 2000 changed lines", &mut times, Some(FRAME_GOAL));
    if let (Some(before), Some(after)) = (before, memory()) {
        println!("  {:<48} {:>9} MiB", "memory of it all", (after - before) / 1024 / 1024);
    }
    Ok(())
}

/// A message of some megabytes in which there is no empty line.
fn measure_endless(screen: &mut BenchScreen, session: &mut Session, endless: Endless, per_frame: u64) -> Outcome<()> {
    let mut bytes = 0;
    while bytes < ENDLESS {
        bytes += session.endless(endless, |event| screen.apply(event));
    }
    let what = endless.name();
    row(&format!("5 MB of {what}, laid out at once"), &mut [screen.draw()?], None);
    let mut times = Vec::new();
    for _ in 0..100 {
        let began = Instant::now();
        for _ in 0..per_frame {
            session.endless(endless, |event| screen.apply(event));
        }
        screen.draw()?;
        times.push(began.elapsed());
    }
    row(&format!("a frame while {what} of 5 MB goes on"), &mut times, Some(FRAME_GOAL));
    let mut times = Vec::new();
    for columns in (COLUMNS - 20..COLUMNS).chain([COLUMNS]) {
        screen.resize(columns)?;
        times.push(screen.draw()?);
    }
    row(&format!("{what} of 5 MB at another width"), &mut times, Some(FRAME_GOAL));
    let began = Instant::now();
    screen.page_up();
    screen.draw()?;
    row("the first page up in it then", &mut [began.elapsed()], None);
    screen.to_latest();
    screen.draw()?;
    Ok(())
}

/// The median, what 99 of 100 do not exceed, and the longest.
fn row(what: &str, times: &mut [Duration], goal: Option<Duration>) {
    times.sort();
    let part = |percent: usize| times[(times.len() - 1) * percent / 100].as_secs_f64() * 1000.0;
    let verdict = match goal {
        Some(goal) if part(99) < goal.as_secs_f64() * 1000.0 => format!("goal {} ms met", goal.as_millis()),
        Some(goal) => format!("goal {} ms missed", goal.as_millis()),
        None => String::new(),
    };
    println!("  {what:<48} {:>8.2} ms   p99 {:>8.2}   max {:>8.2}   {verdict}", part(50), part(99), part(100));
}

/// What this process has of memory, in bytes, where the system tells.
fn memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim_end_matches("kB").trim().parse::<u64>().ok()? * 1024)
}
