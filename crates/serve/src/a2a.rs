//! The A2A door: requests in both dialects, frames of sessions as their answers.
//!
//! Inward: `http`, `rest` or `ws` reads a request, `service` says what it means for which session and does it. Outward: `stage` reads
//! a session's log, `project` makes frames of its events, `encode` writes them, `sse` and `ws` send
//! them.

mod artifact;
mod card;
mod coders;
mod cursor;
mod decode;
mod encode;
mod follow;
mod frame;
mod grpc;
mod head;
mod history;
mod http;
mod keep;
mod name;
mod past;
mod project;
mod repair;
mod rest;
mod service;
mod sse;
mod stage;
mod stages;
#[cfg(test)]
mod tests;
mod uri;
mod ws;

use axum::Router;
use axum::routing::{get, post};

pub(crate) use self::card::card;
pub(crate) use self::cursor::{Cursor, NoCursor};
pub(crate) use self::frame::Form;
pub(crate) use self::grpc::in_kind;
pub(crate) use self::head::{Params, uses_extension};
pub(crate) use self::rest::call as call_path;
pub(crate) use self::service::Service;
pub(crate) use self::ws::{Connection, Hello};
use crate::http::Shared;

/// Its paths.
pub(crate) fn routes() -> Router<Shared> {
    Router::new()
        .route("/", post(http::call))
        .route(&grpc::route(), post(grpc::call))
        .route("/.well-known/agent-card.json", get(card))
        .route("/.well-known/agent.json", get(card))
        .route("/listCommands", get(http::list_commands))
        .route("/executeCommand", post(http::execute_command))
}
