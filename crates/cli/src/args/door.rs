//! Options of a door: those shared with `serve`, and those of a door for a single session.

use std::path::PathBuf;

use clap::Args;
use multitap_serve::PublicUrl;

pub(super) const DOOR: &str = "Network";

/// Access control.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct AccessArgs {
    /// File with lines `TOKEN ROLE [NAME]`: clients must send one of these tokens
    ///
    /// Roles: owner, controller (prompts and answers), observer (read-only). Lines that begin with # are comments. Only
    /// you may have permission to read the file. The environment variable `MULTITAP_TOKEN` adds a controller's token.
    /// Without tokens, your own programs can connect; on macOS and Windows, so can other users of this machine.
    #[arg(long, value_name = "FILE", help_heading = DOOR)]
    pub(crate) token_file: Option<PathBuf>,

    /// Additional host name that clients may use, NAME or NAME:PORT (repeatable)
    #[arg(long, value_name = "HOST", help_heading = DOOR)]
    pub(crate) allow_host: Vec<String>,

    /// Web origin that may use this host, such as `https://example.org` (repeatable)
    #[arg(long, value_name = "ORIGIN", help_heading = DOOR)]
    pub(crate) allow_origin: Vec<String>,
}

/// Push notifications.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct PushArgs {
    /// Allow push notifications to private, link-local and other special addresses
    ///
    /// Clients choose where they are notified. By default only public addresses are called, and this machine if only
    /// this machine can reach the port. See docs/push.md.
    #[arg(long, help_heading = DOOR)]
    pub(crate) allow_private_webhooks: bool,
}

/// The address behind a proxy.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct PublicArgs {
    /// Address of this host for clients, behind a proxy: `https://example.org/path`
    ///
    /// The agent card names it, and requests with its name and pages of its origin are allowed. The proxy removes the
    /// path and passes `WebSocket`s on.
    #[arg(long, value_name = "URL", help_heading = DOOR)]
    pub(crate) public_url: Option<PublicUrl>,
}

/// The options that `serve` and a door for a single session share.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DoorOptions<'a> {
    pub(crate) access: &'a AccessArgs,
    pub(crate) public: &'a PublicArgs,
    pub(crate) push: PushArgs,
}

/// The door of a single session.
#[derive(Debug, Clone, Args)]
pub(crate) struct DoorArgs {
    /// Share this session over A2A on port N; 0 picks a free port
    ///
    /// Clients see the session live, send prompts, answer questions and cancel, over HTTP and WebSocket, from this
    /// machine only unless --a2a-host is given. The first answer to a question wins. In the terminal UI, `/share`
    /// does the same later, with these options.
    #[arg(long, value_name = "N", help_heading = DOOR)]
    pub(crate) a2a_port: Option<u16>,

    /// Name or address to listen on; requires tokens if other machines can reach it [default: 127.0.0.1]
    #[arg(long, value_name = "HOST", help_heading = DOOR)]
    pub(crate) a2a_host: Option<String>,

    #[command(flatten)]
    pub(crate) access: AccessArgs,

    #[command(flatten)]
    pub(crate) push: PushArgs,

    #[command(flatten)]
    pub(crate) public: PublicArgs,
}

impl DoorArgs {
    /// The address to listen on.
    pub(crate) fn host(&self) -> &str {
        self.a2a_host.as_deref().unwrap_or("127.0.0.1")
    }

    pub(crate) fn options(&self) -> DoorOptions<'_> {
        DoorOptions { access: &self.access, public: &self.public, push: self.push }
    }

    /// The first option given about the door.
    pub(crate) fn about_it(&self) -> Option<&'static str> {
        let access = &self.access;
        let given = [
            (self.a2a_host.is_some(), "--a2a-host"),
            (access.token_file.is_some(), "--token-file"),
            (!access.allow_host.is_empty(), "--allow-host"),
            (!access.allow_origin.is_empty(), "--allow-origin"),
            (self.push.allow_private_webhooks, "--allow-private-webhooks"),
            (self.public.public_url.is_some(), "--public-url"),
        ];
        given.into_iter().find(|(given, _)| *given).map(|(_, name)| name)
    }

    /// The first such option, if no door is opened.
    pub(crate) fn useless(&self) -> Option<&'static str> {
        self.about_it().filter(|_| self.a2a_port.is_none())
    }
}
