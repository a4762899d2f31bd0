//! A session that runs elsewhere, as a [`multitap_hub::Session`] here.
//!
//! [`attach`] connects to a door of the process that owns it, by TCP or by a private socket, joins, and keeps the
//! connection: a broken one is replaced by another that continues after the last event received. So every reader gets
//! every event once, in order.
//!
//! Must not come in: agents, a terminal, settings files, messages to people other than errors.

mod address;
mod attach;
mod calls;
mod dial;
mod run;
mod tls;
mod wire;

pub use address::{Address, BadAddress, Way};
pub use attach::{Attach, AttachError, Attached, attach};
pub use dial::Cut;
