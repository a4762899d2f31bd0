//! The client against agents that answer by a script: as both dialects say, and as no dialect says.

mod calls;
mod commands;
mod discovery;
mod rest;
mod server;
mod streams;
mod trouble;
