//! HTTP+JSON: one path for each operation, in 0.3 below `/v1`, in 1.0 at the root or below a tenant.
//!
//! Any path without a route of its own comes here, since the ids and verbs of these paths are no segments of their own.

use axum::body::Bytes;
use axum::extract::{Extension, Query, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Response};
use multitap_a2a::json::{self, JsonError};
use multitap_a2a::{Dialect, Encoding, Error, ErrorKind, NoRestCall, Request, RestCall};

use super::head::{Params, RequestHead, not_json};
use super::service::Answer;
use super::sse::{self, Framing};
use super::uri::unescape;
use crate::guard::Caller;
use crate::http::{Shared, problem};

const JSON: &str = "application/json";
/// Since 1.0.1. Clients of 1.0.0 expect plain JSON, so only those that mention it get it.
const A2A_JSON: &str = "application/a2a+json";

pub(crate) async fn call(
    State(door): State<Shared>,
    Extension(caller): Extension<Caller>,
    Query(params): Query<Params>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let operation = match find(&method, uri.path()) {
        Ok(operation) => operation,
        Err(NoRestCall::Path) => return problem(StatusCode::NOT_FOUND, "not found"),
        Err(NoRestCall::Verb { allowed }) => return wrong_method(&allowed),
    };
    let head = RequestHead { headers: &headers, params: &params };
    let media_type = if head.takes(A2A_JSON) || head.content_type().contains(A2A_JSON) { A2A_JSON } else { JSON };
    let answered = answer(&door, caller, head, &operation, &method, body).await;
    let mut response = match answered {
        Ok(Reply::Json(body)) => json_response(StatusCode::OK, media_type, body),
        Ok(Reply::Stream(response)) => response,
        Err(error) => {
            let status = StatusCode::from_u16(error.http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            json_response(status, media_type, operation.dialect().write_rest_error(&error).to_string())
        }
    };
    head.confirm_extension(&mut response);
    response
}

enum Reply {
    Json(String),
    Stream(Response),
}

fn find(method: &Method, path: &str) -> Result<RestCall, NoRestCall> {
    let decoded = |segment| unescape(segment).and_then(|bytes| String::from_utf8(bytes).ok()).ok_or(NoRestCall::Path);
    let segments = path.trim_start_matches('/').split('/').map(decoded).collect::<Result<Vec<_>, _>>()?;
    RestCall::find(method.as_str(), &segments.iter().map(String::as_str).collect::<Vec<_>>())
}

async fn answer(
    door: &Shared,
    caller: Caller,
    head: RequestHead<'_>,
    operation: &RestCall,
    method: &Method,
    body: Bytes,
) -> Result<Reply, Error> {
    // The path determines the dialect; a version that is neither is refused.
    head.version()?;
    let call = head.call(caller, Encoding::of_rest(operation.dialect()))?;
    let request = read(head, operation, method, &body)?;
    // A call may last as long as a turn.
    drop(body);
    match door.a2a.answer(door, call, request).await? {
        Answer::Result(result) => Ok(Reply::Json(operation.body(result))),
        Answer::Stream(stream) | Answer::Command(stream) => {
            Ok(Reply::Stream(sse::respond(door, Framing::Bare, stream)))
        }
    }
}

fn read(head: RequestHead<'_>, operation: &RestCall, method: &Method, body: &[u8]) -> Result<Request, Error> {
    if body.is_empty() {
        // Secrets in an address would be logged on the way.
        let query = if method == Method::POST { Vec::new() } else { head.params.to_vec() };
        return operation.read(query, None);
    }
    if !head.is_json() {
        return Err(not_json());
    }
    let parsed = json::parse(body).map_err(|error| match error {
        JsonError::Invalid(error) => Error::new(ErrorKind::Parse, format!("not valid JSON: {error}")),
        error @ JsonError::TooManyValues => Error::new(ErrorKind::InvalidRequest, format!("the body: {error}")),
    });
    operation.read(Vec::new(), Some(parsed?))
}

fn wrong_method(allowed: &[&str]) -> Response {
    let message = format!("this path takes {}", allowed.join(" or "));
    let mut response = problem(StatusCode::METHOD_NOT_ALLOWED, &message);
    let allowed = HeaderValue::try_from(allowed.join(", ")).ok();
    response.headers_mut().extend(allowed.map(|allowed| (header::ALLOW, allowed)));
    response
}

fn json_response(status: StatusCode, media_type: &'static str, body: String) -> Response {
    (status, [(header::CONTENT_TYPE, media_type), (header::CACHE_CONTROL, "no-store")], body).into_response()
}

/// The event that ends a stream with an error.
pub(super) fn error_event(dialect: Dialect, error: &Error) -> String {
    format!("event: error\ndata: {}\n\n", dialect.write_rest_error(error))
}
