//! Doors: live sessions for clients elsewhere, over HTTP and WebSocket.
//!
//! A request passes the guard, is read by the door it came to, and becomes a call on a [`multitap_hub::Session`]; what
//! happens in the session goes out as that door's frames. Which sessions there are is the business of a [`Host`].
//!
//! Must not come in: agents, SQL, a terminal, settings files.

mod a2a;
mod error;
mod guard;
mod host;
mod http;
mod rpc;
mod ws;

pub use guard::{Access, AccessError, BadToken, Caller, SUBPROTOCOL, Scheme, SecurityScheme, TokenError, Tokens};
pub use host::{Host, Hosted, Opened, Peer, PeerIdentity, Wanted};
pub use http::{Door, DoorConfig, DoorError, Limits, PrivateConfig, ServiceConfig};
