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
    /// Session to open: a URL, HOST:PORT, or the id (or prefix) of a session on this machine [default: list running
    /// sessions]
    #[arg(value_name = "URL | HOST:PORT | SESSION")]
    pub(crate) to: Option<String>,

    /// Print the list of running sessions as JSON
    #[arg(long, conflicts_with = "to")]
    pub(crate) json: bool,

    /// What to do with a prompt sent while the agent is busy: queue it, steer the turn (where supported), or
    /// interrupt it
    #[arg(long, value_name = "WHAT", value_enum, default_value_t)]
    pub(crate) when_busy: BusyArg,
}
