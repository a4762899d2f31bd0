//! Parses the `Host` and `Origin` headers strictly.
//!
//! An invalid header is no place, and the guard refuses it.

use std::net::IpAddr;

use axum::http::uri;

/// A host name or address. Addresses are compared by value, not by spelling.
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

/// `SCHEME://NAME` or `SCHEME://NAME:PORT`: the origin of the requesting page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Origin {
    pub(super) scheme: String,
    pub(super) authority: Authority,
}

impl Origin {
    /// `None` for `null` and invalid origins.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (scheme, rest) = text.split_once("://")?;
        let is_word = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
        if scheme.is_empty() || !scheme.chars().all(is_word) {
            return None;
        }
        let scheme = scheme.to_ascii_lowercase();
        let mut authority = Authority::parse(rest)?;
        // Browsers omit the default port.
        authority.port = authority.port.or_else(|| usual_port(&scheme));
        Some(Self { scheme, authority })
    }
}

/// The default port of a scheme.
pub(super) fn usual_port(scheme: &str) -> Option<u16> {
    match scheme {
        "http" => Some(80),
        "https" => Some(443),
        _ => None,
    }
}
