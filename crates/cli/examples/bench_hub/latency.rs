//! How long an event takes to a client that waits for it, in the log on its way.

use std::sync::Arc;
use std::time::{Duration, Instant};

use multitap_client::Adapters;
use multitap_event::{AgentKind, AgentProgram, ClientRef, Door, EventKind, SessionConfig};
use multitap_hub::{Hub, Join, JoinFrom, Open, Told};
use multitap_process::Keeper;
use multitap_store::Store;
use tokio::sync::mpsc;
use tokio::time::interval;

use crate::Outcome;
use crate::agent::{self, RATE, age_millis};
use crate::report::{heading, part, row};
use crate::stage::{Stage, text};

/// What is not counted: the first events find nothing warm.
const WARM_UP: usize = 100;
/// In milliseconds.
const GOAL: f64 = 2.0;

pub(crate) async fn measure(seconds: u64) -> Outcome<()> {
    heading(&format!("latency: {RATE} events/s, kept on their way to a client"));
    tell("from the agent's end of the link, p50 / p99", from_the_link(seconds).await?);
    tell("from a line on a process's stdout, p50 / p99", from_stdout(seconds).await?);
    Ok(())
}

fn tell(what: &str, mut millis: Vec<f64>) {
    millis.drain(..WARM_UP.min(millis.len() / 2));
    let (half, most) = (part(&mut millis, 50), part(&mut millis, 99));
    row(what, &format!("{half:.2} / {most:.2} ms"), "p99 < 2 ms", most < GOAL);
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
    let hub = Hub::new(store.clone(), Arc::new(Adapters::new(Keeper::Group, Vec::new())));
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
