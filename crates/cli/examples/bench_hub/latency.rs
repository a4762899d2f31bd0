//! How long an event takes to a client that waits for it, in the log on its way.

use std::sync::Arc;
use std::time::{Duration, Instant};

use multitap_client::{Agents, Builtin};
use multitap_event::{AgentKind, AgentProgram, ClientRef, Door, EventKind, SessionConfig};
use multitap_hub::{Hub, Join, JoinFrom, Open, Told};
use multitap_process::{Keeper, Line, Patience, StdinMode, spawn};
use multitap_store::Store;
use tokio::sync::mpsc;
use tokio::time::interval;

use crate::agent::{self, RATE, age_millis};
use crate::report::{heading, note, part, row};
use crate::stage::{Stage, text};
use crate::{Outcome, itself};

/// What is not counted: the first events find nothing warm.
const WARM_UP: usize = 100;
/// In milliseconds.
const GOAL: f64 = 2.0;

pub(crate) async fn measure(seconds: u64) -> Outcome<()> {
    heading(&format!("latency: {RATE} events/s, kept on their way to a client"));
    tell("from the agent's end of the link, p50 / p99", from_the_link(seconds).await?);
    // At the same time, so that both meet the same weather.
    let (through, bare) = tokio::join!(from_stdout(seconds), through_a_bare_pipe(seconds));
    tell("from a line on a process's stdout, p50 / p99", through?);
    let (half, most) = parts(bare?);
    note("the same line through its pipe alone", &format!("{half:.2} / {most:.2} ms"));
    Ok(())
}

fn tell(what: &str, millis: Vec<f64>) {
    let (half, most) = parts(millis);
    row(what, &format!("{half:.2} / {most:.2} ms"), "p99 < 2 ms", most < GOAL);
}

/// The middle one, and the one that only one in a hundred is above.
fn parts(mut millis: Vec<f64>) -> (f64, f64) {
    millis.drain(..WARM_UP.min(millis.len() / 2));
    (part(&mut millis, 50), part(&mut millis, 99))
}

async fn from_the_link(seconds: u64) -> Outcome<Vec<f64>> {
    let folder = tempfile::tempdir()?;
    let stage = Stage::begin(folder.path()).await?;
    let mut feed = stage.join(JoinFrom::Now, None).await?;
    let (sent, mut times) = mpsc::channel::<Instant>(1024);
    let reader = async {
        let mut took = Vec::new();
        while let Some(sent) = times.recv().await {
            feed.next().await.ok_or("the feed ended")?;
            took.push(sent.elapsed().as_secs_f64() * 1e3);
        }
        Outcome::Ok(took)
    };
    let writer = async {
        let mut tick = interval(Duration::from_millis(1000 / RATE));
        for _ in 0..seconds * RATE {
            tick.tick().await;
            sent.send(Instant::now()).await?;
            stage.tell(text()).await?;
        }
        drop(sent);
        Outcome::Ok(())
    };
    let (took, told) = tokio::join!(reader, writer);
    told?;
    stage.close().await;
    took
}

/// The whole way: a real child, its pipe, the codec, the hub, the log, a client.
async fn from_stdout(seconds: u64) -> Outcome<Vec<f64>> {
    let folder = tempfile::tempdir()?;
    let store = Arc::new(Store::open(folder.path().join("log.db"))?);
    let hub = Hub::new(store.clone(), Arc::new(Agents::new(Keeper::Group, Vec::new(), Builtin::default())));
    let args = vec![agent::WORD.to_owned(), (seconds * RATE).to_string()];
    let mut config = SessionConfig::new(AgentKind::Claude).with_prompt("go");
    config.working_directory = Some(folder.path().to_owned());
    config.program = Some(AgentProgram { command: std::env::current_exe()?, args, env: Default::default() });
    let me = ClientRef::new("bench", Door::Host);
    let session = hub.open(Open::new(config, me.clone())).await?;
    let mut feed = session.join(Join::new(me)).await?.feed;
    let mut took = Vec::new();
    while let Some(told) = feed.next().await {
        let Told::Event(entry) = told else { return Err(format!("{told:?}").into()) };
        match entry.event().map(|event| &event.kind) {
            Some(EventKind::TextChunk(chunk)) => took.extend(age_millis(&chunk.content)),
            Some(EventKind::TurnCompleted(_)) => break,
            _ => {}
        }
    }
    drop(feed);
    hub.shutdown().await;
    store.close().await;
    let wanted = (seconds * RATE) as usize;
    if took.len() == wanted { Ok(took) } else { Err(format!("{} of {wanted} lines arrived", took.len()).into()) }
}

/// What a busy machine makes of it before any of our work is done: the child's lines, read and thrown away.
async fn through_a_bare_pipe(seconds: u64) -> Outcome<Vec<f64>> {
    let mut child =
        spawn(itself(&[agent::WORD, &(seconds * RATE).to_string()], StdinMode::Piped)?, &Keeper::Group).await?;
    child.stdin.write("{\"type\":\"user\"}".to_owned(), Duration::from_secs(5)).await?;
    let mut took = Vec::new();
    while let Some(line) = child.stdout.next().await? {
        let Line::Text(line) = line else { return Err("a line is too long".into()) };
        if line.contains("\"type\":\"result\"") {
            break;
        }
        took.extend(line.split("\"text\":\"").nth(1).and_then(age_millis));
    }
    child.stop(Patience::default()).await;
    Ok(took)
}
