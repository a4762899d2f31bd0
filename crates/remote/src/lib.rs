//! A session that runs elsewhere, as a [`multitap_hub::Session`] here.
//!
//! [`attach`] goes to a door of the process that owns it, by TCP or by a private socket, joins with our own events, and
//! keeps the way open: when it breaks another is made, which goes on after the last event that came. So whoever looks
//! at the session gets every event once, in order, whatever is cut where.
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
