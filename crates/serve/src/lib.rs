//! Doors: live sessions for clients elsewhere, over HTTP and WebSocket.
//!
//! A request passes the guard, is parsed by its door, and becomes a call on a [`multitap_hub::Session`]. Events of the
//! session go out as that door's frames. A [`Host`] provides the sessions.
//!
//! Must not come in: agents, SQL, a terminal, settings files.

mod a2a;
mod acp;
mod error;
mod guard;
mod host;
mod http;
mod rpc;
mod ws;

pub use a2a::PushOptions;
pub use acp::serve_stdio;
pub use guard::{Access, AccessError, BadToken, Caller, SUBPROTOCOL, Scheme, TokenError, Tokens};
pub use host::{Host, Hosted, Opened, Peer, PeerIdentity, Wanted};
pub use http::{CardVersions, DoorConfig, DoorError, InvalidPublicUrl, Limits, OpenDoor, PublicUrl, ServiceConfig};
