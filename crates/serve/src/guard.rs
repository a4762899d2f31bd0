//! Checks the `Host`, `Origin` and token of each request before anything else of it is read.
//!
//! `Host` must name this door, which prevents DNS rebinding. `Origin` must be ours or allowed, so that pages of other
//! sites cannot act for the user. Then a [`Scheme`] authenticates the client. The core is pure: the head of a request in,
//! a verdict out. It applies to every path, even unknown ones.
//!
//! Must not come in: what a request asks for.

mod place;
mod scheme;
#[cfg(test)]
mod tests;
mod token;

use std::net::IpAddr;

use axum::extract::{Query, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use multitap_event::{ClientRef, ClientRole, Door, is_hidden};
use serde_json::{Value, json};

use self::place::{Authority, Name, Origin, usual_port};
pub use self::scheme::Scheme;
use self::scheme::Unauthenticated;
use self::token::role_of;
pub use self::token::{BadToken, TokenError, Tokens};
use crate::host::PeerIdentity;
use crate::http::{Entrance, problem_with};

/// The subprotocol that a WebSocket of ours is answered with.
pub const SUBPROTOCOL: &str = "multitap.v1";
/// Prefix of a token among the offered subprotocols.
const BEARER: &str = "bearer.";
/// The longest name of a client.
const LONGEST_NAME: usize = 64;
/// How much of a header an answer repeats.
const REPEATED: usize = 100;
/// Time for which a browser may remember the result of a preflight.
const PREFLIGHT_AGE: &str = "600";
const METHODS: &str = "GET, POST, DELETE, OPTIONS";
/// Headers that a listed page may read in a response, besides the usual ones.
const EXPOSED: &str = "ETag, A2A-Version, A2A-Extensions, X-A2A-Extensions, Mcp-Session-Id, WWW-Authenticate";

/// Access rules: tokens, additional host names, allowed origins.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// Additional names that clients may use for this door: `NAME`, at any port, or `NAME:PORT`.
    pub allow_hosts: Vec<String>,
    /// Origins of pages that may use it: `https://NAME[:PORT]`.
    pub allow_origins: Vec<String>,
    pub scheme: Scheme,
}

/// The sender of a request; the guard stores it in the request's extensions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The token's name, else the name that the client chose.
    pub name: Option<String>,
    pub role: ClientRole,
    /// The token's name alone.
    pub account: Option<String>,
}

impl Caller {
    /// The client, as a session knows it.
    pub(crate) fn client(&self, door: Door) -> ClientRef {
        let name = self.name.clone().unwrap_or_else(|| "client".to_owned());
        ClientRef { role: Some(self.role), account: self.account.clone(), ..ClientRef::new(name, door) }
    }
}

/// An option that allows a host or an origin cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AccessError {
    #[error("--allow-host {0}: must be a name or an address, with or without :PORT")]
    Host(String),
    #[error(
        "--allow-origin {0}: must be as browsers write it, such as https://example.org or http://localhost:3000, without a path"
    )]
    Origin(String),
}

#[derive(Debug)]
pub(crate) struct Guard {
    own: Vec<Name>,
    port: u16,
    hosts: Vec<Authority>,
    origins: Vec<Origin>,
    scheme: Scheme,
    /// Whether the door is private: requests have no host name to check, and no page can send them.
    private: bool,
}

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Refusal {
    Host(String),
    Origin(String),
    Unauthenticated(Unauthenticated),
    /// Another user of this machine connected to a door without tokens.
    OtherUser,
    Role(String),
}

impl Guard {
    /// The guard of a door at that port; `bound` is the name that it was told to listen on.
    pub(crate) fn new(access: Access, bound: &str, port: u16) -> Result<Self, AccessError> {
        let host = |text: String| Authority::parse(&text).ok_or(AccessError::Host(text));
        let origin = |text: String| Origin::parse(&text).ok_or(AccessError::Origin(text));
        // The name given by `--host` is allowed too; "all addresses" is not a name.
        let names = ["localhost", "127.0.0.1", "::1", bound].into_iter().filter_map(Name::parse);
        let own = names.filter(|name| !matches!(name, Name::Ip(all) if all.is_unspecified())).collect();
        Ok(Self {
            own,
            port,
            hosts: access.allow_hosts.into_iter().map(host).collect::<Result<_, _>>()?,
            origins: access.allow_origins.into_iter().map(origin).collect::<Result<_, _>>()?,
            scheme: access.scheme,
            private: false,
        })
    }

    /// The guard of a door that the system opens to this user only: it has no host name, and browsers cannot reach it.
    pub(crate) fn private() -> Self {
        let (own, hosts, origins) = (Vec::new(), Vec::new(), Vec::new());
        Self { own, port: 0, hosts, origins, scheme: Scheme::SameUser, private: true }
    }

    /// Whether only this user's own programs can connect.
    pub(crate) fn is_private(&self) -> bool {
        self.private
    }

    /// Whether clients must send a token.
    pub(crate) fn requires_token(&self) -> bool {
        self.scheme.requires_token()
    }

    /// Whether the request is for this door and comes from an allowed origin. Returns the origin of a listed page, for
    /// the CORS headers.
    fn place(&self, head: &Parts) -> Result<Option<HeaderValue>, Refusal> {
        if !self.private {
            self.host(&head.uri, &head.headers)?;
        }
        self.origin(head)
    }

    fn host(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Refusal> {
        let mut given = headers.get_all(header::HOST).iter();
        let host = match (given.next(), given.next()) {
            (Some(host), None) => host,
            (None, _) => return Err(Refusal::Host("there is none".to_owned())),
            (Some(_), Some(_)) => return Err(Refusal::Host("there is more than one".to_owned())),
        };
        let is_ours = |text: &str| Authority::parse(text).is_some_and(|host| self.is_ours(&host));
        // An absolute address in the request line takes precedence over the header; here both must be allowed.
        match uri.authority() {
            Some(other) if !is_ours(other.as_str()) => Err(Refusal::Host(head(other.as_str()))),
            _ if !host.to_str().is_ok_and(is_ours) => Err(Refusal::Host(shown(host))),
            _ => Ok(()),
        }
    }

    fn is_ours(&self, host: &Authority) -> bool {
        let listed =
            |known: &Authority| known.name == host.name && (known.port.is_none() || known.port == port_of(host));
        self.is_own(host) || self.hosts.iter().any(listed)
    }

    /// Whether the name is one of the door's own.
    fn is_own(&self, host: &Authority) -> bool {
        port_of(host) == Some(self.port) && self.own.contains(&host.name)
    }

    fn origin(&self, head: &Parts) -> Result<Option<HeaderValue>, Refusal> {
        let mut given = head.headers.get_all(header::ORIGIN).iter();
        let value = match (given.next(), given.next()) {
            (Some(value), None) => value,
            (Some(_), Some(_)) => return Err(Refusal::Origin("there is more than one".to_owned())),
            (None, _) if is_foreign_fetch(&head.method, &head.headers) => {
                return Err(Refusal::Origin("a page of another site".to_owned()));
            }
            (None, _) => return Ok(None),
        };
        let refused = || Refusal::Origin(shown(value));
        let origin = value.to_str().ok().and_then(Origin::parse).ok_or_else(refused)?;
        if self.origins.contains(&origin) {
            return Ok(Some(value.clone()));
        }
        // For a listed name, the port must match too: another port of that machine is somebody else's page.
        let asked = head.headers.get(header::HOST).and_then(|host| Authority::parse(host.to_str().ok()?));
        let is_same =
            |asked: &Authority| asked.name == origin.authority.name && port_of(asked) == origin.authority.port;
        let is_ours = self.is_own(&origin.authority) || asked.as_ref().is_some_and(is_same);
        if origin.scheme == "http" && is_ours { Ok(None) } else { Err(refused()) }
    }

    /// The sender of a request and its role.
    fn caller(&self, head: &Parts) -> Result<Caller, Refusal> {
        if head.extensions.get() == Some(&PeerIdentity::OtherUser) {
            return Err(Refusal::OtherUser);
        }
        let mut caller = self.scheme.authenticate(&head.headers).map_err(Refusal::Unauthenticated)?;
        let query = Query::<Vec<(String, String)>>::try_from_uri(&head.uri).map(|query| query.0).unwrap_or_default();
        for (key, value) in query {
            match key.as_str() {
                "role" => {
                    let asked = role_of(&value).ok_or(Refusal::Role(value))?;
                    caller.role = lower(caller.role, asked);
                }
                "client" => caller.name = caller.name.or_else(|| client_name(&value)),
                _ => {}
            }
        }
        Ok(caller)
    }
}

/// The port, even if it is the default one.
fn port_of(host: &Authority) -> Option<u16> {
    host.port.or_else(|| usual_port("http"))
}

/// Passes a request on, or refuses it.
pub(crate) async fn enter(State(entrance): State<Entrance>, request: Request, next: Next) -> Response {
    let guard = &entrance.guard;
    let (mut head, body) = request.into_parts();
    let page = match guard.place(&head) {
        Ok(page) => page,
        Err(refusal) => return refusal.into_response(),
    };
    if let Some(page) = page.as_ref().filter(|_| is_preflight(&head)) {
        return preflight(page, &head.headers);
    }
    let mut response = match guard.caller(&head) {
        Ok(caller) => {
            hide_tokens(&mut head.headers);
            head.extensions.insert(caller);
            next.run(Request::from_parts(head, body)).await
        }
        Err(refusal) => refusal.into_response(),
    };
    if let Some(page) = page {
        let headers = response.headers_mut();
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, page);
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED));
        headers.append(header::VARY, HeaderValue::from_static("Origin"));
    }
    response
}

/// Whether this is a CORS preflight. A browser sends it without a token.
fn is_preflight(head: &Parts) -> bool {
    head.method == Method::OPTIONS && head.headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

fn preflight(page: &HeaderValue, asked: &HeaderMap) -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, page.clone());
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(METHODS));
    if let Some(wanted) = asked.get(header::ACCESS_CONTROL_REQUEST_HEADERS) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, wanted.clone());
    }
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static(PREFLIGHT_AGE));
    headers.append(header::VARY, HeaderValue::from_static("Origin, Access-Control-Request-Headers"));
    response
}

/// Whether a browser says that a page of another site sent this request, without naming the origin: images, scripts,
/// fetches without CORS. Following a link to us does not count.
fn is_foreign_fetch(method: &Method, headers: &HeaderMap) -> bool {
    let says = |name: &str, word: &str| headers.get(name).is_some_and(|value| value == word);
    let follows = method == Method::GET && says("sec-fetch-mode", "navigate") && says("sec-fetch-dest", "document");
    (says("sec-fetch-site", "cross-site") || says("sec-fetch-site", "same-site")) && !follows
}

/// Removes tokens from the headers, so that they do not go beyond the guard.
fn hide_tokens(headers: &mut HeaderMap) {
    headers.remove(header::AUTHORIZATION);
    let offered = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).iter().filter_map(|value| value.to_str().ok());
    let words = offered.flat_map(|list| list.split(',')).map(str::trim).filter(|word| !word.starts_with(BEARER));
    let rest = words.collect::<Vec<_>>().join(", ");
    headers.remove(header::SEC_WEBSOCKET_PROTOCOL);
    if let Ok(rest) = HeaderValue::try_from(rest)
        && !rest.is_empty()
    {
        headers.insert(header::SEC_WEBSOCKET_PROTOCOL, rest);
    }
}

impl Refusal {
    fn into_response(self) -> Response {
        let more = |refused: &str, option: &str| json!({ "refused": refused, "option": option });
        match self {
            Self::Host(host) => problem_with(
                StatusCode::FORBIDDEN,
                &format!(
                    "Host refused ({host}): use localhost, 127.0.0.1 or [::1] with the port of this server, or allow this name with --allow-host"
                ),
                more("Host", "--allow-host"),
            ),
            Self::Origin(origin) => problem_with(
                StatusCode::FORBIDDEN,
                &format!("Origin refused ({origin}): allow pages of other origins with --allow-origin"),
                more("Origin", "--allow-origin"),
            ),
            Self::Unauthenticated(how) => {
                let (message, challenge) = match how {
                    Unauthenticated::Nothing => ("this host requires a token: Authorization: Bearer TOKEN", "Bearer"),
                    Unauthenticated::Wrong => (
                        "unknown token. Send a token of this host: Authorization: Bearer TOKEN",
                        r#"Bearer error="invalid_token""#,
                    ),
                };
                let mut response = problem_with(StatusCode::UNAUTHORIZED, message, Value::Null);
                response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
                response
            }
            Self::OtherUser => {
                let message = "without a token, only programs of the user who started this server can connect. To let others in, start it with --token-file or MULTITAP_TOKEN and send a token (Authorization: Bearer TOKEN)";
                let mut response = problem_with(StatusCode::UNAUTHORIZED, message, Value::Null);
                response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
                response
            }
            Self::Role(word) => problem_with(
                StatusCode::BAD_REQUEST,
                &format!("role={}: must be observer, controller or owner", head(&word)),
                Value::Null,
            ),
        }
    }
}

/// The lower of two roles: a request cannot raise its role.
fn lower(one: ClientRole, other: ClientRole) -> ClientRole {
    match (one, other) {
        (ClientRole::Observer, _) | (_, ClientRole::Observer) => ClientRole::Observer,
        (ClientRole::Controller, _) | (_, ClientRole::Controller) => ClientRole::Controller,
        (ClientRole::Owner, ClientRole::Owner) => ClientRole::Owner,
    }
}

/// A name that is safe to show to others: without characters that move the cursor, change the text direction or are
/// invisible, without the brackets that mark a door, and not too long.
pub(crate) fn client_name(name: &str) -> Option<String> {
    // Any run of white space becomes one space.
    let plain: String =
        name.chars().map(|c| if c.is_whitespace() { ' ' } else { c }).filter(|c| is_plain(*c)).collect();
    let words = plain.split(' ').filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    let short: String = words.chars().take(LONGEST_NAME).collect();
    Some(short.trim_end().to_owned()).filter(|name| !name.is_empty())
}

/// Whether a character is visible and does not affect others.
fn is_plain(c: char) -> bool {
    // Wide brackets look the same as brackets.
    let marks = matches!(c, '[' | ']' | '\u{ff3b}' | '\u{ff3d}');
    !is_hidden(c) && !marks
}

/// A header as quoted in a response.
fn shown(value: &HeaderValue) -> String {
    head(&String::from_utf8_lossy(value.as_bytes()))
}

fn head(text: &str) -> String {
    text.chars().take(REPEATED).collect()
}

/// Whether only programs on this machine can reach that address.
pub(crate) fn is_loopback(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_loopback(),
        IpAddr::V6(address) => address.to_ipv4_mapped().map_or(address.is_loopback(), |mapped| mapped.is_loopback()),
    }
}
