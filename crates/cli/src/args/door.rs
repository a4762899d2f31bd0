//! The options of doors: those that `serve` has too, and those of a door beside a session.

use std::path::PathBuf;

use clap::Args;

pub(super) const DOOR: &str = "Door";

/// Who may come in.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct AccessArgs {
    /// A file with lines `TOKEN ROLE [NAME]`: clients must bring one of these tokens
    ///
    /// A role is owner, controller (prompts and answers) or observer (only sees). Lines that begin with # say nothing.
    /// Nobody but you may read the file. `MULTITAP_TOKEN` in the environment is one more token, of a controller.
    /// Without tokens only your own programs may use the door; that is checked on Linux.
    #[arg(long, value_name = "FILE", help_heading = DOOR)]
    pub(crate) token_file: Option<PathBuf>,

    /// Another name that clients may call this host by, NAME or NAME:PORT (may be repeated)
    #[arg(long, value_name = "HOST", help_heading = DOOR)]
    pub(crate) allow_host: Vec<String>,

    /// A web page's origin that may use this host, such as `https://example.org` (may be repeated)
    #[arg(long, value_name = "ORIGIN", help_heading = DOOR)]
    pub(crate) allow_origin: Vec<String>,
}

/// A door beside a session.
#[derive(Debug, Clone, Args)]
pub(crate) struct DoorArgs {
    /// Let other clients join this session over A2A at this port; 0 takes any free one
    ///
    /// They see what you see, prompt, answer questions and cancel, over HTTP and WebSocket, on this machine alone unless
    /// --a2a-host says otherwise. Questions then wait for whoever answers first. On a terminal `/share` opens the same
    /// door later, as the other options of doors say.
    #[arg(long, value_name = "N", help_heading = DOOR)]
    pub(crate) a2a_port: Option<u16>,

    /// The name or address to listen at; one that other machines can reach needs tokens [default: 127.0.0.1]
    #[arg(long, value_name = "HOST", help_heading = DOOR)]
    pub(crate) a2a_host: Option<String>,

    #[command(flatten)]
    pub(crate) access: AccessArgs,
}

impl DoorArgs {
    /// Where it listens.
    pub(crate) fn host(&self) -> &str {
        self.a2a_host.as_deref().unwrap_or("127.0.0.1")
    }

    /// An option that says how a door is to be.
    pub(crate) fn about_it(&self) -> Option<&'static str> {
        let access = &self.access;
        let given = [
            (self.a2a_host.is_some(), "--a2a-host"),
            (access.token_file.is_some(), "--token-file"),
            (!access.allow_host.is_empty(), "--allow-host"),
            (!access.allow_origin.is_empty(), "--allow-origin"),
        ];
        given.into_iter().find(|(given, _)| *given).map(|(_, name)| name)
    }

    /// Such an option, where no door is opened.
    pub(crate) fn useless(&self) -> Option<&'static str> {
        self.about_it().filter(|_| self.a2a_port.is_none())
    }
}
