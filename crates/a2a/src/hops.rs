//! Counts how many agents a message has passed through, so that agents that call each other in a circle stop.

use crate::error::{Error, ErrorKind};
use crate::model::Map;

/// Its key in a message's metadata.
pub const KEY: &str = "multitap/hops";

/// A message that has passed through this many agents is refused.
pub const MOST: u32 = 4;

/// The number of agents that a message has passed through. Refuses a message with too many, or with a number that
/// cannot be read.
pub fn read(metadata: &Map) -> Result<u32, Error> {
    let hops = match metadata.get(KEY) {
        None => 0,
        Some(value) => value.as_u64().and_then(|hops| u32::try_from(hops).ok()).unwrap_or(u32::MAX),
    };
    check(hops).map(|()| hops)
}

/// Refuses a message that has passed through too many agents.
pub fn check(hops: u32) -> Result<(), Error> {
    if hops < MOST {
        return Ok(());
    }
    let message =
        format!("this message has passed through {MOST} agents or more: do agents call each other in a circle?");
    Err(Error::new(ErrorKind::InvalidRequest, message))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_message_that_goes_in_a_circle_is_refused() {
        let read = |value: Value| read(&Map::from_iter([(KEY.to_owned(), value)]));
        assert_eq!(super::read(&Map::new()), Ok(0));
        assert_eq!(read(json!(3)), Ok(3));
        for bad in [json!(4), json!(-1), json!("1"), json!(1e30)] {
            let error = read(bad).unwrap_err();
            assert!(error.to_string().contains("in a circle"), "{error}");
        }
    }
}
