//! Where the agent may reach out to: names are looked up here, and what they lead to is screened.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// What may be reached.
#[derive(Debug, Clone, Default)]
pub(crate) struct Screen {
    /// Also this machine and the network around it.
    pub(crate) allow_private: bool,
    /// Hosts that may be reached wherever they are, as `host:port`.
    pub(crate) hosts: Vec<String>,
}

/// Why something may not be reached.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    #[error("only http and https are fetched, not {0}")]
    Scheme(String),
    #[error("an address with a user name or a password in it is not fetched")]
    Credentials,
    #[error("it names no host")]
    NoHost,
    #[error("{0} is {1}, which is not fetched from")]
    Private(String, &'static str),
    #[error("{0} is not known")]
    Unknown(String),
}

impl Screen {
    /// Screens an address as it is written. Where a name leads is seen by [`Screen::find`] alone.
    pub(super) fn url(&self, url: &Url) -> Result<(), Refused> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(Refused::Scheme(url.scheme().to_owned()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Refused::Credentials);
        }
        let host = host(url)?;
        match literal(host) {
            Some(address) => self.address(url, host, address),
            None => Ok(()),
        }
    }

    /// Screens an address and everything its name leads to.
    pub(super) async fn find(&self, url: &Url) -> Result<Found, Refused> {
        self.url(url)?;
        let host = host(url)?;
        if literal(host).is_some() {
            return Ok(Found::default()); // what is written is what is connected to
        }
        let unknown = |_| Refused::Unknown(host.to_owned());
        let found: Vec<SocketAddr> = tokio::net::lookup_host((host, 0)).await.map_err(unknown)?.collect();
        // One bad address is enough: who answers so does not mean well.
        for address in &found {
            self.address(url, host, address.ip())?;
        }
        Ok(Found(found))
    }

    fn address(&self, url: &Url, host: &str, address: IpAddr) -> Result<(), Refused> {
        let named = url.port_or_known_default().map(|port| format!("{host}:{port}"));
        let exempt = self.allow_private || named.is_some_and(|named| self.hosts.contains(&named));
        match private(address) {
            Some(what) if !exempt => Err(Refused::Private(host.to_owned(), what)),
            _ => Ok(()),
        }
    }
}

fn host(url: &Url) -> Result<&str, Refused> {
    url.host_str().filter(|host| !host.is_empty()).ok_or(Refused::NoHost)
}

/// The host, if it is an address and no name.
fn literal(host: &str) -> Option<IpAddr> {
    host.trim_matches(['[', ']']).parse().ok()
}

/// Where a name leads, screened. Whoever asks it gets this and nothing else, so that a name cannot change its mind
/// between being screened and being connected to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Found(Vec<SocketAddr>);

impl Resolve for Found {
    fn resolve(&self, _: Name) -> Resolving {
        let found: Addrs = Box::new(self.0.clone().into_iter());
        Box::pin(async move { Ok(found) })
    }
}

/// What kind of address it is, if it is not one of the open internet.
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
        (192, 0, 0) => "an address kept for protocols",
        (192, 0, 2) | (198, 51, 100) | (203, 0, 113) => "an address kept for documentation",
        (198, 18..=19, _) => "an address kept for measurements",
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
        0x2001 if segments[1] == 0x0db8 => "an address kept for documentation",
        0x2000..=0x3fff => return None,
        _ => "a reserved address",
    })
}

/// The IPv4 address that an IPv6 address stands for: mapped, compatible, translated (NAT64), 6to4.
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
        let screen = Screen::default();
        for bad in [
            "http://127.0.0.1/",
            "http://127.1/",
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
            assert!(screen.url(&Url::parse(bad).unwrap()).is_err(), "{bad}");
        }
        assert_eq!(screen.url(&Url::parse("https://example.com/a?b").unwrap()), Ok(()));
    }

    #[test]
    fn what_is_exempt_is_exempt_with_its_port_alone() {
        let screen = Screen { hosts: vec!["127.0.0.1:8080".to_owned()], ..Screen::default() };
        assert_eq!(screen.url(&Url::parse("http://127.0.0.1:8080/").unwrap()), Ok(()));
        assert!(screen.url(&Url::parse("http://127.0.0.1:8081/").unwrap()).is_err());
        let open = Screen { allow_private: true, ..Screen::default() };
        assert_eq!(open.url(&Url::parse("http://[::1]:8081/").unwrap()), Ok(()));
    }

    #[tokio::test]
    async fn a_name_is_judged_by_where_it_leads() {
        let url = Url::parse("http://localhost:8080/").unwrap();
        let refused = Screen::default().find(&url).await.unwrap_err();
        assert_eq!(refused, Refused::Private("localhost".to_owned(), "this machine"));
        let exempt = Screen { hosts: vec!["localhost:8080".to_owned()], ..Screen::default() };
        assert!(exempt.find(&url).await.unwrap().0.iter().all(|found| found.ip().is_loopback()));
        let elsewhere = Url::parse("http://localhost:8081/").unwrap();
        assert!(exempt.find(&elsewhere).await.is_err());
    }
}
