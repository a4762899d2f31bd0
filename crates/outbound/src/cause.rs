//! An HTTP error in words.

use std::error::Error;

use crate::RefusedAddress;

/// An error with its causes: the first one alone says only that something failed. It does not repeat the address,
/// which may hold a secret. If an address was refused, that is all it says.
pub fn causes(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        if let Some(refused) = source.downcast_ref::<RefusedAddress>() {
            return refused.to_string();
        }
        let words = source.to_string();
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        next = source.source();
    }
    text
}
