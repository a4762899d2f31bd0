//! The subcommands, one file each; short ones are defined here.

pub(crate) mod acp;
pub(crate) mod agents;
pub(crate) mod decode;
pub(crate) mod doctor;
pub(crate) mod mcp;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod sessions;
pub(crate) mod tui;

use anyhow::Context as _;
use clap::CommandFactory as _;

use crate::args::{Cli, ReportArgs};
use crate::exit::{Exit, Problem};
use crate::words::pretty_json;
use crate::{launch, out, settings};

/// Prints the JSON Schema of the events.
pub(crate) fn schema() -> Result<Exit, Problem> {
    let text = serde_json::to_string_pretty(&multitap_event::schema()).context("write the schema")?;
    print(&format!("{text}\n"))
}

/// Prints the slash commands of the built-in agent, including custom ones of this user and folder.
pub(crate) fn commands(args: &ReportArgs) -> Result<Exit, Problem> {
    let commands = multitap_agent::commands(settings::home().as_deref(), &launch::folder(None)?);
    if args.json {
        return print(&pretty_json(&serde_json::json!({ "commands": commands }))?);
    }
    let mut text = String::new();
    for command in commands {
        text.push_str(&row(&format!("/{}", command.name), &command.description));
        for sub in command.sub_commands {
            text.push_str(&row(&format!("/{} {}", command.name, sub.name), &sub.description));
        }
    }
    print(&text)
}

fn row(name: &str, description: &str) -> String {
    format!("{name:<20} {description}\n")
}

pub(crate) fn completions(shell: clap_complete::Shell) -> Result<Exit, Problem> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "multitap", &mut script);
    print(&String::from_utf8_lossy(&script))
}

pub(crate) fn man() -> Result<Exit, Problem> {
    let mut page = Vec::new();
    clap_mangen::Man::new(Cli::command()).render(&mut page).context("write the manual page")?;
    print(&String::from_utf8_lossy(&page))
}

pub(crate) fn print(text: &str) -> Result<Exit, Problem> {
    out::print(text).context("cannot write to stdout")?;
    Ok(Exit::Completed)
}
