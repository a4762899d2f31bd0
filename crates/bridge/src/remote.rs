//! One remote agent: the addresses that may be reached for it (its `Screen`), its client, and its status.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use multitap_a2a::card::Binding;
use multitap_a2a::client::{Client, ClientError, ClientOptions, ExtensionUse, RetryPolicy};
use multitap_a2a::{Dialect, ErrorKind};
use multitap_event::{visible, visible_line};
use multitap_outbound::{Screen, is_loopback};
use tokio::time::{Instant, timeout};

use multitap_event::A2aServer;

/// The most bytes of one answer, or of one event of a stream.
const LARGEST_ANSWER: usize = 16 * 1024 * 1024;
/// The most bytes of one stream.
const LONGEST_STREAM: usize = 256 * 1024 * 1024;
/// The most characters of an error that is shown.
const SHOWN: usize = 600;
/// Minimum length of a secret that is removed from text: a shorter one could be any word.
const SHORTEST_SECRET: usize = 6;
/// Names of this machine in addresses.
const LOOPBACK: [&str; 4] = ["localhost", "127.0.0.1", "[::1]", "0.0.0.0"];
/// The longest id of an agent that is passed on.
const LONGEST_ID: usize = 128;

/// The source of an agent's address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A person listed it, in settings or on the command line: the address may be private.
    Listed,
    /// A model requested it by `load_agent`.
    Requested,
}

/// An agent that was listed or loaded.
#[derive(Debug)]
pub(crate) struct RemoteAgent {
    pub(crate) entry: A2aServer,
    pub(crate) origin: Origin,
    screen: Screen,
    /// The texts to hide, the longest first, because one may be part of another.
    secrets: Vec<String>,
    status: Mutex<Status>,
}

/// The status of an agent.
#[derive(Debug, Clone)]
pub(crate) enum Status {
    Ready(Client),
    /// Why it cannot be called, and when that was last tried.
    Down {
        why: String,
        failures: u32,
        tried: Instant,
    },
}

impl RemoteAgent {
    pub(crate) fn new(entry: A2aServer, origin: Origin, allow_private: bool) -> Arc<Self> {
        let mut screen = Screen::allowing_private(allow_private);
        if origin == Origin::Listed
            && let Ok(url) = reqwest::Url::parse(&entry.url)
            && let Some(host) = url.host_str()
        {
            screen = screen.allowing(host);
            // A card of an agent on this machine may use any of the machine's names.
            if is_loopback(&url) {
                screen = LOOPBACK.into_iter().fold(screen, Screen::allowing);
            }
        }
        let status = Status::Down { why: "it is being loaded".to_owned(), failures: 0, tried: Instant::now() };
        // The agent sees each word of a header, such as "Bearer" and the token after it.
        let words = entry.secrets().flat_map(str::split_whitespace).map(str::to_owned);
        // Some agents take their key in the address.
        let url = reqwest::Url::parse(&entry.url).ok();
        let query = url.iter().flat_map(|url| url.query_pairs().map(|(_, value)| value.into_owned()));
        let mut secrets: Vec<String> = words.chain(query).filter(|word| word.len() >= SHORTEST_SECRET).collect();
        secrets.retain(|word| !word.eq_ignore_ascii_case("Bearer"));
        secrets.sort_by_key(|word| std::cmp::Reverse(word.len()));
        Arc::new(Self { entry, origin, screen, secrets, status: Mutex::new(status) })
    }

    pub(crate) fn status(&self) -> Status {
        self.status.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Fetches the card. Returns whether the card or the agent's status changed.
    pub(crate) async fn load(&self, deadline: Duration) -> bool {
        let found = match timeout(deadline, Client::connect(&self.entry.url, self.options())).await {
            Ok(Ok(client)) => Ok(client),
            Ok(Err(error)) => Err(self.explain(&error)),
            Err(_) => Err(format!("it did not answer within {:.1} s", deadline.as_secs_f64())),
        };
        let mut status = self.status.lock().unwrap_or_else(PoisonError::into_inner);
        match (found, &mut *status) {
            (Ok(client), Status::Ready(before)) if before.card() == client.card() => false,
            (Ok(client), _) => {
                *status = Status::Ready(client);
                true
            }
            // If a card cannot be fetched now, the tools stay: calls report best what is wrong.
            (Err(_), Status::Ready(_)) => false,
            (Err(why), Status::Down { why: before, failures, .. }) => {
                let is_news = *before != why;
                *status = Status::Down { why, failures: *failures + 1, tried: Instant::now() };
                is_news
            }
        }
    }

    fn options(&self) -> ClientOptions {
        let mut options = ClientOptions {
            card_path: self.entry.card_path.clone(),
            headers: self.entry.headers.clone().into_iter().collect(),
            screen: Some(self.screen.clone()),
            largest: LARGEST_ANSWER,
            longest_stream: LONGEST_STREAM,
            // The caller repeats the loading.
            retry: RetryPolicy { attempts: 2, ..RetryPolicy::default() },
            ..ClientOptions::default()
        }
        .development_tool(ExtensionUse::Optional);
        if let Some(token) = &self.entry.access_token {
            options = options.bearer(token);
        }
        options
    }

    /// An error on one line, for the model and for people: what went wrong, and what to do about it.
    pub(crate) fn explain(&self, error: &ClientError) -> String {
        let words: String = visible_line(&self.clean(&error.to_string())).chars().take(SHOWN).collect();
        let has_credentials = self.entry.secrets().next().is_some();
        let hint = match error {
            ClientError::Http { status: 401 | 403, .. } if has_credentials => {
                "; the agent does not accept these credentials: check accessToken, tokenEnv or headers in a2aServers"
            }
            ClientError::Http { status: 401 | 403, .. } => {
                "; the agent needs credentials: set accessToken, tokenEnv or headers for it in a2aServers"
            }
            error if error.agent().is_some_and(|error| error.kind == ErrorKind::TaskNotFound) => {
                "; use a task id that this agent returned"
            }
            _ => "",
        };
        format!("{words}{hint}")
    }

    /// Text of the agent, safe to show and without its secrets.
    pub(crate) fn clean(&self, text: &str) -> String {
        let text = visible(text).into_owned();
        self.secrets.iter().fold(text, |text, secret| text.replace(secret.as_str(), "[hidden]"))
    }

    /// An id from the agent, if it can be passed on: short, without spaces, quotes, brackets and secrets, so that it
    /// cannot be mistaken for anything but an id.
    pub(crate) fn plain_id<'a>(&self, id: &'a str) -> Option<&'a str> {
        let is_plain = |c: char| c.is_alphanumeric() || "-_.:/@#+=~|,!$%&*?;^".contains(c);
        let is_secret = || self.secrets.iter().any(|secret| id.contains(secret.as_str()));
        (!id.is_empty() && id.len() <= LONGEST_ID && id.chars().all(is_plain) && !is_secret()).then_some(id)
    }

    /// Whether these bytes contain a secret.
    pub(crate) fn holds_secret(&self, bytes: &[u8]) -> bool {
        let holds = |secret: &String| bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
        self.secrets.iter().any(holds)
    }

    /// How long a call waits before it returns the id of the task.
    pub(crate) fn budget(&self, default: Duration) -> Duration {
        self.entry.timeout.unwrap_or(default)
    }
}

/// Whether the agent can list its tasks: JSON-RPC of 0.3 has no method for it.
pub(crate) fn can_list(client: &Client) -> bool {
    client.dialect() == Dialect::V1_0 || client.interface().binding == Binding::HttpJson
}
