//! The measuring: both ways to read in turn, several times over, and the middle one counts.

use std::hint::black_box;
use std::time::{Duration, Instant};

use multitap_adapter::{Codec, recorded};
use multitap_event::{AgentType, EventKind, Timestamp};

use crate::corpus::{self, Session};
use crate::plain;

/// The agents whose lines are read.
pub(crate) const AGENTS: [AgentType; 3] = [AgentType::Claude, AgentType::Codex, AgentType::Gemini];

/// What every line is stamped with; a codec has no clock.
fn now() -> Timestamp {
    Timestamp::from_millis(1_794_722_846_000)
}

fn codec(agent: AgentType) -> Box<dyn Codec> {
    recorded(agent).unwrap()
}

/// Reads every line to unified events, as the product does. Not inlined: callgrind counts what happens inside.
#[inline(never)]
pub(crate) fn to_events(sessions: &[Session]) {
    let now = now();
    for session in sessions {
        let mut codec = codec(session.dialect.agent());
        for line in &session.lines {
            black_box(codec.decode(line, now));
        }
    }
}

/// Reads every line by the plain derive.
#[inline(never)]
pub(crate) fn by_derive(sessions: &[Session]) {
    for session in sessions {
        for line in &session.lines {
            black_box(plain::reads(session.dialect, line));
        }
    }
}

/// How long each way took for the same sessions.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Times {
    pub(crate) events: Duration,
    pub(crate) derive: Duration,
}

/// Reads the sessions of all agents so often, each time both ways, and gives for each agent the middle times.
pub(crate) fn times(all: &[Vec<Session>], repeats: usize) -> Vec<Times> {
    let mut taken: Vec<Vec<Times>> = vec![Vec::new(); all.len()];
    for repeat in 0..repeats {
        for (sessions, taken) in all.iter().zip(&mut taken) {
            // Now this one first, now that one: whatever else the machine does meets both.
            let (events, derive);
            if repeat % 2 == 0 {
                (events, derive) = (time(to_events, sessions), time(by_derive, sessions));
            } else {
                let first = time(by_derive, sessions);
                (events, derive) = (time(to_events, sessions), first);
            }
            taken.push(Times { events, derive });
        }
    }
    let middle = |taken: &Vec<Times>| Times {
        events: median(taken.iter().map(|times| times.events).collect()),
        derive: median(taken.iter().map(|times| times.derive).collect()),
    };
    taken.iter().map(middle).collect()
}

fn time(read: fn(&[Session]), sessions: &[Session]) -> Duration {
    let start = Instant::now();
    read(sessions);
    start.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// Nanoseconds for each byte of one line of about that length: the answer of a tool, in a session under way.
pub(crate) fn nanos_per_byte(agent: AgentType, bytes: usize, repeats: usize) -> f64 {
    let (before, line) = corpus::long_line(agent, bytes);
    let once = || {
        let mut codec = codec(agent);
        for line in &before.lines {
            codec.decode(line, now());
        }
        let start = Instant::now();
        let step = black_box(codec.decode(&line, now()));
        drop(step);
        start.elapsed()
    };
    let taken = median((0..repeats).map(|_| once()).collect());
    taken.as_secs_f64() * 1e9 / line.len() as f64
}

/// What of these sessions one of the two ways cannot read. Nothing, or the figures mean nothing.
pub(crate) fn unread(sessions: &[Session]) -> Option<String> {
    for session in sessions {
        let mut codec = codec(session.dialect.agent());
        for line in &session.lines {
            if !plain::reads(session.dialect, line) {
                return Some(format!("the derive does not read {line}"));
            }
            let told = codec.decode(line, now()).events;
            if told.iter().any(|kind| matches!(kind, EventKind::Unrecognized { .. })) {
                return Some(format!("the codec does not read {line}"));
            }
        }
    }
    None
}
