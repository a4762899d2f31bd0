//! The rows of the table, by what they are about.

pub(super) mod failures;
pub(super) mod history;
pub(super) mod questions;
pub(super) mod sessions;
pub(super) mod settings;
pub(super) mod text;
pub(super) mod tools;
pub(super) mod turns;
