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
/// How long a browser may remember what a listed page may do.
const PREFLIGHT_AGE: &str = "600";
const METHODS: &str = "GET, POST, DELETE, OPTIONS";
/// What a listed page may read of an answer beside the usual.
const EXPOSED: &str = "ETag, A2A-Version, A2A-Extensions, X-A2A-Extensions, Mcp-Session-Id, WWW-Authenticate";

/// Who may come in, from where, by which name.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// Additional names that clients may use for this door: `NAME`, at any port, or `NAME:PORT`.
    pub allow_hosts: Vec<String>,
    /// Origins of pages that may use it: `https://NAME[:PORT]`.
    pub allow_origins: Vec<String>,
    pub scheme: Scheme,
}

/// Who sends a request; the guard leaves it among the request's extensions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The token's name, else the one the client gave itself.
    pub name: Option<String>,
    pub role: ClientRole,
    /// The token's name alone.
    pub account: Option<String>,
}

impl Caller {
    /// As a session knows it.
    pub(crate) fn client(&self, door: Door) -> ClientRef {
        let name = self.name.clone().unwrap_or_else(|| "client".to_owned());
        ClientRef { role: Some(self.role), account: self.account.clone(), ..ClientRef::new(name, door) }
    }
}

/// What somebody allowed is not to be understood.
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
    /// Nobody comes here by a name, nor from a page.
    private: bool,
}

/// Why a request gets no further.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Refusal {
    Host(String),
    Origin(String),
    Unauthenticated(Unauthenticated),
    /// Another user of this machine came to a door without tokens.
    OtherUser,
    Role(String),
}

impl Guard {
    /// For a door at that port; `bound` is the name it was told to listen at.
    pub(crate) fn new(access: Access, bound: &str, port: u16) -> Result<Self, AccessError> {
        let host = |text: String| Authority::parse(&text).ok_or(AccessError::Host(text));
        let origin = |text: String| Origin::parse(&text).ok_or(AccessError::Origin(text));
        // Whoever chose a name to listen at wants to be called by it; "all addresses" is no name.
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

    /// For a door that the system lets only this user reach: there is no name to call it by, and no browser gets there.
    pub(crate) fn private() -> Self {
        let (own, hosts, origins) = (Vec::new(), Vec::new(), Vec::new());
        Self { own, port: 0, hosts, origins, scheme: Scheme::SameUser, private: true }
    }

    /// Whether only this user's own programs come here.
    pub(crate) fn is_private(&self) -> bool {
        self.private
    }

    /// Whether clients must send a token.
    pub(crate) fn requires_token(&self) -> bool {
        self.scheme.requires_token()
    }

    /// Whether the request goes to us and comes from where it may. Gives the origin of a listed page, which is to be
    /// told that it may read the answer.
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
        // A whole address in the request line counts instead of the header; here both have to fit.
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

    /// Whether it is the door itself, by a name of its own.
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
        // By a listed name only the very place that is asked: another port of that machine is somebody else's page.
        let asked = head.headers.get(header::HOST).and_then(|host| Authority::parse(host.to_str().ok()?));
        let is_same =
            |asked: &Authority| asked.name == origin.authority.name && port_of(asked) == origin.authority.port;
        let is_ours = self.is_own(&origin.authority) || asked.as_ref().is_some_and(is_same);
        if origin.scheme == "http" && is_ours { Ok(None) } else { Err(refused()) }
    }

    /// Who sends it, as what.
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
                "client" => caller.name = caller.name.or_else(|| clean_name(&value)),
                _ => {}
            }
        }
        Ok(caller)
    }
}

/// Its port, even if it is the default one.
fn port_of(host: &Authority) -> Option<u16> {
    host.port.or_else(|| usual_port("http"))
}

/// Lets a request in, or answers it.
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

/// Tokens go no further than this.
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

/// The lower of two roles: nobody rises by asking.
fn lower(one: ClientRole, other: ClientRole) -> ClientRole {
    match (one, other) {
        (ClientRole::Observer, _) | (_, ClientRole::Observer) => ClientRole::Observer,
        (ClientRole::Controller, _) | (_, ClientRole::Controller) => ClientRole::Controller,
        (ClientRole::Owner, ClientRole::Owner) => ClientRole::Owner,
    }
}

/// A name that others can be shown: without what moves a cursor, turns writing around or cannot be seen, without the
/// brackets that mark where somebody comes from, and not too long.
fn clean_name(name: &str) -> Option<String> {
    // White space of any kind stands between words, and is one blank; what is left of it is none.
    let plain: String =
        name.chars().map(|c| if c.is_whitespace() { ' ' } else { c }).filter(|c| is_plain(*c)).collect();
    let words = plain.split(' ').filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    let short: String = words.chars().take(LONGEST_NAME).collect();
    Some(short.trim_end().to_owned()).filter(|name| !name.is_empty())
}

/// Whether a character is seen as what it is, and stays where it was put.
fn is_plain(c: char) -> bool {
    // Wide brackets look the same.
    let marks = matches!(c, '[' | ']' | '\u{ff3b}' | '\u{ff3d}');
    !is_hidden(c) && !marks
}

/// A header as an answer repeats it.
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
