//! The name of a server's tool for the model: `mcp__SERVER__TOOL`, in characters that every provider accepts.

use std::collections::HashMap;

/// The longest name that every provider accepts.
const LONGEST: usize = 64;

/// Distinct names for a server's tools, in order. No tool of another server gets one of them.
pub(super) fn names(server: &str, tools: &[&str]) -> Vec<String> {
    let named: Vec<_> = tools.iter().map(|tool| name(server, tool)).collect();
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for name in &named {
        *counts.entry(name).or_default() += 1;
    }
    let one = |(tool, name): (&&str, &String)| {
        // A tool whose name is unambiguous keeps it, wherever it is in the list.
        let alike = counts.get(name.as_str()).is_some_and(|count| *count > 1);
        if alike && plain(tool) != **tool { marked(name, server, tool) } else { name.clone() }
    };
    tools.iter().zip(&named).map(one).collect()
}

fn name(server: &str, tool: &str) -> String {
    // The first two underscores mark the end of the server's name.
    let mut part = plain(server);
    while part.contains("__") {
        part = part.replace("__", "_");
    }
    let part = part.trim_end_matches('_');
    let name = format!("mcp__{part}__{}", plain(tool));
    // Two servers may look alike once their names are sanitised.
    if part != server || name.len() > LONGEST { marked(&name, server, tool) } else { name }
}

fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' }).collect()
}

/// The name with a hash that is unique to this tool of this server.
fn marked(name: &str, server: &str, tool: &str) -> String {
    let mark = format!("_{:08x}", mark(&[server, "\0", tool]));
    let kept: String = name.chars().take(LONGEST - mark.len()).collect();
    kept + &mark
}

/// FNV-1a: stable across sessions, so that a resumed conversation finds its tools.
fn mark(parts: &[&str]) -> u32 {
    let bytes = parts.iter().flat_map(|part| part.bytes());
    bytes.fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn one(server: &str, tool: &str) -> String {
        names(server, &[tool]).remove(0)
    }

    #[test]
    fn names_are_readable_where_they_can_be() {
        assert_eq!(one("everything", "echo"), "mcp__everything__echo");
        assert_eq!(one("a2a-server", "get-sum"), "mcp__a2a-server__get-sum");
        assert_eq!(one("x", "files.read"), "mcp__x__files_read");
    }

    #[test]
    fn those_that_look_alike_are_told_apart() {
        let names = names("x", &["a.b", "a_b", "a b"]);
        assert_eq!(names[1], "mcp__x__a_b");
        assert!(names[0].starts_with("mcp__x__a_b_") && names[0] != names[2], "{names:?}");
        assert_ne!(one("a__b", "c"), one("a", "b__c"));
        assert_ne!(one("a_", "b"), one("a", "_b"));
        assert_ne!(one("a.b", "c"), one("a_b", "c"));
        let long = "t".repeat(100);
        assert_ne!(one("x", &long), one("x", &format!("{long}t")));
    }

    /// Each name was once compared with all others.
    #[test]
    fn a_server_may_have_very_many_tools() {
        let tools: Vec<String> = (0..100_000).map(|number| format!("t.{number}")).collect();
        let tools: Vec<&str> = tools.iter().map(String::as_str).chain(["t.7", "t_8"]).collect();
        let names = names("x", &tools);
        assert_eq!(names[6], "mcp__x__t_6");
        assert!(names[7].starts_with("mcp__x__t_7_") && names[8].starts_with("mcp__x__t_8_"), "{:?}", &names[7..9]);
        assert_eq!(names[100_001], "mcp__x__t_8");
    }

    proptest! {
        #[test]
        fn every_provider_takes_them(server in ".{1,80}", tool in ".{1,80}") {
            let name = one(&server, &tool);
            prop_assert!(name.len() <= LONGEST && name.starts_with("mcp__"), "{}", name);
            prop_assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-'), "{}", name);
        }
    }
}
