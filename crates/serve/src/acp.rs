//! The ACP door: editors and other ACP clients, over WebSocket or stdio, on the same sessions as everybody else.
//!
//! A request becomes a call on a [`Session`](multitap_hub::Session) or on the host, and events become session updates.
//! The types on the wire are those of `agent-client-protocol-schema`, version 1 of the protocol.
//!
//! Must not come in: A2A, agents, what a session is.

mod attach;
mod attachment;
mod config;
mod connection;
mod decode;
mod encode;
mod error;
mod features;
mod fence;
mod join;
mod question;
mod setting;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use multitap_event::ClientRef;
use multitap_hub::STUCK;
use tokio::io::{AsyncBufRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

pub(crate) use self::connection::Connection;
use crate::host::Host;
use crate::http::DoorState;
use crate::rpc::{Peer, Stdio, Transport};

/// The notification that takes a request back, in either direction.
pub(crate) const CANCEL_REQUEST: &str = "$/cancel_request";
/// The request that begins every ACP connection.
pub(crate) const INITIALIZE: &str = "initialize";

/// Serves one client over two pipes until it leaves or `stop` is cancelled. `initialize` gives the client a name.
pub async fn serve_stdio(
    client: ClientRef,
    host: Arc<dyn Host>,
    reader: impl AsyncBufRead + Send + Unpin + 'static,
    writer: impl AsyncWrite + Send + Unpin + 'static,
    stop: CancellationToken,
) {
    let door = Arc::new(DoorState::without_address(host, stop));
    let transport = Transport::Stdio(Stdio::new(reader, writer, STUCK));
    let limit = door.entrance.limits.body;
    let tasks = door.tasks.clone();
    Connection::new(door, client).run(Peer::new(transport, limit, Some(CANCEL_REQUEST)), None).await;
    tasks.close();
    tasks.wait().await;
}
