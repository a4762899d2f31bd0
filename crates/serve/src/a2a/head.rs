//! What the head of a request says, on JSON-RPC as on HTTP+JSON: the version, the extension, the spelling, the cursor.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::Response;
use multitap_a2a::devtool::Spelling;
use multitap_a2a::{Dialect, Encoding, Error, ErrorKind, devtool};

use super::cursor::Cursor;
use super::frame::Form;
use super::service::Call;
use crate::guard::Caller;

/// Also a parameter of the query.
const VERSION: HeaderName = HeaderName::from_static("a2a-version");
static EXTENSIONS: [HeaderName; 2] =
    [HeaderName::from_static("a2a-extensions"), HeaderName::from_static("x-a2a-extensions")];
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// The parameters of an address, decoded.
pub(crate) type Params = Vec<(String, String)>;

/// The head of a request.
#[derive(Debug, Clone, Copy)]
pub(super) struct RequestHead<'a> {
    pub(super) headers: &'a HeaderMap,
    pub(super) params: &'a [(String, String)],
}

impl RequestHead<'_> {
    /// The version that the client wants to speak; `None` if it does not say.
    pub(super) fn version(self) -> Result<Option<Dialect>, Error> {
        let given = self.headers.get(VERSION).map(|value| value.to_str().unwrap_or("?"));
        let given = given.or_else(|| {
            self.params
                .iter()
                .find(|(key, _)| key.eq_ignore_ascii_case(VERSION.as_str()))
                .map(|(_, value)| value.as_str())
        });
        let Some(text) = given.filter(|text| !text.trim().is_empty()) else { return Ok(None) };
        Dialect::of_version(text).map(Some).ok_or_else(|| {
            let text: String = text.chars().take(20).collect();
            let why = format!("A2A-Version: {text} is not supported: use 0.3 or 1.0");
            Error::new(ErrorKind::VersionNotSupported, why)
        })
    }

    /// The call of that client, with answers in that encoding.
    pub(super) fn call(self, caller: Caller, encoding: Encoding) -> Result<Call, Error> {
        // `?ext=coderAgent`: frames in the shipped spelling.
        let is_coder = self.params.iter().any(|(key, value)| key == "ext" && value == devtool::coder::KEY);
        let spelling = if is_coder { Spelling::Coder } else { Spelling::Specified };
        let cursor = self.headers.get(LAST_EVENT_ID).map(|value| value.to_str().unwrap_or_default().parse::<Cursor>());
        let after = cursor.transpose().map_err(|error| Error::invalid_params(format!("Last-Event-ID: {error}")))?;
        let extension = uses_extension(self.headers);
        Ok(Call { caller, form: Form { encoding, spelling }, extension, after, client_id: None })
    }

    pub(super) fn takes(self, media_type: &str) -> bool {
        let accepted = self.headers.get_all(header::ACCEPT);
        accepted.iter().any(|value| value.to_str().is_ok_and(|types| types.contains(media_type)))
    }

    /// Whether the body is declared as JSON.
    pub(super) fn is_json(self) -> bool {
        let essence = self.content_type().split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        essence == "application/json" || (essence.starts_with("application/") && essence.ends_with("+json"))
    }

    pub(super) fn content_type(&self) -> &str {
        self.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// Reports that the extension is in use.
    pub(super) fn confirm_extension(self, response: &mut Response) {
        if uses_extension(self.headers) {
            for name in &EXTENSIONS {
                response.headers_mut().insert(name, HeaderValue::from_static(devtool::URI));
            }
        }
    }
}

pub(crate) fn uses_extension(headers: &HeaderMap) -> bool {
    let lists = EXTENSIONS.iter().flat_map(|name| headers.get_all(name)).filter_map(|value| value.to_str().ok());
    lists.flat_map(|list| list.split(',')).any(|uri| uri.trim() == devtool::URI)
}

/// The error for a body that is not declared as JSON, which is not parsed.
pub(super) fn not_json() -> Error {
    Error::new(ErrorKind::ContentTypeNotSupported, "a request is sent as Content-Type: application/json")
}
