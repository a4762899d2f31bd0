//! Instructions, which no other program on the machine changes: callgrind counts those of the server, for a few streams
//! and for more of them; the difference is what the streams took.

use crate::client::Server;
use crate::{Outcome, least, note, row, server};

/// Streams of the shorter and of the longer run.
const RUNS: [usize; 2] = [4, 24];

pub(crate) async fn instructions() -> Outcome<()> {
    println!("instructions: of the server");
    if !Server::can_count() {
        note("valgrind is not installed", "nothing counted");
        return Ok(());
    }
    for (events, what) in [(1000, "an event, 1000 a stream"), (10, "an event, 10 a stream")] {
        let (ours, theirs) = (each(server::WORD, events).await?, each(least::WORD, events).await?);
        let ratio = ours / theirs;
        note(what, &format!("{ours:.0}"));
        note("  from a server that keeps nothing", &format!("{theirs:.0}"));
        row("  ours beside it", &format!("{ratio:.2}x"), "<= 1.5x", ratio <= 1.5);
    }
    Ok(())
}

/// The instructions for one event.
async fn each(word: &str, events: usize) -> Outcome<f64> {
    let mut counted = Vec::new();
    for streams in RUNS {
        let server = Server::counted(word).await?;
        for _ in 0..streams {
            server.stream(events).await?;
        }
        counted.push(server.instructions()?);
    }
    Ok((counted[1] - counted[0]) as f64 / ((RUNS[1] - RUNS[0]) * events) as f64)
}
