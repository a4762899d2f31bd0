//! Which user of this machine is at the other end of a loopback connection. Linux says it in `/proc/net/tcp` and
//! `/proc/net/tcp6`: the client's socket has a row there, with the user it belongs to.

use std::net::SocketAddr;

/// Whose connection it is; among the extensions of each of its requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PeerUser {
    /// Ours, or nobody asked because tokens say who comes.
    Same,
    /// Somebody else's, or the system does not say.
    Other,
}

/// Whose socket the connection from `peer` to `own` is.
#[cfg(target_os = "linux")]
pub(crate) async fn user_of(peer: SocketAddr, own: SocketAddr) -> PeerUser {
    let uid = rustix::process::geteuid().as_raw();
    // The kernel writes these tables while they are read: not on a thread that others wait for.
    let found = tokio::task::spawn_blocking(move || linux::uid(peer, own)).await;
    if found.is_ok_and(|found| found == Some(uid)) { PeerUser::Same } else { PeerUser::Other }
}

/// Other systems have no such table: whoever reaches a loopback door without tokens is let in.
#[cfg(not(target_os = "linux"))]
#[expect(clippy::unused_async, reason = "as where there is a table")]
pub(crate) async fn user_of(_: SocketAddr, _: SocketAddr) -> PeerUser {
    PeerUser::Same
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs::File;
    use std::io::{BufRead, BufReader};
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

    const TABLES: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];
    /// The state of a connection that is open at both ends. A socket that its process closed has no user any more, and
    /// its row says 0.
    const ESTABLISHED: &str = "01";

    pub(super) fn uid(peer: SocketAddr, own: SocketAddr) -> Option<u32> {
        TABLES.iter().find_map(|table| find(BufReader::new(File::open(table).ok()?), peer, own))
    }

    /// The user of the open socket that has the local address `peer` and the remote address `own`.
    fn find(table: impl BufRead, peer: SocketAddr, own: SocketAddr) -> Option<u32> {
        let is_same = |one: SocketAddr, other: SocketAddr| {
            one.port() == other.port() && one.ip().to_canonical() == other.ip().to_canonical()
        };
        table.lines().map_while(Result::ok).find_map(|line| {
            let mut fields = line.split_ascii_whitespace();
            let (local, remote) = (address(fields.nth(1)?)?, address(fields.next()?)?);
            let is_open = fields.next()? == ESTABLISHED;
            // Between the state and the user: queues, timer, retransmissions.
            let uid = fields.nth(3)?.parse().ok()?;
            (is_open && is_same(local, peer) && is_same(remote, own)).then_some(uid)
        })
    }

    /// `0100007F:1F90`: words of 32 bits in the machine's byte order, and the port.
    fn address(text: &str) -> Option<SocketAddr> {
        let (host, port) = text.split_once(':')?;
        let word = |at: usize| {
            let word = u32::from_str_radix(host.get(at..at + 8)?, 16).ok()?;
            Some(word.to_ne_bytes())
        };
        let ip = match host.len() {
            8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
            32 => {
                let mut bytes = [0; 16];
                for (part, at) in bytes.chunks_exact_mut(4).zip((0..).step_by(8)) {
                    part.copy_from_slice(&word(at)?);
                }
                IpAddr::V6(Ipv6Addr::from(bytes))
            }
            _ => return None,
        };
        Some(SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?))
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        const HEAD: &str =
            "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";

        /// A row as the kernel writes it on a little-endian machine.
        fn row(local: &str, remote: &str, state: &str, uid: u32) -> String {
            format!(
                "   1: {local} {remote} {state} 00000000:00000000 00:00000000 00000000 {uid:5}        0 4711 1 \
                 0000000000000000 20 4 30 10 -1\n"
            )
        }

        fn at(text: &str) -> SocketAddr {
            text.parse().unwrap()
        }

        #[cfg(target_endian = "little")]
        #[test]
        fn the_clients_row_is_found_and_no_other() {
            let (client, server) = ("0100007F:C350", "0100007F:1004");
            let rows = [
                row(server, "00000000:0000", "0A", 7),
                row(server, client, "01", 7),
                row("0100007F:C351", server, "01", 8),
                row(client, "0100007F:1005", "01", 9),
                row(client, server, "01", 1000),
            ];
            let table = HEAD.to_owned() + &rows.concat();
            let found = |peer, own| find(table.as_bytes(), at(peer), at(own));
            assert_eq!(found("127.0.0.1:50000", "127.0.0.1:4100"), Some(1000));
            assert_eq!(found("127.0.0.1:50001", "127.0.0.1:4100"), Some(8));
            assert_eq!(found("127.0.0.1:50002", "127.0.0.1:4100"), None);
            assert_eq!(found("127.0.0.2:50000", "127.0.0.1:4100"), None);
        }

        #[cfg(target_endian = "little")]
        #[test]
        fn addresses_of_version_six_are_read_also_mapped_ones() {
            let one = "00000000000000000000000001000000";
            let mapped = "0000000000000000FFFF00000100007F";
            let rows = [
                row(&format!("{one}:C350"), &format!("{one}:1004"), "01", 1000),
                row(&format!("{mapped}:C350"), &format!("{mapped}:1004"), "01", 1001),
            ];
            let table = HEAD.to_owned() + &rows.concat();
            let found = |peer, own| find(table.as_bytes(), at(peer), at(own));
            assert_eq!(found("[::1]:50000", "[::1]:4100"), Some(1000));
            assert_eq!(found("127.0.0.1:50000", "127.0.0.1:4100"), Some(1001));
            assert_eq!(found("[::ffff:127.0.0.1]:50000", "[::ffff:127.0.0.1]:4100"), Some(1001));
        }

        /// The kernel writes 0 for a socket that nobody has any more: that is not root.
        #[cfg(target_endian = "little")]
        #[test]
        fn a_connection_that_its_client_closed_is_nobodys() {
            for state in ["04", "05", "06", "08"] {
                let table = HEAD.to_owned() + &row("0100007F:C350", "0100007F:1004", state, 0);
                assert_eq!(find(table.as_bytes(), at("127.0.0.1:50000"), at("127.0.0.1:4100")), None, "{state}");
            }
        }

        #[test]
        fn what_is_no_table_says_nothing() {
            let long = "x ".repeat(100_000);
            for text in ["", "\n\n", "1: :: :: 01", "1: 0100007F:C350", "1: zz:1 zz:2 01 a b c 1", &long] {
                assert_eq!(find(text.as_bytes(), at("127.0.0.1:1"), at("127.0.0.1:2")), None);
            }
        }

        #[test]
        fn our_own_connection_is_ours() {
            for place in ["127.0.0.1:0", "[::1]:0"] {
                let Ok(listener) = std::net::TcpListener::bind(place) else { continue };
                let client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
                let (_server, peer) = listener.accept().unwrap();
                let found = uid(peer, client.peer_addr().unwrap());
                assert_eq!(found, Some(rustix::process::geteuid().as_raw()), "{place}");
            }
        }
    }
}
