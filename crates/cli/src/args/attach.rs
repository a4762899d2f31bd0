//! The options of `multitap attach`.

use clap::Args;
use multitap_hub::WhenBusy;

use super::when_busy;

const ATTACH: &str = "\
Examples:
  multitap attach                             list the sessions on this machine
  multitap attach 0199a1                      open a session by a prefix of its id
  multitap attach 127.0.0.1:1234              open a shared session; also
                                              :1234 (this machine) or a URL
  multitap attach https://HOST/?session=ID    open a session of `multitap serve`

Ctrl+D leaves; the session continues. A lost connection is restored, and no
events are missed. If the host requires a token, set MULTITAP_TOKEN.";

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
    #[arg(long, value_name = "WHAT", value_parser = when_busy(), default_value = "queue")]
    pub(crate) when_busy: WhenBusy,
}
