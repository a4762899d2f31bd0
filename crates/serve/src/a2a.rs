//! The A2A door.

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

use crate::http::{Shared, problem};

/// Its paths.
pub(crate) fn routes() -> Router<Shared> {
    Router::new()
}

/// The agent card, which also stands at `GET /` for everybody but browsers.
#[expect(clippy::unused_async, reason = "a handler")]
pub(crate) async fn card(State(_door): State<Shared>) -> Response {
    problem(StatusCode::NOT_FOUND, "there is no agent card here")
}
