//! How clients authenticate. Each scheme is a variant: what it reads from a request, and what it requires.

use std::borrow::Cow;

use axum::http::{HeaderMap, header};
use multitap_event::ClientRole;

use super::token::Tokens;
use super::{BEARER, Caller};

/// Who may connect.
#[derive(Debug, Clone, Default)]
pub enum Scheme {
    /// Everybody who reaches the door, as a controller. Only for doors on loopback.
    #[default]
    Open,
    /// Clients with a token, in its role: `Authorization: Bearer TOKEN`, or for browsers' `WebSocket`s the subprotocol
    /// `bearer.TOKEN`.
    Bearer(Tokens),
    /// Everybody whom the system lets in, as the owner. Only for private doors.
    SameUser,
}

/// A missing or wrong token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unauthenticated {
    Nothing,
    Wrong,
}

impl Scheme {
    /// Whether clients must send a token.
    pub fn requires_token(&self) -> bool {
        matches!(self, Self::Bearer(_))
    }

    /// A scheme with these tokens; without tokens the door is open.
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

/// The token of a request.
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

/// The token among a WebSocket's subprotocols, because web pages cannot set its headers.
fn offered(headers: &HeaderMap) -> Option<Cow<'_, str>> {
    let values = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).iter().filter_map(|value| value.to_str().ok());
    let token = values.flat_map(|list| list.split(',')).find_map(|word| word.trim().strip_prefix(BEARER))?;
    Some(token.into())
}
