//! Records fixtures from the real CLIs: `record AGENT CASE…`, `record AGENT --all`, `record AGENT --list`.
//! With `--to DIR` they go there instead of to the adapters' fixtures.

#![expect(clippy::print_stdout, reason = "a program for people")]

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail, ensure};
use multitap_testkit::cli::Cli;
use multitap_testkit::{fixture, record};

const USAGE: &str = "usage: record AGENT (CASE… | --all | --list) [--to DIR]";

#[tokio::main]
async fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let agent = args.next().context(USAGE)?;
    let cli = Cli::named(&agent).with_context(|| format!("no agent named {agent}"))?;
    let known = record::cases(&agent);
    let mut wanted = Vec::new();
    let mut root = fixture::root();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--all" => wanted = known.clone(),
            "--list" => {
                known.iter().for_each(|case| println!("{:24} {}", case.name, case.about));
                return Ok(());
            }
            "--to" => root = PathBuf::from(args.next().context(USAGE)?),
            name => match known.iter().find(|case| case.name == name) {
                Some(case) => wanted.push(case.clone()),
                None => bail!("{agent} has no case {name}; --list shows them"),
            },
        }
    }
    ensure!(!wanted.is_empty(), USAGE);
    for case in &wanted {
        let fixture = record::record(cli, case).await?;
        let path = fixture.save(&root)?;
        println!("{} ({} lines, exit {:?})", path.display(), fixture.lines.len(), fixture.exit);
    }
    Ok(())
}
