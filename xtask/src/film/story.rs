//! What is played: one session, at a terminal, at another one, and at a client that speaks A2A and is a few
//! lines long.
//!
//! All of it is typed as a person would type it, into the real program with the rehearsal for an agent. Each step waits
//! for what it needs to see; how that is recorded is not known here.

use std::time::Duration;

use anyhow::Result;

use super::stage::Side::{self, Left, Right};
use super::stage::Stage;

/// What is there before the film begins, under its home.
pub(crate) const FILES: [(&str, &str); 3] = [
    (".config/multitap/settings.json", r#"{ "agent": "builtin", "agents": { "builtin": { "model": "rehearsal" } } }"#),
    ("shop/check", CHECK),
    ("shop/phone", PHONE),
];

/// What the two terminals are called.
pub(crate) const TITLES: [&str; 2] = ["ada: where the session runs", "ben: another client"];

/// Something that takes a while and tells how it goes.
const CHECK: &str = "#!/bin/sh
for part in prices stock taxes; do
  sleep 1; echo \"$part: good\"
done
";

/// A whole client, which is shown in the film: says something, or allows what is asked, and shows what comes back.
const PHONE: &str = r#"#!/bin/sh
# ./phone TEXT asks for it; ./phone --allow allows it
call() {
 curl -sN 'http://127.0.0.1:4100/?client=phone' \
  -H 'Content-Type: application/json' -d '{"id":1,
  "jsonrpc":"2.0","method":"'$1'","params":'"$2"'}'
}
say() {
 call message/stream '{"message":{"messageId":"'$$'",
  "role":"user","parts":['"$1"']}}' |
  grep -Eo --line-buffered \
  '"(text|live_content)":"[^"]*"|"state":"[^w][^"]*"' |
  uniq
}
if [ "$1" = --allow ]; then
 id=$(call ListTasks {} |
  grep -o '"tool_call_id":"[^"]*"')
 say '{"kind":"data","data":{'$id',
  "selected_option_id":"proceed_once"}}'
else
 say '{"kind":"text","text":"'"$1"'"}'
fi
"#;

/// The port that is typed in the film.
pub(crate) const PORT: u16 = 4100;

/// Plays it.
pub(crate) fn play(stage: &mut Stage) -> Result<()> {
    join(stage)?;
    answer_from_the_other_terminal(stage)?;
    prompt_over_a2a(stage)?;
    answer_over_a2a(stage)?;
    stage.rest(Duration::from_secs(4))
}

/// What tells that a question is open.
const ASKED: &str = "Esc refuses";
/// What stands where nothing is typed.
const READY: &str = "ask for something";

fn join(stage: &mut Stage) -> Result<()> {
    stage.rest(beats(2))?;
    enter(stage, Left, &format!("multitap --a2a-port {PORT}"))?;
    stage.shows(Left, READY)?;
    stage.rest(beats(2))?;
    enter(stage, Right, &format!("multitap attach http://127.0.0.1:{PORT}"))?;
    stage.shows(Left, "1 connected")?;
    stage.shows(Right, READY)?;
    stage.rest(beats(2))
}

/// One asks, the other allows; what runs is to be seen at both.
fn answer_from_the_other_terminal(stage: &mut Stage) -> Result<()> {
    enter(stage, Left, "write tea=3 to prices.txt then run: ./check")?;
    for side in [Left, Right] {
        stage.shows(side, ASKED)?;
    }
    stage.rest(beats(4))?;
    stage.presses(Right, "1")?;
    stage.shows(Left, "answered by [A2A] ben")?;
    stage.shows(Left, "in /tmp/demo/shop")?;
    stage.rest(beats(4))?;
    stage.presses(Left, "1")?;
    for side in [Left, Right] {
        stage.shows(side, "taxes: good")?;
        stage.shows(side, READY)?;
    }
    stage.rest(beats(3))
}

/// A client asks, and is answered at the terminal.
fn prompt_over_a2a(stage: &mut Stage) -> Result<()> {
    stage.presses(Right, "C-d")?;
    stage.hides(Right, READY)?;
    stage.shows(Right, "$ ")?;
    enter(stage, Right, "clear; cat phone")?;
    stage.shows(Right, "selected_option_id")?;
    stage.rest(beats(5))?;
    enter(stage, Right, "./phone 'edit prices.txt: tea=3 => tea=4'")?;
    stage.shows(Left, ASKED)?;
    stage.shows(Right, "input-required")?;
    stage.rest(beats(4))?;
    stage.presses(Left, "1")?;
    stage.shows(Left, READY)?;
    stage.rest(beats(2))
}

/// The terminal asks, and a client allows.
fn answer_over_a2a(stage: &mut Stage) -> Result<()> {
    enter(stage, Left, "run: ./check")?;
    stage.shows(Left, ASKED)?;
    stage.rest(beats(2))?;
    enter(stage, Right, "./phone --allow")?;
    stage.shows(Left, "answered by [A2A] phone")?;
    stage.shows(Left, READY)?;
    stage.shows(Right, "completed")
}

fn enter(stage: &mut Stage, side: Side, text: &str) -> Result<()> {
    stage.types(side, text)?;
    stage.presses(side, "Enter")
}

/// So long that a person can take in what is new.
fn beats(count: u32) -> Duration {
    Duration::from_millis(400) * count
}
