//! JSON-RPC over HTTP: a request in either dialect, its answer as JSON or as a stream.

use axum::body::Bytes;
use axum::extract::{Extension, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use multitap_a2a::devtool::Spelling;
use multitap_a2a::{Dialect, Error, ErrorKind, Request, devtool};
use serde_json::json;

use super::frame::Form;
use super::head::{Params, RequestHead, not_json};
use super::service::{Answer, Call, Ran, slash_command};
use super::sse::{self, Framing};
use crate::guard::Caller;
use crate::http::Shared;
use crate::rpc::{self, Fault, Invalid, Posted, RequestId, response};

/// `POST /`.
pub(crate) async fn call(
    State(door): State<Shared>,
    Extension(caller): Extension<Caller>,
    Query(params): Query<Params>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let head = RequestHead { headers: &headers, params: &params };
    let mut response = answer(&door, caller, head, body).await;
    head.confirm_extension(&mut response);
    response
}

async fn answer(door: &Shared, caller: Caller, head: RequestHead<'_>, body: Bytes) -> Response {
    let version = head.version();
    let fallback = version.as_ref().ok().copied().flatten().unwrap_or(Dialect::V0_3);
    if !head.is_json() {
        return refuse(fallback, &RequestId::Null, &not_json());
    }
    let read = Posted::read(&body);
    // A call may last as long as a turn.
    drop(body);
    let rpc::Request { id, method, params: given } = match read {
        Ok(Posted::Request(request)) => request,
        Ok(Posted::WithoutId { method, params }) => {
            // Strict clients expect the error of the parameters first.
            let error = Request::read(&method, Some(params)).err();
            let error = error.unwrap_or_else(|| Error::new(ErrorKind::InvalidRequest, "id: a request must have one"));
            return refuse(Request::dialect_of(&method).unwrap_or(fallback), &RequestId::Null, &error);
        }
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
    let read = version.and_then(|_| Request::read(&method, given));
    let (request, call) = match read.and_then(|(_, request)| Ok((request, head.call(caller, dialect.into())?))) {
        Ok(read) => read,
        Err(error) => return refuse(&error),
    };
    match door.a2a.answer(door, call, request).await {
        Ok(Answer::Result(result)) => json_response(response(&id, "result", &result)),
        Ok(Answer::Stream(stream)) => sse::respond(door, Framing::JsonRpc(id), stream),
        Ok(Answer::Command(stream)) if head.takes(sse::MEDIA_TYPE) => sse::respond(door, Framing::JsonRpc(id), stream),
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
    if !(RequestHead { headers: &headers, params: &[] }).is_json() {
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
    let form = Form::of(Dialect::V0_3, Spelling::Coder);
    Call { caller, form, extension: true, after: None, client_id: None }
}

fn problem(error: &Error) -> Response {
    let status = StatusCode::from_u16(error.http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, axum::Json(json!({ "error": error.message }))).into_response()
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
