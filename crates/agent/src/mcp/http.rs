//! A server that is an address: streamable HTTP.

use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::net::IpAddr;
use std::time::Duration;

use reqwest::header::{HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Client, Url};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::{StreamableHttpClientTransportConfig, StreamableHttpError};

use super::connect::chain;
use crate::tls;

/// How long it may take until somebody answers at the address.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// How often a server may send us elsewhere.
const MOST_REDIRECTS: usize = 5;

/// The way to an address.
pub(super) fn transport(
    url: &str,
    headers: &BTreeMap<String, String>,
) -> Result<StreamableHttpClientTransport<Client>, String> {
    let url: Url = url.parse().map_err(|error| format!("its address cannot be read: {error}"))?;
    let headers = headers.iter().map(header).collect::<Result<HashMap<_, _>, String>>()?;
    let config = StreamableHttpClientTransportConfig::with_uri(url.as_str()).custom_headers(headers);
    Ok(StreamableHttpClientTransport::with_client(client(&url)?, config))
}

fn client(url: &Url) -> Result<Client, String> {
    let tls = if url.scheme() == "https" { tls::config() } else { tls::trusts_nobody() };
    let mut http = Client::builder()
        .tls_backend_preconfigured(tls.map_err(|error| format!("no TLS: {error}"))?)
        .user_agent(concat!("multitap/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_LIMIT)
        .redirect(stay(url.clone()));
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    if host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback()) {
        http = http.no_proxy();
    }
    http.build().map_err(|error| chain(&error))
}

/// Headers may be secrets, which are for this server and no other.
fn stay(at: Url) -> Policy {
    Policy::custom(move |attempt| {
        let same = attempt.url().origin() == at.origin();
        if same && attempt.previous().len() <= MOST_REDIRECTS { attempt.follow() } else { attempt.stop() }
    })
}

fn header((name, value): (&String, &String)) -> Result<(HeaderName, HeaderValue), String> {
    // The value may be a secret, so it is not repeated.
    let wrong = || format!("the header '{name}' cannot be sent");
    let key = name.parse().map_err(|_| wrong())?;
    let mut value: HeaderValue = value.parse().map_err(|_| wrong())?;
    value.set_sensitive(true);
    Ok((key, value))
}

/// What went wrong on the way, with its causes.
pub(super) fn words(error: &(dyn Error + Send + Sync + 'static)) -> String {
    match error.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
        Some(StreamableHttpError::Client(error)) => chain(error),
        Some(StreamableHttpError::AuthRequired(_)) => "it wants somebody to sign in first: set its headers".to_owned(),
        Some(StreamableHttpError::UnexpectedServerResponse(answer)) if answer.contains("40") => {
            format!("{answer}; it may speak the older HTTP with SSE, which is not supported")
        }
        Some(_) | None => chain(error),
    }
}
