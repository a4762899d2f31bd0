//! The agent card: a description of this door and its addresses.

use axum::extract::{Query, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Response};
use multitap_a2a::card::{Binding, Capabilities, Card, Extension, Form, Interface, Provider, SecurityScheme, Skill};
use multitap_a2a::{Dialect, Encoding, devtool};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::encode::OURS;
use super::head::{Params, RequestHead};
use crate::http::{CardVersions, Shared, problem};

const NAME: &str = "Multitap";
/// The WebSocket as a binding of its own: one JSON-RPC object a frame.
const WEBSOCKET: &str = "https://github.com/multitap/multitap/blob/main/docs/websocket.md";
const DOCUMENTATION: &str = "https://github.com/multitap/multitap/blob/main/docs/a2a.md";
/// How long a client may cache the card.
const CACHE: &str = "public, max-age=300";

/// `GET /.well-known/agent-card.json`: the fields of both versions, unless the client names one.
pub(crate) async fn card(State(door): State<Shared>, Query(params): Query<Params>, headers: HeaderMap) -> Response {
    let form = match (RequestHead { headers: &headers, params: &params }).version() {
        Ok(None) => match door.about.card {
            CardVersions::Hybrid => Form::Hybrid,
            CardVersions::V1_0 => Form::V1_0,
        },
        Ok(Some(dialect)) => form_of(dialect.into()),
        Err(error) => return problem(StatusCode::BAD_REQUEST, &error.message),
    };
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let body = at(&door, host).write(form).to_string();
    let tag = format!("\"{}\"", hex(&Sha256::digest(body.as_bytes())[..12]));
    let is_known = headers.get(header::IF_NONE_MATCH).and_then(|known| known.to_str().ok());
    let mut response = if is_known.is_some_and(|known| known.split(',').any(|known| is_same(known, &tag))) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        ([(header::CONTENT_TYPE, "application/json")], body).into_response()
    };
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(CACHE));
    headers.insert(header::VARY, HeaderValue::from_static("A2A-Version, Host"));
    headers.extend(HeaderValue::from_str(&tag).ok().map(|tag| (header::ETAG, tag)));
    headers.extend(HeaderValue::from_str(&door.opened).ok().map(|opened| (header::LAST_MODIFIED, opened)));
    response
}

/// The form in which clients read cards.
pub(crate) fn form_of(encoding: Encoding) -> Form {
    match encoding {
        Encoding::V0_3 => Form::V0_3,
        Encoding::V0_3Rest => Form::V0_3Rest,
        Encoding::V1_0 => Form::V1_0,
    }
}

/// The extended card, for clients that may use the door: it says which agents can be called from here.
pub(crate) fn extended(door: &Shared) -> Card {
    let mut card = at(door, None);
    let remote = &door.about.remote_agents;
    if !remote.is_empty() {
        card.skills.push(Skill {
            id: "remote-agents".to_owned(),
            name: "Call remote agents".to_owned(),
            description: format!("Calls these A2A agents if asked to: {}.", remote.join(", ")),
            tags: ["a2a", "delegation"].map(str::to_owned).to_vec(),
            ..Skill::default()
        });
    }
    card
}

/// The card with that host in its addresses.
fn at(door: &Shared, host: Option<&str>) -> Card {
    let about = &door.about;
    let url = match (&about.public_url, host) {
        (Some(public), _) => public.to_string(),
        (None, Some(host)) => format!("http://{host}"),
        (None, None) => about.url.clone(),
    };
    let socket = format!("{}/ws", url.replacen("http", "ws", 1));
    let token = door.entrance.guard.requires_token().then_some("bearer");
    let grpc = grpc_address(&url).map(|address| Interface::new(address, Binding::Grpc, Dialect::V1_0));
    Card {
        name: NAME.to_owned(),
        description: "A coding agent: it reads, writes and runs code in a folder of its host, and asks before it does."
            .to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        provider: Some(Provider {
            organization: NAME.to_owned(),
            url: "https://github.com/multitap/multitap".to_owned(),
        }),
        documentation_url: Some(DOCUMENTATION.to_owned()),
        icon_url: None,
        interfaces: [
            Some(Interface::new(format!("{url}/"), Binding::JsonRpc, Dialect::V1_0)),
            Some(Interface::new(format!("{url}/"), Binding::HttpJson, Dialect::V1_0)),
            Some(Interface::new(format!("{url}/"), Binding::JsonRpc, Dialect::V0_3)),
            Some(Interface::new(format!("{url}/"), Binding::HttpJson, Dialect::V0_3)),
            // After the bindings that every client knows: clients take the first one they support.
            grpc,
            Some(Interface::new(socket.clone(), Binding::Other(WEBSOCKET.to_owned()), Dialect::V1_0)),
        ]
        .into_iter()
        .flatten()
        .collect(),
        capabilities: Capabilities {
            streaming: true,
            push_notifications: door.push.is_some(),
            state_transition_history: false,
            extended_card: true,
            extensions: vec![
                Extension {
                    uri: devtool::URI.to_owned(),
                    description: Some(
                        "Interactive development: tool calls with their confirmations, live output, thoughts, commands."
                            .to_owned(),
                    ),
                    required: about.extension_required,
                    params: None,
                },
                Extension {
                    uri: OURS.to_owned(),
                    description: Some("Cursors in metadata, and a WebSocket with every frame of a session.".to_owned()),
                    required: false,
                    // Lists of interfaces have no place for it in 0.3.
                    params: Some(json!({ "webSocket": socket, "binding": WEBSOCKET })),
                },
            ],
        },
        security_requirements: token.iter().map(|name| vec![((*name).to_owned(), Vec::new())]).collect(),
        security_schemes: token.iter().map(|name| ((*name).to_owned(), bearer())).collect(),
        input_modes: ["text/plain", "application/json", "image/png", "image/jpeg", "image/gif", "image/webp"]
            .map(str::to_owned)
            .to_vec(),
        output_modes: ["text/plain", "application/json"].map(str::to_owned).to_vec(),
        skills: vec![Skill {
            id: "code".to_owned(),
            name: "Work on code".to_owned(),
            description: "Explains, writes, changes and runs code in the folder of the session.".to_owned(),
            tags: ["code", "development", "shell"].map(str::to_owned).to_vec(),
            examples: ["Explain src/main.rs", "Make the failing test pass"].map(str::to_owned).to_vec(),
            ..Skill::default()
        }],
    }
}

/// `HOST:PORT`, as gRPC clients take it. `None` for an address with a path, for which gRPC has no place.
fn grpc_address(url: &str) -> Option<String> {
    let url: Uri = url.parse().ok()?;
    let host = url.host().filter(|_| url.path() == "/")?;
    let port = url.port_u16().unwrap_or(if url.scheme_str() == Some("https") { 443 } else { 80 });
    Some(format!("{host}:{port}"))
}

fn bearer() -> SecurityScheme {
    SecurityScheme::http("Bearer", Some("A token of this host, with the role it was given there"))
}

/// Whether a client's tag equals ours: a proxy that compressed the card may have weakened the tag.
fn is_same(known: &str, tag: &str) -> bool {
    let known = known.trim();
    known == "*" || known.strip_prefix("W/").unwrap_or(known) == tag
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grpc_clients_get_a_host_and_a_port() {
        for (url, address) in [
            ("http://127.0.0.1:4100", Some("127.0.0.1:4100")),
            ("http://[::1]:4100", Some("[::1]:4100")),
            ("https://example.org", Some("example.org:443")),
            ("http://example.org", Some("example.org:80")),
            ("https://example.org/multitap", None),
            ("unix:/run/multitap.sock", None),
        ] {
            assert_eq!(grpc_address(url).as_deref(), address, "{url}");
        }
    }
}
