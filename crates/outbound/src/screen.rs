//! Which addresses may be reached: not this machine, its network or a cloud's metadata service, unless a person
//! allowed it.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{ClientBuilder, Url};

use crate::is_loopback;

/// Which addresses may be reached. Public ones always; others as far as a person allowed it.
///
/// [`Screen::check`] judges a URL as written. A client to which the screen was [applied](Screen::apply) judges
/// resolved names when it connects. Both are needed: a client does not resolve literal addresses.
#[derive(Debug, Clone, Default)]
pub struct Screen {
    allow_private: bool,
    allow_loopback: bool,
    hosts: Vec<String>,
}

/// The variables that name a proxy.
const PROXIES: [&str; 6] = ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];

/// Why an address may not be reached.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RefusedAddress {
    #[error("only http and https are allowed, not {0}")]
    Scheme(String),
    #[error("an address with a user name or a password in it is not allowed")]
    Credentials,
    #[error("it names no host")]
    NoHost,
    #[error("{0} is {1}, which is not allowed")]
    Private(String, &'static str),
}

impl Screen {
    /// Public addresses only.
    pub fn public() -> Self {
        Self::default()
    }

    /// Public addresses, and those of this machine and its network if `is_allowed`.
    pub fn allowing_private(is_allowed: bool) -> Self {
        Self { allow_private: is_allowed, ..Self::default() }
    }

    /// Also allows addresses of this machine, but not those of its network.
    #[must_use]
    pub fn allowing_loopback(mut self) -> Self {
        self.allow_loopback = true;
        self
    }

    /// Allows a host at any address and port: a person named it.
    #[must_use]
    pub fn allowing(mut self, host: impl Into<String>) -> Self {
        self.hosts.push(host.into());
        self
    }

    /// Judges a URL as written.
    pub fn check(&self, url: &Url) -> Result<(), RefusedAddress> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(RefusedAddress::Scheme(url.scheme().to_owned()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(RefusedAddress::Credentials);
        }
        let host = url.host_str().filter(|host| !host.is_empty()).ok_or(RefusedAddress::NoHost)?;
        match host.trim_matches(['[', ']']).parse() {
            Ok(address) => self.judge(host, address),
            // A client that goes past the proxy would resolve it itself.
            Err(_) if is_loopback(url) => self.judge(host, Ipv4Addr::LOCALHOST.into()),
            Err(_) => Ok(()),
        }
    }

    /// Makes a client judge the addresses of the names that it resolves itself, including those that `NO_PROXY`
    /// excludes from the proxy. Names that the proxy resolves are not judged; [`Self::check`] judges literal addresses.
    pub fn apply(&self, client: ClientBuilder) -> ClientBuilder {
        let proxies: Vec<String> = PROXIES.iter().filter_map(|name| std::env::var(name).ok()).collect();
        let hosts: Vec<String> = proxies.iter().filter_map(|proxy| host_of(proxy)).collect();
        if hosts.is_empty() {
            return self.apply_without_proxy(client);
        }
        // The proxy itself may have any address, even a private one.
        let screen = hosts.into_iter().fold(self.clone(), Self::allowing);
        client.dns_resolver(Arc::new(ScreenedResolver(screen)))
    }

    /// Like [`Self::apply`], without any proxy, so that every name is judged.
    pub fn apply_without_proxy(&self, client: ClientBuilder) -> ClientBuilder {
        client.no_proxy().dns_resolver(Arc::new(ScreenedResolver(self.clone())))
    }

    /// Judges a URL as written and, if its name can be resolved now, by where the name leads. A name that cannot be
    /// resolved passes: the client judges it when it connects.
    pub async fn check_resolved(&self, url: &Url) -> Result<(), RefusedAddress> {
        self.check(url)?;
        let Some(host) = url.host_str() else { return Ok(()) };
        match self.resolve(host.trim_matches(['[', ']'])).await {
            Err(error) => error.downcast::<RefusedAddress>().map_or(Ok(()), |refused| Err(*refused)),
            Ok(_) => Ok(()),
        }
    }

    fn judge(&self, host: &str, address: IpAddr) -> Result<(), RefusedAddress> {
        let is_exempt = self.allow_private
            || self.allow_loopback && address.to_canonical().is_loopback()
            || self.hosts.iter().any(|allowed| allowed.eq_ignore_ascii_case(host));
        match private(address) {
            Some(what) if !is_exempt => Err(RefusedAddress::Private(host.to_owned(), what)),
            _ => Ok(()),
        }
    }

    async fn resolve(&self, host: &str) -> Result<Vec<SocketAddr>, Box<dyn std::error::Error + Send + Sync>> {
        let found: Vec<SocketAddr> = tokio::net::lookup_host((host, 0)).await?.collect();
        if found.is_empty() {
            return Err(io::Error::new(io::ErrorKind::NotFound, format!("{host} has no address")).into());
        }
        // One private address is enough to refuse: a public name that leads there is an attack or a mistake.
        for address in &found {
            self.judge(host, address.ip())?;
        }
        Ok(found)
    }
}

/// The host of a proxy, as `reqwest` reads it: with a scheme or without.
fn host_of(proxy: &str) -> Option<String> {
    let proxy = proxy.trim();
    let url = if proxy.contains("://") { Url::parse(proxy) } else { Url::parse(&format!("http://{proxy}")) };
    url.ok()?.host_str().filter(|host| !host.is_empty()).map(str::to_owned)
}

struct ScreenedResolver(Screen);

impl Resolve for ScreenedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let screen = self.0.clone();
        Box::pin(async move {
            let found = screen.resolve(name.as_str()).await?;
            let found: Addrs = Box::new(found.into_iter());
            Ok(found)
        })
    }
}

/// The kind of an address that is not public.
fn private(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => private_v4(address),
        IpAddr::V6(address) => private_v6(address),
    }
}

fn private_v4(address: Ipv4Addr) -> Option<&'static str> {
    let [a, b, c, _] = address.octets();
    Some(match (a, b, c) {
        (0, ..) => "this machine",
        (127, ..) => "this machine",
        (169, 254, _) => "a link-local address, where clouds keep their secrets",
        (10, ..) | (192, 168, _) => "a private address",
        (172, 16..=31, _) => "a private address",
        (100, 64..=127, _) => "an address of the provider's own network",
        (192, 0, 0) => "an address reserved for protocols",
        (192, 0, 2) | (198, 51, 100) | (203, 0, 113) => "an address reserved for documentation",
        (198, 18..=19, _) => "an address reserved for benchmarks",
        (224..=239, ..) => "a multicast address",
        (240..=255, ..) => "a reserved address",
        _ => return None,
    })
}

fn private_v6(address: Ipv6Addr) -> Option<&'static str> {
    let segments = address.segments();
    if let Some(inner) = carried_v4(address) {
        return private_v4(inner);
    }
    Some(match segments[0] {
        _ if address.is_loopback() || address.is_unspecified() => "this machine",
        0xfc00..=0xfdff => "a private address",
        0xfe80..=0xfebf => "a link-local address",
        0xfec0..=0xfeff => "a private address",
        0xff00..=0xffff => "a multicast address",
        0x2001 if segments[1] == 0x0db8 => "an address reserved for documentation",
        0x2000..=0x3fff => return None,
        _ => "a reserved address",
    })
}

/// The IPv4 address embedded in an IPv6 address: mapped, compatible, translated (NAT64), 6to4.
fn carried_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let segments = address.segments();
    let from = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Ipv4Addr::new(a, b, c, d)
    };
    match segments {
        [0, 0, 0, 0, 0, 0xffff, high, low] => Some(from(high, low)),
        [0, 0, 0, 0, 0xffff, 0, high, low] => Some(from(high, low)),
        [0, 0, 0, 0, 0, 0, high, low] if high != 0 => Some(from(high, low)),
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => Some(from(high, low)),
        [0x2002, high, low, ..] => Some(from(high, low)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_this_machine_and_around_it_are_told_apart() {
        for bad in [
            "127.0.0.1",
            "127.255.0.1",
            "0.0.0.0",
            "10.0.0.1",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "100.127.0.1",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "::1",
            "::",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::127.0.0.1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "100::1",
        ] {
            assert!(private(bad.parse().unwrap()).is_some(), "{bad}");
        }
        for good in
            ["1.1.1.1", "8.8.8.8", "172.15.0.1", "172.32.0.1", "100.63.0.1", "2606:4700::1111", "64:ff9b::101:101"]
        {
            assert_eq!(private(good.parse().unwrap()), None, "{good}");
        }
    }

    #[test]
    fn however_it_is_written() {
        let screen = Screen::public();
        for bad in [
            "http://127.0.0.1/",
            "http://127.1/",
            "http://localhost/",
            "http://LocalHost:8080/",
            "http://2130706433/",
            "http://0x7f.0.0.1/",
            "http://017700000001/",
            "http://[::1]/",
            "http://[::ffff:7f00:1]/",
            "http://169.254.169.254/latest/meta-data/",
            "http://10.0.0.1/",
            "file:///etc/passwd",
            "ftp://example.com/",
            "gopher://127.0.0.1/",
            "http://me:secret@example.com/",
            "http://me@example.com/",
            "http://１２７.0.0.1/",
        ] {
            assert!(screen.check(&Url::parse(bad).unwrap()).is_err(), "{bad}");
        }
        assert_eq!(screen.check(&Url::parse("https://example.com/a?b").unwrap()), Ok(()));
    }

    #[test]
    fn an_allowed_host_is_allowed_on_any_port_and_no_other_host_is() {
        let screen = Screen::public().allowing("127.0.0.1");
        assert_eq!(screen.check(&Url::parse("http://127.0.0.1:8080/").unwrap()), Ok(()));
        assert_eq!(screen.check(&Url::parse("http://127.0.0.1:8081/").unwrap()), Ok(()));
        screen.check(&Url::parse("http://127.0.0.2:8080/").unwrap()).unwrap_err();
        screen.check(&Url::parse("http://169.254.169.254/").unwrap()).unwrap_err();
        let open = Screen::allowing_private(true);
        assert_eq!(open.check(&Url::parse("http://[::1]:8081/").unwrap()), Ok(()));
    }

    #[tokio::test]
    async fn this_machine_can_be_allowed_without_its_network() {
        let screen = Screen::public().allowing_loopback();
        for (url, is_allowed) in [
            ("http://127.0.0.1:8080/", true),
            ("http://[::1]/", true),
            ("http://[::ffff:127.0.0.1]/", true),
            ("http://localhost/", true),
            ("http://0.0.0.0/", false),
            ("http://10.0.0.1/", false),
            ("http://169.254.169.254/latest/meta-data/", false),
            ("http://[fe80::1]/", false),
        ] {
            let url = Url::parse(url).unwrap();
            assert_eq!(screen.check(&url).is_ok(), is_allowed, "{url}");
            assert_eq!(screen.check_resolved(&url).await.is_ok(), is_allowed, "{url}");
        }
        let nowhere = Url::parse("http://no-such-host.invalid/").unwrap();
        assert_eq!(screen.check_resolved(&nowhere).await, Ok(()), "it may be resolved later");
        let refused = Screen::public().check_resolved(&Url::parse("http://localhost/").unwrap()).await;
        assert_eq!(refused, Err(RefusedAddress::Private("localhost".to_owned(), "this machine")));
    }

    #[test]
    fn the_host_of_a_proxy_is_found() {
        for (proxy, expected) in [
            ("http://proxy.example:3128", Some("proxy.example")),
            ("proxy.example:3128", Some("proxy.example")),
            (" socks5://me:secret@10.0.0.1:1080/ ", Some("10.0.0.1")),
            ("", None),
        ] {
            assert_eq!(host_of(proxy).as_deref(), expected, "{proxy}");
        }
    }

    #[tokio::test]
    async fn a_name_is_judged_by_where_it_leads() {
        let refused = Screen::public().resolve("localhost").await.unwrap_err();
        let refused = refused.downcast_ref::<RefusedAddress>().unwrap();
        assert_eq!(*refused, RefusedAddress::Private("localhost".to_owned(), "this machine"));
        let allowed = Screen::public().allowing("localhost").resolve("localhost").await.unwrap();
        assert!(allowed.iter().all(|found| found.ip().is_loopback()));
    }
}
