//! Resolves names to addresses and binds them, all on one port.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use tokio::net::{TcpListener, lookup_host};

use super::DoorError;

/// Maximum attempts to find a port that is free on all addresses.
const ATTEMPTS: usize = 16;

/// The addresses of a name. A loopback address includes the other one, because `localhost` may mean either.
pub(super) async fn addresses(host: &str) -> Result<Vec<IpAddr>, DoorError> {
    let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    let loopback = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
    match bare.parse::<IpAddr>() {
        Ok(address) if loopback.contains(&address) => return Ok(loopback.to_vec()),
        Ok(address) => return Ok(vec![address]),
        Err(_) if bare.eq_ignore_ascii_case("localhost") => return Ok(loopback.to_vec()),
        Err(_) => {}
    }
    let unknown = |source| DoorError::Unknown { host: host.to_owned(), source };
    let mut found: Vec<IpAddr> = Vec::new();
    for address in lookup_host((bare, 0)).await.map_err(unknown)? {
        if !found.contains(&address.ip()) {
            found.push(address.ip());
        }
    }
    if found.is_empty() { Err(unknown(ErrorKind::NotFound.into())) } else { Ok(found) }
}

/// Listens on all of them, on one port.
pub(super) async fn listen(addresses: &[IpAddr], port: u16) -> Result<Vec<TcpListener>, DoorError> {
    let mut attempt = 0;
    loop {
        attempt += 1;
        match listen_once(addresses, port).await {
            // The port is free on one address, but not on another.
            Err(DoorError::InUse { .. }) if port == 0 && attempt < ATTEMPTS => {}
            other => return other,
        }
    }
}

async fn listen_once(addresses: &[IpAddr], mut port: u16) -> Result<Vec<TcpListener>, DoorError> {
    let mut listeners = Vec::new();
    for ip in addresses {
        let address = SocketAddr::new(*ip, port);
        match TcpListener::bind(address).await {
            Ok(listener) => {
                port = listener.local_addr().map_or(port, |bound| bound.port());
                listeners.push(listener);
            }
            Err(error) if error.kind() == ErrorKind::AddrInUse => return Err(DoorError::InUse { address }),
            // A machine without IPv6 lacks this address; the others suffice.
            Err(error) if !listeners.is_empty() => {
                tracing::debug!(%address, %error, "not listening there");
            }
            Err(source) => return Err(DoorError::Bind { address, source }),
        }
    }
    Ok(listeners)
}

/// The URL for people and clients.
pub(super) fn url(host: &str, port: u16) -> String {
    match host.parse::<IpAddr>() {
        Ok(IpAddr::V6(address)) => format!("http://[{address}]:{port}"),
        _ => format!("http://{host}:{port}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_written_as_browsers_take_it() {
        for (host, shown) in [
            ("127.0.0.1", "http://127.0.0.1:80"),
            ("localhost", "http://localhost:80"),
            ("::1", "http://[::1]:80"),
            ("[::1]", "http://[::1]:80"),
        ] {
            assert_eq!(url(host, 80), shown);
        }
    }

    #[tokio::test]
    async fn one_port_for_all_and_none_that_somebody_has() {
        let both = addresses("localhost").await.unwrap();
        assert_eq!(both.len(), 2);
        let listeners = listen(&both, 0).await.unwrap();
        let ports: Vec<u16> = listeners.iter().map(|listener| listener.local_addr().unwrap().port()).collect();
        assert!(ports.iter().all(|port| *port == ports[0] && *port != 0), "{ports:?}");
        let error = listen(&both, ports[0]).await.unwrap_err();
        assert!(matches!(error, DoorError::InUse { .. }), "{error}");
    }
}
