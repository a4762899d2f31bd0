//! How clients authenticate, according to the card: each scheme has a `type` in 0.3 and a field of its own in 1.0.

use serde_json::{Value, json};

use super::Form;
use crate::error::Error;
use crate::model::Map;
use crate::read::Node;
use crate::write::present;

/// The place of an API key is named differently in both versions.
const API_KEY: &str = "apiKey";

/// The `type` of a scheme in 0.3, and its field in 1.0.
const NAMES: [(&str, &str); 5] = [
    ("http", "httpAuthSecurityScheme"),
    (API_KEY, "apiKeySecurityScheme"),
    ("oauth2", "oauth2SecurityScheme"),
    ("openIdConnect", "openIdConnectSecurityScheme"),
    ("mutualTLS", "mtlsSecurityScheme"),
];

/// A way to authenticate.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SecurityScheme {
    /// Its `type` in 0.3, such as `http` or `apiKey`; may be unknown to this version.
    pub kind: String,
    /// The rest of it, with the names of 1.0.
    pub fields: Map,
}

/// The schemes that must be met together, each with its scopes.
pub type SecurityRequirement = Vec<(String, Vec<String>)>;

impl SecurityScheme {
    /// A scheme of HTTP authentication, such as `bearer`.
    pub fn http(scheme: &str, description: Option<&str>) -> Self {
        let fields = present(json!({ "scheme": scheme, "description": description }));
        Self { kind: "http".to_owned(), fields }
    }

    pub fn bearer() -> Self {
        Self::http("bearer", None)
    }

    pub(super) fn write(&self, form: Form) -> Value {
        let field = NAMES.into_iter().find(|(kind, _)| *kind == self.kind).map(|(_, field)| field);
        let mut map = Map::new();
        if matches!(form, Form::V0_3 | Form::Hybrid) || field.is_none() {
            map.extend(Some(&self.kind).filter(|kind| !kind.is_empty()).map(|kind| ("type".to_owned(), json!(kind))));
            map.extend(self.fields.clone());
            if self.kind == API_KEY {
                rename(&mut map, "location", "in");
            }
        }
        if let Some(field) = field.filter(|_| form != Form::V0_3) {
            map.insert(field.to_owned(), Value::Object(self.fields.clone()));
        }
        Value::Object(map)
    }

    pub(super) fn read(node: &Node<'_>) -> Result<Self, Error> {
        for (kind, field) in NAMES {
            if node.has(field) {
                return Ok(Self { kind: kind.to_owned(), fields: node.map(field)? });
            }
        }
        let kind = node.opt_string("type")?.unwrap_or_default();
        let mut fields = node.value().as_object().cloned().unwrap_or_default();
        fields.shift_remove("type");
        if kind == API_KEY {
            rename(&mut fields, "in", "location");
        }
        Ok(Self { kind, fields })
    }
}

fn rename(map: &mut Map, from: &str, to: &str) {
    let value = map.shift_remove(from);
    map.extend(value.map(|value| (to.to_owned(), value)));
}

/// `[{"name": [scopes]}]` in 0.3, but not on HTTP+JSON.
pub(super) fn requirements_0_3(all: &[SecurityRequirement], form: Form) -> Vec<Value> {
    if form == Form::V0_3Rest {
        return requirements_1_0(all);
    }
    let one = |scopes: &SecurityRequirement| {
        scopes.iter().map(|(name, scopes)| (name.clone(), json!(scopes))).collect::<Map>().into()
    };
    all.iter().map(one).collect()
}

/// `[{"schemes": {"name": {"list": [scopes]}}}]` in 1.0.
pub(super) fn requirements_1_0(all: &[SecurityRequirement]) -> Vec<Value> {
    let listed = |(name, scopes): &(String, Vec<String>)| (name.clone(), json!({ "list": scopes }));
    all.iter().map(|one| json!({ "schemes": one.iter().map(listed).collect::<Map>() })).collect()
}

/// The requirements of 1.0 if there are any, else those of 0.3, which on HTTP+JSON look the same.
pub(super) fn read_requirements(node: &Node<'_>) -> Result<Vec<SecurityRequirement>, Error> {
    let key = if node.has("securityRequirements") { "securityRequirements" } else { "security" };
    node.each_object(key, |node| match node.get("schemes") {
        Some(schemes) if schemes.value().is_object() => read_names(&schemes, |node, name| {
            Ok(node.opt_inside(name, |inner| inner.strings("list"))?.unwrap_or_default())
        }),
        _ if key == "security" => read_names(node, |node, name| node.strings(name)),
        _ => Ok(SecurityRequirement::new()),
    })
}

fn read_names(
    node: &Node<'_>,
    scopes: impl Fn(&Node<'_>, &str) -> Result<Vec<String>, Error>,
) -> Result<SecurityRequirement, Error> {
    let names = node.value().as_object().into_iter().flat_map(Map::keys);
    names.map(|name| Ok((name.clone(), scopes(node, name)?))).collect()
}
