//! The trait for sending messages to the client and receiving them.

use axum::extract::ws::Utf8Bytes;

use super::message::Fault;
use super::stdio::Stdio;
use super::websocket::{CloseReason, Socket};

#[derive(Debug)]
pub(crate) enum Transport {
    WebSocket(Box<Socket>),
    Stdio(Stdio),
}

/// The client is not there any more, or does not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Disconnected;

/// Input of a transport.
#[derive(Debug)]
pub(super) enum Received {
    Text(Utf8Bytes),
    /// A message that cannot be read; later messages can.
    Fault(Fault),
    /// The client says nothing more, and may still read.
    Over,
    /// Nothing more can be read.
    Broken {
        fault: Option<Fault>,
        close: CloseReason,
    },
}

impl Transport {
    /// Cancel safe.
    pub(super) async fn receive(&mut self, limit: usize) -> Result<Received, Disconnected> {
        match self {
            Self::WebSocket(socket) => socket.receive(limit).await,
            Self::Stdio(stdio) => stdio.receive(limit).await,
        }
    }

    /// Comes back when a message can be sent. Cancel safe.
    pub(super) async fn ready(&mut self) -> Result<(), Disconnected> {
        match self {
            Self::WebSocket(socket) => socket.ready().await,
            Self::Stdio(stdio) => stdio.ready().await,
        }
    }

    /// Takes a message, once it is [`Self::ready`]. It goes out with others when it is flushed.
    pub(super) fn start_send(&mut self, text: String) -> Result<(), Disconnected> {
        match self {
            Self::WebSocket(socket) => socket.start_send(text),
            Self::Stdio(stdio) => {
                stdio.start_send(&text);
                Ok(())
            }
        }
    }

    /// Whether more should wait until this is sent.
    pub(super) fn is_full(&self) -> bool {
        match self {
            Self::WebSocket(socket) => socket.is_full(),
            Self::Stdio(stdio) => stdio.is_full(),
        }
    }

    /// Sends what was taken. A client that leaves it unread for too long is gone. Cancel safe.
    pub(super) async fn flush(&mut self) -> Result<(), Disconnected> {
        match self {
            Self::WebSocket(socket) => socket.flush().await,
            Self::Stdio(stdio) => stdio.flush().await,
        }
    }

    /// Ends the connection, and says why where the transport can.
    pub(super) async fn close(self, why: CloseReason) {
        match self {
            Self::WebSocket(socket) => socket.close(why).await,
            Self::Stdio(mut stdio) => {
                stdio.flush().await.ok(); // it is the end either way
            }
        }
    }
}
