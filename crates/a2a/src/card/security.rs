//! How clients authenticate, according to the card: each scheme has a `type` in 0.3 and a field of its own in 1.0.

use serde_json::{Value, json};

use super::Form;
use crate::error::Error;
use crate::model::Map;
use crate::read::Node;
use crate::write::present;

/// The `type` of a scheme in 0.3, and its field in 1.0.
const NAMES: [(&str, &str); 5] = [
    ("http", "httpAuthSecurityScheme"),
    ("apiKey", "apiKeySecurityScheme"),
    ("oauth2", "oauth2SecurityScheme"),
    ("openIdConnect", "openIdConnectSecurityScheme"),
    ("mutualTLS", "mtlsSecurityScheme"),
];

/// A way to authenticate.
#[derive(Debug, Clone, PartialEq)]
pub enum SecurityScheme {
    /// A scheme of HTTP authentication, such as `bearer`.
    Http { scheme: String, bearer_format: Option<String>, description: Option<String> },
    /// A key with that name, in a `header`, the `query` or a `cookie`.
    ApiKey { name: String, location: String, description: Option<String> },
    /// As received.
    OAuth2(Map),
    /// As received.
    OpenIdConnect(Map),
    /// As received.
    MutualTls(Map),
    /// Unknown to this version.
    Other(Value),
}

/// The schemes that must be met together, each with its scopes.
pub type SecurityRequirement = Vec<(String, Vec<String>)>;

impl SecurityScheme {
    pub fn bearer() -> Self {
        Self::Http { scheme: "bearer".to_owned(), bearer_format: None, description: None }
    }

    /// The fields of a scheme in 0.3 or in 1.0.
    fn fields(&self, form: Form) -> Map {
        match self {
            Self::Http { scheme, bearer_format, description } => {
                present(json!({ "scheme": scheme, "bearerFormat": bearer_format, "description": description }))
            }
            Self::ApiKey { name, location, description } => {
                let place = if form == Form::V0_3 { "in" } else { "location" };
                present(json!({ "name": name, place: location, "description": description }))
            }
            Self::OAuth2(raw) | Self::OpenIdConnect(raw) | Self::MutualTls(raw) => raw.clone(),
            Self::Other(_) => Map::new(),
        }
    }

    pub(super) fn write(&self, form: Form) -> Value {
        let (word, field) = match self {
            Self::Http { .. } => NAMES[0],
            Self::ApiKey { .. } => NAMES[1],
            Self::OAuth2(_) => NAMES[2],
            Self::OpenIdConnect(_) => NAMES[3],
            Self::MutualTls(_) => NAMES[4],
            Self::Other(value) => return value.clone(),
        };
        let mut map = Map::new();
        if form != Form::V1_0 {
            map.insert("type".to_owned(), json!(word));
            map.extend(self.fields(Form::V0_3));
        }
        if form != Form::V0_3 {
            map.insert(field.to_owned(), Value::Object(self.fields(Form::V1_0)));
        }
        Value::Object(map)
    }

    pub(super) fn read(node: &Node<'_>) -> Result<Self, Error> {
        for (word, field) in NAMES {
            if let Some(scheme) = node.opt_inside(field, |inner| Self::read_as(word, inner))? {
                return Ok(scheme);
            }
        }
        match node.opt_string("type")? {
            Some(word) => Self::read_as(&word, node),
            None => Ok(Self::Other(node.value().clone())),
        }
    }

    fn read_as(word: &str, node: &Node<'_>) -> Result<Self, Error> {
        let raw = || {
            let mut map = node.value().as_object().cloned().unwrap_or_default();
            map.shift_remove("type");
            map
        };
        Ok(match word {
            "http" => Self::Http {
                scheme: node.string("scheme")?,
                bearer_format: node.opt_string("bearerFormat")?,
                description: node.opt_string("description")?,
            },
            "apiKey" => Self::ApiKey {
                name: node.string("name")?,
                location: node.any_string(&["location", "in"])?.unwrap_or_else(|| "header".to_owned()),
                description: node.opt_string("description")?,
            },
            "oauth2" => Self::OAuth2(raw()),
            "openIdConnect" => Self::OpenIdConnect(raw()),
            "mutualTLS" => Self::MutualTls(raw()),
            _ => Self::Other(node.value().clone()),
        })
    }
}

/// `[{"name": [scopes]}]` in 0.3.
pub(super) fn requirements_0_3(all: &[SecurityRequirement]) -> Vec<Map> {
    let one =
        |scopes: &SecurityRequirement| scopes.iter().map(|(name, scopes)| (name.clone(), json!(scopes))).collect();
    all.iter().map(one).collect()
}

/// `[{"schemes": {"name": {"list": [scopes]}}}]` in 1.0.
pub(super) fn requirements_1_0(all: &[SecurityRequirement]) -> Vec<Value> {
    let listed = |(name, scopes): &(String, Vec<String>)| (name.clone(), json!({ "list": scopes }));
    all.iter().map(|one| json!({ "schemes": one.iter().map(listed).collect::<Map>() })).collect()
}

/// The requirements of 1.0 if there are any, else those of 0.3.
pub(super) fn read_requirements(node: &Node<'_>) -> Result<Vec<SecurityRequirement>, Error> {
    if node.has("securityRequirements") {
        return node.each_object("securityRequirements", |node| {
            node.opt_inside("schemes", |schemes| {
                read_names(schemes, |node, name| {
                    Ok(node.opt_inside(name, |inner| inner.strings("list"))?.unwrap_or_default())
                })
            })
            .map(Option::unwrap_or_default)
        });
    }
    node.each_object("security", |node| read_names(node, |node, name| node.strings(name)))
}

fn read_names(
    node: &Node<'_>,
    scopes: impl Fn(&Node<'_>, &str) -> Result<Vec<String>, Error>,
) -> Result<SecurityRequirement, Error> {
    let names = node.value().as_object().into_iter().flat_map(Map::keys);
    names.map(|name| Ok((name.clone(), scopes(node, name)?))).collect()
}
