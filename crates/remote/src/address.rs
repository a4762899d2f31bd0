//! The address of a session: the door of its host, and which of the host's sessions. Pure.

use std::fmt;
use std::path::PathBuf;

use multitap_event::SessionId;
use tokio_tungstenite::tungstenite::http::Uri;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    pub way: Way,
    /// Without an id: the session that the host shares.
    pub session: Option<SessionId>,
}

/// The connection to a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Way {
    Tcp {
        host: String,
        port: u16,
        tls: bool,
    },
    /// A private socket on this machine.
    Unix(PathBuf),
}

/// The text is not an address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}: {why}. Use an address such as http://127.0.0.1:1234 or https://HOST/?session=ID")]
pub struct BadAddress {
    text: String,
    why: &'static str,
}

impl Address {
    /// Reads `http(s)://HOST[:PORT][/?session=ID]`, or the same with `ws(s)`.
    pub fn parse(text: &str) -> Result<Self, BadAddress> {
        let bad = |why| BadAddress { text: text.to_owned(), why };
        let uri: Uri = text.parse().map_err(|_| bad("it is not an address"))?;
        let tls = match uri.scheme_str() {
            Some("http" | "ws") => false,
            Some("https" | "wss") => true,
            _ => return Err(bad("it must begin with http://, https://, ws:// or wss://")),
        };
        let authority = uri.authority().ok_or_else(|| bad("it names no host"))?;
        if authority.as_str().contains('@') {
            return Err(bad("it must not contain a name or password: set MULTITAP_TOKEN instead"));
        }
        if !matches!(uri.path(), "" | "/" | "/ws") {
            return Err(bad("it has no path"));
        }
        let usual = if tls { 443 } else { 80 };
        let port = match authority.port_u16() {
            Some(port) => port,
            None if authority.as_str() == authority.host() => usual,
            None => return Err(bad("its port is not a number up to 65535")),
        };
        let way = Way::Tcp { host: authority.host().to_owned(), port, tls };
        let named = uri.query().into_iter().flat_map(|query| query.split('&')).filter_map(|pair| pair.split_once('='));
        let session = named.filter(|(key, _)| *key == "session").map(|(_, id)| SessionId::from(id)).next_back();
        Ok(Self { way, session })
    }
}

impl Way {
    /// The value of the `Host` header.
    pub(crate) fn host(&self) -> String {
        match self {
            Self::Tcp { host, port, .. } => format!("{host}:{port}"),
            Self::Unix(_) => "localhost".to_owned(),
        }
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port, tls: false } => write!(f, "http://{host}:{port}"),
            Self::Tcp { host, port, tls: true } => write!(f, "https://{host}:{port}"),
            Self::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_says_where_and_which() {
        let tcp = |host: &str, port, tls| Way::Tcp { host: host.to_owned(), port, tls };
        for (text, way, session) in [
            ("http://127.0.0.1:1234", tcp("127.0.0.1", 1234, false), None),
            ("ws://[::1]:1234/ws", tcp("[::1]", 1234, false), None),
            ("https://example.org/?session=0a1", tcp("example.org", 443, true), Some("0a1")),
            ("http://h:1?x=1&session=s", tcp("h", 1, false), Some("s")),
        ] {
            let session = session.map(SessionId::from);
            assert_eq!(Address::parse(text), Ok(Address { way, session }), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_with_one_is_said() {
        for (text, why) in [
            ("127.0.0.1:1234", "must begin"),
            ("ftp://h", "must begin"),
            ("http://h/elsewhere", "no path"),
            ("http://me:secret@h", "MULTITAP_TOKEN"),
            ("http://", "not an address"),
            ("http://h:99999", "port"),
            ("https://[::1]:65536", "port"),
        ] {
            let error = Address::parse(text).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
