//! Child processes: how they start, talk in lines, and always end.
//!
//! Adapters and tools start programs here and nowhere else. A child is kept by a [`Keeper`]: either our own
//! binary as a small supervisor that ends every descendant even when we are killed, or, for programs that only
//! use the library, a process group that is killed on drop.
//!
//! Must not come in: events, agents, JSON of any agent.

mod lines;
mod spawn;
mod stop;

pub use lines::{Line, LineBuffer, Lines, MAX_LINE};
pub use spawn::{Child, Keeper, Program, SpawnError, Stdin, StdinClosed, StdinMode, spawn};
pub use stop::{Exit, Patience};
