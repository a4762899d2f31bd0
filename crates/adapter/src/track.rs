//! The books that a codec keeps, whatever its agent: the turn that runs, the tools at work, the questions asked.
//!
//! They keep the promises that every agent's events hold: one end for each turn and each tool call, and no question
//! that outlives its turn. No wire shape comes in here.

mod awaited;
mod calls;
mod question;
mod tool;
mod turn;

pub(crate) use awaited::Awaited;
pub(crate) use calls::Calls;
pub(crate) use question::{Open, Questions};
pub(crate) use tool::{Forgotten, OpenTool, Tools};
pub(crate) use turn::{Known, Turns, died};
