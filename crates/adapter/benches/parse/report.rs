//! What was measured, as a table for people and as JSON, with the goals beside it.

use std::time::Duration;

use multitap_event::AgentType;
use serde_json::{Value, json};

use crate::corpus::Session;
use crate::measure::{Times, nanos_per_byte};

/// Goals, not gates: they are printed, and nothing fails.
const FASTER_THAN_DERIVE: f64 = 1.0;
const INSTRUCTIONS: f64 = 5_500.0;
const LINE_SCALING: f64 = 1.2;

/// A short line is read this much oftener, so that its time means something.
const SHORT_REPEATS: usize = 200;

/// One agent, or all of them.
#[derive(Debug)]
pub(crate) struct Row {
    name: &'static str,
    bytes: usize,
    lines: usize,
    times: Times,
    /// For each line: to events, and by the derive.
    instructions: Option<(f64, f64)>,
}

/// What callgrind counted for one agent.
#[derive(Debug)]
pub(crate) struct Instructions {
    pub(crate) agent: AgentType,
    pub(crate) lines: usize,
    pub(crate) events: u64,
    pub(crate) derive: u64,
}

/// How the time for a line grows with its length.
#[derive(Debug)]
pub(crate) struct Scaling {
    agent: AgentType,
    short: f64,
    long: f64,
}

#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) rows: Vec<Row>,
    pub(crate) scaling: Vec<Scaling>,
}

impl Row {
    /// A row for each agent, and one for all.
    pub(crate) fn all(
        agents: &[AgentType],
        sessions: &[Vec<Session>],
        times: &[Times],
        counted: &[Instructions],
    ) -> Vec<Self> {
        let mut rows: Vec<Self> = agents
            .iter()
            .zip(sessions)
            .zip(times)
            .map(|((agent, sessions), times)| Self {
                name: agent.as_str(),
                bytes: sessions.iter().flat_map(|session| &session.lines).map(|line| line.len() + 1).sum(),
                lines: sessions.iter().map(|session| session.lines.len()).sum(),
                times: *times,
                instructions: per_line(counted.iter().filter(|one| one.agent == *agent)),
            })
            .collect();
        rows.push(Self {
            name: "all",
            bytes: rows.iter().map(|row| row.bytes).sum(),
            lines: rows.iter().map(|row| row.lines).sum(),
            times: Times {
                events: rows.iter().map(|row| row.times.events).sum(),
                derive: rows.iter().map(|row| row.times.derive).sum(),
            },
            instructions: per_line(counted.iter()),
        });
        rows
    }

    fn megabytes(&self, time: Duration) -> f64 {
        self.bytes as f64 / 1e6 / time.as_secs_f64()
    }

    fn kilo_events(&self, time: Duration) -> f64 {
        self.lines as f64 / 1e3 / time.as_secs_f64()
    }

    fn ratio(&self) -> f64 {
        self.times.derive.as_secs_f64() / self.times.events.as_secs_f64()
    }

    fn json(&self) -> Value {
        let way = |time: Duration, instructions: Option<f64>| {
            json!({
                "megabytesPerSecond": self.megabytes(time),
                "eventsPerSecond": self.kilo_events(time) * 1e3,
                "instructionsPerEvent": instructions,
            })
        };
        json!({
            "name": self.name,
            "bytes": self.bytes,
            "events": self.lines,
            "unified": way(self.times.events, self.instructions.map(|(events, _)| events)),
            "derive": way(self.times.derive, self.instructions.map(|(_, derive)| derive)),
            "ratio": self.ratio(),
        })
    }
}

fn per_line<'a>(counted: impl Iterator<Item = &'a Instructions>) -> Option<(f64, f64)> {
    let add = |(lines, events, derive): (usize, u64, u64), one: &Instructions| {
        (lines + one.lines, events + one.events, derive + one.derive)
    };
    let (lines, events, derive) = counted.fold((0, 0, 0), add);
    (lines > 0).then(|| (events as f64 / lines as f64, derive as f64 / lines as f64))
}

impl Scaling {
    pub(crate) fn measure(agent: AgentType, short: usize, long: usize, repeats: usize) -> Self {
        let short = nanos_per_byte(agent, short, repeats * SHORT_REPEATS);
        Self { agent, short, long: nanos_per_byte(agent, long, repeats) }
    }

    fn ratio(&self) -> f64 {
        self.long / self.short
    }
}

impl Report {
    pub(crate) fn table(&self) -> String {
        let mut text = String::new();
        let mut line = |words: String| {
            text.push_str(words.trim_end());
            text.push('\n');
        };
        line("native line to unified event, beside a serde_json derive of the same lines".to_owned());
        line(format!(
            "{:8} {:>8} {:>8} {:>6} {:>9} {:>10} {:>9} {:>10} {:>7} {:>9} {:>9}",
            "agent", "MB", "k events", "B/ev", "MB/s", "k ev/s", "derive", "k ev/s", "ratio", "Ir/ev", "derive"
        ));
        for row in &self.rows {
            let count = |count: Option<f64>| count.map_or_else(|| "-".to_owned(), |count| format!("{count:.0}"));
            line(format!(
                "{:8} {:>8.1} {:>8.1} {:>6} {:>9.0} {:>10.0} {:>9.0} {:>10.0} {:>6.2}x {:>9} {:>9}",
                row.name,
                row.bytes as f64 / 1e6,
                row.lines as f64 / 1e3,
                row.bytes / row.lines.max(1),
                row.megabytes(row.times.events),
                row.kilo_events(row.times.events),
                row.megabytes(row.times.derive),
                row.kilo_events(row.times.derive),
                row.ratio(),
                count(row.instructions.map(|(events, _)| events)),
                count(row.instructions.map(|(_, derive)| derive)),
            ));
        }
        let goals = (format!(">={FASTER_THAN_DERIVE:.1}x"), format!("<={INSTRUCTIONS}"));
        line(format!("{:71} {:>7} {:>9}", "goal", goals.0, goals.1));
        if self.rows.iter().any(|row| row.instructions.is_none()) {
            line("instructions (Ir) were not counted: that takes `cargo xtask bench` and valgrind".to_owned());
        }
        line(String::new());
        line("one line, by its length".to_owned());
        line(format!("{:8} {:>13} {:>13} {:>7}", "agent", "ns/B, 1 KB", "ns/B, 10 MB", "ratio"));
        for row in &self.scaling {
            line(format!("{:8} {:>13.2} {:>13.2} {:>6.2}x", row.agent.as_str(), row.short, row.long, row.ratio()));
        }
        line(format!("{:36} {:>7}", "goal", format!("<={LINE_SCALING}x")));
        text
    }

    pub(crate) fn json(&self) -> Value {
        let scaling = |row: &Scaling| {
            json!({
                "name": row.agent.as_str(),
                "nanosPerByteShort": row.short,
                "nanosPerByteLong": row.long,
                "ratio": row.ratio(),
            })
        };
        json!({
            "bench": "parse",
            "goals": {
                "ratio": FASTER_THAN_DERIVE,
                "instructionsPerEvent": INSTRUCTIONS,
                "lineScaling": LINE_SCALING,
            },
            "agents": self.rows.iter().map(Row::json).collect::<Vec<_>>(),
            "lineScaling": self.scaling.iter().map(scaling).collect::<Vec<_>>(),
        })
    }
}
