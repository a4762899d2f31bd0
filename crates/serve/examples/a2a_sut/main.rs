//! The A2A door with an agent for conformance suites: `a2a_sut [--port N] [--card v1|hybrid]`.
//!
//! With `--card v1` the card is that of 1.0 alone, as the suite of 1.0 wants it. With `hybrid`, messages without a meaning
//! are answered with a question, as the suite of 0.3 wants tasks that can go on. `TCK_STREAMING_TIMEOUT` is read as the
//! suites read it.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for people and suites")]

mod host;

use std::sync::Arc;
use std::time::Duration;

use multitap_serve::{Access, CardVersions, DoorConfig, Limits, OpenDoor, PushOptions};
use multitap_store::Store;
use multitap_testkit::sut::{SutAction, SutLaunch};

use self::host::Sut;

const USAGE: &str = "usage: a2a_sut [--port N] [--card v1|hybrid]";
/// The suites' own default, in seconds.
const TIMEOUT: f64 = 2.0;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (mut port, mut card) = (0, CardVersions::Hybrid);
    let mut words = std::env::args().skip(1);
    while let Some(option) = words.next() {
        match (option.as_str(), words.next()) {
            ("--port", Some(number)) => port = number.parse()?,
            ("--card", Some(word)) if word == "v1" => card = CardVersions::V1_0,
            ("--card", Some(word)) if word == "hybrid" => card = CardVersions::Hybrid,
            _ => {
                eprintln!("{USAGE}");
                std::process::exit(2);
            }
        }
    }
    let timeout = std::env::var("TCK_STREAMING_TIMEOUT").ok().and_then(|text| text.parse().ok()).unwrap_or(TIMEOUT);
    let other = if card == CardVersions::Hybrid { SutAction::Ask } else { SutAction::Complete };
    let launch = SutLaunch::new(other, Duration::try_from_secs_f64(2.0 * timeout)?);
    let folder = tempfile::tempdir()?;
    let host = Sut::new(Arc::new(Store::open(folder.path().join("log.db"))?), launch);
    let config = DoorConfig {
        host: "127.0.0.1".to_owned(),
        port,
        access: Access::default(),
        limits: Limits::default(),
        extension_required: false,
        remote_agents: Vec::new(),
        push: PushOptions::default(),
        public_url: None,
        card,
    };
    let door = OpenDoor::open(config, Arc::new(host)).await?;
    println!("a2a_sut listening on {}", door.url());
    tokio::signal::ctrl_c().await?;
    door.stop().await;
    Ok(())
}
