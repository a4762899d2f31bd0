//! How long a server asks its clients to wait before they try again.

use std::time::{Duration, SystemTime};

use reqwest::header::{HeaderMap, RETRY_AFTER};

/// Reads `retry-after-ms` (milliseconds, sent by some model providers) or `Retry-After` (seconds or an HTTP date).
pub fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let number = |text: &str| text.parse::<f64>().ok();
    if let Some(millis) = text("retry-after-ms").and_then(number) {
        return Duration::try_from_secs_f64(millis / 1000.0).ok();
    }
    let wait = text(RETRY_AFTER.as_str())?;
    if let Some(seconds) = number(wait) {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let until = httpdate::parse_http_date(wait).ok()?;
    Some(until.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use reqwest::header::{HeaderName, HeaderValue};

    use super::*;

    fn wait(pairs: &[(&'static str, &str)]) -> Option<Duration> {
        let now = httpdate::parse_http_date("Wed, 21 Oct 2026 07:28:00 GMT").unwrap();
        let headers =
            pairs.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap()));
        retry_after(&headers.collect(), now)
    }

    #[test]
    fn the_time_to_wait_is_read_in_all_its_forms() {
        let millis = |millis| Some(Duration::from_millis(millis));
        assert_eq!(wait(&[("retry-after", " 7 ")]), millis(7000));
        assert_eq!(wait(&[("retry-after", "0.5")]), millis(500));
        assert_eq!(wait(&[("retry-after-ms", "250"), ("retry-after", "7")]), millis(250));
        assert_eq!(wait(&[("retry-after", "Wed, 21 Oct 2026 07:28:30 GMT")]), millis(30_000));
        assert_eq!(wait(&[("retry-after", "Wed, 21 Oct 2026 07:00:00 GMT")]), millis(0));
        for nonsense in ["soon", "-1", "NaN", ""] {
            assert_eq!(wait(&[("retry-after", nonsense)]), None, "{nonsense}");
        }
        assert_eq!(wait(&[]), None);
    }
}
