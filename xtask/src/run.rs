//! Running other programs, the only place that does.

use std::env;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

/// Cargo, the same that runs us, in the root of the workspace.
pub(crate) fn cargo(args: &[&str]) -> Command {
    let mut command = program(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(args);
    // What our own build was told must not leak into others.
    for name in ["CARGO_MANIFEST_DIR", "CARGO_MANIFEST_PATH", "CARGO_PKG_NAME", "CARGO_PKG_VERSION"] {
        command.env_remove(name);
    }
    command
}

/// Runs it to its end; an error unless it went well.
pub(crate) fn succeed(command: &mut Command) -> Result<()> {
    let name = line(command);
    let status = command.status().with_context(|| format!("cannot start `{name}`"))?;
    ensure!(status.success(), "`{name}` failed ({status})");
    Ok(())
}

/// True if a program of this name answers to `--version`.
pub(crate) fn exists(name: &str) -> bool {
    answers(name, "--version")
}

/// True if a program of this name answers to that option.
pub(crate) fn answers(name: &str, option: &str) -> bool {
    let mut command = program(name.into());
    let quiet = command.arg(option).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

/// Lets cargo build a program, and gives back where it is: cargo tells, wherever that is set.
pub(crate) fn built(build: &[&str]) -> Result<String> {
    let mut command = cargo(build);
    let output = command.args(["--quiet", "--message-format=json"]).stderr(Stdio::inherit()).output();
    let output = output.context("build the program")?;
    ensure!(output.status.success(), "the program does not build ({})", output.status);
    let told = String::from_utf8(output.stdout)?;
    let program = told.lines().find_map(|line| line.split_once("\"executable\":\"")?.1.split('"').next());
    Ok(program.context("cargo did not tell where the program is")?.to_owned())
}

/// The command as a person would type it.
pub(crate) fn line(command: &Command) -> String {
    let name = Path::new(command.get_program()).file_stem().unwrap_or_default();
    let words = [name].into_iter().chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// That program, in the root of the workspace.
#[expect(clippy::disallowed_methods, reason = "a chore waits for what it starts, in the foreground")]
pub(crate) fn program(name: OsString) -> Command {
    let mut command = Command::new(name);
    if let Some(root) = Path::new(env!("CARGO_MANIFEST_DIR")).parent() {
        command.current_dir(root);
    }
    command
}
