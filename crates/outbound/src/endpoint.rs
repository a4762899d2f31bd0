//! The kind of connection a URL needs, and the HTTP client for it.

use std::net::IpAddr;
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{ClientBuilder, Url};

use crate::tls;

/// Time limit for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The requirements of a connection. URLs with the same endpoint can share a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Endpoint {
    is_secure: bool,
    is_loopback: bool,
}

/// The system's certificates are not usable.
#[derive(Debug, thiserror::Error)]
#[error("the system's certificates cannot be used")]
pub struct BuildError(#[from] rustls::Error);

impl Endpoint {
    pub fn of(url: &Url) -> Self {
        Self { is_secure: url.scheme() == "https", is_loopback: is_loopback(url) }
    }

    /// A client without redirects and referrer, and without a proxy for this machine.
    pub fn client(self) -> Result<ClientBuilder, BuildError> {
        let tls = if self.is_secure { tls::tls_config() } else { tls::trust_nobody() };
        let builder = reqwest::Client::builder()
            .tls_backend_preconfigured(tls?)
            .user_agent(concat!("multitap/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT_TIMEOUT)
            .tcp_nodelay(true)
            .referer(false)
            .redirect(Policy::none());
        Ok(if self.is_loopback { builder.no_proxy() } else { builder })
    }
}

/// Whether the address is written as one of this machine. Servers that listen everywhere often call themselves 0.0.0.0,
/// which leads here.
pub fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback() || address.is_unspecified())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_this_machine_is_recognised_as_written() {
        for (url, expected) in [
            ("http://localhost:1/", true),
            ("http://LOCALHOST/", true),
            ("http://127.0.0.9/", true),
            ("http://[::1]:8/", true),
            ("http://0.0.0.0:9/", true),
            ("http://localhost.example.org/", false),
            ("http://10.0.0.1/", false),
        ] {
            assert_eq!(is_loopback(&Url::parse(url).unwrap()), expected, "{url}");
        }
    }
}
