//! The options of `multitap attach`.

use clap::Args;

use super::BusyArg;

const ATTACH: &str = "\
Examples:
  multitap attach                             what runs on this machine
  multitap attach 0199a1                      the session whose id begins so
  multitap attach 127.0.0.1:1234              the one behind that door; :1234 for
                                              this machine, or a whole URL
  multitap attach https://HOST/?session=ID    one of many on a host

Ctrl+D leaves; the session goes on where it runs. If the connection breaks it is
made again, and nothing is missed. A host that wants a token finds it in
MULTITAP_TOKEN.";

#[derive(Debug, Args)]
#[command(after_long_help = ATTACH)]
pub(crate) struct AttachArgs {
    /// The address of a door, or the id of a session that runs on this machine, or how it begins [default: list what
    /// runs]
    #[arg(value_name = "URL | HOST:PORT | SESSION")]
    pub(crate) to: Option<String>,

    /// List what runs as JSON, for scripts
    #[arg(long, conflicts_with = "to")]
    pub(crate) json: bool,

    /// What a prompt does that comes while a turn runs: wait, join the turn (where the agent can), or cancel it
    #[arg(long, value_name = "WHAT", value_enum, default_value_t)]
    pub(crate) when_busy: BusyArg,
}
