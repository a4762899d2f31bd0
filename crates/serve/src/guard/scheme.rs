//! How clients show who they are. Another way is another variant here: what it reads of a request, what it asks of those
//! who bring nothing, and what the card says about it.

use std::borrow::Cow;

use axum::http::{HeaderMap, header};
use multitap_event::ClientRole;

use super::token::Tokens;
use super::{BEARER, Caller};

/// Who may come in.
#[derive(Debug, Clone, Default)]
pub enum Scheme {
    /// Whoever can reach the door, as a controller. Only for doors on loopback.
    #[default]
    Open,
    /// Whoever brings a token, as what the token says: `Authorization: Bearer TOKEN`, or of a browser's WebSocket the
    /// subprotocol `bearer.TOKEN`.
    Bearer(Tokens),
    /// Whoever the system lets in, as the owner. Only for private doors.
    SameUser,
}

/// What a scheme wants, as a card tells it: an HTTP authentication scheme.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecurityScheme {
    /// What the card calls it.
    pub name: &'static str,
    /// The word in `Authorization` and `WWW-Authenticate`.
    pub scheme: &'static str,
    pub description: &'static str,
}

/// Somebody showed nothing, or something wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unauthenticated {
    Nothing,
    Wrong,
}

impl Scheme {
    /// What clients have to bring; nothing at an open door.
    pub fn security_schemes(&self) -> Vec<SecurityScheme> {
        match self {
            Self::Open | Self::SameUser => Vec::new(),
            Self::Bearer(_) => vec![SecurityScheme {
                name: "bearer",
                scheme: "Bearer",
                description: "A token of this host, with the role it was given there",
            }],
        }
    }

    /// These tokens open the door; without any it is open.
    pub fn of(tokens: Tokens) -> Self {
        if tokens.is_empty() { Self::Open } else { Self::Bearer(tokens) }
    }

    pub(super) fn authenticate(&self, headers: &HeaderMap) -> Result<Caller, Unauthenticated> {
        match self {
            Self::Open => Ok(Caller { name: None, role: ClientRole::Controller, account: None }),
            Self::SameUser => Ok(Caller { name: None, role: ClientRole::Owner, account: None }),
            Self::Bearer(tokens) => {
                let token = bearer(headers)?;
                let (role, name) = tokens.find(&token).ok_or(Unauthenticated::Wrong)?;
                let name = name.map(str::to_owned);
                Ok(Caller { account: name.clone(), name, role })
            }
        }
    }
}

/// The token that a request brings.
fn bearer(headers: &HeaderMap) -> Result<Cow<'_, str>, Unauthenticated> {
    let mut given = headers.get_all(header::AUTHORIZATION).iter();
    let Some(value) = given.next() else { return offered(headers).ok_or(Unauthenticated::Nothing) };
    if given.next().is_some() {
        return Err(Unauthenticated::Wrong);
    }
    let text = value.to_str().map_err(|_| Unauthenticated::Wrong)?;
    let (scheme, token) = text.split_once(' ').ok_or(Unauthenticated::Wrong)?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(Unauthenticated::Wrong);
    }
    Ok(token.trim().into())
}

/// The token among the subprotocols that a WebSocket offers: a page cannot set headers there.
fn offered(headers: &HeaderMap) -> Option<Cow<'_, str>> {
    let values = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).iter().filter_map(|value| value.to_str().ok());
    let token = values.flat_map(|list| list.split(',')).find_map(|word| word.trim().strip_prefix(BEARER))?;
    Some(token.into())
}
