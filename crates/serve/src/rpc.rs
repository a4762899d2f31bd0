//! JSON-RPC 2.0 with one client: requests, responses and notifications in both directions, over a WebSocket or stdio.
//!
//! A protocol gives its transport to a [`Peer`] and implements the methods. The peer has the only read loop of the
//! connection and checks ids and limits. Each protocol writes its own errors.
//!
//! Must not come in: names of methods, errors of a protocol, sessions.

mod call;
mod message;
mod peer;
mod stdio;
#[cfg(test)]
mod tests;
mod transport;
mod websocket;

pub(crate) use self::call::Pending;
pub(crate) use self::message::{CLOSING, Fault, Invalid, Posted, Request, RequestId, opening, response};
pub(crate) use self::peer::{Incoming, Peer};
pub(crate) use self::stdio::Stdio;
pub(crate) use self::transport::{Disconnected, Transport};
pub(crate) use self::websocket::{CloseReason, Socket};
