//! Putting the pinned CLIs into the cache folder.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

use crate::cli::{self, Cli};

/// Installs a CLI unless it is there, and returns its program. Nothing if it is not built for this machine.
///
/// It is installed beside its place and moved there when whole, so that a run which was cut off leaves nothing that
/// looks installed; a lock keeps two runs apart.
pub fn install(cli: Cli) -> Result<Option<PathBuf>> {
    let (Some(folder), Some(program)) = (cli.folder(), cli.program()) else { return Ok(None) };
    if program.is_file() {
        return Ok(Some(program));
    }
    let cache = cli::cache_folder().context("no cache folder: neither HOME nor MULTITAP_TEST_CACHE is set")?;
    fs::create_dir_all(&cache).with_context(|| format!("make {}", cache.display()))?;
    let lock = File::create(cache.join(".lock")).context("make the lock of the cache folder")?;
    lock.lock().context("lock the cache folder")?;
    if program.is_file() {
        return Ok(Some(program)); // somebody else did while we waited
    }
    let draft = tempfile::Builder::new().prefix(".installing-").tempdir_in(&cache).context("make a folder")?;
    npm_install(cli, draft.path())?;
    let made = draft.path().join(program.strip_prefix(&folder)?);
    ensure!(made.is_file(), "npm installed {} but there is no {}", cli.package, made.display());
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("remove the remains in {}", folder.display()))?;
    }
    fs::rename(draft.keep(), &folder).with_context(|| format!("move it to {}", folder.display()))?;
    Ok(Some(program))
}

/// No scripts are run: the native programs come ready in their packages.
fn npm_install(cli: Cli, folder: &Path) -> Result<()> {
    // Without a manifest of its own npm would look for one in the folders above.
    fs::write(folder.join("package.json"), "{\"private\":true}\n").context("write package.json")?;
    let package = format!("{}@{}", cli.package, cli.version);
    let status = crate::command(OsStr::new("npm"))
        .args(["install", "--no-fund", "--no-audit", "--ignore-scripts", "--loglevel=error", "--save-exact", &package])
        .current_dir(folder)
        .status()
        .context("run npm: is Node.js installed?")?;
    ensure!(status.success(), "npm could not install {package} ({status})");
    Ok(())
}
