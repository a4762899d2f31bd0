//! The agent card in its three forms.

use multitap_a2a::card::{Binding, Capabilities, Card, Extension, Form, Interface, Provider, SecurityScheme, Skill};
use multitap_a2a::devtool::URI;
use multitap_a2a::{Dialect, ErrorKind};
use proptest::prelude::*;
use serde_json::{Value, json};

fn card() -> Card {
    Card {
        name: "Multitap".to_owned(),
        description: "Coding agents".to_owned(),
        version: "0.1.0".to_owned(),
        provider: Some(Provider { organization: "us".to_owned(), url: "https://example.org".to_owned() }),
        documentation_url: Some("https://example.org/docs".to_owned()),
        icon_url: None,
        interfaces: vec![
            Interface::new("http://h/", Binding::JsonRpc, Dialect::V1_0),
            Interface::new("http://h/v1", Binding::HttpJson, Dialect::V0_3),
            Interface::new("http://h/", Binding::JsonRpc, Dialect::V0_3),
            Interface::new("ws://h/ws", Binding::Other("urn:ws".to_owned()), Dialect::V1_0),
        ],
        capabilities: Capabilities {
            streaming: true,
            push_notifications: false,
            state_transition_history: true,
            extended_card: true,
            extensions: vec![Extension {
                uri: URI.to_owned(),
                description: Some("tools".to_owned()),
                required: false,
                params: None,
            }],
        },
        security_schemes: vec![("bearer".to_owned(), SecurityScheme::bearer())],
        security_requirements: vec![vec![("bearer".to_owned(), Vec::new())]],
        input_modes: vec!["text/plain".to_owned()],
        output_modes: vec!["text/plain".to_owned()],
        skills: vec![Skill {
            id: "code".to_owned(),
            name: "Code".to_owned(),
            description: "writes code".to_owned(),
            tags: vec!["code".to_owned()],
            examples: vec!["fix it".to_owned()],
            ..Skill::default()
        }],
    }
}

const FIELDS_0_3: [&str; 6] = [
    "protocolVersion",
    "url",
    "preferredTransport",
    "additionalInterfaces",
    "supportsAuthenticatedExtendedCard",
    "security",
];
const FIELDS_1_0: [&str; 2] = ["supportedInterfaces", "securityRequirements"];

#[test]
fn the_card_of_0_3() {
    assert_eq!(
        card().write(Form::V0_3),
        json!({
            "protocolVersion": "0.3.0",
            "name": "Multitap",
            "description": "Coding agents",
            "version": "0.1.0",
            "url": "http://h/",
            "preferredTransport": "JSONRPC",
            "additionalInterfaces": [
                { "url": "http://h/v1", "transport": "HTTP+JSON" },
                { "url": "http://h/", "transport": "JSONRPC" },
            ],
            "provider": { "organization": "us", "url": "https://example.org" },
            "documentationUrl": "https://example.org/docs",
            "capabilities": {
                "streaming": true,
                "pushNotifications": false,
                "stateTransitionHistory": true,
                "extensions": [{ "uri": URI, "description": "tools", "required": false }],
            },
            "supportsAuthenticatedExtendedCard": true,
            "securitySchemes": { "bearer": { "type": "http", "scheme": "bearer" } },
            "security": [{ "bearer": [] }],
            "defaultInputModes": ["text/plain"],
            "defaultOutputModes": ["text/plain"],
            "skills": [{ "id": "code", "name": "Code", "description": "writes code", "tags": ["code"],
                "examples": ["fix it"] }],
        })
    );
}

#[test]
fn the_card_of_1_0() {
    assert_eq!(
        card().write(Form::V1_0),
        json!({
            "name": "Multitap",
            "description": "Coding agents",
            "version": "0.1.0",
            "supportedInterfaces": [
                { "url": "http://h/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0" },
                { "url": "http://h/v1", "protocolBinding": "HTTP+JSON", "protocolVersion": "0.3" },
                { "url": "http://h/", "protocolBinding": "JSONRPC", "protocolVersion": "0.3" },
                { "url": "ws://h/ws", "protocolBinding": "urn:ws", "protocolVersion": "1.0" },
            ],
            "provider": { "organization": "us", "url": "https://example.org" },
            "documentationUrl": "https://example.org/docs",
            "capabilities": {
                "streaming": true,
                "pushNotifications": false,
                "extendedAgentCard": true,
                "extensions": [{ "uri": URI, "description": "tools", "required": false }],
            },
            "securitySchemes": { "bearer": { "httpAuthSecurityScheme": { "scheme": "bearer" } } },
            "securityRequirements": [{ "schemes": { "bearer": { "list": [] } } }],
            "defaultInputModes": ["text/plain"],
            "defaultOutputModes": ["text/plain"],
            "skills": [{ "id": "code", "name": "Code", "description": "writes code", "tags": ["code"],
                "examples": ["fix it"] }],
        })
    );
}

#[test]
fn the_hybrid_card_is_the_union() {
    let hybrid = card().write(Form::Hybrid);
    let (old, new) = (card().write(Form::V0_3), card().write(Form::V1_0));
    let shared = ["capabilities", "securitySchemes"];
    for (form, fields) in [(&old, &FIELDS_0_3[..]), (&new, &FIELDS_1_0[..])] {
        for key in fields {
            assert_eq!(hybrid[key], form[key], "{key}");
        }
        for (key, value) in form.as_object().unwrap() {
            assert!(hybrid[key] == *value || shared.contains(&key.as_str()), "{key}");
        }
        for key in shared {
            for (name, value) in form[key].as_object().unwrap() {
                let union = hybrid[key].get(name).unwrap();
                let is_in = |value: &Value| value.as_object().unwrap().iter().all(|(k, v)| union[k] == *v);
                assert!(union == value || is_in(value), "{key}.{name}");
            }
        }
    }
    assert!(FIELDS_1_0.iter().all(|key| old.get(key).is_none()));
    assert!(FIELDS_0_3.iter().all(|key| new.get(key).is_none()));
}

#[test]
fn each_form_is_read_back_as_far_as_it_goes() {
    assert_eq!(Card::read(&card().write(Form::Hybrid)).unwrap(), card());
    let mut new = card();
    new.capabilities.state_transition_history = false;
    assert_eq!(Card::read(&card().write(Form::V1_0)).unwrap(), new);
    let mut old = card();
    old.interfaces.retain(|interface| interface.dialect() == Some(Dialect::V0_3));
    old.interfaces.reverse(); // The preferred one comes first.
    assert_eq!(Card::read(&card().write(Form::V0_3)).unwrap(), old);
}

#[test]
fn every_kind_of_security_is_said_in_both_versions() {
    let scheme = |kind: &str, fields: Value| SecurityScheme {
        kind: kind.to_owned(),
        fields: fields.as_object().cloned().unwrap(),
    };
    let flows = json!({ "clientCredentials": { "tokenUrl": "u" } });
    let schemes = [
        (
            scheme("apiKey", json!({ "name": "X-Key", "location": "header" })),
            json!({ "type": "apiKey", "name": "X-Key", "in": "header" }),
            "apiKeySecurityScheme",
        ),
        (
            scheme("oauth2", json!({ "flows": flows })),
            json!({ "type": "oauth2", "flows": flows }),
            "oauth2SecurityScheme",
        ),
        (
            scheme("openIdConnect", json!({ "openIdConnectUrl": "u" })),
            json!({ "type": "openIdConnect", "openIdConnectUrl": "u" }),
            "openIdConnectSecurityScheme",
        ),
        (scheme("mutualTLS", json!({})), json!({ "type": "mutualTLS" }), "mtlsSecurityScheme"),
    ];
    for (known, old, field) in schemes {
        let card = Card { security_schemes: vec![("s".to_owned(), known)], ..card() };
        assert_eq!(card.write(Form::V0_3)["securitySchemes"]["s"], old);
        assert!(card.write(Form::V1_0)["securitySchemes"]["s"][field].is_object());
        for form in [Form::V0_3, Form::V1_0, Form::Hybrid] {
            assert_eq!(Card::read(&card.write(form)).unwrap().security_schemes, card.security_schemes, "{form:?}");
        }
    }
    let own = scheme("handshake", json!({ "firm": true }));
    let card = Card { security_schemes: vec![("s".to_owned(), own)], ..card() };
    assert_eq!(Card::read(&card.write(Form::Hybrid)).unwrap(), card, "one that nobody knows is kept");
}

#[test]
fn a_sparse_card_is_read() {
    let read = Card::read(&json!({ "name": "Gemini", "url": "http://h/", "protocolVersion": "0.3.0" })).unwrap();
    assert_eq!(read.interfaces, [Interface::new("http://h/", Binding::JsonRpc, Dialect::V0_3)]);
    let older = Card::read(&json!({ "name": "x", "url": "http://h/", "protocolVersion": "0.2.6" })).unwrap();
    assert_eq!(older.interfaces[0].dialect(), Some(Dialect::V0_3));
    let newer = json!({ "name": "x", "supportedInterfaces": [{ "url": "u", "protocolVersion": "2.0" }] });
    let newer = Card::read(&newer).unwrap();
    assert_eq!((newer.interfaces[0].dialect(), newer.interfaces[0].version.as_str()), (None, "2.0"));
}

#[test]
fn what_is_wrong_in_a_card_is_named() {
    let check = |value: Value, message: &str| {
        let error = Card::read(&value).unwrap_err();
        assert_eq!((error.kind, error.message.as_str()), (ErrorKind::InvalidAgentResponse, message));
    };
    check(json!([]), "card: must be an object, not a list");
    check(json!({ "url": "u" }), "name: is missing");
    check(json!({ "name": "x" }), "card: must hold supportedInterfaces or url");
    check(json!({ "name": "x", "supportedInterfaces": [{}] }), "supportedInterfaces[0].url: is missing");
    check(
        json!({ "name": "x", "url": "u", "capabilities": { "streaming": "yes" } }),
        "capabilities.streaming: must be true or false, not a string",
    );
}

#[test]
fn versions_are_told_to_their_dialects() {
    for (version, dialect) in [
        ("0.3", Some(Dialect::V0_3)),
        ("0.3.0", Some(Dialect::V0_3)),
        ("1.0", Some(Dialect::V1_0)),
        ("1", Some(Dialect::V1_0)),
        ("1.1", Some(Dialect::V1_0)),
        ("0.1", None),
        ("2.0", None),
        ("99.0", None),
        ("", None),
        ("x", None),
        ("1.x", None),
    ] {
        assert_eq!(Dialect::of_version(version), dialect, "{version}");
    }
}

proptest! {
    #[test]
    fn a_broken_card_is_read_or_refused(at in 0..20_usize, replacement in prop_oneof![
        Just(json!(null)), Just(json!(7)), Just(json!("x")), Just(json!([{}])), Just(json!({ "s": [1] })), Just(json!([])),
    ]) {
        let mut value = card().write(Form::Hybrid);
        let keys: Vec<_> = value.as_object().unwrap().keys().cloned().collect();
        value[&keys[at % keys.len()]] = replacement;
        if let Err(error) = Card::read(&value) {
            prop_assert!(error.message.contains(": "), "{}", error);
        }
    }
}
