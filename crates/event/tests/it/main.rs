//! The event model as others see it: its JSON, its schema, the mode table.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod mode;
mod samples;
mod visible;
mod wire;
