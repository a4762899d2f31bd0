//! The tests that drive the real CLIs and A2A and ACP clients: install them, run, count what was skipped.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::thread::available_parallelism;

use anyhow::{Context as _, Result, bail};

use crate::run::{cargo, exists, succeed};
use crate::test::{Done, shown};

/// The variable by which tests know whether they may drive a real CLI. The testkit reads it.
pub(crate) const WISH: &str = "MULTITAP_INTEROP";
/// The variable that names the file in which tests note that they were skipped. The testkit writes it.
const SKIPS: &str = "MULTITAP_INTEROP_SKIPS";
/// A real CLI takes a few hundred megabytes: not one for each core of a large machine.
const MOST_THREADS: usize = 4;

/// Installs what is missing and runs the tests that have `interop` in their name.
pub(crate) fn interop() -> Result<Done> {
    let wish = if cfg!(windows) {
        println!("!!! the real CLIs are not driven on Windows yet: their tests are SKIPPED");
        "1"
    } else if exists("npm") {
        install(&[])?;
        "required"
    } else if env::var_os("CI").is_some_and(|value| !value.is_empty()) {
        bail!("npm is not installed, and CI is set: the real CLIs cannot be installed (Node.js 20 or later brings npm)")
    } else {
        println!("!!! npm is not installed: tests of CLIs that are not in the cache are SKIPPED");
        "1"
    };
    let skips = Skips::new();
    let threads = available_parallelism().map_or(1, usize::from).min(MOST_THREADS).to_string();
    let mut tests = cargo(&["test", "--workspace", "--tests", "interop", "--", "--test-threads", &threads]);
    shown(tests.env(WISH, wish).env(SKIPS, &skips.0))?;
    skips.counted()
}

/// Installs these agents' CLIs, or all that the interop tests drive, peers too.
pub(crate) fn install(agents: &[&str]) -> Result<()> {
    let mut command = cargo(&["run", "--quiet", "--package", "multitap-testkit", "--example", "clis", "--", "install"]);
    succeed(command.args(agents)).context("install the real CLIs and A2A and ACP clients")
}

/// The file in which tests note that they were skipped. Removed on drop.
struct Skips(PathBuf);

impl Skips {
    fn new() -> Self {
        Self(env::temp_dir().join(format!("multitap-skips-{}", std::process::id())))
    }

    fn counted(&self) -> Result<Done> {
        if !self.0.exists() {
            return Ok(Done::Whole);
        }
        let notes = fs::read_to_string(&self.0).context("read what was skipped")?;
        println!("{notes}");
        let count = notes.lines().count();
        Ok(Done::Skipped(format!("{count} interop {}", if count == 1 { "test" } else { "tests" })))
    }
}

impl Drop for Skips {
    fn drop(&mut self) {
        fs::remove_file(&self.0).ok(); // most often there is none
    }
}
