//! HTTP calls to an agent, with the caller's headers, time limits and retries.
//!
//! Headers may be secrets. They go only to the host they were given for, a redirect to another origin is an error, and they
//! are removed from what an agent says before anybody sees it. Must not come in: what calls mean.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use multitap_outbound::{Endpoint, Screen, causes, retry_after};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION};
use reqwest::{Method, Response, Url};

use super::address::{is_within, shown};
use super::error::{ClientError, is_busy};
use super::options::ClientOptions;
use super::retry::RetryPolicy;

/// Maximum number of redirects within one origin.
const MOST_REDIRECTS: usize = 5;
/// How much of a response an error quotes.
const TAIL: usize = 300;
/// How long a connection is silent before TCP probes it.
const KEEP_ALIVE: Duration = Duration::from_secs(30);
/// Shorter texts are not hidden: they could be any word.
const SHORTEST_SECRET: usize = 6;

/// One call, which can be repeated.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) body: Option<String>,
    pub(super) credentials: Credentials,
    /// The id of a JSON-RPC request.
    pub(super) id: u64,
}

/// Whether the caller's headers are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Credentials {
    Given,
    Withheld,
}

/// Whether a call may be repeated when its outcome is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Repeat {
    Safe,
    Never,
}

#[derive(Debug)]
pub(super) enum Reply {
    Whole(Answer),
    /// Server-sent events, unread.
    Stream(Response),
}

#[derive(Debug)]
pub(super) struct Answer {
    pub(super) url: String,
    pub(super) status: u16,
    pub(super) content_type: String,
    pub(super) body: Vec<u8>,
    retry_after: Option<Duration>,
}

pub(super) struct HttpClient {
    headers: HeaderMap,
    /// Secrets: never shown.
    hidden: Vec<String>,
    connect_timeout: Duration,
    pub(super) retry: RetryPolicy,
    pub(super) largest: usize,
    pub(super) longest: usize,
    /// Restricts which addresses may be called; `None` allows all.
    screen: Option<Screen>,
    clients: Mutex<HashMap<Endpoint, reqwest::Client>>,
}

impl HttpClient {
    pub(super) fn new(options: &ClientOptions) -> Result<Self, ClientError> {
        let mut headers = HeaderMap::new();
        let mut hidden = Vec::new();
        for (name, value) in &options.headers {
            // The error must not contain the value.
            let wrong = || ClientError::Header { name: name.clone() };
            let key: HeaderName = name.parse().map_err(|_| wrong())?;
            let mut sent: HeaderValue = value.parse().map_err(|_| wrong())?;
            sent.set_sensitive(true);
            headers.append(key, sent);
            hidden.extend(value.split_whitespace().map(str::to_owned));
        }
        hidden.retain(|word| word.len() >= SHORTEST_SECRET && !word.eq_ignore_ascii_case("Bearer"));
        Ok(Self {
            headers,
            hidden,
            connect_timeout: options.connect_timeout,
            retry: options.retry,
            largest: options.largest,
            longest: options.longest_stream,
            screen: options.screen.clone(),
            clients: Mutex::default(),
        })
    }

    /// Whether any header may be a secret.
    pub(super) fn has_secrets(&self) -> bool {
        !self.headers.is_empty()
    }

    /// A text from the agent, with secrets replaced.
    pub(super) fn hide(&self, text: &str) -> String {
        self.hidden.iter().fold(text.to_owned(), |text, secret| text.replace(secret.as_str(), "[hidden]"))
    }

    /// Makes a call. `limit` is for the whole response, or until a stream begins.
    pub(super) async fn exchange(&self, call: &Call, limit: Duration, repeat: Repeat) -> Result<Reply, ClientError> {
        let mut attempt = 0;
        loop {
            attempt += 1;
            let reply = match tokio::time::timeout(limit, self.once(call)).await {
                Ok(reply) => reply,
                Err(_) => Err(ClientError::Timeout { url: shown(&call.url), limit }),
            };
            let wait = match &reply {
                _ if repeat == Repeat::Never => None,
                Ok(Reply::Whole(answer)) if is_busy(answer.status) => self.retry.wait(attempt, answer.retry_after),
                Err(error) if error.is_transient() => self.retry.wait(attempt, None),
                Ok(_) | Err(_) => None,
            };
            match wait {
                Some(wait) => tokio::time::sleep(wait).await,
                None => return reply,
            }
        }
    }

    /// Makes a call that is answered by one response.
    pub(super) async fn whole(&self, call: &Call, limit: Duration, repeat: Repeat) -> Result<Answer, ClientError> {
        match self.exchange(call, limit, repeat).await? {
            Reply::Whole(answer) => Ok(answer),
            Reply::Stream(_) => {
                Err(ClientError::Malformed(format!("{} answered with a stream of events", shown(&call.url))))
            }
        }
    }

    async fn once(&self, call: &Call) -> Result<Reply, ClientError> {
        let mut url = call.url.clone();
        for _ in 0..=MOST_REDIRECTS {
            let response = self.send(call, url.clone()).await?;
            let status = response.status();
            if !status.is_redirection() || !response.headers().contains_key(LOCATION) {
                return self.read(response, &url).await;
            }
            let location = response.headers().get(LOCATION).and_then(|location| location.to_str().ok());
            let to = location.and_then(|location| url.join(location).ok());
            // 307 and 308 preserve the method; with other redirects a POST would become a GET.
            let keeps = call.method == Method::GET || matches!(status.as_u16(), 307 | 308);
            match to {
                Some(to) if keeps && is_within(&to, &url) => url = to,
                to => {
                    return Err(ClientError::Redirected {
                        url: shown(&url),
                        status: status.as_u16(),
                        to: to.as_ref().map_or_else(|| "nowhere".to_owned(), shown),
                    });
                }
            }
        }
        let why = format!("it redirects more than {MOST_REDIRECTS} times");
        Err(ClientError::Unreachable { url: shown(&call.url), why })
    }

    async fn send(&self, call: &Call, url: Url) -> Result<Response, ClientError> {
        let address = shown(&url);
        if let Some(Err(refused)) = self.screen.as_ref().map(|screen| screen.check(&url)) {
            return Err(ClientError::Refused { url: address, why: refused });
        }
        let mut request = self.client(&url)?.request(call.method.clone(), url).headers(call.headers.clone());
        if call.credentials == Credentials::Given {
            request = request.headers(self.headers.clone());
        }
        if let Some(body) = &call.body {
            request = request.header(CONTENT_TYPE, "application/json").body(body.clone());
        }
        request.send().await.map_err(|error| ClientError::Unreachable { url: address, why: causes(error) })
    }

    async fn read(&self, response: Response, url: &Url) -> Result<Reply, ClientError> {
        let header = |name| response.headers().get(name).and_then(|value: &HeaderValue| value.to_str().ok());
        let content_type = header(CONTENT_TYPE).unwrap_or_default().to_ascii_lowercase();
        if response.status().is_success() && content_type.starts_with("text/event-stream") {
            return Ok(Reply::Stream(response));
        }
        let (status, retry_after) = (response.status().as_u16(), retry_after(response.headers(), SystemTime::now()));
        let body = self.body(response, url).await?;
        Ok(Reply::Whole(Answer { url: shown(url), status, content_type, body, retry_after }))
    }

    async fn body(&self, mut response: Response, url: &Url) -> Result<Vec<u8>, ClientError> {
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| cut(url, error))? {
            if body.len() + chunk.len() > self.largest {
                return Err(ClientError::TooLarge { most: self.largest });
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    /// The error for a response that is not of the protocol.
    pub(super) fn http_error(&self, answer: &Answer) -> ClientError {
        let text = String::from_utf8_lossy(&answer.body);
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        // Secrets are replaced before the text is cut: part of a secret would not be recognised.
        let words = self.hide(&words);
        let start = words.char_indices().rev().nth(TAIL - 1).map_or(0, |(start, _)| start);
        let tail = words.get(start..).unwrap_or_default();
        let tail = if start > 0 { format!("…{tail}") } else { tail.to_owned() };
        ClientError::Http { url: answer.url.clone(), status: answer.status, tail }
    }

    fn client(&self, url: &Url) -> Result<reqwest::Client, ClientError> {
        let endpoint = Endpoint::of(url);
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(&endpoint) {
            return Ok(client.clone());
        }
        let client = self.build(endpoint)?;
        clients.insert(endpoint, client.clone());
        Ok(client)
    }

    fn build(&self, endpoint: Endpoint) -> Result<reqwest::Client, ClientError> {
        let mut http = endpoint.client().map_err(|error| ClientError::Tls(error.to_string()))?;
        http = http.connect_timeout(self.connect_timeout).tcp_keepalive(KEEP_ALIVE);
        if let Some(screen) = &self.screen {
            http = screen.apply(http);
        }
        http.build().map_err(|error| ClientError::Tls(causes(error)))
    }
}

pub(super) fn cut(url: &Url, error: reqwest::Error) -> ClientError {
    ClientError::Cut { url: shown(url), why: causes(error) }
}
