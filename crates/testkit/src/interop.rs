//! Decides whether a test may run a real CLI or another peer.
//!
//! Plain `cargo test` must pass on a machine without them, so a test that needs one begins with
//! `let Some(claude) = interop::find(CLAUDE) else { return };`. What happens then is up to `MULTITAP_INTEROP`:
//!
//! - not set: the test is skipped;
//! - `1`: it runs if the CLI is installed, else it is skipped;
//! - `required`: it runs, and fails if the CLI is not installed.
//!
//! On a machine that the CLI is not built for it is skipped in any case.
//!
//! A skip is printed, and noted in the file that `MULTITAP_INTEROP_SKIPS` names, where `cargo xtask test` counts
//! them. By convention the names of such tests contain `interop`.

use std::env;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;

use crate::cli::{ACPX, Cli, MCP_CONFORMANCE, MCP_INSPECTOR, NODE};
use crate::peer;

const WISH: &str = "MULTITAP_INTEROP";
const SKIPS: &str = "MULTITAP_INTEROP_SKIPS";

/// The MCP Inspector with the Node.js that runs it, if this test may drive it.
pub fn mcp_inspector() -> Option<[PathBuf; 2]> {
    Some([find(NODE)?, find(MCP_INSPECTOR)?])
}

/// The MCP conformance scenarios, and the Node.js that runs them, if this test may run them.
pub fn mcp_conformance() -> Option<[PathBuf; 2]> {
    Some([find(NODE)?, find(MCP_CONFORMANCE)?])
}

/// `acpx` with the Node.js that runs it, if this test may drive it.
pub fn acpx() -> Option<[PathBuf; 2]> {
    Some([find(NODE)?, find(ACPX)?])
}

/// A CLI, if this test may drive it.
///
/// # Panics
///
/// If the CLI is required and not installed.
pub fn find(cli: Cli) -> Option<PathBuf> {
    let place = cli.program().map_or(Place::Cannot("there is no build for this machine"), Place::of);
    judge(&format!("{} {}", cli.agent, cli.version), &place)
}

/// A peer, if this test may start it.
///
/// # Panics
///
/// If the peer is required and not installed.
pub fn peer(kind: peer::Kind) -> Option<PathBuf> {
    judge(kind.title(), &kind.place())
}

/// tmux, for tests that need a real terminal. Such tests run wherever it is installed.
///
/// # Panics
///
/// If it is not installed on a machine that runs all tests (`CI` is set).
pub fn tmux() -> Option<PathBuf> {
    let found = peer::on_path(&["tmux"]);
    if found.is_none() {
        assert!(env::var_os("CI").is_none(), "tmux is required and not installed");
        skip("tmux", "it is not installed");
    }
    found
}

fn judge(what: &str, place: &Place) -> Option<PathBuf> {
    match decide(env::var(WISH).ok().as_deref(), place) {
        Verdict::Run(program) => Some(program),
        Verdict::Skip(why) => {
            skip(what, why);
            None
        }
        Verdict::Fail => panic!("{what} is required and not installed: `cargo xtask test` installs it"),
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Run(PathBuf),
    Skip(&'static str),
    Fail,
}

/// Where a program is installed on this machine.
#[derive(Debug)]
pub(crate) enum Place {
    Here(PathBuf),
    NotInstalled,
    /// The program cannot be installed here, for this reason.
    Cannot(&'static str),
}

impl Place {
    pub(crate) fn of(program: PathBuf) -> Self {
        if program.is_file() { Self::Here(program) } else { Self::NotInstalled }
    }
}

fn decide(wish: Option<&str>, place: &Place) -> Verdict {
    match (wish, place) {
        (None | Some("" | "0"), _) => Verdict::Skip("set MULTITAP_INTEROP=1 to run it, or use `cargo xtask test`"),
        (Some(_), Place::Here(program)) => Verdict::Run(program.clone()),
        (Some(_), Place::Cannot(why)) => Verdict::Skip(why),
        (Some("required"), Place::NotInstalled) => Verdict::Fail,
        (Some(_), Place::NotInstalled) => Verdict::Skip("it is not installed"),
    }
}

fn skip(what: &str, why: &str) {
    let thread = std::thread::current();
    let note = format!("SKIPPED {} (needs {what}): {why}", thread.name().unwrap_or("test"));
    #[expect(clippy::print_stderr, reason = "a skipped test must not look like one that ran")]
    {
        eprintln!("{note}");
    }
    if let Some(path) = env::var_os(SKIPS) {
        let file = OpenOptions::new().create(true).append(true).open(path);
        // The note was printed, even if it cannot be written here.
        file.and_then(|mut file| file.write_all(format!("{note}\n").as_bytes())).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wish_decides() {
        let here = Place::Here("/bin/claude".into());
        assert!(matches!(decide(None, &here), Verdict::Skip(_)));
        assert_eq!(decide(Some("1"), &here), Verdict::Run("/bin/claude".into()));
        assert!(matches!(decide(Some("1"), &Place::NotInstalled), Verdict::Skip(_)));
        assert_eq!(decide(Some("required"), &here), Verdict::Run("/bin/claude".into()));
        assert_eq!(decide(Some("required"), &Place::NotInstalled), Verdict::Fail);
        assert!(matches!(decide(Some("required"), &Place::Cannot("no")), Verdict::Skip(_)));
    }
}
