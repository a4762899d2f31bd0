//! Installs the pinned programs into the cache folder.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

use crate::cli::{self, Cli};

/// Installs a CLI unless it is there, and returns its program; `None` if there is no build for this machine.
pub fn install(cli: Cli) -> Result<Option<PathBuf>> {
    let (Some(folder), Some(program)) = (cli.folder(), cli.program()) else { return Ok(None) };
    into(&folder, &program, |draft| npm(&[(cli.package, cli.version)], draft))?;
    Ok(Some(program))
}

/// Fills a folder of the cache, unless its program is there.
///
/// It is filled under another name and renamed when complete, so that an interrupted run leaves nothing that looks
/// installed; a lock separates concurrent runs.
pub(crate) fn into(folder: &Path, program: &Path, fill: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    if program.is_file() {
        return Ok(());
    }
    let cache = cli::cache_folder().context("no cache folder: neither HOME nor MULTITAP_TEST_CACHE is set")?;
    fs::create_dir_all(&cache).with_context(|| format!("make {}", cache.display()))?;
    let lock = File::create(cache.join(".lock")).context("make the lock of the cache folder")?;
    lock.lock().context("lock the cache folder")?;
    if program.is_file() {
        return Ok(()); // another process installed it while we waited
    }
    let draft = tempfile::Builder::new().prefix(".installing-").tempdir_in(&cache).context("make a folder")?;
    fill(draft.path())?;
    let made = draft.path().join(program.strip_prefix(folder)?);
    ensure!(made.is_file(), "it was installed, but there is no {}", made.display());
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("remove the remains in {}", folder.display()))?;
    }
    fs::rename(draft.keep(), folder).with_context(|| format!("move it to {}", folder.display()))
}

/// Installs packages from npm, each in that version. No scripts run: the packages contain the native programs.
pub(crate) fn npm(packages: &[(&str, &str)], folder: &Path) -> Result<()> {
    // Without its own manifest, npm would use one in a folder above.
    fs::write(folder.join("package.json"), "{\"private\":true}\n").context("write package.json")?;
    let packages: Vec<String> = packages.iter().map(|(package, version)| format!("{package}@{version}")).collect();
    let status = crate::command(OsStr::new("npm"))
        .args(["install", "--no-fund", "--no-audit", "--ignore-scripts", "--loglevel=error", "--save-exact"])
        .args(&packages)
        .current_dir(folder)
        .status()
        .context("run npm: is Node.js installed?")?;
    ensure!(status.success(), "npm could not install {} ({status})", packages.join(", "));
    Ok(())
}
