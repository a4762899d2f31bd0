//! `GET /ws`: a WebSocket, on which each text frame is one JSON-RPC object.
//!
//! What stands in the address is checked before anything is upgraded, and so is the session to listen to. Then the
//! connection belongs to the protocol it named: A2A, or our own events. Both speak through a [`Socket`], which knows
//! how long a client may be silent or leave things unread.
//!
//! Must not come in: what frames and requests mean.

mod events;
mod incoming;
mod query;
mod requests;
mod socket;

use axum::Router;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{Extension, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use axum::routing::get;
use multitap_a2a::{Error, ErrorKind};
use multitap_event::Door as Way;
use multitap_hub::Session;

pub(crate) use self::incoming::Incoming;
use self::query::{Speech, Wanted};
pub(crate) use self::requests::{IN_FLIGHT, Requests};
pub(crate) use self::socket::{Close, Gone, Heard, Socket};
use crate::a2a;
use crate::guard::{Caller, SUBPROTOCOL};
use crate::http::{Seat, Shared, problem};

/// What is read from a socket at a time. A connection has this much for itself even if it is silent.
const READ_BUFFER: usize = 8 * 1024;
/// How much is gathered before it is written without being flushed.
const WRITE_BUFFER: usize = 64 * 1024;

pub(crate) fn routes() -> Router<Shared> {
    Router::new().route("/ws", get(enter))
}

async fn enter(
    State(door): State<Shared>,
    Extension(caller): Extension<Caller>,
    Extension(seat): Extension<Seat>,
    Query(query): Query<Vec<(String, String)>>,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Response {
    let wanted = match Wanted::read(&query) {
        Ok(wanted) => wanted,
        Err(wrong) => return problem(StatusCode::BAD_REQUEST, &wrong.to_string()),
    };
    let Ok(upgrade) = upgrade else {
        return problem(StatusCode::UPGRADE_REQUIRED, "this path is for WebSockets: come with an Upgrade");
    };
    let session = match find(&door, &wanted) {
        Ok(session) => session,
        Err(why) => return problem(StatusCode::NOT_FOUND, &why),
    };
    let limit = door.limits().body;
    let upgrade = upgrade
        .protocols([SUBPROTOCOL])
        .max_message_size(limit)
        .max_frame_size(limit)
        .read_buffer_size(READ_BUFFER)
        .write_buffer_size(WRITE_BUFFER);
    // The door waits for the connection when it closes, and the connection takes up a place for as long as it lasts.
    let held = (door.tasks().token(), seat);
    match wanted.speech {
        Speech::A2a { form, after } => {
            let extension = a2a::uses_extension(&headers);
            let hello = a2a::Hello { caller, form, extension, after, epoch: wanted.epoch };
            match a2a::Connection::new(door, hello, session).await {
                Ok(connection) => hand_over(upgrade, held, |socket| connection.run(socket)),
                Err(error) => refuse(&error),
            }
        }
        Speech::Events { after, door: way } => {
            // A program of the same user may say what it is; of anybody else it is known that they came over HTTP.
            let way = if door.guard().is_private() { way } else { Way::A2a };
            let client = caller.client(way);
            match events::Connection::new(door, client, session, after, wanted.epoch).await {
                Ok(connection) => hand_over(upgrade, held, |socket| connection.run(socket)),
                Err(error) => refuse(&error),
            }
        }
    }
}

/// Upgrades, and serves the client; what is held is let go of when it left.
fn hand_over<Served>(
    upgrade: WebSocketUpgrade,
    held: impl Send + 'static,
    serve: impl FnOnce(Socket) -> Served + Send + 'static,
) -> Response
where
    Served: Future<Output = ()> + Send + 'static,
{
    upgrade.on_upgrade(move |socket| async move {
        Box::pin(serve(Socket::new(socket))).await;
        drop(held);
    })
}

fn refuse(error: &Error) -> Response {
    let status = StatusCode::from_u16(error.http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    problem(status, &error.message)
}

/// The session to listen to: the one it names, else the one that everybody shares, if there is one.
fn find(door: &Shared, wanted: &Wanted) -> Result<Option<Session>, String> {
    let Some(id) = &wanted.session else { return Ok(door.host().shared()) };
    match door.host().find(id) {
        Some(session) => Ok(Some(session)),
        None => Err(format!("session={id}: there is no such live session here")),
    }
}

/// The seam for ACP: a first frame `initialize` is to hand the connection over to it. Until then the client is told.
pub(crate) fn is_acp(method: &str) -> Option<Error> {
    let why = "initialize is ACP, which is not spoken on this connection yet: it is to come with `multitap acp`";
    (method == "initialize").then(|| Error::new(ErrorKind::MethodNotFound, why))
}

pub(crate) fn no_binary() -> Error {
    let why = "binary frames are not taken: each text frame is one JSON-RPC object";
    Error::new(ErrorKind::InvalidRequest, why)
}

pub(crate) fn too_large(most: usize) -> Error {
    Error::new(ErrorKind::InvalidRequest, format!("a frame has at most {most} bytes"))
}
