//! A client that comes back after a restart, far behind in a long log.

use std::time::Instant;

use crate::client::Server;
use crate::{Outcome, note, row, server};

const EVENTS: usize = 1_000_000;
const A_TURN: usize = 10_000;

pub(crate) async fn resume() -> Outcome<()> {
    println!("resume: in a log of {EVENTS} events, after a restart");
    let folder = tempfile::tempdir()?;
    let path = folder.path().to_str().ok_or("the folder's name is no text")?;
    let server = Server::over(server::WORD, path).await?;
    for _ in 0..EVENTS / A_TURN {
        server.stream(A_TURN).await?;
    }
    // The last batches are written within moments.
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    drop(server);
    for share in [1, 50, 99] {
        let server = Server::over(server::WORD, path).await?;
        let began = Instant::now();
        server.subscribe_after(EVENTS * share / 100).await?;
        let millis = began.elapsed().as_secs_f64() * 1e3;
        row(&format!("first frame after {share} % of it"), &format!("{millis:.1} ms"), "<= 100 ms", millis <= 100.0);
    }
    let server = Server::over(server::WORD, path).await?;
    let (began, before) = (Instant::now(), server.cpu()?);
    let rest = server.rest_after(EVENTS / 2, EVENTS / 10).await?;
    let took = began.elapsed().as_secs_f64();
    let each = (server.cpu()? - before).as_secs_f64() * 1e6 / rest as f64;
    note("events a second from there on, CPU µs each", &format!("{:.0}   {each:.1}", rest as f64 / took));
    Ok(())
}
