//! Finding an agent: its card, and of what the card lists the interface and the extensions that both sides speak.

use reqwest::header::{ACCEPT, HeaderMap, HeaderValue};
use reqwest::{Method, Url};
use serde_json::Value;

use super::error::ClientError;
use super::line::{Answer, Call, Credentials, Line, Repeat, Reply};
use super::options::{Need, Options};
use super::place::{is_trusted, shown};
use super::way::{Way, below};
use crate::card::{Binding, Card, Interface};
use crate::dialect::Dialect;
use crate::extension;

/// Where a card is, in the order in which it is looked for; the second is from before 0.3.
const CARDS: [&str; 2] = ["agent-card.json", "agent.json"];

/// The most bytes of a card. It is kept as long as the agent is.
const LARGEST_CARD: usize = 1024 * 1024;

/// An agent that was found.
pub(super) struct Found {
    pub(super) card: Card,
    pub(super) interface: Interface,
    pub(super) extensions: Vec<String>,
    pub(super) way: Way,
}

pub(super) async fn discover(line: &Line, given: &str, options: &Options) -> Result<Found, ClientError> {
    let url = address(given)?;
    let (value, card_url) = fetch(line, &candidates(&url, options)?, options).await?;
    let mut card = Card::read(&value).map_err(|error| malformed(&card_url, error))?;
    let interface = match choose(&card) {
        Some(interface) => interface.clone(),
        None => {
            // Lists of 1.0 go before the words of 0.3; where none of them serves, the words of 0.3 may.
            let mut old = value;
            old.as_object_mut().and_then(|map| map.shift_remove("supportedInterfaces"));
            let old = Card::read(&old).map(|old| old.interfaces).unwrap_or_default();
            card.interfaces.extend(old);
            let nothing = || ClientError::NothingInCommon { listed: card.interfaces.clone() };
            choose(&card).ok_or_else(nothing)?.clone()
        }
    };
    let extensions = agree(&card, &options.extensions)?;
    let nothing = || ClientError::NothingInCommon { listed: card.interfaces.clone() };
    let dialect = interface.dialect().ok_or_else(nothing)?;
    let target = card_url.join(&interface.url).map_err(|error| malformed(&card_url, error))?;
    let target = address(target.as_str())?;
    let host = target.host_str().unwrap_or_default();
    let is_allowed = options.hosts.iter().any(|allowed| allowed.eq_ignore_ascii_case(host));
    if line.has_secrets() && !is_trusted(&target, &url) && !is_allowed {
        return Err(ClientError::OtherHost { given: shown(&url), host: target.origin().ascii_serialization() });
    }
    let way = Way::new(target, dialect, &interface, &extensions)?;
    Ok(Found { card, interface, extensions, way })
}

fn malformed(url: &Url, error: impl std::fmt::Display) -> ClientError {
    ClientError::Malformed(format!("the card at {}: {error}", shown(url)))
}

/// An address that can be called.
fn address(text: &str) -> Result<Url, ClientError> {
    // Whatever stands there may have a password in it.
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

/// Where the card may be.
fn candidates(url: &Url, options: &Options) -> Result<Vec<Url>, ClientError> {
    if let Some(path) = &options.card_path {
        // From the agent's address on, unless it begins at the root.
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

async fn fetch(line: &Line, candidates: &[Url], options: &Options) -> Result<(Value, Url), ClientError> {
    let mut tried = Vec::new();
    for url in candidates {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, application/a2a+json;q=0.9"));
        let credentials = Credentials::Withheld;
        let mut call = Call { method: Method::GET, url: url.clone(), headers, body: None, credentials, id: 0 };
        let mut answer = get(line, &call, options).await?;
        // A card is for everybody, so it is asked for without credentials; some are not.
        if matches!(answer.status, 401 | 403) && line.has_secrets() {
            call.credentials = Credentials::Given;
            answer = get(line, &call, options).await?;
        }
        match answer.status {
            200..300 => match serde_json::from_slice::<Value>(&answer.body) {
                Ok(value) if value.is_object() => return Ok((value, url.clone())),
                Ok(_) | Err(_) => tried.push(format!("{} is no JSON object", shown(url))),
            },
            404 | 405 | 410 => tried.push(format!("{} answered {}", shown(url), answer.status)),
            _ => return Err(line.http_error(&answer)),
        }
    }
    Err(ClientError::NoCard { tried })
}

async fn get(line: &Line, call: &Call, options: &Options) -> Result<Answer, ClientError> {
    match line.exchange(call, options.timeouts.call, Repeat::Safe).await? {
        Reply::Whole(answer) if answer.body.len() > LARGEST_CARD => Err(ClientError::TooLarge { most: LARGEST_CARD }),
        Reply::Whole(answer) => Ok(answer),
        Reply::Stream(_) => Err(malformed(&call.url, "it is a stream of events")),
    }
}

/// The best interface that both sides speak: JSON-RPC before HTTP+JSON, 1.0 before 0.3, then as the card has them.
fn choose(card: &Card) -> Option<&Interface> {
    let rank = |interface: &&Interface| {
        let binding = match interface.binding {
            Binding::JsonRpc => 0,
            Binding::HttpJson => 1,
            Binding::Grpc | Binding::Other(_) => return None,
        };
        let dialect = match interface.dialect()? {
            Dialect::V1_0 => 0,
            Dialect::V0_3 => 1,
        };
        Some((binding, dialect))
    };
    let spoken = card.interfaces.iter().filter(|interface| rank(interface).is_some());
    spoken.min_by_key(rank)
}

/// The extensions that are made use of, as the agent spells them.
fn agree(card: &Card, wanted: &[(String, Need)]) -> Result<Vec<String>, ClientError> {
    let offered = || card.capabilities.extensions.iter().map(|extension| &extension.uri);
    let mut agreed = Vec::new();
    for (ours, need) in wanted {
        let same: Vec<_> = offered().filter(|theirs| extension::is_same(theirs, ours)).collect();
        // An agent may offer it in several versions.
        let fits = same.iter().find(|theirs| extension::judge(theirs, ours).is_ok());
        match (fits, same.first(), need) {
            (Some(theirs), _, _) => agreed.push((*theirs).clone()),
            (None, _, Need::May) => {}
            (None, Some(theirs), Need::Must) => extension::judge(theirs, ours)?,
            (None, None, Need::Must) => {
                let offered = offered().cloned().collect();
                return Err(ClientError::NoExtension { wanted: ours.clone(), offered });
            }
        }
    }
    Ok(agreed)
}
