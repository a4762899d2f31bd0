//! The address under which clients reach a door through a proxy.

use std::fmt;
use std::str::FromStr;

use axum::http::Uri;

/// An address such as `https://example.org/multitap`, without a slash at its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicUrl {
    url: String,
    authority: String,
    origin: String,
}

/// The text is no such address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "must be an address such as https://example.org or https://example.org/multitap, without user, query and fragment"
)]
pub struct InvalidPublicUrl;

impl PublicUrl {
    /// `NAME` or `NAME:PORT`.
    pub(super) fn authority(&self) -> &str {
        &self.authority
    }

    /// The origin of pages there.
    pub(super) fn origin(&self) -> &str {
        &self.origin
    }
}

impl FromStr for PublicUrl {
    type Err = InvalidPublicUrl;

    fn from_str(text: &str) -> Result<Self, InvalidPublicUrl> {
        let uri: Uri = text.parse().map_err(|_| InvalidPublicUrl)?;
        let scheme = uri.scheme_str().filter(|scheme| ["http", "https"].contains(scheme)).ok_or(InvalidPublicUrl)?;
        let authority = uri.authority().map(|authority| authority.as_str().to_owned()).ok_or(InvalidPublicUrl)?;
        if uri.query().is_some() || text.contains(['#', '@']) {
            return Err(InvalidPublicUrl);
        }
        let origin = format!("{scheme}://{authority}");
        Ok(Self { url: format!("{origin}{}", uri.path().trim_end_matches('/')), authority, origin })
    }
}

impl fmt::Display for PublicUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_public_url_has_a_name_and_perhaps_a_path() {
        for (text, url, authority, origin) in [
            ("https://example.org", "https://example.org", "example.org", "https://example.org"),
            ("https://example.org/a/b/", "https://example.org/a/b", "example.org", "https://example.org"),
            ("http://[::1]:81/", "http://[::1]:81", "[::1]:81", "http://[::1]:81"),
        ] {
            let read: PublicUrl = text.parse().unwrap();
            assert_eq!((read.to_string().as_str(), read.authority(), read.origin()), (url, authority, origin));
        }
        for text in ["", "example.org", "/a", "ws://a", "https://", "https://a?b", "https://a#b", "https://u:p@a"] {
            assert_eq!(text.parse::<PublicUrl>(), Err(InvalidPublicUrl), "{text}");
        }
    }
}
