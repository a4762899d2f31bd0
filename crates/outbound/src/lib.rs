//! HTTP that leaves the machine: the client builder, TLS roots, and address screening.
//!
//! Every HTTP client of Multitap begins with [`Endpoint::client`]. Addresses that a model or a remote agent names are
//! checked by a [`Screen`]: as written, and again after name resolution when the client connects. TLS without HTTP
//! uses [`tls_config`].
//!
//! Must not come in: what requests mean, credentials, retries.

mod cause;
mod endpoint;
mod retry_after;
mod screen;
mod tls;

pub use cause::{causes, error_chain, refused_address};
pub use endpoint::{BuildError, Endpoint, is_loopback};
pub use retry_after::retry_after;
pub use screen::{RefusedAddress, Screen};
pub use tls::tls_config;
