//! The dialect of the extension that Google's own server ships, under the key `coderAgent`.

/// Its key in any `metadata`.
pub const KEY: &str = "coderAgent";
