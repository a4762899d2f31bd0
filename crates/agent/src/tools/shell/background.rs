//! Background commands. Their output goes to files; they end with the session.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use multitap_process::Child;
use tokio::fs::File;
use tokio::io::AsyncWriteExt as _;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::PATIENCE;
use crate::tool::Outcome;

/// Most commands at once.
const MOST: usize = 16;
/// Most output stored per command.
const KEPT: u64 = 16 * 1024 * 1024;

#[derive(Debug, Default)]
pub(super) struct Background {
    running: Mutex<JoinSet<()>>,
    stop: CancellationToken,
    started: AtomicU32,
}

impl Background {
    pub(super) async fn take(&self, child: Child, private: &Path) -> Outcome {
        let number = self.started.fetch_add(1, Ordering::Relaxed) + 1;
        let path = private.join(format!("background-{number}.log"));
        let file = match create(private, &path).await {
            Ok(file) => file,
            Err(error) => return Outcome::failed(format!("it was stopped: cannot write {}: {error}", path.display())),
        };
        let pid = child.pid();
        {
            let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
            while running.try_join_next().is_some() {}
            if running.len() >= MOST {
                return Outcome::failed(format!("it was stopped: {MOST} commands run in the background already"));
            }
            running.spawn(run(child, file, self.stop.clone()));
        }
        let process = pid.map_or_else(String::new, |pid| format!(" as process {pid}"));
        Outcome::done(format!(
            "It runs in the background{process} until the session ends. Its output goes to {}",
            path.display()
        ))
    }

    /// Ends all of them, and waits until they have.
    pub(super) async fn close(&self) {
        self.stop.cancel();
        let mut running = std::mem::take(&mut *self.running.lock().unwrap_or_else(PoisonError::into_inner));
        while running.join_next().await.is_some() {}
    }
}

/// A file in the session's folder that other users cannot read.
async fn create(private: &Path, path: &Path) -> std::io::Result<File> {
    tokio::fs::create_dir_all(private).await?;
    let mut options = tokio::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    options.mode(0o600);
    options.open(path).await
}

async fn run(mut child: Child, mut file: File, stop: CancellationToken) {
    let written = tokio::select! {
        () = stop.cancelled() => {
            child.stop(PATIENCE).await;
            return;
        }
        written = write(&mut child, &mut file) => written,
    };
    let end = match written {
        Ok(()) => child.wait().await.to_string(),
        Err(error) => {
            child.stop(PATIENCE).await;
            format!("stopped: its output could not be stored: {error}")
        }
    };
    // The reader sees the end; if this write fails, there is nothing else to try.
    file.write_all(format!("\n[{end}]\n").as_bytes()).await.ok();
    file.flush().await.ok();
}

async fn write(child: &mut Child, file: &mut File) -> std::io::Result<()> {
    let mut bytes = vec![0; 64 * 1024];
    let mut kept = 0;
    loop {
        let count = child.read(&mut bytes).await?;
        if count == 0 {
            return Ok(());
        }
        if kept < KEPT {
            kept += count as u64;
            file.write_all(&bytes[..count]).await?;
            if kept >= KEPT {
                file.write_all(b"\n[further output is not stored]\n").await?;
            }
            file.flush().await?;
        }
    }
}
