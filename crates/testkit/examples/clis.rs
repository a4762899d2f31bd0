//! The pinned programs in the cache folder: `clis list`, `clis install [AGENT…]` (all that the interop tests drive if
//! none is named, with the peers that come through other doors).

#![expect(clippy::print_stdout, reason = "a program for people")]

use anyhow::{Context as _, Result, bail};
use multitap_testkit::cli::{CLAUDE, CODEX, Cli, GEMINI, INTEROP};
use multitap_testkit::install::install;
use multitap_testkit::peer::{Installed, Kind};

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.split_first() {
        Some((verb, agents)) if verb == "install" => {
            for cli in named(agents)? {
                let place = install(cli)?.map(|program| program.display().to_string());
                println!("{}: {}", cli.agent, place.as_deref().unwrap_or("no build for this machine"));
            }
            if agents.is_empty() {
                peers()?;
            }
        }
        Some((verb, [])) if verb == "list" => {
            for cli in [CLAUDE, CODEX, GEMINI] {
                let place = cli.installed().map(|program| program.display().to_string());
                println!("{} {}: {}", cli.agent, cli.version, place.as_deref().unwrap_or("not installed"));
            }
        }
        _ => bail!("usage: clis (list | install [AGENT…])"),
    }
    Ok(())
}

fn named(agents: &[String]) -> Result<Vec<Cli>> {
    if agents.is_empty() {
        return Ok(INTEROP.to_vec());
    }
    agents.iter().map(|agent| Cli::named(agent).with_context(|| format!("no agent named {agent}"))).collect()
}

fn peers() -> Result<()> {
    for kind in Kind::ALL {
        match kind.install().with_context(|| format!("install {}", kind.title()))? {
            Installed::At(place) => println!("{}: {}", kind.title(), place.display()),
            Installed::Cannot(why) => println!("!!! {}: {why}; its tests are SKIPPED", kind.title()),
        }
    }
    Ok(())
}
