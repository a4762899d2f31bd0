//! The live output of tools, for clients that get all of it each time.
//!
//! Sending the whole output with each new piece has quadratic cost. So the next snapshot waits for a time that grows
//! with the size of the last one: the total size then grows with time, and small outputs stay lively. A snapshot of a
//! long output has only its end, so endless output needs no more memory than any other. The log has every piece once.
//! Pure: time comes in as a value.

use std::collections::BTreeMap;
use std::time::Duration;

use multitap_event::ToolId;

use crate::state::Output;

/// Shortest time between two snapshots.
const LIVELY: Duration = Duration::from_millis(100);
/// How many bytes of a snapshot delay the next one by a millisecond.
const BYTES_PER_MILLI: usize = 2000;

/// The output of the running tools.
#[derive(Debug, Clone, Default)]
pub struct LiveOutput {
    tools: BTreeMap<ToolId, Running>,
}

#[derive(Debug, Clone, Default)]
struct Running {
    output: Output,
    /// Some output came after the last snapshot.
    fresh: bool,
    /// The earliest time of the next snapshot, counted from any fixed moment.
    not_before: Duration,
}

impl LiveOutput {
    pub fn add(&mut self, tool: &ToolId, output: &str) {
        let running = self.tools.entry(tool.clone()).or_default();
        running.output.add(output);
        running.fresh = true;
    }

    /// When the next snapshot is due; `None` if there is no new output.
    pub fn due(&self) -> Option<Duration> {
        self.tools.values().filter(|running| running.fresh).map(|running| running.not_before).min()
    }

    /// The due snapshots, of each tool with new output.
    pub fn take_due(&mut self, now: Duration) -> Vec<(ToolId, String)> {
        let due = |running: &Running| running.fresh && running.not_before <= now;
        let due = self.tools.iter_mut().filter(|(_, running)| due(running));
        due.map(|(tool, running)| {
            running.fresh = false;
            let text = snapshot(&running.output);
            let worth = Duration::from_millis((text.len() / BYTES_PER_MILLI) as u64);
            running.not_before = now + worth.max(LIVELY);
            (tool.clone(), text)
        })
        .collect()
    }

    pub fn finish(&mut self, tool: &ToolId) {
        self.tools.remove(tool);
    }
}

/// All output, or its last lines and the size of what is left out.
fn snapshot(output: &Output) -> String {
    let cut = output.bytes - output.tail.len() as u64;
    if cut == 0 {
        return output.tail.clone();
    }
    // The first line may be incomplete.
    let rest = output.tail.split_once('\n').map_or("", |(_, rest)| rest);
    let shown = if rest.is_empty() { output.tail.as_str() } else { rest };
    format!("[{} bytes before this are not shown]\n{shown}", output.bytes - shown.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::OUTPUT_TAIL;

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
        assert_eq!(live.tools[&tool].output.bytes, bytes as u64);
        sent + bytes
    }

    #[test]
    fn what_is_sent_grows_with_the_output_and_not_with_its_square() {
        assert!(sent(10_000_000, 1_000_000) <= 4 * 10_000_000);
        assert!(sent(10_000_000, 10_000_000) <= 4 * 10_000_000);
        assert!(sent(1_000_000, 1_000_000) <= 4 * 1_000_000);
    }

    /// R000-22. A command may write without end, and each snapshot is a copy.
    #[test]
    fn only_the_end_of_a_long_output_is_held() {
        let tool = ToolId::from("t");
        let mut live = LiveOutput::default();
        let mut written = 0;
        for number in 0..20_000 {
            let line = format!("{number:0>999}\n");
            written += line.len();
            live.add(&tool, &line);
        }
        assert!(live.tools[&tool].output.tail.capacity() <= 4 * OUTPUT_TAIL);
        let shown = live.take_due(Duration::ZERO).remove(0).1;
        assert!(shown.len() <= 2 * OUTPUT_TAIL + 100, "{} bytes", shown.len());
        let (mark, tail) = shown.split_once('\n').unwrap();
        assert_eq!(mark, format!("[{} bytes before this are not shown]", written - tail.len()));
        assert!(tail.len() >= OUTPUT_TAIL - 1000 && tail.lines().all(|line| line.len() == 999), "whole lines");
        assert!(tail.ends_with("19999\n"));
    }

    #[test]
    fn the_first_piece_is_shown_at_once_and_the_last_never_lost() {
        let (one, two) = (ToolId::from("1"), ToolId::from("2"));
        let mut live = LiveOutput::default();
        assert_eq!(live.due(), None);
        live.add(&one, "a");
        let now = Duration::from_secs(5);
        assert_eq!(live.take_due(now), [(one.clone(), "a".to_owned())]);
        live.add(&one, "b");
        live.add(&two, "c");
        assert_eq!(live.take_due(now), [(two, "c".to_owned())], "too soon for the other");
        assert_eq!(live.due(), Some(now + LIVELY));
        assert_eq!(live.take_due(now + LIVELY), [(one.clone(), "ab".to_owned())]);
        live.add(&one, "c");
        live.finish(&one);
        assert_eq!(live.due(), None);
    }
}
