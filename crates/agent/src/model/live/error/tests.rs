use serde_json::json;

use super::*;

#[test]
fn gemini_says_in_the_body_how_long_to_wait() {
    let body = json!({"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "quota", "details": [
        {"@type": "type.googleapis.com/google.rpc.QuotaFailure"},
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "38.5s"}]}});
    assert_eq!(account(&body).retry_after, Some(Duration::from_millis(38_500)));
    assert_eq!(account(&json!([body])).message.as_deref(), Some("quota"));
}

#[test]
fn real_bodies_are_told_apart() {
    let cases = [
        (
            400,
            json!({"error": {"code": 400, "message": "API key not valid. Please pass a valid API key.",
                             "status": "INVALID_ARGUMENT", "details": [{"reason": "API_KEY_INVALID"}]}}),
            ModelErrorKind::Key,
        ),
        (
            429,
            json!({"error": {"message": "You exceeded your current quota", "type": "insufficient_quota",
                             "code": "insufficient_quota"}}),
            ModelErrorKind::Refused,
        ),
        (
            400,
            json!({"type": "error", "error": {"type": "invalid_request_error",
                   "message": "Your credit balance is too low to access the Anthropic API."}}),
            ModelErrorKind::Refused,
        ),
        (
            400,
            json!({"type": "error", "error": {"type": "invalid_request_error",
                   "message": "input length and `max_tokens` exceed context limit: 199000 + 64000 > 200000"}}),
            ModelErrorKind::TooLong,
        ),
        (413, json!({"error": {"type": "request_too_large", "message": "too large"}}), ModelErrorKind::TooLong),
        (404, json!({"error": "model 'llama9' not found"}), ModelErrorKind::UnknownModel),
        (422, json!({"detail": "no such field"}), ModelErrorKind::Refused),
        (502, json!("<html>bad gateway</html>"), ModelErrorKind::Overloaded),
        (302, json!(""), ModelErrorKind::Refused),
    ];
    for (status, body, expected) in cases {
        assert_eq!(kind(&account(&body), Some(status)), expected, "{status} {body}");
    }
}

#[test]
fn a_message_is_found_in_every_shape_and_kept_short() {
    let message = |body| account(&body).message;
    assert_eq!(message(json!({"error": "model 'x' not found"})).as_deref(), Some("model 'x' not found"));
    assert_eq!(message(json!({"detail": "no such field"})).as_deref(), Some("no such field"));
    assert_eq!(message(json!("plain words")).as_deref(), Some("plain words"));
    assert_eq!(message(json!("<html>a page</html>")), None);
    assert_eq!(message(json!("x".repeat(9000))).unwrap().len(), REPEATED);
}
