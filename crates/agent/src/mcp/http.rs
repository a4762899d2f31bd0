//! Servers reached over streamable HTTP.

use std::collections::{BTreeMap, HashMap};
use std::error::Error;

use multitap_outbound::{Endpoint, causes, error_chain};
use reqwest::header::{HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Client, Url};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::{StreamableHttpClientTransportConfig, StreamableHttpError};

const MOST_REDIRECTS: usize = 5;

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
    let http = Endpoint::of(url).client().map_err(|error| error.to_string())?.redirect(stay(url.clone()));
    http.build().map_err(causes)
}

/// Follows redirects within the origin only: headers may be secrets meant for this server.
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

pub(super) fn words(error: &(dyn Error + Send + Sync + 'static)) -> String {
    match error.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
        Some(StreamableHttpError::Client(error)) => error_chain(error),
        Some(StreamableHttpError::AuthRequired(_)) => "it requires a sign-in: set its headers".to_owned(),
        Some(StreamableHttpError::UnexpectedServerResponse(answer)) if answer.contains("40") => {
            format!("{answer}; it may speak the older HTTP with SSE, which is not supported")
        }
        Some(_) | None => error_chain(error),
    }
}
