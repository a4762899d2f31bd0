//! Dialect 0.3: slash names, `kind` in every object, `final` at the end of a stream.
//!
//! It has fewer words than the model. A file's name and type it can say, those of a text or of data it cannot, and they
//! are left out. Data that is no object is wrapped as `{"value": …}` and marked by [`WRAPPED`] in the part's metadata,
//! as the SDKs of the protocol do; a part so marked is unwrapped when read.

pub(crate) mod params;
pub(crate) mod read;
#[cfg(feature = "client")]
pub(crate) mod rest;
pub(crate) mod write;

use crate::model::Role;

/// Marks a data part whose object is only there because the dialect wants one.
const WRAPPED: &str = "data_part_compat";

pub(crate) fn role_word(role: Role) -> &'static str {
    match role {
        Role::User => "user",
        Role::Agent => "agent",
    }
}
