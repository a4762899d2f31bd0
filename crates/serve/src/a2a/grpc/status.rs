//! The status of a gRPC call: its code, its message, and the details of an error.

use std::fmt::Write as _;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use multitap_a2a::Error;

const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");
/// Most characters of a message, and bytes of details: clients take few bytes of trailers.
const LONGEST_MESSAGE: usize = 500;
const LONGEST_DETAILS: usize = 4 * 1024;

/// The codes of `google.rpc.Code` for what no A2A error is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Code {
    Ok = 0,
    Unknown = 2,
    InvalidArgument = 3,
    DeadlineExceeded = 4,
    PermissionDenied = 7,
    ResourceExhausted = 8,
    Unimplemented = 12,
    Unavailable = 14,
    Unauthenticated = 16,
}

impl Code {
    pub(super) fn of_http(status: StatusCode) -> Self {
        match status {
            StatusCode::BAD_REQUEST => Self::InvalidArgument,
            StatusCode::UNAUTHORIZED => Self::Unauthenticated,
            StatusCode::FORBIDDEN => Self::PermissionDenied,
            StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => Self::Unimplemented,
            StatusCode::REQUEST_TIMEOUT => Self::DeadlineExceeded,
            StatusCode::PAYLOAD_TOO_LARGE | StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => Self::ResourceExhausted,
            StatusCode::SERVICE_UNAVAILABLE => Self::Unavailable,
            _ => Self::Unknown,
        }
    }
}

#[derive(Debug, PartialEq)]
pub(super) struct Status {
    code: u8,
    message: String,
    /// A `google.rpc.Status` in base64.
    details: Option<String>,
}

impl Status {
    pub(super) fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code: code as u8, message: message.into(), details: None }
    }

    pub(super) fn ok() -> Self {
        Self::new(Code::Ok, "")
    }

    #[cfg(test)]
    pub(super) fn code(&self) -> u8 {
        self.code
    }

    /// The trailers that it is.
    pub(super) fn headers(&self) -> HeaderMap {
        let message = Some(percent(&self.message)).filter(|message| !message.is_empty());
        let details = self.details.as_ref().filter(|details| details.len() <= LONGEST_DETAILS);
        let mut headers = HeaderMap::from_iter([(STATUS, HeaderValue::from(u16::from(self.code)))]);
        headers.extend(message.and_then(|text| HeaderValue::try_from(text).ok()).map(|text| (MESSAGE, text)));
        headers.extend(details.and_then(|text| HeaderValue::try_from(text).ok()).map(|text| (DETAILS, text)));
        headers
    }

    /// An answer of nothing but this status.
    pub(super) fn response(&self) -> Response {
        let mut response = ([(header::CONTENT_TYPE, super::MEDIA_TYPE)], Body::empty()).into_response();
        response.headers_mut().extend(self.headers());
        // Clients that send compressed messages learn what is taken.
        response.headers_mut().insert(super::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        response
    }
}

impl From<&Error> for Status {
    fn from(error: &Error) -> Self {
        Self { code: error.grpc_code(), message: error.message.clone(), details: error.grpc_details() }
    }
}

impl From<Error> for Status {
    fn from(error: Error) -> Self {
        Self::from(&error)
    }
}

/// The start of a text with percent escapes for all but plain ASCII.
fn percent(text: &str) -> String {
    let mut escaped = String::new();
    for byte in text.chars().take(LONGEST_MESSAGE).collect::<String>().bytes() {
        match byte {
            b' '..=b'~' if byte != b'%' => escaped.push(char::from(byte)),
            // Writing to a string cannot fail.
            other => write!(escaped, "%{other:02X}").unwrap_or_default(),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use multitap_a2a::ErrorKind;

    use super::*;

    #[test]
    fn a_message_is_plain_ascii_and_not_long() {
        let error = Error::new(ErrorKind::TaskNotFound, "100 % of \"ä\"\nare unknown");
        let headers = Status::from(&error).headers();
        assert_eq!(headers[STATUS], "5");
        assert_eq!(headers[MESSAGE], "100 %25 of \"%C3%A4\"%0Aare unknown");
        assert!(headers.contains_key(DETAILS));
        let long = Status::new(Code::Unknown, "ä".repeat(LONGEST_MESSAGE + 1)).headers();
        assert_eq!(long[MESSAGE].len(), LONGEST_MESSAGE * 6);
        assert!(!Status::ok().headers().contains_key(MESSAGE));
    }

    #[test]
    fn long_details_are_left_out() {
        let error = Error::new(ErrorKind::TaskNotFound, "no").with("offered", "x".repeat(LONGEST_DETAILS));
        assert!(!Status::from(&error).headers().contains_key(DETAILS));
    }
}
