//! The binary in a terminal, with an agent on the scripted model: somebody sits at it.

use multitap_testkit::interop;
use multitap_testkit::terminal::Terminal;
use multitap_testkit::wait::{marked, until_blocking};
use serde_json::Value;

use super::agent::Agent;
use super::stage::{PATIENCE, Place};
use crate::scene::MULTITAP;
use crate::terminal::READY;

/// Who sits there.
pub(super) const PERSON: &str = "ann";
/// So tall that nothing of a test scrolls away.
const SIZE: (u16, u16) = (120, 200);

/// A place where somebody sits.
pub(super) fn place(agent: Agent) -> Place {
    let mut place = Place::new(agent, []);
    place.scratch.set("USER", PERSON);
    place
}

/// The binary in a terminal, ready for a prompt.
pub(super) fn show<'a>(place: &'a Place, options: &[&str]) -> Terminal<'a> {
    let command = place.command(options);
    let words = [command.get_program()].into_iter().chain(command.get_args());
    let words: Vec<&str> = words.map(|word| word.to_str().unwrap()).collect();
    let terminal = Terminal::start(interop::tmux().unwrap(), &place.scratch, &words, SIZE).unwrap();
    terminal.shows(READY).unwrap();
    terminal
}

/// Waits until no turn runs.
pub(super) fn rests(terminal: &Terminal<'_>) {
    // While one does, something else stands where one types.
    terminal.shows(READY).unwrap();
}

/// Everything in the log of the newest session; it is whole.
pub(super) fn log(place: &Place) -> Vec<Value> {
    let output = place.scratch.command(MULTITAP).args(["sessions", "export", "latest"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for (event, seq) in events.iter().zip(1_u64..) {
        assert_eq!(event["seq"], seq, "{text}");
    }
    events
}

/// Ends it by a key, and nothing is left. Returns the log.
pub(super) fn leave(place: &Place, terminal: &Terminal<'_>) -> Vec<Value> {
    terminal.press(&["C-d"]).unwrap();
    assert_eq!(terminal.ended().unwrap(), 0);
    terminal.close().unwrap();
    nothing_left(place);
    log(place)
}

/// Nothing that was started here runs any more.
#[track_caller]
pub(super) fn nothing_left(place: &Place) {
    let is_empty = || marked(&place.scratch).is_empty().then_some(());
    let gone = until_blocking("everything to end", PATIENCE, is_empty);
    assert!(gone.is_ok(), "left behind: {:#?}", marked(&place.scratch));
}
