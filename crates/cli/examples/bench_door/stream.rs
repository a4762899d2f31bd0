//! Streams of events to one client: what an event costs, and how soon the first one comes.

use std::time::{Duration, Instant};

use multitap_testkit::peer::{Binding, Kind};
use tokio::net::TcpListener;

use crate::client::{AcpClient, Server};
use crate::{Outcome, least, note, row, server};

/// What streams of some length cost their server.
struct Cost {
    /// Processor time for an event, in microseconds.
    event: f64,
    /// Streams a second, one after the other.
    rate: f64,
    /// Time to the first event, sorted.
    first: Vec<Duration>,
}

impl Cost {
    async fn of(server: &Server, events: usize, streams: usize) -> Outcome<Self> {
        let (before, began, mut first) = (server.cpu()?, Instant::now(), Vec::new());
        for _ in 0..streams {
            let streamed = server.stream(events).await?;
            if streamed.events < events {
                return Err(format!("{} of {events} events came", streamed.events).into());
            }
            first.push(streamed.first);
        }
        let took = began.elapsed().as_secs_f64();
        first.sort();
        let event = (server.cpu()? - before).as_secs_f64() * 1e6 / (events * streams) as f64;
        Ok(Self { event, rate: streams as f64 / took, first })
    }

    fn first(&self) -> String {
        let millis = |share: f64| {
            let at = ((self.first.len() - 1) as f64 * share).round() as usize;
            self.first[at].as_secs_f64() * 1e3
        };
        format!("{:.2}, {:.2} ms", millis(0.5), millis(0.99))
    }
}

/// Before anything is measured: the first few find their places in memory.
async fn warm_up(server: &Server) -> Outcome<()> {
    Cost::of(server, 1000, 3).await.map(drop)
}

pub(crate) async fn streams() -> Outcome<()> {
    println!("stream: one client, one stream after the other");
    let (door, least) = (Server::start(server::WORD).await?, Server::start(least::WORD).await?);
    for server in [&door, &least] {
        warm_up(server).await?;
    }
    let mut long = None;
    for (events, streams) in [(10, 1000), (1000, 60)] {
        let ours = Cost::of(&door, events, streams).await?;
        let theirs = Cost::of(&least, events, streams).await?;
        let ratio = ours.event / theirs.event;
        note(&format!("{events} events a stream, µs for each"), &format!("{:.1}", ours.event));
        note("  from a server that keeps nothing", &format!("{:.1}", theirs.event));
        row("  ours beside it", &format!("{ratio:.2}x"), "<= 1.5x", ratio <= 1.5);
        note("  streams a second, ours and theirs", &format!("{:.0}, {:.0}", ours.rate, theirs.rate));
        note("  time to the first event, p50 and p99", &ours.first());
        note("  the same, theirs", &theirs.first());
        long = Some(ours);
    }
    let ratio = Cost::of(&door, 100_000, 2).await?.event / long.map_or(f64::NAN, |cost| cost.event);
    row("100 000 events a stream beside 1000", &format!("{ratio:.2}x"), "<= 1.1x", ratio <= 1.1);
    Ok(())
}

/// The servers of the official SDKs, with their stores in memory.
pub(crate) async fn peers() -> Outcome<()> {
    println!("peers: the same from the servers of the SDKs");
    let door = Server::start(server::WORD).await?;
    warm_up(&door).await?;
    for (events, streams) in [(10, 200), (1000, 3)] {
        let ours = Cost::of(&door, events, streams).await?;
        note(
            &format!("{events} events a stream: ours, streams/s, µs"),
            &format!("{:.0}, {:.1}", ours.rate, ours.event),
        );
        for kind in [Kind::JsV1, Kind::Python] {
            let Ok(peer) = Server::sample(kind, Binding::JsonRpc) else {
                note(kind.title(), "not installed");
                continue;
            };
            Cost::of(&peer, 10, 20).await?;
            let theirs = Cost::of(&peer, events, streams).await?;
            note(&format!("  {}", kind.title()), &format!("{:.1}, {:.1}", theirs.rate, theirs.event));
            note("    time to the first event, p50 and p99", &theirs.first());
            let times = ours.rate / theirs.rate;
            row("    ours beside it, streams/s", &format!("{times:.0}x"), ">= 10x", times >= 10.0);
        }
    }
    Ok(())
}

pub(crate) async fn acp() -> Outcome<()> {
    const EVENTS: usize = 1000;
    const PROMPTS: usize = 60;
    println!("acp: processor time of the server for an event");
    // Each on a door of its own: every client of a session is sent everything.
    let (door, other) = (Server::start(server::WORD).await?, Server::start(server::WORD).await?);
    warm_up(&door).await?;
    let a2a = Cost::of(&door, EVENTS, PROMPTS).await?.event;
    let mut client = AcpClient::open(&other).await?;
    for _ in 0..3 {
        client.prompt(EVENTS).await?;
    }
    let before = other.cpu()?;
    for _ in 0..PROMPTS {
        let events = client.prompt(EVENTS).await?;
        if events < EVENTS {
            return Err(format!("{events} of {EVENTS} events came").into());
        }
    }
    let acp = (other.cpu()? - before).as_secs_f64() * 1e6 / (EVENTS * PROMPTS) as f64;
    note("an A2A stream, µs each", &format!("{a2a:.1}"));
    note("an ACP client, µs each", &format!("{acp:.1}"));
    row("ACP beside A2A", &format!("{:.2}x", acp / a2a), "<= 1.0x", acp <= a2a);
    Ok(())
}

/// Whether a webhook is in the way of a stream.
pub(crate) async fn push() -> Outcome<()> {
    println!("push: a webhook that never answers");
    let (plain, notified) = (Server::start(server::WORD).await?, Server::start(server::WORD).await?);
    // The system accepts its connections, and nobody reads them.
    let silent = TcpListener::bind("127.0.0.1:0").await?;
    notified.hook(&format!("http://{}/", silent.local_addr()?)).await?;
    for server in [&plain, &notified] {
        warm_up(server).await?;
    }
    // Alternately: the machine may become slower or faster meanwhile.
    let (mut without, mut with) = (0.0, 0.0);
    for _ in 0..10 {
        without += Cost::of(&plain, 1000, 6).await?.event / 10.0;
        with += Cost::of(&notified, 1000, 6).await?.event / 10.0;
    }
    note("1000 events a stream, µs each", &format!("{without:.1}"));
    note("the same with it", &format!("{with:.1}"));
    row("with it, beside without", &format!("{:.2}x", with / without), "<= 1.05x", with <= 1.05 * without);
    Ok(())
}
