//! Multitap's own agent, behind the same link as the CLIs.
//!
//! A prompt comes in as a command; `turn` is the pure machine that says what happens next, `run` carries it out:
//! the model is asked (`model`), a call becomes a job (`tools`), the `policy` judges it, people are asked about it
//! (`question`), it runs. What happens goes out as events.
//!
//! Must not come in: the hub, doors, terminals, other agents.

mod chat;
mod conversation;
mod job;
mod launch;
mod mcp;
mod model;
mod policy;
mod question;
mod run;
mod slash;
mod tls;
mod tool;
mod tools;
mod turn;

pub use launch::{LaunchError, Setup, launch};
pub use slash::{SlashArgument, SlashCommand, commands};
