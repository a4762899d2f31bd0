//! Where a request says it goes to and comes from: the `Host` and `Origin` headers, read strictly.
//!
//! What cannot be read is nowhere, and so is refused by whoever asked.

use std::net::IpAddr;

use axum::http::uri;

/// The name of a machine. Addresses are compared as addresses, whatever their spelling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Name {
    Ip(IpAddr),
    Dns(String),
}

impl Name {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
        if let Ok(address) = bare.parse() {
            return Some(Self::Ip(address));
        }
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
        (!text.is_empty() && text.chars().all(is_plain)).then(|| Self::Dns(text.to_ascii_lowercase()))
    }
}

/// `NAME` or `NAME:PORT`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Authority {
    pub(super) name: Name,
    pub(super) port: Option<u16>,
}

impl Authority {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let parsed: uri::Authority = text.parse().ok()?;
        let port = match text.strip_prefix(parsed.host())? {
            "" => None,
            rest => Some(rest.strip_prefix(':')?.parse().ok()?),
        };
        Some(Self { name: Name::parse(parsed.host())?, port })
    }
}

/// `SCHEME://NAME` or `SCHEME://NAME:PORT`: who sent the page that asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Origin {
    pub(super) scheme: String,
    pub(super) authority: Authority,
}

impl Origin {
    /// Nothing for `null` and for what is no origin.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (scheme, rest) = text.split_once("://")?;
        let is_word = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
        if scheme.is_empty() || !scheme.chars().all(is_word) {
            return None;
        }
        let scheme = scheme.to_ascii_lowercase();
        let mut authority = Authority::parse(rest)?;
        // A page's own port is left out of its origin where it is the usual one.
        authority.port = authority.port.or_else(|| usual_port(&scheme));
        Some(Self { scheme, authority })
    }
}

/// The port that goes without saying.
pub(super) fn usual_port(scheme: &str) -> Option<u16> {
    match scheme {
        "http" => Some(80),
        "https" => Some(443),
        _ => None,
    }
}
