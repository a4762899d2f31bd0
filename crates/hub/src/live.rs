//! The live output of tools, as clients get it that want it whole each time.
//!
//! Sending everything so far with each new piece costs the square of the output. So a snapshot follows the one before
//! it only after a while that grows with its size: what is sent then grows with the time, and small outputs are as
//! lively as ever. The log has every piece once. Pure: the time comes in as a value.

use std::collections::BTreeMap;
use std::time::Duration;

use multitap_event::ToolId;

/// The least time between two snapshots.
const LIVELY: Duration = Duration::from_millis(100);
/// How many bytes of snapshots a millisecond of waiting is worth.
const BYTES_PER_MILLI: usize = 2000;

/// The output of the tools that run.
#[derive(Debug, Clone, Default)]
pub struct LiveOutput {
    tools: BTreeMap<ToolId, Running>,
}

#[derive(Debug, Clone, Default)]
struct Running {
    text: String,
    /// There is more than the last snapshot showed.
    fresh: bool,
    /// No snapshot before this time, counted from any fixed moment.
    not_before: Duration,
}

impl LiveOutput {
    /// A tool put something out.
    pub fn add(&mut self, tool: &ToolId, output: &str) {
        let running = self.tools.entry(tool.clone()).or_default();
        running.text.push_str(output);
        running.fresh = true;
    }

    /// When the next snapshot is worth sending; nothing if there is nothing new.
    pub fn due(&self) -> Option<Duration> {
        self.tools.values().filter(|running| running.fresh).map(|running| running.not_before).min()
    }

    /// The snapshots that are due: all output so far, of each tool that has more to show.
    pub fn take_due(&mut self, now: Duration) -> Vec<(ToolId, &str)> {
        let due = |running: &Running| running.fresh && running.not_before <= now;
        let due = self.tools.iter_mut().filter(|(_, running)| due(running));
        due.map(|(tool, running)| {
            running.fresh = false;
            let worth = Duration::from_millis((running.text.len() / BYTES_PER_MILLI) as u64);
            running.not_before = now + worth.max(LIVELY);
            (tool.clone(), running.text.as_str())
        })
        .collect()
    }

    /// The tool is over: everything it put out.
    pub fn finish(&mut self, tool: &ToolId) -> Option<String> {
        self.tools.remove(tool).map(|running| running.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is sent of an output of so many bytes, that comes in pieces of 1 KB at so many bytes a second.
    fn sent(bytes: usize, per_second: usize) -> usize {
        let tool = ToolId::from("t");
        let (mut live, mut sent) = (LiveOutput::default(), 0);
        let piece = "x".repeat(1000);
        for number in 0..bytes / piece.len() {
            let now = Duration::from_secs_f64((number * piece.len()) as f64 / per_second as f64);
            live.add(&tool, &piece);
            sent += live.take_due(now).iter().map(|(_, text)| text.len()).sum::<usize>();
        }
        assert_eq!(live.finish(&tool).unwrap().len(), bytes);
        sent + bytes
    }

    #[test]
    fn what_is_sent_grows_with_the_output_and_not_with_its_square() {
        assert!(sent(10_000_000, 1_000_000) <= 4 * 10_000_000);
        assert!(sent(10_000_000, 10_000_000) <= 4 * 10_000_000);
        assert!(sent(1_000_000, 1_000_000) <= 4 * 1_000_000);
    }

    #[test]
    fn the_first_piece_is_shown_at_once_and_the_last_never_lost() {
        let (one, two) = (ToolId::from("1"), ToolId::from("2"));
        let mut live = LiveOutput::default();
        assert_eq!(live.due(), None);
        live.add(&one, "a");
        let now = Duration::from_secs(5);
        assert_eq!(live.take_due(now), [(one.clone(), "a")]);
        live.add(&one, "b");
        live.add(&two, "c");
        assert_eq!(live.take_due(now), [(two, "c")], "too soon for the other");
        assert_eq!(live.due(), Some(now + LIVELY));
        assert_eq!(live.finish(&one).as_deref(), Some("ab"));
        assert_eq!(live.due(), None);
        assert_eq!(live.finish(&one), None);
    }
}
