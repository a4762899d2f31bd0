//! The guard, as tables: a request's head in, what becomes of it out.

use axum::http::Request as HttpRequest;

use super::*;

const PORT: u16 = 4100;

fn guard(access: Access) -> Guard {
    Guard::new(access, "127.0.0.1", PORT).unwrap()
}

fn tokens() -> Tokens {
    let mut tokens = Tokens::default();
    tokens.add("own-1", ClientRole::Owner, Some("Ada".to_owned())).unwrap();
    tokens.add("con-1", ClientRole::Controller, None).unwrap();
    tokens.add("obs-1", ClientRole::Observer, None).unwrap();
    tokens
}

fn head(uri: &str, headers: &[(&str, &str)]) -> Parts {
    let mut request = HttpRequest::get(uri);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap().into_parts().0
}

#[test]
fn a_host_is_ours_by_name_and_port() {
    let listed = Access { allow_hosts: vec!["Box.Example".into(), "10.0.0.7:9000".into()], ..Access::default() };
    let guard = guard(listed);
    for (host, fits) in [
        ("localhost:4100", true),
        ("LOCALHOST:4100", true),
        ("127.0.0.1:4100", true),
        ("[::1]:4100", true),
        ("[0:0:0:0:0:0:0:1]:4100", true),
        ("box.example", true),
        ("box.example:443", true),
        ("10.0.0.7:9000", true),
        ("10.0.0.7:9001", false),
        ("10.0.0.7", false),
        ("localhost", false),
        ("localhost:4101", false),
        ("localhost:", false),
        ("localhost:04100x", false),
        ("::1:4100", false),
        ("127.1:4100", false),
        ("2130706433:4100", false),
        ("127.0.0.2:4100", false),
        ("0.0.0.0:4100", false),
        ("evil.example:4100", false),
        ("localhost.evil.example:4100", false),
        ("evil@localhost:4100", false),
        ("localhost:4100@evil.example", false),
        ("localhost:4100/", false),
        ("", false),
    ] {
        let found = guard.place(&head("/", &[("host", host)]));
        assert_eq!(found.is_ok(), fits, "{host}: {found:?}");
        if !fits {
            assert!(matches!(found, Err(Refusal::Host(_))), "{host}");
        }
    }
}

#[test]
fn a_host_is_said_once_and_the_request_line_may_not_contradict_it() {
    let guard = guard(Access::default());
    let twice = [("host", "localhost:4100"), ("host", "localhost:4100")];
    assert!(matches!(guard.place(&head("/", &twice)), Err(Refusal::Host(_))));
    assert!(matches!(guard.place(&head("/", &[])), Err(Refusal::Host(_))));
    let ours = [("host", "localhost:4100")];
    assert!(guard.place(&head("http://127.0.0.1:4100/x", &ours)).is_ok());
    let refused = guard.place(&head("http://evil.example:4100/x", &ours));
    assert_eq!(refused, Err(Refusal::Host("evil.example:4100".into())));
}

#[test]
fn the_usual_port_goes_without_saying() {
    let guard = Guard::new(Access::default(), "localhost", 80).unwrap();
    for host in ["localhost", "localhost:80", "[::1]"] {
        assert!(guard.place(&head("/", &[("host", host), ("origin", &format!("http://{host}"))])).is_ok(), "{host}");
    }
}

#[test]
fn a_door_goes_by_the_name_it_listens_at_unless_that_is_all_of_them() {
    let named = Guard::new(Access::default(), "192.168.1.5", PORT).unwrap();
    assert!(named.place(&head("/", &[("host", "192.168.1.5:4100")])).is_ok());
    for all in ["0.0.0.0", "::"] {
        let guard = Guard::new(Access::default(), all, PORT).unwrap();
        assert!(guard.place(&head("/", &[("host", "0.0.0.0:4100")])).is_err(), "{all}");
        assert!(guard.place(&head("/", &[("host", "192.168.1.5:4100")])).is_err(), "{all}");
        assert!(guard.place(&head("/", &[("host", "localhost:4100")])).is_ok(), "{all}");
    }
}

#[test]
fn a_page_under_a_listed_name_is_ours_only_if_it_came_from_where_it_asks() {
    let guard = guard(Access { allow_hosts: vec!["box.example".into()], ..Access::default() });
    for (host, origin, is_ours) in [
        ("box.example", "http://box.example", true),
        ("box.example", "http://box.example:80", true),
        ("box.example:8080", "http://box.example:8080", true),
        ("box.example", "http://box.example:9999", false),
        ("box.example:8080", "http://box.example", false),
        ("box.example", "https://box.example", false),
        ("localhost:4100", "http://box.example", false),
        ("box.example", "http://localhost:4100", true),
    ] {
        let found = guard.place(&head("/", &[("host", host), ("origin", origin)]));
        assert_eq!(found.is_ok(), is_ours, "{origin} at {host}: {found:?}");
    }
}

#[test]
fn an_origin_is_ours_or_listed() {
    let listed = Access {
        allow_hosts: vec!["box.example".into()],
        allow_origins: vec![
            "https://App.Example".into(),
            "http://localhost:3000".into(),
            "vscode-webview://abc".into(),
        ],
        ..Access::default()
    };
    let guard = guard(listed);
    /// What becomes of a page.
    #[derive(Debug, PartialEq)]
    enum Page {
        Ours,
        Listed,
        Foreign,
    }
    use Page::{Foreign, Listed, Ours};
    for (origin, expected) in [
        ("http://localhost:4100", Ours),
        ("http://127.0.0.1:4100", Ours),
        ("http://[::1]:4100", Ours),
        ("http://box.example", Foreign),
        ("https://app.example", Listed),
        ("https://app.example:443", Listed),
        ("http://localhost:3000", Listed),
        ("vscode-webview://abc", Listed),
        ("https://localhost:4100", Foreign),
        ("http://localhost", Foreign),
        ("http://localhost:3001", Foreign),
        ("http://app.example", Foreign),
        ("https://app.example:444", Foreign),
        ("https://app.example.evil.example", Foreign),
        ("https://evil.example", Foreign),
        ("https://app.example@evil.example", Foreign),
        ("null", Foreign),
        ("*", Foreign),
        ("", Foreign),
        ("localhost:4100", Foreign),
        ("http://localhost:4100/", Foreign),
        ("http://localhost:4100, https://app.example", Foreign),
        ("vscode-webview://abd", Foreign),
    ] {
        let found = match guard.place(&head("/", &[("host", "localhost:4100"), ("origin", origin)])) {
            Ok(None) => Ours,
            Ok(Some(page)) => {
                assert_eq!(page, origin, "it is told its own name");
                Listed
            }
            Err(Refusal::Origin(_)) => Foreign,
            Err(other) => panic!("{origin}: {other:?}"),
        };
        assert_eq!(found, expected, "{origin}");
    }
}

#[test]
fn what_cannot_be_allowed_is_said() {
    for (hosts, origins, fits) in [
        (vec!["box"], vec!["https://a.example"], true),
        (vec!["[fe80::1]:80"], vec![], true),
        (vec!["http://box"], vec![], false),
        (vec!["box/"], vec![], false),
        (vec!["*"], vec![], false),
        (vec![""], vec![], false),
        (vec![], vec!["null"], false),
        (vec![], vec!["*"], false),
        (vec![], vec!["a.example"], false),
        (vec![], vec!["https://a.example/"], false),
        (vec![], vec!["https://a.example/app"], false),
    ] {
        let texts = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
        let access = Access { allow_hosts: texts(&hosts), allow_origins: texts(&origins), ..Access::default() };
        let made = Guard::new(access, "localhost", PORT);
        assert_eq!(made.is_ok(), fits, "{hosts:?} {origins:?} {made:?}");
    }
}

#[test]
fn a_page_elsewhere_is_found_out_also_without_an_origin() {
    let guard = guard(Access::default());
    for (headers, fits) in [
        (&[("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "no-cors"), ("sec-fetch-dest", "image")][..], false),
        (&[("sec-fetch-site", "same-site"), ("sec-fetch-mode", "no-cors"), ("sec-fetch-dest", "script")], false),
        (&[("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "iframe")], false),
        (&[("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document")], true),
        (&[("sec-fetch-site", "same-origin"), ("sec-fetch-mode", "cors"), ("sec-fetch-dest", "empty")], true),
        (&[("sec-fetch-site", "none"), ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document")], true),
        (&[], true),
    ] {
        let all: Vec<_> = [("host", "localhost:4100")].into_iter().chain(headers.iter().copied()).collect();
        assert_eq!(guard.place(&head("/", &all)).is_ok(), fits, "{headers:?}");
    }
}

#[test]
fn a_token_says_who_it_is_and_a_query_only_lowers() {
    let guard = guard(Access { scheme: Scheme::of(tokens()), ..Access::default() });
    // Of these only the owner's token has a name.
    let is = |name: Option<&str>, role| {
        let account = name.filter(|name| *name == "Ada").map(str::to_owned);
        Ok(Caller { name: name.map(str::to_owned), role, account })
    };
    let wrong = || Err(Refusal::Unauthenticated(Unauthenticated::Wrong));
    for (uri, headers, expected) in [
        ("/", &[("authorization", "Bearer own-1")][..], is(Some("Ada"), ClientRole::Owner)),
        ("/", &[("authorization", "bearer  con-1 ")], is(None, ClientRole::Controller)),
        ("/", &[("authorization", "Bearer obs-1")], is(None, ClientRole::Observer)),
        ("/?role=observer", &[("authorization", "Bearer own-1")], is(Some("Ada"), ClientRole::Observer)),
        ("/?role=controller", &[("authorization", "Bearer own-1")], is(Some("Ada"), ClientRole::Controller)),
        ("/?role=owner", &[("authorization", "Bearer obs-1")], is(None, ClientRole::Observer)),
        ("/?role=observer&role=owner", &[("authorization", "Bearer con-1")], is(None, ClientRole::Observer)),
        ("/?client=Eve", &[("authorization", "Bearer own-1")], is(Some("Ada"), ClientRole::Owner)),
        ("/?client=Eve", &[("authorization", "Bearer con-1")], is(Some("Eve"), ClientRole::Controller)),
        ("/ws", &[("sec-websocket-protocol", "multitap.v1, bearer.con-1")], is(None, ClientRole::Controller)),
        ("/ws", &[("sec-websocket-protocol", "multitap.v1,bearer.own-1")], is(Some("Ada"), ClientRole::Owner)),
        (
            "/ws",
            &[("sec-websocket-protocol", "multitap.v1"), ("sec-websocket-protocol", "bearer.obs-1")],
            is(None, ClientRole::Observer),
        ),
        ("/ws", &[("sec-websocket-protocol", "multitap.v1, bearer.other")], wrong()),
        ("/ws", &[("authorization", "Bearer other"), ("sec-websocket-protocol", "bearer.own-1")], wrong()),
        ("/ws", &[("sec-websocket-protocol", "multitap.v1")], Err(Refusal::Unauthenticated(Unauthenticated::Nothing))),
        ("/", &[], Err(Refusal::Unauthenticated(Unauthenticated::Nothing))),
        ("/?token=own-1", &[], Err(Refusal::Unauthenticated(Unauthenticated::Nothing))),
        ("/", &[("authorization", "Bearer")], wrong()),
        ("/", &[("authorization", "Bearer ")], wrong()),
        ("/", &[("authorization", "Basic own-1")], wrong()),
        ("/", &[("authorization", "own-1")], wrong()),
        ("/", &[("authorization", "Bearer own-1"), ("authorization", "Bearer own-1")], wrong()),
        ("/?role=admin", &[("authorization", "Bearer own-1")], Err(Refusal::Role("admin".into()))),
    ] {
        assert_eq!(guard.caller(&head(uri, headers)), expected, "{uri} {headers:?}");
    }
}

#[test]
fn at_an_open_door_everybody_is_a_controller() {
    let guard = guard(Access::default());
    let caller = |uri| guard.caller(&head(uri, &[("authorization", "Bearer whatever")])).unwrap();
    assert_eq!(caller("/"), Caller { name: None, role: ClientRole::Controller, account: None });
    assert_eq!(caller("/?role=owner").role, ClientRole::Controller, "asking does not help");
    assert_eq!(
        caller("/?role=observer&client=my%20IDE"),
        Caller { name: Some("my IDE".into()), role: ClientRole::Observer, account: None },
        "a name that a client gives itself is no account"
    );
    assert!(!guard.requires_token());
    let guarded = self::guard(Access { scheme: Scheme::of(tokens()), ..Access::default() });
    assert!(guarded.requires_token());
}

#[test]
fn a_name_is_fit_to_be_shown() {
    for (given, shown) in [
        ("IDE", Some("IDE")),
        ("  my\tIDE\r\n", Some("my IDE")),
        ("\u{1b}[31mred", Some("31mred")),
        ("x [ACP]   boss", Some("x ACP boss")),
        ("\u{ff3b}web\u{ff3d}\u{3000}\u{2066}ann\u{2069}\u{2060}\u{ad}", Some("web ann")),
        ("\u{9b}31m\u{e0041}\u{fe0f}ann\u{3164}", Some("31mann")),
        ("[] \u{200d}", None),
        ("\u{2800}\u{13430}", None),
        ("boss\u{2800}\u{1d173}", Some("boss")),
        ("a\u{202e}b\u{200b}c", Some("abc")),
        ("", None),
        (" \u{7} ", None),
    ] {
        assert_eq!(client_name(given).as_deref(), shown, "{given:?}");
    }
    // At a size at which a cost that grows with its square takes minutes.
    for part in [" ", "a ", "\u{200b}", "[", "é"] {
        assert!(client_name(&part.repeat(1_000_000)).is_none_or(|name| name.chars().count() <= LONGEST_NAME));
    }
    assert_eq!(client_name(&"é".repeat(100)).unwrap().chars().count(), LONGEST_NAME);
    assert_eq!(client_name(&format!("{} b", "a".repeat(LONGEST_NAME - 1))).unwrap(), "a".repeat(LONGEST_NAME - 1));
}

#[test]
fn tokens_go_no_further() {
    let mut headers = head(
        "/ws",
        &[
            ("authorization", "Bearer own-1"),
            ("sec-websocket-protocol", "multitap.v1, bearer.own-1"),
            ("accept", "*/*"),
        ],
    )
    .headers;
    hide_tokens(&mut headers);
    assert_eq!(headers[header::SEC_WEBSOCKET_PROTOCOL], SUBPROTOCOL);
    assert!(!format!("{headers:?}").contains("own-1"), "{headers:?}");
    assert_eq!(headers[header::ACCEPT], "*/*");
}
