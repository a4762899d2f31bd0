//! Names of agents as parts of tool names: legal for every client, and unique.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// Maximum length of an agent's name in characters. Clients put `mcp__a2a-server__` before a tool's name, the longest
/// suffix is `_sendMessage`, and models accept at most 64.
const LONGEST: usize = 64 - "mcp__a2a-server__".len() - "_sendMessage".len();

/// Length of the hash that replaces the end of a name that is too long.
const HASH: usize = 6;

/// A legal name for an agent that calls itself `text`; not one for which `is_taken` holds.
///
/// Letters, digits and single underscores or hyphens remain; all else becomes an underscore. The same text and the same
/// taken names give the same result.
pub(crate) fn legal(text: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let mut name = String::new();
    for c in text.chars() {
        match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '-' => name.push(c),
            // Two underscores in a row separate server and tool in some clients.
            _ if !name.ends_with('_') && !name.is_empty() => name.push('_'),
            _ => {}
        }
        if name.len() > LONGEST {
            break;
        }
    }
    let mut name = name.trim_end_matches('_').to_owned();
    if name.is_empty() {
        name = "agent".to_owned();
    }
    if name.len() > LONGEST {
        name = format!("{}_{}", name[..LONGEST - HASH - 1].trim_end_matches('_'), hash(text));
    }
    if !is_taken(&name) {
        return name;
    }
    // The number has at most three digits: there are never more agents.
    let room = LONGEST - 4;
    let stem = name.get(..room).unwrap_or(&name).trim_end_matches('_').to_owned();
    (2..).map(|number| format!("{stem}_{number}")).find(|name| !is_taken(name)).unwrap_or(name)
}

fn hash(text: &str) -> String {
    // `DefaultHasher::new` has fixed keys, so the name is the same at the next start.
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    format!("{:016x}", hasher.finish())[..HASH].to_owned()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_of_people_become_names_of_tools() {
        let free = |_: &str| false;
        assert_eq!(legal("Weather Agent", free), "Weather_Agent");
        assert_eq!(legal("  a__b  c!!", free), "a_b_c");
        assert_eq!(legal("天気", free), "agent");
        assert_eq!(legal("x", |name| name == "x" || name == "x_2"), "x_3");
        let long = legal(&"long ".repeat(40), free);
        assert!(long.len() <= LONGEST && long.starts_with("long_long"), "{long}");
        assert!(!legal(&"abc ".repeat(40), free).contains("__"), "the cut is at a space");
        let many = legal(&"long ".repeat(40), |name| !name.ends_with("_128"));
        assert!(many.len() <= LONGEST, "{many}");
        assert_ne!(long, legal(&"long ".repeat(41), free), "what is cut off still counts");
    }

    proptest! {
        #[test]
        fn every_name_is_legal_and_its_own(texts in prop::collection::vec(".{0,80}", 1..20)) {
            let mut taken = BTreeSet::new();
            for text in texts {
                let name = legal(&text, |name| taken.contains(name));
                let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
                prop_assert!(!name.is_empty() && name.len() <= LONGEST && name.chars().all(plain), "{name}");
                prop_assert!(!name.contains("__"), "{name}");
                prop_assert!(taken.insert(name));
            }
        }
    }
}
