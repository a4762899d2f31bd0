//! `mcpServers`: the MCP servers for every agent of the user, with the keys of Gemini CLI.

use std::collections::BTreeMap;
use std::time::Duration;

use multitap_event::{McpReach, McpServer};
use serde_json::Value;

use super::{boolean, object, text, texts, variables, wrong, wrong_word};

/// The longest server name.
const LONGEST: usize = 64;

/// The servers; ignored keys are added to the notes.
pub(super) fn servers(value: &Value, notes: &mut Vec<String>) -> Result<BTreeMap<String, McpServer>, String> {
    let servers = object(value, "mcpServers")?.iter();
    servers.map(|(name, value)| Ok((name.clone(), server(name, value, notes)?))).collect()
}

/// The keys of one server, before its kind is known.
#[derive(Default)]
struct ServerKeys {
    command: Option<String>,
    args: Option<Vec<String>>,
    env: Option<BTreeMap<String, String>>,
    cwd: Option<String>,
    url: Option<String>,
    http_url: Option<String>,
    headers: Option<BTreeMap<String, String>>,
    kind: Option<Kind>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Stdio,
    Http,
}

fn server(name: &str, value: &Value, notes: &mut Vec<String>) -> Result<McpServer, String> {
    let path = format!("mcpServers.{name}");
    // Agents and rules use the server's name in tool names, `mcp__SERVER__TOOL`.
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let whole = name.chars().all(plain) && !name.contains("__") && !name.ends_with('_');
    if name.is_empty() || name.len() > LONGEST || !whole {
        return Err(format!(
            "'{path}': a server is named by up to {LONGEST} letters, digits, '-' and '_', with no '__' in it and no '_' at its end"
        ));
    }
    let mut said = ServerKeys::default();
    let mut server = McpServer::from(McpReach::program("", Vec::new()));
    for (key, value) in object(value, &path)? {
        let path = format!("{path}.{key}");
        match key.as_str() {
            "command" => said.command = Some(text(value, &path)?),
            "args" => said.args = Some(texts(value, &path)?),
            "env" => said.env = Some(variables(value, &path)?),
            "cwd" => said.cwd = Some(text(value, &path)?),
            "url" => said.url = Some(address(value, &path)?),
            "httpUrl" => said.http_url = Some(address(value, &path)?),
            "headers" => said.headers = Some(variables(value, &path)?),
            "type" => said.kind = Some(kind(value, &path)?),
            "timeout" => server.timeout = Some(milliseconds(value, &path)?),
            "trust" => server.trust = boolean(value, &path)?,
            "includeTools" => server.include_tools = Some(texts(value, &path)?),
            "excludeTools" => server.exclude_tools = texts(value, &path)?,
            "description" => {}
            _ => notes.push(format!("'{path}' is not known to this version and is ignored")),
        }
    }
    server.reach = said.reach(&path, notes)?;
    Ok(server)
}

impl ServerKeys {
    fn reach(self, path: &str, notes: &mut Vec<String>) -> Result<McpReach, String> {
        let only = |kind: Kind| self.kind.is_none_or(|said| said == kind);
        match (self.command, self.http_url, self.url) {
            (Some(command), None, None) if !command.trim().is_empty() && only(Kind::Stdio) => {
                if self.headers.is_some() {
                    notes.push(format!("'{path}.headers' is for servers with a url and is ignored"));
                }
                let (args, env) = (self.args.unwrap_or_default(), self.env.unwrap_or_default());
                Ok(McpReach::Stdio { command, args, env, cwd: self.cwd.map(Into::into) })
            }
            (None, Some(url), None) | (None, None, Some(url)) if only(Kind::Http) => {
                for (key, given) in
                    [("args", self.args.is_some()), ("env", self.env.is_some()), ("cwd", self.cwd.is_some())]
                {
                    if given {
                        notes.push(format!("'{path}.{key}' is for servers with a command and is ignored"));
                    }
                }
                Ok(McpReach::Http { url, headers: self.headers.unwrap_or_default() })
            }
            _ => {
                Err(format!("'{path}' needs one of \"command\", \"url\" and \"httpUrl\", and a \"type\" that fits it"))
            }
        }
    }
}

fn kind(value: &Value, path: &str) -> Result<Kind, String> {
    match text(value, path)?.as_str() {
        "stdio" => Ok(Kind::Stdio),
        "http" | "streamable-http" | "streamableHttp" => Ok(Kind::Http),
        _ => Err(wrong_word(path, "\"stdio\" or \"http\" (the older \"sse\" is not supported)", value)),
    }
}

fn address(value: &Value, path: &str) -> Result<String, String> {
    let url = text(value, path)?;
    // An address may hold a secret, so it is not repeated.
    let known = url.starts_with("http://") || url.starts_with("https://");
    if known { Ok(url) } else { Err(format!("'{path}' must begin with http:// or https://")) }
}

fn milliseconds(value: &Value, path: &str) -> Result<Duration, String> {
    match value.as_u64().filter(|time| *time > 0) {
        Some(time) => Ok(Duration::from_millis(time)),
        None if value.is_number() => Err(format!("'{path}' must be a whole number of milliseconds above 0")),
        None => Err(wrong(path, "a number of milliseconds", value)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: &Value) -> Result<(BTreeMap<String, McpServer>, Vec<String>), String> {
        let mut notes = Vec::new();
        let servers = servers(value, &mut notes)?;
        Ok((servers, notes))
    }

    #[test]
    fn a_server_is_a_program_or_an_address() {
        let (servers, notes) = read(&json!({
            "git": {
                "command": "uvx", "args": ["mcp-server-git"], "env": { "A": "b" }, "cwd": "/w", "timeout": 1500,
                "trust": true, "includeTools": ["log"], "excludeTools": ["push"], "description": "git",
            },
            "web": { "httpUrl": "https://example.org/mcp", "headers": { "Authorization": "Bearer x" } },
            "other": { "type": "http", "url": "http://127.0.0.1:1/mcp" },
        }))
        .unwrap();
        assert!(notes.is_empty(), "{notes:?}");
        let env = [("A".to_owned(), "b".to_owned())].into();
        let args = vec!["mcp-server-git".to_owned()];
        let expected = McpServer {
            reach: McpReach::Stdio { command: "uvx".to_owned(), args, env, cwd: Some("/w".into()) },
            timeout: Some(Duration::from_millis(1500)),
            trust: true,
            include_tools: Some(vec!["log".to_owned()]),
            exclude_tools: vec!["push".to_owned()],
        };
        assert_eq!(servers["git"], expected);
        let headers = [("Authorization".to_owned(), "Bearer x".to_owned())].into();
        assert_eq!(servers["web"].reach, McpReach::Http { url: "https://example.org/mcp".to_owned(), headers });
        assert!(!servers["web"].trust && servers["web"].include_tools.is_none());
        assert!(matches!(&servers["other"].reach, McpReach::Http { url, .. } if url.ends_with(":1/mcp")));
    }

    #[test]
    fn what_is_ignored_is_named() {
        let (_, notes) = read(&json!({
            "a": { "command": "x", "headers": {}, "trsut": true },
            "b": { "url": "http://x", "cwd": "/", "args": [] },
        }))
        .unwrap();
        let notes = notes.join("\n");
        for path in ["'mcpServers.a.headers'", "'mcpServers.a.trsut'", "'mcpServers.b.args'", "'mcpServers.b.cwd'"] {
            assert!(notes.contains(path), "{notes}");
        }
    }

    #[test]
    fn what_cannot_be_stops_and_says_where() {
        for (value, expected) in [
            (json!([]), "'mcpServers' must be an object, not a list"),
            (json!({ "a": "x" }), "'mcpServers.a' must be an object, not a string"),
            (json!({ "a": {} }), "'mcpServers.a' needs one of"),
            (json!({ "a": { "command": " " } }), "'mcpServers.a' needs one of"),
            (json!({ "a": { "command": "x", "url": "http://x" } }), "'mcpServers.a' needs one of"),
            (json!({ "a": { "command": "x", "type": "http" } }), "a \"type\" that fits it"),
            (json!({ "a": { "url": "http://x", "type": "sse" } }), "the older \"sse\" is not supported"),
            (json!({ "a": { "url": "ftp://x" } }), "'mcpServers.a.url' must begin with http:// or https://"),
            (json!({ "a": { "command": 1 } }), "'mcpServers.a.command' must be a string, not a number"),
            (json!({ "a": { "command": "x", "args": [1] } }), "'mcpServers.a.args[0]' must be a string"),
            (json!({ "a": { "command": "x", "env": { "B": 1 } } }), "'mcpServers.a.env.B' must be a string"),
            (json!({ "a": { "command": "x", "timeout": "1s" } }), "'mcpServers.a.timeout' must be a number of"),
            (json!({ "a": { "command": "x", "timeout": 0 } }), "a whole number of milliseconds above 0"),
            (json!({ "a": { "command": "x", "trust": "yes" } }), "'mcpServers.a.trust' must be true or false"),
            (json!({ "a": { "command": "x", "includeTools": "b" } }), "'mcpServers.a.includeTools' must be a list"),
            (json!({ "a.b": { "command": "x" } }), "'mcpServers.a.b': a server is named by"),
            (json!({ "a__b": { "command": "x" } }), "'mcpServers.a__b': a server is named by"),
            (json!({ "a_": { "command": "x" } }), "'mcpServers.a_': a server is named by"),
        ] {
            let error = read(&value).expect_err(&value.to_string());
            assert!(error.contains(expected), "{error}");
        }
    }
}
