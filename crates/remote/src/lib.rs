//! A session that runs elsewhere, as a [`multitap_hub::Session`] here.
//!
//! [`attach`] connects to a door of the process that owns the session, over TCP or a private socket, and joins with our
//! own events. A broken connection is replaced by one that continues after the last event. So clients of the session get
//! every event once, in order.
//!
//! Must not come in: agents, a terminal, settings files, what is shown to people beside errors.

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
