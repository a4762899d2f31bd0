//! JSON to protobuf.

use base64::Engine as _;
use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use serde_json::Value;

use super::decode::is_default;
use super::table::{Enum, Field, Kind, MessageType, Rule};
use super::wire::{Shape, Writer};
use crate::model::Map;

/// With or without padding, as the JSON form of protobuf allows.
const LENIENT: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
const BASE64: GeneralPurpose = GeneralPurpose::new(&STANDARD, LENIENT);
const BASE64_URL: GeneralPurpose = GeneralPurpose::new(&URL_SAFE, LENIENT);

/// A value is not what its field holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{field}: not {wanted}")]
pub(crate) struct EncodeError {
    field: &'static str,
    wanted: &'static str,
}

/// The bytes of a message. Members that the message does not have are left out.
pub(crate) fn encode(message: &MessageType, map: &Map) -> Result<Vec<u8>, EncodeError> {
    let mut writer = Writer::default();
    write(&mut writer, message, map)?;
    Ok(writer.finish())
}

/// Fields, items and members in reverse, as [`Writer`] takes them.
fn write(writer: &mut Writer, message: &MessageType, map: &Map) -> Result<(), EncodeError> {
    for field in message.0.iter().rev() {
        let Some(value) = map.get(field.name) else { continue };
        match (field.rule, value) {
            // Of the fields here only `data` can be null, as one of several.
            (_, Value::Null) if !matches!((field.rule, field.kind), (Rule::OneOf, Kind::Value)) => {}
            (Rule::Plain, value) if is_default(field.kind, value) => {}
            (Rule::Plain | Rule::Optional | Rule::OneOf, value) => write_value(writer, field, field.number, value)?,
            (Rule::Repeated, Value::Array(items)) => {
                items.iter().rev().try_for_each(|item| write_value(writer, field, field.number, item))?;
            }
            (Rule::Map, Value::Object(members)) => {
                for (key, value) in members.iter().rev() {
                    let before = writer.len();
                    write_value(writer, field, 2, value)?;
                    write_bytes(writer, 1, key.as_bytes());
                    writer.close(field.number, before);
                }
            }
            (Rule::Repeated, _) => return Err(field.not("a list")),
            (Rule::Map, _) => return Err(field.not("an object")),
        }
    }
    Ok(())
}

/// A value of the field's kind, with that number before it.
fn write_value(writer: &mut Writer, field: &Field, number: u32, value: &Value) -> Result<(), EncodeError> {
    match field.kind {
        Kind::Text => {
            let text = value.as_str().ok_or_else(|| field.not("a text"))?;
            write_bytes(writer, number, text.as_bytes());
        }
        Kind::Bytes => {
            let text = value.as_str().ok_or_else(|| field.not("base64"))?;
            let bytes = BASE64.decode(text).or_else(|_| BASE64_URL.decode(text)).map_err(|_| field.not("base64"))?;
            write_bytes(writer, number, &bytes);
        }
        Kind::Bool => {
            let flag = value.as_bool().ok_or_else(|| field.not("true or false"))?;
            write_varint(writer, number, u64::from(flag));
        }
        Kind::Int32 => {
            let given = value.as_i64().ok_or_else(|| field.not("a whole number"))?;
            // Negative numbers have the bits of 64-bit ones. A count beyond the range is the largest there is.
            write_varint(writer, number, given.clamp(i32::MIN.into(), i32::MAX.into()) as u64);
        }
        Kind::Enum(names) => {
            let given = enum_number(names, value).ok_or_else(|| field.not("a name of its enum"))?;
            write_varint(writer, number, given);
        }
        Kind::Message(message) => {
            let map = value.as_object().ok_or_else(|| field.not("an object"))?;
            let before = writer.len();
            write(writer, message, map)?;
            writer.close(number, before);
        }
        Kind::Timestamp => {
            let time = value.as_str().and_then(|text| text.parse::<jiff::Timestamp>().ok());
            let time = time.ok_or_else(|| field.not("a time"))?;
            let (mut seconds, mut nanos) = (time.as_second(), time.subsec_nanosecond());
            // Before 1970 the fraction counts forward too.
            if nanos < 0 {
                (seconds, nanos) = (seconds - 1, nanos + 1_000_000_000);
            }
            let before = writer.len();
            if nanos != 0 {
                write_varint(writer, 2, i64::from(nanos) as u64);
            }
            if seconds != 0 {
                write_varint(writer, 1, seconds as u64);
            }
            writer.close(number, before);
        }
        Kind::Struct => {
            let map = value.as_object().ok_or_else(|| field.not("an object"))?;
            let before = writer.len();
            write_object(writer, map);
            writer.close(number, before);
        }
        Kind::Value => {
            let before = writer.len();
            write_any(writer, value);
            writer.close(number, before);
        }
    }
    Ok(())
}

/// A `google.protobuf.Struct`.
fn write_object(writer: &mut Writer, map: &Map) {
    for (key, value) in map.iter().rev() {
        let entry = writer.len();
        write_any(writer, value);
        writer.close(2, entry);
        write_bytes(writer, 1, key.as_bytes());
        writer.close(1, entry);
    }
}

/// A `google.protobuf.Value`.
fn write_any(writer: &mut Writer, value: &Value) {
    match value {
        Value::Null => write_varint(writer, 1, 0),
        Value::Number(number) => {
            writer.bytes(&number.as_f64().unwrap_or_default().to_le_bytes());
            writer.tag(2, Shape::Fixed64);
        }
        Value::String(text) => write_bytes(writer, 3, text.as_bytes()),
        Value::Bool(flag) => write_varint(writer, 4, u64::from(*flag)),
        Value::Object(map) => {
            let before = writer.len();
            write_object(writer, map);
            writer.close(5, before);
        }
        Value::Array(items) => {
            let before = writer.len();
            for item in items.iter().rev() {
                let before = writer.len();
                write_any(writer, item);
                writer.close(1, before);
            }
            writer.close(6, before);
        }
    }
}

fn write_bytes(writer: &mut Writer, number: u32, bytes: &[u8]) {
    let before = writer.len();
    writer.bytes(bytes);
    writer.close(number, before);
}

fn write_varint(writer: &mut Writer, number: u32, value: u64) {
    writer.varint(value);
    writer.tag(number, Shape::Varint);
}

fn enum_number(names: Enum, value: &Value) -> Option<u64> {
    let name = value.as_str()?;
    names.iter().position(|known| *known == name).map(|at| at as u64)
}

impl Field {
    fn not(&self, wanted: &'static str) -> EncodeError {
        EncodeError { field: self.name, wanted }
    }
}
