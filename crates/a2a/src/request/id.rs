//! The id of a JSON-RPC request.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::{Number, Value};

use crate::error::{Error, ErrorKind};
use crate::read::short;

/// The id of a JSON-RPC request, echoed as it came: a number stays a number.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum RequestId {
    String(String),
    /// A whole number, in the digits it was written with.
    Number(Number),
    Null,
}

impl RequestId {
    /// Refuses what could not be echoed as it came, as an invalid request.
    pub fn read(value: &Value) -> Result<Self, Error> {
        match value {
            Value::Null => Ok(Self::Null),
            Value::String(text) => Ok(Self::String(text.clone())),
            Value::Number(number) if number.is_i64() || number.is_u64() => Ok(Self::Number(number.clone())),
            Value::Number(_) | Value::Bool(_) | Value::Array(_) | Value::Object(_) => Err(Error::new(
                ErrorKind::InvalidRequest,
                format!("id: must be a string, a whole number or null, not {}", short(value)),
            )),
        }
    }
}

impl From<u64> for RequestId {
    fn from(number: u64) -> Self {
        Self::Number(number.into())
    }
}

impl Serialize for RequestId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::String(text) => serializer.serialize_str(text),
            Self::Number(number) => number.serialize(serializer),
            Self::Null => serializer.serialize_unit(),
        }
    }
}

impl<'de> Deserialize<'de> for RequestId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::read(&Value::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}
