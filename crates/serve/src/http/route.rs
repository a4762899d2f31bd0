//! The routes, and what applies to every response: the guard, limits, headers, logging.

use axum::body::{Body, Bytes, HttpBody as _};
use axum::extract::{DefaultBodyLimit, FromRequest as _, Query, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use axum::{Extension, Router};
use multitap_event::ClientRole;
use tokio::time::timeout;
use tower_http::timeout::TimeoutBody;
use tracing::Instrument as _;

use super::body_room;
use super::connection::{HEAD, Seat};
use super::{Entrance, Shared, problem, try_later};
use crate::guard::{self, Caller};
use crate::{a2a, ws};

const PAGE: &str = include_str!("page.html");

/// On every response: no content sniffing, framing or referrer.
const HEADERS: [(HeaderName, &str); 3] = [
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];
/// On pages: load nothing, no framing.
const POLICY: &str = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// All routes of a door.
pub(super) fn router(shared: &Shared) -> Router {
    let routes = Router::new()
        .route("/", get(front))
        .route("/healthz", get(healthy))
        .route("/readyz", get(ready))
        .merge(a2a::routes())
        .merge(ws::routes())
        // HTTP+JSON of A2A, or not found.
        .fallback(a2a::call_path)
        .method_not_allowed_fallback(wrong_method)
        .with_state(shared.clone());
    behind(&shared.entrance, routes)
}

/// A service at one path, instead of sessions.
pub(super) fn service<S, A, R>(entrance: &Entrance, path: &str, service: S) -> Router
where
    S: Fn(Request) -> A + Clone + Send + Sync + 'static,
    A: Future<Output = R> + Send + 'static,
    R: IntoResponse,
{
    let answer = async move |Extension(caller): Extension<Caller>, request: Request| match caller.role {
        ClientRole::Observer => problem(StatusCode::FORBIDDEN, "observers may not call tools"),
        ClientRole::Owner | ClientRole::Controller => service(request).await.into_response(),
    };
    let routes = Router::new().route(path, any(answer)).route("/healthz", get(healthy)).fallback(unknown);
    behind(entrance, routes)
}

/// Adds the guard, limits and headers to routes.
fn behind(entrance: &Entrance, routes: Router) -> Router {
    routes
        .layer(from_fn_with_state(entrance.clone(), bounded))
        .layer(DefaultBodyLimit::max(entrance.limits.body))
        .layer(from_fn_with_state(entrance.clone(), guard::enter))
        .layer(from_fn(a2a::in_kind))
        .layer(from_fn(finished))
}

/// A page for browsers; the card for other clients.
async fn front(State(door): State<Shared>, query: Query<a2a::Params>, headers: HeaderMap) -> Response {
    let takes = |value: &HeaderValue| value.to_str().is_ok_and(|types| types.contains("text/html"));
    let mut response = if headers.get_all(header::ACCEPT).iter().any(takes) {
        let headers = [
            (header::CONTENT_TYPE, "text/html; charset=utf-8"),
            (header::CONTENT_SECURITY_POLICY, POLICY),
            (header::CACHE_CONTROL, "no-store"),
        ];
        (headers, PAGE).into_response()
    } else {
        a2a::card(State(door), query, headers).await
    };
    response.headers_mut().append(header::VARY, HeaderValue::from_static("Accept"));
    response
}

async fn healthy() -> &'static str {
    "ok\n"
}

async fn ready(State(door): State<Shared>) -> Response {
    if door.stop.is_cancelled() {
        return problem(StatusCode::SERVICE_UNAVAILABLE, "this host is shutting down");
    }
    "ok\n".into_response()
}

async fn unknown() -> Response {
    problem(StatusCode::NOT_FOUND, "not found")
}

async fn wrong_method() -> Response {
    problem(StatusCode::METHOD_NOT_ALLOWED, "this path does not support this method")
}

/// Limits the size of heads and bodies, and the time of bodies.
async fn bounded(State(entrance): State<Entrance>, request: Request, next: Next) -> Response {
    let limits = &entrance.limits;
    // The HTTP library checks only incomplete heads, so a head may have up to twice the limit.
    if head_size(&request) > HEAD {
        let why = format!("the head of a request has at most {HEAD} bytes");
        return problem(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, &why);
    }
    match timeout(limits.body_time, read(&entrance, request)).await {
        Ok(Ok(request)) => next.run(request).await,
        Ok(Err(response)) => response,
        Err(_) => problem(StatusCode::REQUEST_TIMEOUT, "the body of the request took too long"),
    }
}

/// Reads the body of a request into memory.
async fn read(entrance: &Entrance, request: Request) -> Result<Request, Response> {
    let limits = &entrance.limits;
    let busy = |_| try_later("too many large requests at a time: try again later");
    let (head, body) = request.into_parts();
    let turn = async { Some(head.extensions.get::<Seat>()?.clone().next_body().await) };
    let turn = timeout(limits.body_pause, turn).await.map_err(busy)?;
    let given = body.size_hint().exact().map(|length| usize::try_from(length).unwrap_or(usize::MAX));
    if given.is_some_and(|length| length > limits.body) {
        return Err(too_large(limits.body));
    }
    let body = Body::new(TimeoutBody::new(limits.body_pause, body));
    let (length, body) = match given {
        Some(_) => (given, body),
        None => body_room::small_length(body).await,
    };
    let length = length.unwrap_or(limits.body);
    let room = timeout(limits.body_pause, entrance.bodies.reserve(length)).await.map_err(busy)?;
    let body = Request::from_parts(head.clone(), body);
    let body = Bytes::from_request(body, &()).await.map_err(|error| match error.status() {
        // It named no length.
        StatusCode::PAYLOAD_TOO_LARGE => too_large(limits.body),
        status => problem(status, &error.body_text()),
    })?;
    drop(turn);
    Ok(Request::from_parts(head, room.hold(body).into()))
}

/// The bytes of the path, the query and the headers.
fn head_size(request: &Request) -> usize {
    let uri = request.uri();
    let path = uri.path().len() + uri.query().map_or(0, str::len);
    request.headers().iter().map(|(name, value)| name.as_str().len() + value.len()).sum::<usize>() + path
}

fn too_large(most: usize) -> Response {
    problem(StatusCode::PAYLOAD_TOO_LARGE, &format!("the body of a request has at most {most} bytes"))
}

/// Adds headers and logs the response, without the query, which may contain secrets.
async fn finished(request: Request, next: Next) -> Response {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let span = tracing::info_span!("request", %method, %path, status = tracing::field::Empty);
    let mut response = next.run(request).instrument(span.clone()).await;
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    span.record("status", response.status().as_u16());
    span.in_scope(|| tracing::debug!("answered"));
    response
}
