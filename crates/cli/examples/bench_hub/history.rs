//! A session with a long history: what it costs to go on with it and to read its end, in a process and at its start.
//!
//! Another process makes the history and ends without a word, so that opening it first means what it means after a
//! crash. Then it is kept open beside a short one, and the two take turns.

use std::path::Path;
use std::time::Instant;

use multitap_event::{
    Details, EventKind, Question, ToolCompleted, ToolKind, ToolOutcome, ToolProgress, ToolStarted, TurnEnd, TurnId,
    TurnStatus, UserMessage, Withdrawal,
};
use multitap_hub::{Edge, Feed, JoinFrom, Part};

use crate::report::{heading, median, memory, mib, row};
use crate::stage::{Stage, read, text};
use crate::{Outcome, again};

/// The word that makes this program make a history.
pub(crate) const WORD: &str = "as-historian";

const SHORT: u64 = 10_000;
const ROUNDS: usize = 400;
/// How many events are told at a time.
const TOLD: u64 = 16;
const PAGE: usize = 100;
const OPENINGS: usize = 7;

const FLAT: f64 = 1.5;
/// In MiB, from a tenth of the history to all of it. Not nothing: threads and caches come up as they are first needed.
const GROWN: f64 = 4.0;
/// In milliseconds.
const OPENED: f64 = 50.0;

pub(crate) async fn measure(events: u64) -> Outcome<()> {
    heading(&format!("history: a session of {events} events, through the hub"));
    let (long_folder, short_folder) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let place = long_folder.path().to_str().ok_or("a folder without a name")?;
    let told = again([WORD, place, &events.to_string()]).await?;
    let [tenth, all] = told[..] else { return Err("no history was made".into()) };
    let grown = mib(all as f64 - tenth as f64);
    row("memory, from a tenth of it to all", &format!("{grown:+.2} MiB"), "<= 4 MiB", grown <= GROWN);
    let crashed = opened(long_folder.path()).await?;
    row("open to the first event, after a crash", &format!("{crashed:.1} ms"), "< 50 ms", crashed < OPENED);
    let mut clean = Vec::new();
    for _ in 0..OPENINGS {
        clean.push(opened(long_folder.path()).await?);
    }
    let clean = median(&mut clean);
    row("open to the first event", &format!("{clean:.1} ms"), "< 50 ms", clean < OPENED);
    let short = Stage::begin(short_folder.path()).await?;
    grow(&short, SHORT).await?;
    flat(&short, &Stage::resume(long_folder.path()).await?).await
}

/// Makes a history, prints the memory of this process at a tenth of it and at its end, and is gone.
pub(crate) async fn fill(folder: &Path, events: u64) -> Outcome<()> {
    let stage = Stage::begin(folder).await?;
    for until in [events / 10, events] {
        grow(&stage, until).await?;
        println!("{}", memory()?);
    }
    // As by a crash: nothing is closed, given back or moved into place.
    std::process::exit(0)
}

/// How long it takes from nothing to the first of the last events, in milliseconds.
async fn opened(folder: &Path) -> Outcome<f64> {
    let start = Instant::now();
    let stage = Stage::resume(folder).await?;
    let mut feed = stage.join(JoinFrom::Tail(PAGE as u64), None).await?;
    feed.next().await.ok_or("no event")?;
    let took = start.elapsed().as_secs_f64() * 1e3;
    drop(feed);
    stage.close().await;
    Ok(took)
}

/// What both cost, turn by turn.
async fn flat(short: &Stage, long: &Stage) -> Outcome<()> {
    let mut feeds = [short.join(JoinFrom::Now, None).await?, long.join(JoinFrom::Now, None).await?];
    let mut append = [Vec::new(), Vec::new()];
    let (mut page, mut join) = (append.clone(), append.clone());
    for _ in 0..ROUNDS {
        for (at, stage) in [short, long].into_iter().enumerate() {
            append[at].push(appended(stage, &mut feeds[at]).await?);
            let start = Instant::now();
            let part = Part { edge: Edge::Before(u64::MAX), limit: PAGE, bytes: usize::MAX };
            let entries = stage.session.page(part).await?.entries.len();
            page[at].push(micros(start));
            let start = Instant::now();
            let feed = stage.join(JoinFrom::Tail(PAGE as u64), None).await?;
            let last = stage.session.last();
            drop(read(feed, last).await?);
            join[at].push(micros(start));
            if entries != PAGE {
                return Err("the page is not full".into());
            }
        }
    }
    for (what, mut costs) in [
        (format!("append, µs an event, at {SHORT} and now"), append),
        (format!("the last {PAGE} from the log, µs"), page),
        (format!("join with the last {PAGE}, µs"), join),
    ] {
        let [short, long] = [median(&mut costs[0]), median(&mut costs[1])];
        let ratio = long / short;
        row(&what, &format!("{short:.1}, {long:.1}: {ratio:.2}x"), "<= 1.5x", ratio <= FLAT);
    }
    Ok(())
}

/// From telling a few events until a client has them, for each.
async fn appended(stage: &Stage, feed: &mut Feed) -> Outcome<f64> {
    let start = Instant::now();
    for _ in 0..TOLD {
        stage.tell(text()).await?;
    }
    for _ in 0..TOLD {
        feed.next().await.ok_or("the feed ended")?;
    }
    Ok(micros(start) / TOLD as f64)
}

/// Has the agent tell turns until the log is so long, and somebody read them.
async fn grow(stage: &Stage, until: u64) -> Outcome<()> {
    let feed = stage.join(JoinFrom::Now, None).await?;
    let teller = async {
        let mut told = stage.session.last();
        for number in told.. {
            for kind in turn(number) {
                if told >= until {
                    return Ok(());
                }
                stage.tell(kind).await?;
                told += 1;
            }
        }
        Outcome::Ok(())
    };
    let (told, read) = tokio::join!(teller, read(feed, until));
    told?;
    read.map(drop)
}

/// A turn of a hundred events, in which everything happens that leaves a trace in what a session is.
fn turn(number: u64) -> Vec<EventKind> {
    let (turn_id, tool_id) = (TurnId::from(format!("turn-{number}")), format!("tool-{number}").into());
    let question_id = format!("question-{number}").into();
    let said = UserMessage {
        content: format!("prompt {number}: go on"),
        images: Vec::new(),
        prompt_id: None,
        from: None,
        steering: false,
        message_id: None,
        ..UserMessage::default()
    };
    let tool = ToolStarted {
        tool_id,
        tool_name: "Bash".into(),
        tool_kind: ToolKind::default(),
        title: Some("cargo test".into()),
        arguments: serde_json::Map::from_iter([("command".to_owned(), "cargo test".into())]),
        server: None,
        parent_tool_id: None,
    };
    let tool_id = tool.tool_id.clone();
    let output = |line: u64| {
        let output = Some(format!("line {line} {}\n", "x".repeat(400)));
        EventKind::ToolProgress(ToolProgress {
            tool_id: tool_id.clone(),
            output,
            progress: None,
            message: None,
            elapsed_ms: None,
        })
    };
    let question = Question {
        question_id,
        tool_id: Some(tool_id.clone()),
        tool_name: Some("Bash".into()),
        title: "may I?".into(),
        options: Vec::new(),
        details: Details::Text { text: "cargo test".into(), arguments: serde_json::Map::new() },
        edits: Vec::new(),
        reason: None,
    };
    let withdrawn = Withdrawal { question_id: question.question_id.clone(), reason: None };
    let done = ToolCompleted {
        tool_id: tool_id.clone(),
        success: true,
        outcome: ToolOutcome::Completed,
        result: Some("x".repeat(2000).into()),
        error: None,
        exit_code: Some(0),
        duration_ms: None,
    };
    let mut kinds =
        vec![EventKind::UserMessage(said), EventKind::TurnStarted { turn_id }, EventKind::ToolStarted(tool)];
    kinds.push(EventKind::PermissionAsked(question));
    kinds.push(EventKind::PermissionWithdrawn(withdrawn));
    kinds.extend((0..30).map(output));
    kinds.push(EventKind::ToolCompleted(done));
    kinds.extend((0..63).map(|_| text()));
    kinds.push(EventKind::TurnCompleted(TurnEnd::of(TurnStatus::Completed)));
    kinds
}

fn micros(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e6
}
