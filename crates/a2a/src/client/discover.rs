//! Discovery: finds the agent card, and picks the interface and the extensions that both sides support.

use reqwest::header::{ACCEPT, HeaderMap, HeaderValue};
use reqwest::{Method, Url};
use serde_json::Value;

use super::address::{is_trusted, shown};
use super::binding::{AgentBinding, below};
use super::error::ClientError;
use super::http::{Answer, Call, Credentials, HttpClient, Repeat};
use super::options::{ClientOptions, ExtensionUse};
use crate::card::{Binding, Card, Interface};
use crate::dialect::Dialect;
use crate::extension;

/// Well-known names of a card, in the order they are tried. The second is from before 0.3.
const CARDS: [&str; 2] = ["agent-card.json", "agent.json"];

/// Maximum size of a card. The client holds it in memory.
const LARGEST_CARD: usize = 1024 * 1024;

pub(super) struct DiscoveredAgent {
    pub(super) card: Card,
    pub(super) interface: Interface,
    pub(super) extensions: Vec<String>,
    pub(super) binding: AgentBinding,
}

pub(super) async fn discover(
    http: &HttpClient,
    given: &str,
    options: &ClientOptions,
) -> Result<DiscoveredAgent, ClientError> {
    let url = address(given)?;
    let (value, card_url) = fetch(http, &candidates(&url, options)?, options).await?;
    let mut card = Card::read(&value).map_err(|error| malformed(&card_url, error))?;
    let (interface, dialect) = match choose(&card) {
        Some(chosen) => chosen,
        None => {
            // The interfaces of 1.0 come first; if none of them can be used, one of 0.3 may.
            let mut old = value;
            old.as_object_mut().and_then(|map| map.shift_remove("supportedInterfaces"));
            let old = Card::read(&old).map(|old| old.interfaces).unwrap_or_default();
            card.interfaces.extend(old);
            choose(&card).ok_or_else(|| ClientError::NothingInCommon { listed: card.interfaces.clone() })?
        }
    };
    let extensions = agree(&card, &options.extensions)?;
    let target = card_url.join(&interface.url).map_err(|error| malformed(&card_url, error))?;
    let target = address(target.as_str())?;
    let host = target.host_str().unwrap_or_default();
    let is_allowed = options.allowed_hosts.iter().any(|allowed| allowed.eq_ignore_ascii_case(host));
    if http.has_secrets() && !is_trusted(&target, &url) && !is_allowed {
        return Err(ClientError::OtherHost { given: shown(&url), host: target.origin().ascii_serialization() });
    }
    let binding = AgentBinding::new(target, dialect, &interface, &extensions)?;
    Ok(DiscoveredAgent { card, interface, extensions, binding })
}

fn malformed(url: &Url, error: impl std::fmt::Display) -> ClientError {
    ClientError::Malformed(format!("the card at {}: {error}", shown(url)))
}

fn address(text: &str) -> Result<Url, ClientError> {
    // The text may contain a password.
    let refuse = |url: &str, why: &str| ClientError::Address { url: url.to_owned(), why: why.to_owned() };
    let url = Url::parse(text.trim()).map_err(|error| match text.contains('@') {
        true => refuse("…", &error.to_string()),
        false => refuse(text, &error.to_string()),
    })?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(refuse(&format!("{}:…", url.scheme()), "it must begin with http:// or https://"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(refuse(&shown(&url), "credentials are given as headers, not in the address"));
    }
    Ok(url)
}

/// The addresses at which the card may be.
fn candidates(url: &Url, options: &ClientOptions) -> Result<Vec<Url>, ClientError> {
    if let Some(path) = &options.card_path {
        // Relative to the agent's address, unless it is absolute.
        let base = if path.starts_with('/') { url.clone() } else { below(url, &[""]) };
        let joined =
            base.join(path).map_err(|error| ClientError::Address { url: path.clone(), why: error.to_string() });
        return Ok(vec![address(joined?.as_str())?]);
    }
    if url.path().ends_with(".json") {
        return Ok(vec![url.clone()]);
    }
    Ok(CARDS.iter().map(|name| below(url, &[".well-known", name])).collect())
}

async fn fetch(http: &HttpClient, candidates: &[Url], options: &ClientOptions) -> Result<(Value, Url), ClientError> {
    let mut tried = Vec::new();
    for url in candidates {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, application/a2a+json;q=0.9"));
        let credentials = Credentials::Withheld;
        let mut call = Call { method: Method::GET, url: url.clone(), headers, body: None, credentials, id: 0 };
        let mut answer = get(http, &call, options).await?;
        // A card is public, so the first request has no credentials. Some agents require them.
        if matches!(answer.status, 401 | 403) && http.has_secrets() {
            call.credentials = Credentials::Given;
            answer = get(http, &call, options).await?;
        }
        match answer.status {
            200..300 => match crate::json::parse(&answer.body) {
                Ok(value) if value.is_object() => return Ok((value, url.clone())),
                Ok(_) | Err(_) => tried.push(format!("{} is not a JSON object", shown(url))),
            },
            404 | 405 | 410 => tried.push(format!("{} answered {}", shown(url), answer.status)),
            _ => return Err(http.http_error(&answer)),
        }
    }
    Err(ClientError::NoCard { tried })
}

async fn get(http: &HttpClient, call: &Call, options: &ClientOptions) -> Result<Answer, ClientError> {
    let answer = http.whole(call, options.timeouts.call, Repeat::Safe).await?;
    if answer.body.len() > LARGEST_CARD { Err(ClientError::TooLarge { most: LARGEST_CARD }) } else { Ok(answer) }
}

/// The best interface that both sides support: JSON-RPC before HTTP+JSON, 1.0 before 0.3, then in the order of the card.
fn choose(card: &Card) -> Option<(Interface, Dialect)> {
    let spoken = card.interfaces.iter().filter_map(|interface| {
        let is_rest = match interface.binding {
            Binding::JsonRpc => false,
            Binding::HttpJson => true,
            Binding::Grpc | Binding::Other(_) => return None,
        };
        Some((is_rest, interface, interface.dialect()?))
    });
    let best = spoken.min_by_key(|(is_rest, _, dialect)| (*is_rest, *dialect == Dialect::V0_3));
    best.map(|(_, interface, dialect)| (interface.clone(), dialect))
}

/// The extensions to activate, as the agent spells them.
fn agree(card: &Card, wanted: &[(String, ExtensionUse)]) -> Result<Vec<String>, ClientError> {
    let offered = || card.capabilities.extensions.iter().map(|extension| &extension.uri);
    let mut agreed = Vec::new();
    for (ours, need) in wanted {
        let same: Vec<_> = offered().filter(|theirs| extension::is_same(theirs, ours)).collect();
        // An agent may offer it in several versions.
        let fits = same.iter().find(|theirs| extension::judge(theirs, ours).is_ok());
        match (fits, same.first(), need) {
            (Some(theirs), _, _) => agreed.push((*theirs).clone()),
            (None, _, ExtensionUse::Optional) => {}
            (None, Some(theirs), ExtensionUse::Required) => extension::judge(theirs, ours)?,
            (None, None, ExtensionUse::Required) => {
                let offered = offered().cloned().collect();
                return Err(ClientError::NoExtension { wanted: ours.clone(), offered });
            }
        }
    }
    Ok(agreed)
}
