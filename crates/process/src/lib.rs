//! Child processes: how they start, talk in lines, and always end.
//!
//! Adapters and tools start programs here and nowhere else. A child is kept by a [`Keeper`]: either our own
//! binary as a small supervisor that ends every descendant even when we are killed, or, for programs that only
//! use the library, a process group that is killed on drop.
//!
//! A binary that offers itself as the supervisor answers to [`SUPERVISE`] before it does anything else:
//!
//! ```no_run
//! use std::process::ExitCode;
//!
//! fn main() -> ExitCode {
//!     let mut args = std::env::args_os().skip(1).peekable();
//!     if args.next_if(|arg| arg == multitap_process::SUPERVISE).is_some() {
//!         return multitap_process::supervise(args);
//!     }
//!     // … the program proper, which spawns with `Keeper::own_binary()`
//!     ExitCode::SUCCESS
//! }
//! ```
//!
//! Must not come in: events, agents, JSON of any agent.

#[cfg(unix)]
mod default_signals;
#[cfg(unix)]
mod descendants;
mod foreground;
mod handle;
mod leftover;
#[cfg(unix)]
mod life_line;
mod lines;
#[cfg(unix)]
mod mark;
mod output;
mod peer;
mod quote;
#[cfg(unix)]
mod replace;
#[cfg(unix)]
mod secret;
mod spawn;
mod stderr;
mod stdin;
mod stop;
mod supervisor;

#[cfg(unix)]
pub use default_signals::unblock_signals;
pub use foreground::foreground;
pub use leftover::end_leftovers;
pub use lines::{Line, LineBuffer, Lines, MAX_LINE};
pub use peer::{Connector, LocalConnection, connectors, is_of_agent};
pub use quote::quote;
#[cfg(unix)]
pub use replace::replace;
#[cfg(unix)]
pub use secret::{HANDED_OVER, hide_from_others, kill_self, take_from_environment};
pub use spawn::{Child, Keeper, Program, SpawnError, StdinMode, spawn};
pub use stdin::{Stdin, StdinClosed};
pub use stop::{Exit, Moment, Patience};
pub use supervisor::{SUPERVISE, supervise};
