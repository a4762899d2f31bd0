//! Compares the versions in the URIs of extensions.
//!
//! Judged as Semantic Versioning 2.0.0 says: a new major may break anything; below 1.0.0 a new minor may too; a newer
//! minor only adds; a pre-release promises nothing but itself. A URI may give less than the three numbers: what it leaves
//! open is not held against it.

use std::fmt;

use semver::{Comparator, Op};

/// A version, as far as a URI states it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Version(Comparator);

impl Version {
    /// The version in a URI: the last part of its path that is `v` and a version, such as `v0` or `v1.2.3-rc.1`.
    pub fn of_uri(uri: &str) -> Option<Self> {
        split(uri).map(|(_, version, _)| version)
    }

    /// Without its `v`. Of the forms of a comparator only the plain one, which may leave the minor and the patch open.
    fn parse(text: &str) -> Option<Self> {
        let is_plain = |parsed: &Comparator| parsed.op == Op::Caret && !text.starts_with('^');
        Comparator::parse(text).ok().filter(is_plain).map(Self)
    }

    /// Whether an agent that speaks this version understands a client that speaks `ours`.
    pub fn serves(&self, ours: &Self) -> bool {
        let (theirs, ours) = (&self.0, &ours.0);
        if theirs.major != ours.major {
            return false;
        }
        if !theirs.pre.is_empty() || !ours.pre.is_empty() {
            return theirs == ours;
        }
        match (theirs.minor, ours.minor) {
            (Some(theirs), Some(ours)) if self.0.major == 0 => theirs == ours,
            (Some(theirs), Some(ours)) => theirs >= ours,
            (None, _) | (_, None) => true,
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Comparator { major, minor, patch, pre, .. } = &self.0;
        match (minor, patch) {
            (Some(minor), Some(patch)) if pre.is_empty() => write!(f, "{major}.{minor}.{patch}"),
            (Some(minor), Some(patch)) => write!(f, "{major}.{minor}.{patch}-{pre}"),
            (Some(minor), None) => write!(f, "{major}.{minor}.x"),
            (None, _) => write!(f, "{major}.x"),
        }
    }
}

/// Why an extension of an agent cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Incompatible {
    #[error("the agent speaks version {theirs} of the extension {name}, this client speaks {ours}")]
    Version { name: String, theirs: Box<Version>, ours: Box<Version> },
    #[error("the agent gives no version of the extension {name} (in {uri}), this client speaks {ours}")]
    NoVersion { name: String, uri: String, ours: Version },
    #[error("the agent offers {theirs}, not {ours}")]
    Other { theirs: String, ours: String },
}

/// Whether an agent's extension is the one we speak, in a compatible version.
pub fn judge(theirs: &str, ours: &str) -> Result<(), Incompatible> {
    let other = || Incompatible::Other { theirs: theirs.to_owned(), ours: ours.to_owned() };
    // If our URI has no version, only the same URI is compatible.
    let Some((before, our_version, after)) = split(ours) else {
        return if theirs == ours { Ok(()) } else { Err(other()) };
    };
    let name = name(before);
    match split(theirs) {
        Some((their_before, _, their_after)) if (their_before, their_after) != (before, after) => Err(other()),
        Some((_, version, _)) if version.serves(&our_version) => Ok(()),
        Some((_, version, _)) => Err(Incompatible::Version { name, theirs: version.into(), ours: our_version.into() }),
        None if is_without(theirs, before, after) => {
            Err(Incompatible::NoVersion { name, uri: theirs.to_owned(), ours: our_version })
        }
        None => Err(other()),
    }
}

/// Whether two URIs name the same extension, in whatever versions.
pub fn is_same(theirs: &str, ours: &str) -> bool {
    !matches!(judge(theirs, ours), Err(Incompatible::Other { .. }))
}

/// Splits into the text before the version, the version, and the text after it.
fn split(uri: &str) -> Option<(&str, Version, &str)> {
    let mut end = uri.len();
    for part in uri.rsplit('/') {
        let start = end - part.len();
        let version = part.strip_prefix(['v', 'V']).and_then(Version::parse);
        if let (Some(version), Some(before), Some(after)) = (version, uri.get(..start), uri.get(end..)) {
            return Some((before, version, after));
        }
        end = start.saturating_sub(1);
    }
    None
}

/// Whether this is the URI without its version, and with or without the text after the version.
fn is_without(uri: &str, before: &str, after: &str) -> bool {
    let before = before.trim_end_matches('/');
    uri.strip_prefix(before).is_some_and(|rest| [after, "", "/"].contains(&rest))
}

/// The last word before the version.
fn name(before: &str) -> String {
    before.trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_owned()
}
