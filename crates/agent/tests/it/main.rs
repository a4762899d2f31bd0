//! The crate from outside.

#[cfg(test)]
#[cfg(target_os = "linux")]
mod sandbox;
