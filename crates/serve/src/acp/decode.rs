//! Requests of an ACP client as what the hub takes.

use std::path::{Path, PathBuf};

use agent_client_protocol_schema::v1::{
    ContentBlock, EmbeddedResourceResource, EnvVariable, HttpHeader, McpServer, NewSessionRequest,
};
use multitap_event::{Image, Prompt, PromptId};
use multitap_hub::{OpenCall, Refusal, WhenBusy};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::error::invalid_params;
use super::features::META;
use super::fence::fenced;

/// Reads the parameters of a request.
pub(super) fn params<T: DeserializeOwned>(params: Option<Value>) -> Result<T, Refusal> {
    let params = params.unwrap_or_else(|| Value::Object(Map::new()));
    serde_json::from_value(params).map_err(|error| invalid_params(format!("params: {error}")))
}

/// A prompt under that id.
pub(super) fn prompt(blocks: Vec<ContentBlock>, id: &PromptId) -> Result<Prompt, Refusal> {
    let (mut text, mut images) = (String::new(), Vec::new());
    // What follows a path must not become part of it.
    let mut after_mention = false;
    for block in blocks {
        let mentions = matches!(block, ContentBlock::ResourceLink(_));
        match block {
            ContentBlock::Text(block) => {
                if after_mention && !block.text.starts_with(char::is_whitespace) {
                    text.push(' ');
                }
                text.push_str(&block.text);
            }
            ContentBlock::Image(image) => {
                images.push(Image { media_type: image.mime_type, data: image.data });
            }
            ContentBlock::ResourceLink(link) => mention(&mut text, &link.uri, &link.name),
            ContentBlock::Resource(resource) => match resource.resource {
                EmbeddedResourceResource::TextResourceContents(contents) => {
                    enclose(&mut text, &contents.uri, &contents.text);
                }
                other => {
                    let Ok(Value::Object(other)) = serde_json::to_value(other) else { continue };
                    let field = |key: &str| other.get(key).and_then(Value::as_str).unwrap_or_default();
                    if field("mimeType").starts_with("image/") {
                        images.push(Image { media_type: field("mimeType").to_owned(), data: field("blob").to_owned() });
                    } else {
                        mention(&mut text, field("uri"), "");
                    }
                }
            },
            ContentBlock::Audio(_) => return Err(invalid_params("prompt: audio is not supported")),
            _ => return Err(invalid_params("prompt: this type of content is not supported")),
        }
        after_mention = mentions;
    }
    if text.trim().is_empty() && images.is_empty() {
        return Err(invalid_params("prompt: it is empty"));
    }
    let sent_as = Some(id.as_str().to_owned());
    Ok(Prompt { images, prompt_id: Some(id.clone()), sent_as, ..Prompt::text(text) })
}

/// Refers to a file or an address. Agents know files by `@PATH`, with `\ ` for a space.
fn mention(text: &mut String, uri: &str, name: &str) {
    if text.ends_with(|c: char| !c.is_whitespace()) {
        text.push(' ');
    }
    match uri.strip_prefix("file://") {
        Some(path) => {
            text.push('@');
            for c in decoded(path).chars() {
                if c.is_whitespace() || c == '\\' {
                    text.push('\\');
                }
                text.push(c);
            }
        }
        None if name.is_empty() || name == uri => text.push_str(uri),
        None => text.push_str(&format!("[{name}]({uri})")),
    }
}

/// Includes the text of a file that the client has opened, perhaps unsaved.
fn enclose(text: &mut String, uri: &str, contents: &str) {
    let name = uri.strip_prefix("file://").map_or_else(|| uri.to_owned(), decoded);
    text.push_str(&format!("\n{name}:\n{}\n", fenced("", contents)));
}

/// The path in a file URI. What is not percent-encoded UTF-8 stays as it is.
fn decoded(path: &str) -> String {
    let bytes = path.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = bytes.get(at + 1..at + 3).and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.filter(|_| bytes[at] == b'%').and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                plain.push(byte);
                at += 3;
            }
            None => {
                plain.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8(plain).unwrap_or_else(|_| path.to_owned())
}

/// What to do with the prompt while a turn runs.
pub(super) fn when_busy(meta: Option<&Map<String, Value>>) -> WhenBusy {
    let word = meta.and_then(|meta| meta.get(META)?.get("whenBusy"));
    word.and_then(|word| serde_json::from_value(word.clone()).ok()).unwrap_or_default()
}

/// The settings of a new session.
pub(super) fn open(request: NewSessionRequest) -> Result<OpenCall, Refusal> {
    let own = request.meta.as_ref().and_then(|meta| meta.get(META));
    let text = |key: &str| own.and_then(|own| own.get(key)?.as_str()).map(str::to_owned);
    Ok(OpenCall {
        cwd: Some(absolute(&request.cwd)?.to_owned()),
        additional_directories: request.additional_directories,
        agent: text("agent"),
        model: text("model"),
        mode: text("mode"),
        mcp_servers: servers(request.mcp_servers)?,
        ..OpenCall::default()
    })
}

/// The settings of a session that is resumed.
pub(super) fn again(mcp_servers: Vec<McpServer>, additional_directories: Vec<PathBuf>) -> Result<OpenCall, Refusal> {
    Ok(OpenCall { mcp_servers: servers(mcp_servers)?, additional_directories, ..OpenCall::default() })
}

pub(super) fn absolute(path: &Path) -> Result<&Path, Refusal> {
    if path.is_absolute() {
        return Ok(path);
    }
    Err(invalid_params(format!("cwd: {} is not an absolute path", path.display())))
}

/// The client's MCP servers as our settings write them.
pub(super) fn servers(servers: Vec<McpServer>) -> Result<Map<String, Value>, Refusal> {
    let mut named = Map::new();
    for server in servers {
        let (name, server) = match server {
            McpServer::Stdio(server) => {
                let env = server.env.into_iter().map(|EnvVariable { name, value, .. }| (name, Value::from(value)));
                let env: Map<String, Value> = env.collect();
                (server.name, json!({ "command": server.command, "args": server.args, "env": env }))
            }
            McpServer::Http(server) => {
                let headers =
                    server.headers.into_iter().map(|HttpHeader { name, value, .. }| (name, Value::from(value)));
                let headers: Map<String, Value> = headers.collect();
                (server.name, json!({ "httpUrl": server.url, "headers": headers }))
            }
            _ => return Err(invalid_params("mcpServers: only stdio and http servers are supported")),
        };
        named.insert(name, server);
    }
    Ok(named)
}

#[cfg(test)]
mod tests {
    use agent_client_protocol_schema::v1::{ResourceLink, TextContent};

    use super::*;

    fn said(blocks: Vec<ContentBlock>) -> String {
        prompt(blocks, &"p".into()).unwrap().text
    }

    fn text(text: &str) -> ContentBlock {
        ContentBlock::Text(TextContent::new(text))
    }

    fn link(uri: &str) -> ContentBlock {
        ContentBlock::ResourceLink(ResourceLink::new("file", uri))
    }

    /// Editors send a mention and the words around it as blocks of their own, often without a space between them.
    #[test]
    fn what_stands_beside_a_file_does_not_become_part_of_its_path() {
        assert_eq!(said(vec![link("file:///d/a.txt"), text("explain this")]), "@/d/a.txt explain this");
        assert_eq!(said(vec![text("in"), link("file:///d/a.txt"), text("'s head")]), "in @/d/a.txt 's head");
        assert_eq!(said(vec![text("in "), link("file:///d/a.txt"), text("\nsay")]), "in @/d/a.txt\nsay");
        assert_eq!(said(vec![link("file:///d/a.txt"), link("file:///d/b.txt")]), "@/d/a.txt @/d/b.txt");
    }

    #[test]
    fn a_path_with_a_space_stays_one_path() {
        assert_eq!(said(vec![link("file:///d/with%20space.txt")]), "@/d/with\\ space.txt");
    }
}
