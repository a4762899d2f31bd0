//! Protobuf to JSON, in bounded memory: the bytes are of others.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Number, Value};

use super::table::{Field, Kind, MessageType, Rule};
use super::wire::{Reader, Shape};
use crate::json::MAX_VALUES;
use crate::model::Map;

/// Maximum depth of lists and objects within a value. Parsers of protobuf have a similar one.
pub(super) const MAX_DEPTH: usize = 64;
/// Integers up to here are exact in a double, the only number of `google.protobuf.Value`.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// Why bytes are no message of that type, or not one to hold in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DecodeError {
    #[error("it is truncated")]
    Truncated,
    #[error("it is no protobuf message")]
    Malformed,
    #[error("{0}: the text is not UTF-8")]
    Text(&'static str),
    #[error("{0}: not a time")]
    Time(&'static str),
    #[error("a number is not finite")]
    NotFinite,
    #[error("its values are nested more than {MAX_DEPTH} deep")]
    TooDeep,
    #[error("it has more than {MAX_VALUES} values")]
    TooManyValues,
}

/// The JSON form of a message. Unknown fields are skipped.
pub(crate) fn decode(message: &MessageType, bytes: &[u8]) -> Result<Map, DecodeError> {
    let mut map = Map::new();
    Decoder { left: MAX_VALUES }.message(message, bytes, &mut map)?;
    Ok(map)
}

struct Decoder {
    /// How many more values there may be.
    left: usize,
}

impl Decoder {
    fn count(&mut self) -> Result<(), DecodeError> {
        self.left = self.left.checked_sub(1).ok_or(DecodeError::TooManyValues)?;
        Ok(())
    }

    fn message(&mut self, message: &MessageType, bytes: &[u8], into: &mut Map) -> Result<(), DecodeError> {
        let mut reader = Reader(bytes);
        while let Some((number, shape)) = reader.tag()? {
            match message.field(number) {
                Some(field) if shape == field.kind.shape() => self.field(message, field, &mut reader, into)?,
                _ => reader.skip(shape)?,
            }
        }
        Ok(())
    }

    fn field(
        &mut self,
        message: &MessageType,
        field: &Field,
        reader: &mut Reader<'_>,
        into: &mut Map,
    ) -> Result<(), DecodeError> {
        self.count()?;
        match field.rule {
            Rule::Repeated => {
                let value = self.value(field, None, reader)?;
                match into.entry(field.name).or_insert_with(|| Value::Array(Vec::new())) {
                    Value::Array(items) => items.push(value),
                    _ => return Err(DecodeError::Malformed),
                }
            }
            Rule::Map => {
                let entry = reader.length()?;
                match into.entry(field.name).or_insert_with(|| Value::Object(Map::new())) {
                    Value::Object(members) => self.entry(field, entry, members)?,
                    _ => return Err(DecodeError::Malformed),
                }
            }
            Rule::Plain | Rule::Optional | Rule::OneOf => {
                if field.rule == Rule::OneOf {
                    let others = message.0.iter().filter(|it| it.rule == Rule::OneOf && it.number != field.number);
                    others.for_each(|other| drop(into.shift_remove(other.name)));
                }
                // The last value counts; messages are merged.
                let value = self.value(field, into.get_mut(field.name).map(Value::take), reader)?;
                if field.rule == Rule::Plain && is_default(field.kind, &value) {
                    into.shift_remove(field.name);
                } else {
                    into.insert(field.name.to_owned(), value);
                }
            }
        }
        Ok(())
    }

    /// A value of the field's kind. `before` is an earlier one of the same field.
    fn value(&mut self, field: &Field, before: Option<Value>, reader: &mut Reader<'_>) -> Result<Value, DecodeError> {
        let map = |before: Option<Value>| match before {
            Some(Value::Object(map)) => map,
            _ => Map::new(),
        };
        Ok(match field.kind {
            Kind::Text => text(reader.length()?, field.name)?.into(),
            Kind::Bool => (reader.varint()? != 0).into(),
            Kind::Int32 => (reader.varint()? as i32).into(),
            Kind::Bytes => BASE64_STANDARD.encode(reader.length()?).into(),
            Kind::Enum(names) => {
                let number = reader.varint()? as i32;
                // A name that is unknown here has its number in JSON.
                usize::try_from(number)
                    .ok()
                    .and_then(|at| names.get(at))
                    .map_or_else(|| number.into(), |name| (*name).into())
            }
            Kind::Message(inner) => {
                let mut map = map(before);
                self.message(inner, reader.length()?, &mut map)?;
                map.into()
            }
            Kind::Timestamp => time(reader.length()?).ok_or(DecodeError::Time(field.name))?.into(),
            Kind::Struct => {
                let mut map = map(before);
                self.object(reader.length()?, MAX_DEPTH, &mut map)?;
                map.into()
            }
            Kind::Value => self.any(reader.length()?, MAX_DEPTH)?,
        })
    }

    /// An entry of a map: a message of its key and its value.
    fn entry(&mut self, field: &Field, bytes: &[u8], into: &mut Map) -> Result<(), DecodeError> {
        let (mut key, mut value) = (String::new(), None);
        let mut reader = Reader(bytes);
        while let Some((number, shape)) = reader.tag()? {
            match number {
                1 if shape == Shape::Length => key = text(reader.length()?, field.name)?,
                2 if shape == field.kind.shape() => value = Some(self.value(field, value.take(), &mut reader)?),
                _ => reader.skip(shape)?,
            }
        }
        let value = value.unwrap_or_else(|| match field.kind {
            Kind::Message(_) => Value::Object(Map::new()),
            _ => Value::from(""),
        });
        into.insert(key, value);
        Ok(())
    }

    /// A `google.protobuf.Struct`, which may be `depth` deep.
    fn object(&mut self, bytes: &[u8], depth: usize, into: &mut Map) -> Result<(), DecodeError> {
        let mut reader = Reader(bytes);
        while let Some((number, shape)) = reader.tag()? {
            if (number, shape) != (1, Shape::Length) {
                reader.skip(shape)?;
                continue;
            }
            let (mut key, mut value) = (String::new(), Value::Null);
            let mut entry = Reader(reader.length()?);
            self.count()?;
            while let Some((number, shape)) = entry.tag()? {
                match (number, shape) {
                    (1, Shape::Length) => key = text(entry.length()?, "a key")?,
                    (2, Shape::Length) => value = self.any(entry.length()?, depth)?,
                    _ => entry.skip(shape)?,
                }
            }
            into.insert(key, value);
        }
        Ok(())
    }

    /// A `google.protobuf.Value`. One without a kind is `null`.
    fn any(&mut self, bytes: &[u8], depth: usize) -> Result<Value, DecodeError> {
        let inner = depth.checked_sub(1).ok_or(DecodeError::TooDeep)?;
        let mut value = Value::Null;
        let mut reader = Reader(bytes);
        while let Some((number, shape)) = reader.tag()? {
            value = match (number, shape) {
                (1, Shape::Varint) => reader.varint().map(|_| Value::Null)?,
                (2, Shape::Fixed64) => double(f64::from_le_bytes(reader.fixed()?))?,
                (3, Shape::Length) => text(reader.length()?, "a value")?.into(),
                (4, Shape::Varint) => (reader.varint()? != 0).into(),
                (5, Shape::Length) => {
                    let mut map = Map::new();
                    self.object(reader.length()?, inner, &mut map)?;
                    map.into()
                }
                (6, Shape::Length) => self.list(reader.length()?, inner)?,
                _ => {
                    reader.skip(shape)?;
                    continue;
                }
            };
        }
        Ok(value)
    }

    fn list(&mut self, bytes: &[u8], depth: usize) -> Result<Value, DecodeError> {
        let mut items = Vec::new();
        let mut reader = Reader(bytes);
        while let Some((number, shape)) = reader.tag()? {
            if (number, shape) == (1, Shape::Length) {
                self.count()?;
                items.push(self.any(reader.length()?, depth)?);
            } else {
                reader.skip(shape)?;
            }
        }
        Ok(items.into())
    }
}

impl Kind {
    fn shape(self) -> Shape {
        match self {
            Self::Bool | Self::Int32 | Self::Enum(_) => Shape::Varint,
            Self::Text | Self::Bytes | Self::Message(_) | Self::Timestamp | Self::Struct | Self::Value => Shape::Length,
        }
    }
}

/// Whether a value is the same as none.
pub(super) fn is_default(kind: Kind, value: &Value) -> bool {
    match (kind, value) {
        (Kind::Enum(names), Value::String(name)) => names.first() == Some(&name.as_str()),
        (_, Value::String(text)) => text.is_empty(),
        (_, Value::Bool(flag)) => !flag,
        (_, Value::Number(number)) => number.as_i64() == Some(0),
        (_, Value::Null | Value::Array(_) | Value::Object(_)) => false,
    }
}

fn text(bytes: &[u8], name: &'static str) -> Result<String, DecodeError> {
    std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| DecodeError::Text(name))
}

/// In JSON, whole numbers have no fraction.
fn double(number: f64) -> Result<Value, DecodeError> {
    let is_whole = number.fract() == 0.0 && number.abs() <= EXACT && !(number == 0.0 && number.is_sign_negative());
    if is_whole {
        return Ok((number as i64).into());
    }
    Number::from_f64(number).map(Value::Number).ok_or(DecodeError::NotFinite)
}

fn time(bytes: &[u8]) -> Option<String> {
    let (mut seconds, mut nanos) = (0, 0);
    let mut reader = Reader(bytes);
    while let Some((number, shape)) = reader.tag().ok()? {
        match (number, shape) {
            (1, Shape::Varint) => seconds = reader.varint().ok()? as i64,
            (2, Shape::Varint) => nanos = reader.varint().ok()? as i32,
            _ => reader.skip(shape).ok()?,
        }
    }
    Some(jiff::Timestamp::new(seconds, nanos).ok()?.to_string())
}
