//! Protobuf: turns messages of 1.0 into their JSON form and back, by a table of their fields.
//!
//! Only gRPC uses it. Everything else of 1.0 is read and written as JSON, so there is no second model and no generated
//! code. Must not come in: what the messages mean.

mod decode;
mod encode;
mod table;
mod wire;

pub(crate) use self::decode::{DecodeError, decode};
pub(crate) use self::encode::{EncodeError, encode};
pub(crate) use self::table::{MessageType, messages};
#[cfg(test)]
mod tests;
