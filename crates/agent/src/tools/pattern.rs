//! Glob patterns such as `src/**/*.rs`.

use std::path::Path;

use globset::{GlobBuilder, GlobMatcher};

use super::BadCall;

/// Longest pattern. A longer one may be too large to compile, and then the library panics.
const LONGEST: usize = 1000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Case {
    Heed,
    Ignore,
}

/// A pattern for paths below a folder.
#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    text: String,
    glob: GlobMatcher,
    /// Only the file name is matched.
    name_only: bool,
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        (&self.glob.glob(), self.name_only) == (&other.glob.glob(), other.name_only)
    }
}

impl Pattern {
    /// Matches the whole path: `*.rs` does not match `src/main.rs`.
    pub(super) fn for_path(text: &str, case: Case) -> Result<Self, BadCall> {
        let plain = text.strip_prefix("./").unwrap_or(text);
        if plain.len() > LONGEST {
            return Err(BadCall(format!("the pattern has {} bytes, and at most {LONGEST} are possible", plain.len())));
        }
        let steps = Path::new(plain).components();
        if plain.is_empty() {
            return Err(BadCall("the pattern is empty".to_owned()));
        }
        if steps.clone().any(|step| step.as_os_str() == "..") || Path::new(plain).has_root() {
            return Err(BadCall(format!("the pattern '{text}' leads out of the folder: give the folder as path")));
        }
        let mut builder = GlobBuilder::new(plain);
        builder.literal_separator(true).case_insensitive(case == Case::Ignore).empty_alternates(true);
        let glob =
            builder.build().map_err(|error| BadCall(format!("'{text}' is not a valid pattern: {}", error.kind())))?;
        Ok(Self { text: text.to_owned(), glob: glob.compile_matcher(), name_only: false })
    }

    /// Matches the file name alone if there is no slash in it, like ripgrep's `-g`.
    pub(super) fn for_file(text: &str) -> Result<Self, BadCall> {
        Ok(Self { name_only: !text.contains('/'), ..Self::for_path(text, Case::Heed)? })
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Whether the pattern matches that path, relative to the folder of the pattern.
    pub(super) fn fits(&self, below: &Path) -> bool {
        match below.file_name() {
            Some(name) if self.name_only => self.glob.is_match(name),
            _ => self.glob.is_match(below),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(pattern: &str, path: &str) -> bool {
        Pattern::for_path(pattern, Case::Heed).unwrap().fits(Path::new(path))
    }

    #[test]
    fn no_pattern_is_too_large_to_be_compiled() {
        for part in ["[!a]", "?", "*", "{a,b}", "**/", "{[!a],é", "[a-z]"] {
            for size in [LONGEST, 1_000_000] {
                // Refused, or compiled: what is open in it is of no interest here.
                let pattern = Pattern::for_path(&part.repeat(size / part.len()), Case::Ignore);
                assert!(size == LONGEST || pattern.is_err_and(|why| why.0.contains("at most 1000")), "{part}");
            }
        }
    }

    #[test]
    fn patterns_mean_what_shells_mean() {
        assert!(fits("*.rs", "a.rs") && !fits("*.rs", "src/a.rs"));
        assert!(fits("**/*.rs", "a.rs") && fits("**/*.rs", "src/deep/a.rs"));
        assert!(fits("./src/*.{rs,toml}", "src/a.toml") && !fits("src/*.{rs,toml}", "src/a.md"));
        assert!(fits("src/**", "src/a/b") && !fits("src/**", "src"));
        assert!(fits("[ab]?", "ax") && !fits("[!ab]?", "ax") && !fits("A", "a"));
        assert!(Pattern::for_path("A*", Case::Ignore).unwrap().fits(Path::new("abc")));
        assert!(Pattern::for_file("*.rs").unwrap().fits(Path::new("src/a.rs")));
        assert!(!Pattern::for_file("src/*.rs").unwrap().fits(Path::new("a/src/b.rs")));
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        for (text, words) in [
            ("", "empty"),
            ("../*", "leads out"),
            ("a/../b", "leads out"),
            ("/etc/*", "leads out"),
            ("[a", "not a valid pattern"),
        ] {
            let BadCall(why) = Pattern::for_path(text, Case::Heed).unwrap_err();
            assert!(why.contains(words), "{text}: {why}");
        }
    }
}
