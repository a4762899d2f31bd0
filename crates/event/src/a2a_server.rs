//! A remote A2A agent that the user lists: one entry of `a2aServers` in settings, or of the array that `multitap mcp
//! --agents` takes.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::visible_line;

/// Maximum number of entries: a longer list is a mistake.
const MOST_AGENTS: usize = 64;

/// A remote agent in the user's list.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct A2aServer {
    /// The address of the agent, or of its card.
    pub url: String,
    /// Prefix of the names of its tools; by default the name in its card.
    pub name: Option<String>,
    /// Sent as `Authorization: Bearer`.
    pub access_token: Option<String>,
    /// The environment variable that holds the access token.
    pub token_env: Option<String>,
    /// Sent with every request, such as an API key.
    pub headers: BTreeMap<String, String>,
    /// The path of its card, relative to the address.
    pub card_path: Option<String>,
    /// The conversation for messages that name none.
    pub context_id: Option<String>,
    /// How long a call waits for the agent before it returns the id of the task that goes on.
    pub timeout: Option<Duration>,
}

/// The list cannot be used. Names the place, never a value: values may be secrets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct A2aServerError(String);

impl A2aServer {
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), ..Self::default() }
    }

    /// Reads the array `[{"url": …}, …]`. `path` is its name in errors and in `notes`, which list what was ignored.
    pub fn read_list(value: &Value, path: &str, notes: &mut Vec<String>) -> Result<Vec<Self>, A2aServerError> {
        let list = value.as_array().ok_or_else(|| wrong(path, "a list of agents", value))?;
        if list.len() > MOST_AGENTS {
            return Err(A2aServerError(format!("'{path}' has {} agents, and at most {MOST_AGENTS} fit", list.len())));
        }
        let entry = |(at, value)| Self::read(value, &format!("{path}[{at}]"), notes);
        list.iter().enumerate().map(entry).collect()
    }

    fn read(value: &Value, path: &str, notes: &mut Vec<String>) -> Result<Self, A2aServerError> {
        let map = value.as_object().ok_or_else(|| wrong(path, "an object", value))?;
        let mut entry = Self::default();
        for (key, value) in map {
            let path = format!("{path}.{key}");
            match key.as_str() {
                "url" => entry.url = text(value, &path)?,
                "name" => entry.name = Some(text(value, &path)?),
                "accessToken" => entry.access_token = Some(text(value, &path)?),
                "tokenEnv" => entry.token_env = Some(text(value, &path)?),
                "agent_card_path" | "agentCardPath" => entry.card_path = Some(text(value, &path)?),
                "contextId" => entry.context_id = Some(text(value, &path)?),
                "headers" => entry.headers = headers(value, &path)?,
                "timeout" => entry.timeout = Some(milliseconds(value, &path)?),
                _ => notes.push(format!("'{path}' is not known to this version and is ignored")),
            }
        }
        if entry.url.trim().is_empty() {
            return Err(A2aServerError(format!("'{path}.url' is missing: the address of the agent")));
        }
        Ok(entry)
    }

    /// Reads the access token from the variable that `tokenEnv` names. An unset variable is an error: without the
    /// token, the agent would refuse every call, and nobody would know why.
    pub fn resolve_token(&mut self, lookup: impl Fn(&str) -> Option<String>) -> Result<(), A2aServerError> {
        let Some(name) = self.token_env.take() else { return Ok(()) };
        if self.access_token.is_some() {
            return Ok(());
        }
        let token = lookup(&name).filter(|token| !token.is_empty());
        let unset = || A2aServerError(format!("{}: the variable {name} (tokenEnv) is not set", self.address()));
        self.access_token = Some(token.ok_or_else(unset)?);
        Ok(())
    }

    /// The array that [`A2aServer::read_list`] reads, tokens included: for a private file only.
    pub fn write_list(entries: &[Self]) -> Value {
        Value::Array(entries.iter().map(Self::write).collect())
    }

    fn write(&self) -> Value {
        let mut map = Map::new();
        map.insert("url".to_owned(), json!(self.url));
        let texts = [
            ("name", &self.name),
            ("accessToken", &self.access_token),
            ("tokenEnv", &self.token_env),
            ("agent_card_path", &self.card_path),
            ("contextId", &self.context_id),
        ];
        for (key, value) in texts {
            map.extend(value.as_ref().map(|value| (key.to_owned(), json!(value))));
        }
        if !self.headers.is_empty() {
            map.insert("headers".to_owned(), json!(self.headers));
        }
        map.extend(self.timeout.map(|limit| ("timeout".to_owned(), json!(u64::try_from(limit.as_millis()).ok()))));
        Value::Object(map)
    }

    /// The address without the parts that may be secret.
    pub fn address(&self) -> String {
        let end = self.url.find(['?', '#']).unwrap_or(self.url.len());
        let (scheme, rest) = self.url[..end].split_once("://").unwrap_or(("", &self.url[..end]));
        let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let host = host.rsplit('@').next().unwrap_or_default();
        visible_line(&format!("{scheme}://{host}{path}")).into_owned()
    }

    /// Values that must never be shown: the token and the values of headers.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        self.access_token.as_deref().into_iter().chain(self.headers.values().map(String::as_str))
    }
}

impl fmt::Debug for A2aServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("A2aServer")
            .field("url", &self.address())
            .field("name", &self.name)
            .field("headers", &self.headers.keys())
            .finish_non_exhaustive()
    }
}

fn text(value: &Value, path: &str) -> Result<String, A2aServerError> {
    value.as_str().map(str::to_owned).ok_or_else(|| wrong(path, "a string", value))
}

fn headers(value: &Value, path: &str) -> Result<BTreeMap<String, String>, A2aServerError> {
    let map = value.as_object().ok_or_else(|| wrong(path, "an object", value))?;
    map.iter().map(|(name, value)| Ok((name.clone(), text(value, &format!("{path}.{name}"))?))).collect()
}

fn milliseconds(value: &Value, path: &str) -> Result<Duration, A2aServerError> {
    let found = value.as_u64().filter(|limit| *limit > 0);
    found.map(Duration::from_millis).ok_or_else(|| wrong(path, "a number of milliseconds above 0", value))
}

fn wrong(path: &str, wanted: &str, value: &Value) -> A2aServerError {
    let found = match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "that number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    };
    A2aServerError(format!("'{path}' must be {wanted}, not {found}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_of_the_seed_and_our_additions_are_read_and_written() {
        // R004-5
        let list = json!([
            { "url": "http://a.example" },
            { "url": "http://b.example", "accessToken": "s3cret", "agent_card_path": "card.json", "name": "b",
              "headers": { "X-Api-Key": "k3y" }, "timeout": 90_000 },
        ]);
        let mut notes = Vec::new();
        let entries = A2aServer::read_list(&list, "a2aServers", &mut notes).unwrap();
        assert_eq!(entries[0], A2aServer::new("http://a.example"));
        assert_eq!(entries[1].timeout, Some(Duration::from_secs(90)));
        assert_eq!(A2aServer::write_list(&entries), {
            let mut list = list.clone();
            // The order in which it is written.
            list[1] = json!({ "url": "http://b.example", "name": "b", "accessToken": "s3cret",
                "agent_card_path": "card.json", "headers": { "X-Api-Key": "k3y" }, "timeout": 90_000 });
            list
        });
        assert!(notes.is_empty());
        let shown = format!("{entries:?}");
        assert!(!shown.contains("s3cret") && !shown.contains("k3y"), "{shown}");
    }

    #[test]
    fn wrong_types_are_named_with_their_path() {
        let check = |list: Value, expected: &str| {
            let error = A2aServer::read_list(&list, "a2aServers", &mut Vec::new()).unwrap_err();
            assert_eq!(error.to_string(), expected);
        };
        check(json!({}), "'a2aServers' must be a list of agents, not an object");
        check(json!([1]), "'a2aServers[0]' must be an object, not that number");
        check(json!([{}]), "'a2aServers[0].url' is missing: the address of the agent");
        check(json!([{ "url": 1 }]), "'a2aServers[0].url' must be a string, not that number");
        check(
            json!([{ "url": "x", "timeout": 0 }]),
            "'a2aServers[0].timeout' must be a number of milliseconds above 0, not that number",
        );
        check(
            json!([{ "url": "x", "headers": { "a": [] } }]),
            "'a2aServers[0].headers.a' must be a string, not a list",
        );
        let mut notes = Vec::new();
        A2aServer::read_list(&json!([{ "url": "x", "token": "y" }]), "a2aServers", &mut notes).unwrap();
        assert_eq!(notes, ["'a2aServers[0].token' is not known to this version and is ignored"]);
    }

    #[test]
    fn a_token_comes_from_its_variable() {
        let mut entry =
            A2aServer { token_env: Some("TOKEN".to_owned()), ..A2aServer::new("http://me:pass@a.example/x?key=1") };
        let error = entry.clone().resolve_token(|_| None).unwrap_err();
        assert_eq!(error.to_string(), "http://a.example/x: the variable TOKEN (tokenEnv) is not set");
        entry.resolve_token(|name| Some(format!("value of {name}"))).unwrap();
        assert_eq!((entry.access_token.as_deref(), entry.token_env), (Some("value of TOKEN"), None));
    }
}
