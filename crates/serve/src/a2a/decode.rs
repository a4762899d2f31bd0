//! Reads messages of clients: prompts, or answers to questions.

use std::path::PathBuf;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use multitap_a2a::devtool::{ToolCallConfirmation, is_confirmation};
use multitap_a2a::{Content, Error, ErrorKind, Message, Part, Role};
use multitap_event::{Image, Prompt};
use serde_json::Value;

use super::uri::{self, ImageFile, Source};

/// The meaning of a message.
#[derive(Debug, PartialEq)]
pub(super) enum Said {
    /// A prompt, and the image files to read for it.
    Prompt(Prompt, Vec<ImageFile>),
    Answer(ToolCallConfirmation),
}

/// Reads a message. A part that an agent cannot take is refused by its number.
pub(super) fn message(message: &Message) -> Result<Said, Error> {
    if message.role != Role::User {
        return Err(Error::invalid_params("message.role: a client speaks as the user"));
    }
    let mut answers = message.parts.iter().filter_map(confirmation);
    if let Some(answer) = answers.next() {
        if answers.next().is_some() {
            return Err(Error::invalid_params("message.parts: one message answers one question"));
        }
        return ToolCallConfirmation::read(answer).map(Said::Answer);
    }
    let mut prompt = Prompt::default();
    let mut files: Vec<ImageFile> = Vec::new();
    for (index, part) in message.parts.iter().enumerate() {
        let named = add(part, &mut prompt).map_err(|error| Error { message: at(index, &error.message), ..error })?;
        let at = prompt.images.len() + files.len();
        files.extend(named.map(|path| ImageFile { part: index, at, path }));
    }
    if prompt.text.trim().is_empty() && prompt.images.is_empty() && files.is_empty() {
        return Err(Error::invalid_params("message.parts: there is no text and no image"));
    }
    Ok(Said::Prompt(prompt, files))
}

fn at(index: usize, what: &str) -> String {
    format!("message.parts[{index}]: {what}")
}

fn confirmation(part: &Part) -> Option<&Value> {
    match &part.content {
        Content::Data(data) if is_confirmation(data) => Some(data),
        Content::Data(_) | Content::Text(_) | Content::Raw(_) | Content::Url(_) => None,
    }
}

/// Adds a part to the prompt; returns the image file to read for it, if any.
fn add(part: &Part, prompt: &mut Prompt) -> Result<Option<PathBuf>, Error> {
    match &part.content {
        Content::Text(text) => say(prompt, text),
        Content::Url(uri) => return link(part, uri, prompt),
        // The agent reads it as text, as if a user had typed it.
        Content::Data(data) => say(prompt, &format!("```json\n{data:#}\n```")),
        Content::Raw(base64) => {
            let bytes = BASE64_STANDARD.decode(base64);
            let bytes = bytes.map_err(|_| Error::invalid_params("the file is not valid base64"))?;
            file(part, part.media_type.as_deref().unwrap_or(""), bytes, prompt)?;
        }
    }
    Ok(None)
}

/// A part with a URI: an image is read or refused, and of other files the agent gets the address.
fn link(part: &Part, uri: &str, prompt: &mut Prompt) -> Result<Option<PathBuf>, Error> {
    let media_type = part.media_type.as_deref().unwrap_or("");
    let is_image = uri::is_image(media_type, uri);
    match uri::source(uri).map_err(Error::invalid_params)? {
        Source::Data { media_type: given, bytes } => {
            let media_type = if media_type.is_empty() { given.as_str() } else { media_type };
            file(part, media_type, bytes, prompt)?;
        }
        Source::File(path) if is_image => return Ok(Some(path)),
        Source::Elsewhere if is_image => {
            let why = format!("images are not fetched from {uri}; send the image's bytes, or a data: URI");
            return Err(Error::invalid_params(why));
        }
        Source::File(_) | Source::Elsewhere => {
            say(prompt, &format!("{}: {uri}", part.filename.as_deref().unwrap_or("file")));
        }
    }
    Ok(None)
}

fn say(prompt: &mut Prompt, text: &str) {
    if !prompt.text.is_empty() && !text.is_empty() {
        prompt.text.push('\n');
    }
    prompt.text.push_str(text);
}

fn file(part: &Part, media_type: &str, bytes: Vec<u8>, prompt: &mut Prompt) -> Result<(), Error> {
    if media_type.starts_with("image/") || media_type.is_empty() {
        if let Ok(media_type) = Image::media_type_of(&bytes) {
            let data = BASE64_STANDARD.encode(&bytes);
            prompt.images.push(Image { media_type: media_type.to_owned(), data });
            return Ok(());
        }
        if !media_type.is_empty() {
            return Err(unsupported("the picture is not a PNG, JPEG, GIF or WebP"));
        }
    }
    let is_text = media_type.is_empty() || media_type.starts_with("text/") || media_type == "application/json";
    match String::from_utf8(bytes) {
        Ok(text) if is_text => {
            say(prompt, &format!("{}:\n```\n{text}\n```", part.filename.as_deref().unwrap_or("file")));
            Ok(())
        }
        _ => Err(unsupported(format!("agents take text and pictures, not {}", or_unknown(media_type)))),
    }
}

fn or_unknown(media_type: &str) -> &str {
    if media_type.is_empty() { "a file of no known type" } else { media_type }
}

fn unsupported(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::ContentTypeNotSupported, message)
}
