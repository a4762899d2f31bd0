//! Error messages: an error with its causes, and without URLs.

use std::error::Error;

use crate::RefusedAddress;

/// How HTTP errors introduce a URL.
const URL: &str = " for url (";

/// An HTTP error with its causes. Its URL is left out: it may hold a secret.
pub fn causes(error: reqwest::Error) -> String {
    error_chain(&error.without_url())
}

/// An error with its causes, each once, and without URLs, which may contain a secret. If an address was refused, the
/// message contains only that.
pub fn error_chain(error: &(dyn Error + 'static)) -> String {
    if let Some(refused) = refused_address(error) {
        return refused.to_string();
    }
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        let words = source.to_string();
        if !text.contains(&words) {
            text.push_str(": ");
            text.push_str(&words);
        }
        next = source.source();
    }
    without_urls(&text)
}

/// The refused address among the causes of an error.
pub fn refused_address<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e RefusedAddress> {
    std::iter::successors(Some(error), |error| (*error).source()).find_map(|error| error.downcast_ref())
}

fn without_urls(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, url)) = rest.split_once(URL)
        && let Some((_, after)) = url.split_once(')')
    {
        kept.push_str(before);
        rest = after;
    }
    kept + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_left_out() {
        for (text, expected) in [
            ("error for url (http://a/?key=1): timed out", "error: timed out"),
            (" for url (a) for url (b)", ""),
            ("none for url (open", "none for url (open"),
            ("plain", "plain"),
        ] {
            assert_eq!(without_urls(text), expected);
        }
    }

    /// The message of a server's error was once searched and moved again for each URL in it.
    #[test]
    fn many_urls_are_left_out_in_linear_time() {
        let text = without_urls(&format!("a{URL})").repeat(500_000));
        assert_eq!(text.len(), 500_000);
        assert_eq!(without_urls(&URL.repeat(500_000)).len(), URL.len() * 500_000);
    }
}
