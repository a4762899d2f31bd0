//! `cargo xtask film`: plays a session that a terminal and other clients share, and makes the moving picture of the
//! README from it.
//!
//! Real programs in real terminals, none of it made up. The recording is `docs/media/shared-session.cast`, which
//! asciinema plays; the picture is drawn from it, and can be drawn again without playing (`--draw`).

mod cast;
mod screen;
mod stage;
mod story;
mod svg;
#[cfg(test)]
mod tests;

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};

use self::stage::Stage;
use crate::run::{answers, built};

const TITLE: &str = "One Multitap session at a terminal, at another terminal, and at an A2A client";

/// Plays, records and draws; or only draws what was recorded.
pub(crate) fn film(args: &[String]) -> Result<()> {
    match args {
        [] => record()?,
        [draw] if draw == "--draw" => {}
        _ => bail!("cargo xtask film [--draw]"),
    }
    let text = fs::read_to_string(media("cast")).context("read the recording")?;
    let film = cast::read(&text)?;
    let picture = svg::draw(&film, TITLE);
    fs::write(media("svg"), &picture).context("write the picture")?;
    let (frames, size) = (film.frames.len(), picture.len() / 1024);
    println!("{}: {:.0} s, {frames} frames, {size} KB", media("svg").display(), film.end);
    Ok(())
}

fn record() -> Result<()> {
    for (name, option, why) in [("tmux", "-V", "has the terminals"), ("curl", "--version", "is the A2A client")] {
        ensure!(answers(name, option), "{name} is not installed: it {why} in the film");
    }
    let port = story::PORT;
    let free = TcpListener::bind(("127.0.0.1", port));
    drop(free.with_context(|| format!("port {port} is typed in the film, and cannot be had now"))?);
    let multitap = built(&["build", "--package", "multitap", "--bin", "multitap"])?;
    let mut stage = Stage::new(Path::new(&multitap), &story::FILES, story::TITLES)?;
    stage.roll()?;
    story::play(&mut stage)?;
    let text = cast::write(&stage.cut(), TITLE);
    let path = media("cast");
    fs::create_dir_all(path.parent().context("the recording is in no folder")?)?;
    fs::write(&path, text).with_context(|| format!("write {}", path.display()))
}

/// The recording or the picture.
fn media(form: &str) -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).join(format!("docs/media/shared-session.{form}"))
}
