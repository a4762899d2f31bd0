//! `GET /ws`: a WebSocket, on which each text frame is one JSON-RPC object.
//!
//! What stands in the address is checked before anything is upgraded, and so is the session to listen to. Then the
//! connection belongs to the protocol it named: A2A, or our own events. An A2A connection whose first request is `initialize`
//! becomes an ACP connection. Each protocol runs on a [`Peer`] of its own.
//!
//! Must not come in: what frames and requests mean.

mod events;
mod query;

use axum::Router;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{Extension, Query, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use axum::routing::get;
use multitap_a2a::Error;
use multitap_event::{ClientId, Door as Way};
use multitap_hub::Session;

use self::query::{Speech, Wanted};
use crate::error;
use crate::guard::{Caller, SUBPROTOCOL};
use crate::http::{Seat, Shared, problem};
use crate::rpc::{Peer, Socket, Transport};
use crate::{a2a, acp};

/// Names the connection to an ACP client.
const CONNECTION_ID: HeaderName = HeaderName::from_static("acp-connection-id");
/// Size of a read from a socket. A connection holds such a buffer even while it is silent.
const READ_BUFFER: usize = 8 * 1024;
/// How much is gathered before it is written without being flushed.
const WRITE_BUFFER: usize = 64 * 1024;

pub(crate) fn routes() -> Router<Shared> {
    Router::new().route("/ws", get(enter)).route("/acp", get(enter_acp))
}

/// `GET /acp`: ACP from the first frame on, without parameters.
async fn enter_acp(
    State(door): State<Shared>,
    Extension(caller): Extension<Caller>,
    Extension(seat): Extension<Seat>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Response {
    let Ok(upgrade) = upgrade else {
        return problem(StatusCode::UPGRADE_REQUIRED, "this path is for WebSockets: send an Upgrade");
    };
    let limit = door.entrance.limits.body;
    let held = (door.tasks.token(), seat);
    let connection = acp::Connection::new(door, caller.client(Way::Acp));
    let mut response = bounded(upgrade, limit).on_upgrade(move |socket| async move {
        let transport = Transport::WebSocket(Box::new(Socket::new(socket)));
        Box::pin(connection.run(Peer::new(transport, limit, Some(acp::CANCEL_REQUEST)), None)).await;
        drop(held);
    });
    // Required by the protocol's remote transport; the connection ends with its socket, so nothing asks for it again.
    if let Ok(id) = HeaderValue::from_str(ClientId::fresh().as_str()) {
        response.headers_mut().insert(CONNECTION_ID, id);
    }
    response
}

/// The upgrade with the limits of this door.
fn bounded(upgrade: WebSocketUpgrade, limit: usize) -> WebSocketUpgrade {
    upgrade
        .protocols([SUBPROTOCOL])
        .max_message_size(limit)
        .max_frame_size(limit)
        .read_buffer_size(READ_BUFFER)
        .write_buffer_size(WRITE_BUFFER)
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
        return problem(StatusCode::UPGRADE_REQUIRED, "this path is for WebSockets: send an Upgrade");
    };
    let session = match find(&door, &wanted) {
        Ok(session) => session,
        Err(why) => return problem(StatusCode::NOT_FOUND, &why),
    };
    let limit = door.entrance.limits.body;
    let upgrade = bounded(upgrade, limit);
    // Held while the connection is open: the door waits for it when closing, and it counts towards the limit of
    // connections.
    let held = (door.tasks.token(), seat);
    match wanted.speech {
        Speech::A2a { form, after } => {
            let extension = a2a::uses_extension(&headers);
            let (caller_of_acp, is_bare) = (caller.clone(), query.is_empty());
            let hello = a2a::Hello { caller, form, extension, is_bare, after, epoch: wanted.epoch };
            match a2a::Connection::new(door.clone(), hello, session).await {
                Ok(connection) => hand_over(upgrade, held, limit, async move |peer| {
                    if let Some((peer, request)) = connection.run(peer).await {
                        let peer = peer.hand_over(Some(acp::CANCEL_REQUEST), &request.id);
                        acp::Connection::new(door, caller_of_acp.client(Way::Acp)).run(peer, Some(request)).await;
                    }
                }),
                Err(error) => refuse(&error),
            }
        }
        Speech::Events { after, door: way } => {
            // A program of the same user may say what it is. Anybody else came over HTTP, where editors have a path too.
            let way = if door.entrance.guard.is_private() || way == Way::Acp { way } else { Way::A2a };
            let client = caller.client(way);
            match events::Connection::new(door, client, session, after, wanted.epoch).await {
                Ok(connection) => hand_over(upgrade, held, limit, |peer| connection.run(peer)),
                Err(refusal) => refuse(&error::from_refusal(&refusal)),
            }
        }
    }
}

/// Upgrades, and serves the client; what is held is let go of when it left.
fn hand_over<T: Send + 'static, Served>(
    upgrade: WebSocketUpgrade,
    held: impl Send + 'static,
    limit: usize,
    serve: impl FnOnce(Peer<T>) -> Served + Send + 'static,
) -> Response
where
    Served: Future<Output = ()> + Send + 'static,
{
    upgrade.on_upgrade(move |socket| async move {
        let transport = Transport::WebSocket(Box::new(Socket::new(socket)));
        Box::pin(serve(Peer::new(transport, limit, None))).await;
        drop(held);
    })
}

fn refuse(error: &Error) -> Response {
    let status = StatusCode::from_u16(error.http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    problem(status, &error.message)
}

/// The session to listen to: the one it names, else the one that everybody shares, if there is one.
fn find(door: &Shared, wanted: &Wanted) -> Result<Option<Session>, String> {
    let Some(id) = &wanted.session else { return Ok(door.host.shared()) };
    match door.host.find(id) {
        Some(session) => Ok(Some(session)),
        None => Err(format!("session={id}: there is no such live session here")),
    }
}
