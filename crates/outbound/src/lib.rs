//! HTTP that leaves the machine: how a client is built, whom TLS trusts, and which addresses may be reached.
//!
//! Every HTTP client of Multitap begins with [`Endpoint::client`]. Addresses that a model or a remote agent names are
//! checked by a [`Screen`]: as they are written, and again by where their names lead when the client connects. Whoever
//! speaks TLS without HTTP takes its settings from [`tls_config`].
//! Must not come in: what requests mean, credentials, retries.

mod cause;
mod endpoint;
mod retry_after;
mod screen;
mod tls;

pub use cause::{causes, error_chain};
pub use endpoint::{BuildError, Endpoint, is_loopback};
pub use retry_after::retry_after;
pub use screen::{RefusedAddress, Screen};
pub use tls::tls_config;
