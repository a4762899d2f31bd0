//! The kernel's table of TCP sockets, `/proc/net/tcp` and `/proc/net/tcp6`: who owns the other end of a connection.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::{IpAddr, SocketAddr};

use super::LocalConnection;

const FILES: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];

/// The socket at the other end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Row {
    /// The user id that owns it.
    pub(super) owner: u32,
    pub(super) inode: u64,
}

/// The rows of some connections, read at once.
#[derive(Debug, Default)]
pub(super) struct Table {
    is_known: bool,
    rows: HashMap<LocalConnection, Row>,
}

impl Table {
    pub(super) fn read(connections: &[LocalConnection]) -> Self {
        let wanted: HashSet<LocalConnection> = connections.iter().map(canonical).collect();
        let mut table = Self::default();
        for file in FILES.into_iter().filter_map(|file| File::open(file).ok()) {
            table.is_known = true;
            table.extend(BufReader::new(file), &wanted);
        }
        table
    }

    /// Whether this system has such a table.
    pub(super) fn is_known(&self) -> bool {
        self.is_known
    }

    /// The socket at the other end; `None` if no process has it open.
    pub(super) fn row(&self, connection: &LocalConnection) -> Option<Row> {
        self.rows.get(&canonical(connection)).copied()
    }

    fn extend(&mut self, table: impl BufRead, wanted: &HashSet<LocalConnection>) {
        for line in table.lines().map_while(Result::ok) {
            if let Some((connection, row)) = parse(&line)
                && wanted.contains(&connection)
            {
                self.rows.insert(connection, row);
            }
        }
    }
}

/// IPv4 addresses may be in the table of IPv6.
fn canonical(connection: &LocalConnection) -> LocalConnection {
    let canonical = |address: SocketAddr| SocketAddr::new(address.ip().to_canonical(), address.port());
    LocalConnection { peer: canonical(connection.peer), own: canonical(connection.own) }
}

/// Parses a line. A socket that its process closed has no owner: the kernel writes 0 as owner and inode, which does
/// not mean root.
fn parse(line: &str) -> Option<(LocalConnection, Row)> {
    let mut fields = line.split_ascii_whitespace();
    let connection = LocalConnection { peer: address(fields.nth(1)?)?, own: address(fields.next()?)? };
    // In between: state, queues, timer, retransmissions; then the timeout.
    let (owner, inode) = (fields.nth(4)?.parse().ok()?, fields.nth(1)?.parse().ok()?);
    (inode != 0).then_some((canonical(&connection), Row { owner, inode }))
}

/// Parses an address in the kernel's format, `0100007F:1F90`: words of four bytes in the machine's byte order, and
/// the port.
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let words = ip.as_bytes().chunks(8).map(|word| {
        let word = std::str::from_utf8(word).ok()?;
        Some(u32::from_str_radix(word, 16).ok()?.to_ne_bytes())
    });
    let bytes = words.collect::<Option<Vec<[u8; 4]>>>()?.concat();
    let ip = match bytes.len() {
        4 => IpAddr::from(<[u8; 4]>::try_from(bytes).ok()?),
        _ => IpAddr::from(<[u8; 16]>::try_from(bytes).ok()?),
    };
    Some(SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str =
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";

    /// A row as the kernel writes it on a little-endian machine.
    fn row(local: &str, remote: &str, state: &str, (uid, inode): (u32, u64)) -> String {
        format!(
            "   1: {local} {remote} {state} 00000000:00000000 00:00000000 00000000 {uid:5}        0 {inode} 1 \
             0000000000000000 20 4 30 10 -1\n"
        )
    }

    fn owner(table: &str, peer: &str, own: &str) -> Option<u32> {
        let connection = LocalConnection { peer: peer.parse().unwrap(), own: own.parse().unwrap() };
        let mut read = Table::default();
        read.extend(table.as_bytes(), &HashSet::from([canonical(&connection)]));
        read.row(&connection).map(|row| row.owner)
    }

    #[cfg(target_endian = "little")]
    #[test]
    fn the_clients_row_is_found_and_no_other() {
        let (client, server) = ("0100007F:C350", "0100007F:1004");
        let rows = [
            row(server, "00000000:0000", "0A", (7, 1)),
            row(server, client, "01", (7, 2)),
            row("0100007F:C351", server, "01", (8, 3)),
            row(client, "0100007F:1005", "01", (9, 4)),
            row(client, server, "01", (1000, 5)),
        ];
        let table = HEAD.to_owned() + &rows.concat();
        assert_eq!(owner(&table, "127.0.0.1:50000", "127.0.0.1:4100"), Some(1000));
        assert_eq!(owner(&table, "127.0.0.1:50001", "127.0.0.1:4100"), Some(8));
        assert_eq!(owner(&table, "127.0.0.1:50002", "127.0.0.1:4100"), None);
        assert_eq!(owner(&table, "127.0.0.2:50000", "127.0.0.1:4100"), None);
    }

    #[cfg(target_endian = "little")]
    #[test]
    fn addresses_of_version_six_are_read_also_mapped_ones() {
        let one = "00000000000000000000000001000000";
        let mapped = "0000000000000000FFFF00000100007F";
        let rows = [
            row(&format!("{one}:C350"), &format!("{one}:1004"), "01", (1000, 1)),
            row(&format!("{mapped}:C350"), &format!("{mapped}:1004"), "01", (1001, 2)),
        ];
        let table = HEAD.to_owned() + &rows.concat();
        assert_eq!(owner(&table, "[::1]:50000", "[::1]:4100"), Some(1000));
        assert_eq!(owner(&table, "127.0.0.1:50000", "127.0.0.1:4100"), Some(1001));
        assert_eq!(owner(&table, "[::ffff:127.0.0.1]:50000", "[::ffff:127.0.0.1]:4100"), Some(1001));
    }

    /// A client that closed has no row any more, or an empty one. One that closed only its sending half still has it.
    #[cfg(target_endian = "little")]
    #[test]
    fn a_connection_that_its_client_closed_is_nobodys() {
        let (client, server) = ("0100007F:C350", "0100007F:1004");
        for state in ["04", "05", "06", "08"] {
            let closed = HEAD.to_owned() + &row(client, server, state, (0, 0));
            assert_eq!(owner(&closed, "127.0.0.1:50000", "127.0.0.1:4100"), None, "{state}");
            let reused = closed + &row(client, server, "01", (1000, 1));
            assert_eq!(owner(&reused, "127.0.0.1:50000", "127.0.0.1:4100"), Some(1000), "{state}");
        }
        let half_closed = row(client, server, "05", (1000, 1));
        assert_eq!(owner(&half_closed, "127.0.0.1:50000", "127.0.0.1:4100"), Some(1000));
    }

    #[test]
    fn what_is_no_table_says_nothing() {
        let long = "x ".repeat(100_000);
        for text in ["", "\n\n", "1: :: :: 01", "1: 0100007F:C350", "1: zz:1 zz:2 01 a b c 1", "1: é:1 x:1", &long] {
            assert_eq!(owner(text, "127.0.0.1:1", "127.0.0.1:2"), None);
        }
        for noise in ["", "x:1", "0100007F", ":1"] {
            assert_eq!(address(noise), None, "{noise:?}");
        }
    }
}
