//! Reads received JSON: a value with its path, so that an error can name the field.
//!
//! `null` counts as absent, and unknown fields are ignored. An invalid request of a client is
//! [`ErrorKind::InvalidParams`]; an invalid answer of an agent is [`ErrorKind::InvalidAgentResponse`], and there the
//! dialects tolerate what is not essential. What the fields mean is not known here.

pub(crate) mod model;

use std::fmt::{Display, Write as _};
use std::ops::RangeInclusive;

use serde_json::Value;

use crate::dialect::Dialect;
use crate::error::{Error, ErrorKind};
use crate::model::Map;

/// The largest 32-bit number of the protocol.
pub(crate) const MOST: u32 = i32::MAX as u32;

/// The sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Writer {
    Client,
    Agent,
}

/// A value and its path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Node<'a> {
    value: &'a Value,
    step: Step<'a>,
    above: Option<&'a Node<'a>>,
    writer: Writer,
}

#[derive(Debug, Clone, Copy)]
enum Step<'a> {
    /// The name of the whole value.
    Whole(&'a str),
    Field(&'a str),
    Item(usize),
}

impl<'a> Node<'a> {
    /// A client's request; it must be an object.
    pub(crate) fn of_client(name: &'a str, value: &'a Value) -> Result<Self, Error> {
        Self { value, step: Step::Whole(name), above: None, writer: Writer::Client }.object()
    }

    /// An agent's answer; it must be an object.
    pub(crate) fn of_agent(name: &'a str, value: &'a Value) -> Result<Self, Error> {
        Self { value, step: Step::Whole(name), above: None, writer: Writer::Agent }.object()
    }

    pub(crate) fn value(&self) -> &'a Value {
        self.value
    }

    pub(crate) fn is_of_agent(&self) -> bool {
        self.writer == Writer::Agent
    }

    /// The error for this value.
    pub(crate) fn wrong(&self, what: impl Display) -> Error {
        let kind = match self.writer {
            Writer::Client => ErrorKind::InvalidParams,
            Writer::Agent => ErrorKind::InvalidAgentResponse,
        };
        let path = self.path();
        Error::new(kind, format!("{path}: {what}")).with("field", path)
    }

    /// The path, such as `message.parts[0].kind`; for the whole value, its name.
    fn path(&self) -> String {
        let mut steps = vec![self.step];
        let mut at = self.above;
        while let Some(node) = at {
            steps.push(node.step);
            at = node.above;
        }
        let mut path = String::new();
        for step in steps.iter().rev() {
            match step {
                Step::Whole(name) if steps.len() == 1 => path.push_str(name),
                Step::Whole(_) => {}
                Step::Field(name) if path.is_empty() => path.push_str(name),
                Step::Field(name) => {
                    path.push('.');
                    path.push_str(name);
                }
                // Writing to a string cannot fail.
                Step::Item(index) => write!(path, "[{index}]").unwrap_or_default(),
            }
        }
        path
    }

    fn object(self) -> Result<Self, Error> {
        if self.value.is_object() { Ok(self) } else { Err(self.mismatch("an object")) }
    }

    pub(crate) fn mismatch(&self, wanted: &str) -> Error {
        self.wrong(format_args!("must be {wanted}, not {}", name_of(self.value)))
    }

    fn at<'b>(&'b self, key: &'b str, value: &'b Value) -> Node<'b> {
        Node { value, step: Step::Field(key), above: Some(self), writer: self.writer }
    }

    /// A field that is present and not `null`.
    pub(crate) fn get<'b>(&'b self, key: &'b str) -> Option<Node<'b>> {
        let value = self.value.get(key).filter(|value| !value.is_null())?;
        Some(self.at(key, value))
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// The error for a field, present or not.
    pub(crate) fn wrong_field(&self, key: &str, what: impl Display) -> Error {
        self.at(key, &Value::Null).wrong(what)
    }

    pub(crate) fn need<'b>(&'b self, key: &'b str) -> Result<Node<'b>, Error> {
        self.get(key).ok_or_else(|| self.wrong_field(key, "is missing"))
    }

    pub(crate) fn str(&self) -> Result<&'a str, Error> {
        self.value.as_str().ok_or_else(|| self.mismatch("a string"))
    }

    /// A required text; it may be empty.
    pub(crate) fn string(&self, key: &str) -> Result<String, Error> {
        Ok(self.need(key)?.str()?.to_owned())
    }

    pub(crate) fn opt_string(&self, key: &str) -> Result<Option<String>, Error> {
        self.get(key).map(|node| node.str().map(str::to_owned)).transpose()
    }

    /// A required name; it may not be empty.
    pub(crate) fn id(&self, key: &str) -> Result<String, Error> {
        let node = self.need(key)?;
        match node.str()? {
            "" => Err(node.wrong("must not be empty")),
            id => Ok(id.to_owned()),
        }
    }

    /// A name that a client must send, and an agent may leave out.
    pub(crate) fn id_of_client(&self, key: &str) -> Result<String, Error> {
        if self.is_of_agent() { Ok(self.opt_string(key)?.unwrap_or_default()) } else { self.id(key) }
    }

    /// A text with several names. If two of them are present they must agree: an ambiguous request is refused.
    pub(crate) fn any_string(&self, keys: &[&str]) -> Result<Option<String>, Error> {
        let mut found: Option<(&str, String)> = None;
        for key in keys {
            match (&found, self.opt_string(key)?) {
                (Some((first, text)), Some(other)) if *text != other => {
                    return Err(self.wrong_field(key, format_args!("says something else than {first}")));
                }
                (None, Some(text)) => found = Some((key, text)),
                (Some(_), Some(_)) | (_, None) => {}
            }
        }
        Ok(found.map(|(_, text)| text))
    }

    /// Absent is false.
    pub(crate) fn flag(&self, key: &str) -> Result<bool, Error> {
        Ok(self.opt_flag(key)?.unwrap_or_default())
    }

    pub(crate) fn opt_flag(&self, key: &str) -> Result<Option<bool>, Error> {
        self.get(key).map(|node| node.value.as_bool().ok_or_else(|| node.mismatch("true or false"))).transpose()
    }

    /// A whole number; the `ProtoJSON` of 1.0 allows a string of digits.
    pub(crate) fn number(
        &self,
        dialect: Dialect,
        key: &str,
        range: &RangeInclusive<u32>,
    ) -> Result<Option<u32>, Error> {
        match self.get(key) {
            None => Ok(None),
            Some(node) if node.value.is_number() => node.within(node.value.as_i64(), range),
            Some(node) if node.value.is_string() && dialect == Dialect::V1_0 => {
                node.within(node.value.as_str().and_then(|text| text.parse().ok()), range)
            }
            Some(node) => Err(node.mismatch("a number")),
        }
    }

    fn within(&self, number: Option<i64>, range: &RangeInclusive<u32>) -> Result<Option<u32>, Error> {
        let number = number.and_then(|number| u32::try_from(number).ok()).filter(|number| range.contains(number));
        let wrong = || {
            self.wrong(format_args!(
                "must be a whole number from {} to {}, not {}",
                range.start(),
                range.end(),
                short(self.value)
            ))
        };
        number.map(Some).ok_or_else(wrong)
    }

    /// An object, unchanged; absent is empty.
    pub(crate) fn map(&self, key: &str) -> Result<Map, Error> {
        let Some(node) = self.get(key) else { return Ok(Map::new()) };
        node.value.as_object().cloned().ok_or_else(|| node.mismatch("an object"))
    }

    /// Absent is empty.
    pub(crate) fn strings(&self, key: &str) -> Result<Vec<String>, Error> {
        self.each(key, |node| node.str().map(str::to_owned))
    }

    /// Reads each item of a list; absent is empty.
    pub(crate) fn each<T>(&self, key: &str, read: impl Fn(&Node<'_>) -> Result<T, Error>) -> Result<Vec<T>, Error> {
        let Some(list) = self.get(key) else { return Ok(Vec::new()) };
        let items = list.value.as_array().ok_or_else(|| list.mismatch("a list"))?;
        let node = |(index, value)| Node { value, step: Step::Item(index), above: Some(&list), writer: self.writer };
        items.iter().enumerate().map(|item| read(&node(item))).collect()
    }

    /// Like [`Self::each`], for items that are objects.
    pub(crate) fn each_object<T>(
        &self,
        key: &str,
        read: impl Fn(&Node<'_>) -> Result<T, Error>,
    ) -> Result<Vec<T>, Error> {
        self.each(key, |node| read(&node.object()?))
    }

    /// Reads a required object.
    pub(crate) fn inside<T>(&self, key: &str, read: impl FnOnce(&Node<'_>) -> Result<T, Error>) -> Result<T, Error> {
        read(&self.need(key)?.object()?)
    }

    /// Reads an optional object.
    pub(crate) fn opt_inside<T>(
        &self,
        key: &str,
        read: impl FnOnce(&Node<'_>) -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        self.get(key).map(|node| read(&node.object()?)).transpose()
    }
}

/// The type of a value, in words.
pub(crate) fn name_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// A value as quoted in an error: at most one line.
pub(crate) fn short(value: &Value) -> String {
    const LONGEST: usize = 60;
    let text = value.to_string();
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}
