//! JSON-RPC over HTTP: a request in either dialect, its answer as JSON or as a stream.

use axum::body::Bytes;
use axum::extract::{Extension, Query, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use multitap_a2a::devtool::Spelling;
use multitap_a2a::{Dialect, Error, ErrorKind, Request, devtool};
use serde::Deserialize;
use serde_json::json;

use super::cursor::Cursor;
use super::frame::Form;
use super::service::{Answer, Call, Ran, slash_command};
use super::sse;
use crate::guard::Caller;
use crate::http::Shared;
use crate::rpc::{self, Fault, Invalid, RequestId, response};

pub(crate) const VERSION: HeaderName = HeaderName::from_static("a2a-version");
static EXTENSIONS: [HeaderName; 2] =
    [HeaderName::from_static("a2a-extensions"), HeaderName::from_static("x-a2a-extensions")];
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Parameters in the address.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Params {
    /// `coderAgent`: frames in the shipped spelling.
    pub(crate) ext: Option<String>,
}

/// `POST /`.
pub(crate) async fn call(
    State(door): State<Shared>,
    Extension(caller): Extension<Caller>,
    Query(params): Query<Params>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let mut response = answer(&door, caller, &params, &headers, body).await;
    if uses_extension(&headers) {
        for name in &EXTENSIONS {
            response.headers_mut().insert(name, HeaderValue::from_static(devtool::URI));
        }
    }
    response
}

async fn answer(door: &Shared, caller: Caller, params: &Params, headers: &HeaderMap, body: Bytes) -> Response {
    let version = version(headers);
    let fallback = version.as_ref().ok().copied().flatten().unwrap_or(Dialect::V0_3);
    if !is_json(headers) {
        let why = "a request is sent as Content-Type: application/json";
        let error = Error::new(ErrorKind::ContentTypeNotSupported, why);
        return refuse(fallback, &RequestId::Null, &error);
    }
    let read = rpc::Request::read(&body);
    // A call may last as long as a turn.
    drop(body);
    let rpc::Request { id, method, params: given } = match read {
        Ok(request) => request,
        Err(Invalid { id, fault }) => return refuse(fallback, &id, &fault.into()),
    };
    let dialect = Request::dialect_of(&method).unwrap_or(fallback);
    let is_stream = sse::is_streaming(&method);
    let refuse = |error: &Error| {
        // Clients of 0.3 accept only a stream as the response to a request for one.
        if is_stream && dialect == Dialect::V0_3 {
            sse::refuse(dialect, &id, error)
        } else {
            refuse(dialect, &id, error)
        }
    };
    if let Err(error) = version {
        return refuse(&error);
    }
    let request = match Request::read(&method, given) {
        Ok((_, request)) => request,
        Err(error) => return refuse(&error),
    };
    let spelling =
        if params.ext.as_deref() == Some(devtool::coder::KEY) { Spelling::Coder } else { Spelling::Specified };
    let after = match headers.get(LAST_EVENT_ID).map(|value| value.to_str().unwrap_or_default().parse::<Cursor>()) {
        None => None,
        Some(Ok(cursor)) => Some(cursor),
        Some(Err(error)) => return refuse(&Error::invalid_params(format!("Last-Event-ID: {error}"))),
    };
    let call =
        Call { caller, form: Form { dialect, spelling }, extension: uses_extension(headers), after, client_id: None };
    match door.a2a.answer(door, call, request).await {
        Ok(Answer::Result(result)) => json_response(response(&id, "result", &result)),
        Ok(Answer::Stream(stream)) => sse::respond(door, id, stream),
        Ok(Answer::Command(stream)) if takes_stream(headers) => sse::respond(door, id, stream),
        Ok(Answer::Command(mut stream)) => {
            let first = stream.take_first().unwrap_or_default();
            json_response(response(&id, "result", &first))
        }
        Err(error) => refuse(&error),
    }
}

/// `GET /listCommands`, as the shipped server has it.
pub(crate) async fn list_commands(State(door): State<Shared>, Extension(caller): Extension<Caller>) -> Response {
    let shared = door.host.shared();
    match door.a2a.list_commands(&door, &coder(caller), shared.as_ref()).await {
        Ok(commands) => {
            let commands: Vec<_> = commands.into_iter().map(slash_command).collect();
            axum::Json(devtool::coder::command_list(&commands)).into_response()
        }
        Err(error) => problem(&error),
    }
}

/// `POST /executeCommand`, as the shipped server has it: runs the command to its end, and answers with what it said.
pub(crate) async fn execute_command(
    State(door): State<Shared>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let wrong = |why: String| (StatusCode::BAD_REQUEST, axum::Json(json!({ "error": why }))).into_response();
    if !is_json(&headers) {
        return wrong("a command is sent as Content-Type: application/json".to_owned());
    }
    let parsed = multitap_a2a::json::parse(&body);
    // The command may last long.
    drop(body);
    let parsed = match parsed {
        Ok(parsed) => parsed,
        Err(error) => return wrong(format!("not valid JSON: {error}")),
    };
    let execute = match devtool::coder::read_command(&parsed) {
        Ok(execute) => execute,
        Err(error) => return wrong(error.message),
    };
    let command = execute.command_path.join(" ");
    match door.a2a.run_command(&door, coder(caller), execute).await {
        Ok(Ran::Done { said }) => axum::Json(json!({ "name": command, "data": said })).into_response(),
        Ok(Ran::Asked { said, status, execution_id, context_id }) => axum::Json(json!({
            "name": command, "data": said, "status": status, "execution_id": execution_id, "context_id": context_id,
        }))
        .into_response(),
        Ok(Ran::NotStarted { why }) => (StatusCode::NOT_FOUND, axum::Json(json!({ "error": why }))).into_response(),
        Err(error) => problem(&error),
    }
}

/// A call as the shipped server has it.
fn coder(caller: Caller) -> Call {
    let form = Form { dialect: Dialect::V0_3, spelling: Spelling::Coder };
    Call { caller, form, extension: true, after: None, client_id: None }
}

fn problem(error: &Error) -> Response {
    let status = StatusCode::from_u16(error.http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, axum::Json(json!({ "error": error.message }))).into_response()
}

/// The version a client wants to speak; none if it does not say.
fn version(headers: &HeaderMap) -> Result<Option<Dialect>, Error> {
    let Some(value) = headers.get(VERSION) else { return Ok(None) };
    let text = value.to_str().unwrap_or("?");
    if text.trim().is_empty() {
        return Ok(None);
    }
    Dialect::of_version(text).map(Some).ok_or_else(|| {
        let why = format!("A2A-Version: {text} is not supported: use 0.3 or 1.0");
        Error::new(ErrorKind::VersionNotSupported, why)
    })
}

pub(crate) fn uses_extension(headers: &HeaderMap) -> bool {
    let lists = EXTENSIONS.iter().flat_map(|name| headers.get_all(name)).filter_map(|value| value.to_str().ok());
    lists.flat_map(|list| list.split(',')).any(|uri| uri.trim() == devtool::URI)
}

fn is_json(headers: &HeaderMap) -> bool {
    let content = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = content.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    essence == "application/json" || (essence.starts_with("application/") && essence.ends_with("+json"))
}

fn takes_stream(headers: &HeaderMap) -> bool {
    headers
        .get_all(header::ACCEPT)
        .iter()
        .any(|value| value.to_str().is_ok_and(|types| types.contains("text/event-stream")))
}

pub(super) fn error_response(dialect: Dialect, id: &RequestId, error: &Error) -> String {
    response(id, "error", &dialect.write_error(error).to_string())
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        Self::new(ErrorKind::of_code(fault.code), fault.message)
    }
}

fn refuse(dialect: Dialect, id: &RequestId, error: &Error) -> Response {
    json_response(error_response(dialect, id, error))
}

fn json_response(body: String) -> Response {
    ([(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")], body).into_response()
}
