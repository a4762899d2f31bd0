//! Addresses: how they are displayed, and which of them may get secrets.

use multitap_outbound::is_loopback;
use reqwest::Url;

/// An address without user, password, query and fragment, which may contain secrets.
pub(super) fn shown(url: &Url) -> String {
    format!("{}{}", url.origin().ascii_serialization(), url.path())
}

/// Whether a redirect stays within the origin, or upgrades the same host to https.
pub(super) fn is_within(to: &Url, from: &Url) -> bool {
    let is_secured = from.scheme() == "http" && to.scheme() == "https" && to.host() == from.host();
    to.origin() == from.origin() || is_secured
}

/// Whether headers for one address may go to an address that its card names: the same host on any port, and never from
/// https to http.
pub(super) fn is_trusted(to: &Url, given: &Url) -> bool {
    let is_same_host = to.host() == given.host() || (is_loopback(to) && is_loopback(given));
    is_same_host && (to.scheme() == given.scheme() || to.scheme() == "https")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn an_address_is_shown_without_its_secrets() {
        assert_eq!(shown(&url("https://me:secret@example.org:8443/a/b?key=secret#x")), "https://example.org:8443/a/b");
    }

    #[test]
    fn a_redirect_stays_within_its_origin() {
        let check = |to: &str, from: &str, expected: bool| {
            assert_eq!(is_within(&url(to), &url(from)), expected, "{from} to {to}");
        };
        check("http://example.org/b", "http://example.org/a", true);
        check("https://example.org/a", "http://example.org/a", true);
        check("http://example.org/a", "https://example.org/a", false);
        check("http://example.org:81/a", "http://example.org/a", false);
        check("http://example.com/a", "http://example.org/a", false);
        check("http://127.0.0.1/a", "http://localhost/a", false);
    }

    #[test]
    fn headers_go_to_the_host_they_were_given_for() {
        let check = |to: &str, given: &str, expected: bool| {
            assert_eq!(is_trusted(&url(to), &url(given)), expected, "{given} to {to}");
        };
        check("http://example.org:8080/a2a", "http://example.org/", true);
        check("https://example.org/", "http://example.org/", true);
        check("http://example.org/", "https://example.org/", false);
        check("http://localhost:7/", "http://127.0.0.1:8/", true);
        check("http://[::1]:7/", "http://localhost:8/", true);
        check("http://example.org.evil.net/", "http://example.org/", false);
        check("http://example.org/", "http://127.0.0.1/", false);
    }
}
