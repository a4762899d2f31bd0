//! The A2A language as others see it: what is written, what is read, what is refused.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod card;
#[cfg(feature = "client")]
mod client;
mod devtool;
mod error;
mod extension;
mod params;
mod property;
mod rest;
mod wire;
