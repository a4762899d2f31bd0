//! Reads the desktop's clipboard: a picture, or else text.
//!
//! Terminals only pass on text, so the clipboard programs of each desktop are run. Each has a size limit and a time
//! limit.

#[cfg(test)]
#[cfg(unix)]
mod tests;

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use multitap_process::{Keeper, Patience, Program, StdinMode, spawn};
use multitap_tui::{ClipboardContent, LARGEST_PICTURE, ReadClipboard};

/// Time limit for reading. PowerShell alone may take seconds to start.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a stopped program may take to end.
const ENDING: Patience = Patience {
    after_eof: Duration::ZERO,
    after_interrupt: Duration::ZERO,
    after_terminate: Duration::from_millis(200),
};
/// Size limit: a picture in hexadecimal, and words around it.
const MOST: usize = 2 * LARGEST_PICTURE + 1024;
/// Picture types that agents accept, best first.
const PICTURES: [&str; 4] = ["image/png", "image/jpeg", "image/webp", "image/gif"];
/// Text, by its type names.
const TEXTS: [&str; 5] = ["text/plain;charset=utf-8", "UTF8_STRING", "text/plain", "STRING", "TEXT"];
/// Error messages that mean an empty clipboard, or no content of that type.
const NOTHING: [&str; 4] = ["Nothing is copied", "No selection", "not available", "-1700"];
/// Prints the clipboard of Windows: a line with its type, then the bytes.
const POWERSHELL: &str = "Add-Type -AssemblyName System.Windows.Forms,System.Drawing; \
    $image = [Windows.Forms.Clipboard]::GetImage(); $kept = New-Object IO.MemoryStream; \
    if ($image) { $what = 'picture'; $image.Save($kept, [Drawing.Imaging.ImageFormat]::Png); $bytes = $kept.ToArray() } \
    else { $what = 'text'; $bytes = [Text.Encoding]::UTF8.GetBytes([Windows.Forms.Clipboard]::GetText()) }; \
    $line = [Text.Encoding]::UTF8.GetBytes($what + \"`n\"); $out = [Console]::OpenStandardOutput(); \
    $out.Write($line, 0, $line.Length); $out.Write($bytes, 0, $bytes.Length); $out.Flush()";

/// The clipboard of the user at this terminal.
pub(crate) fn clipboard() -> ReadClipboard {
    Arc::new(|| {
        Box::pin(async {
            let keeper = Keeper::own_binary().map_err(|error| format!("the clipboard cannot be read: {error}"))?;
            Desktop::here(keeper).read(PATIENCE).await.map_err(|error| error.to_string())
        })
    })
}

/// Why the clipboard could not be read.
#[derive(Debug, thiserror::Error)]
enum ClipError {
    #[error("there is no clipboard here: save the image and use /image PATH")]
    NoDesktop,
    #[error("to read the clipboard, install {0}")]
    Missing(&'static str),
    #[error("{program} did not answer within {} s", .patience.as_secs_f32())]
    TooSlow { program: ClipboardTool, patience: Duration },
    #[error("the clipboard is too large: at most {} MiB can be sent", LARGEST_PICTURE / (1024 * 1024))]
    TooLarge,
    #[error("{program} cannot read the clipboard: {why}")]
    Failed { program: ClipboardTool, why: String },
}

/// A program that reads the clipboard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ClipboardTool {
    WlPaste,
    Xclip,
    Osascript,
    PowerShell,
}

impl fmt::Display for ClipboardTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::WlPaste => "wl-paste",
            Self::Xclip => "xclip",
            Self::Osascript => "osascript",
            Self::PowerShell => "powershell.exe",
        })
    }
}

impl ClipboardTool {
    fn package(self) -> &'static str {
        match self {
            Self::WlPaste => "wl-clipboard (it brings wl-paste)",
            Self::Xclip => "xclip",
            Self::Osascript => "osascript, which comes with macOS",
            Self::PowerShell => "PowerShell, which comes with Windows",
        }
    }
}

/// The desktop of this terminal, guessed from the environment.
struct Desktop {
    /// The programs to try, best first.
    ways: Vec<ClipboardTool>,
    path: Option<OsString>,
    keeper: Keeper,
}

impl Desktop {
    fn here(keeper: Keeper) -> Self {
        let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let mut ways = Vec::new();
        let mut add = |way: ClipboardTool, is_there: bool| ways.extend(is_there.then_some(way));
        add(ClipboardTool::Osascript, cfg!(target_os = "macos"));
        // Within WSL, people copy to the Windows clipboard too.
        add(ClipboardTool::PowerShell, cfg!(windows) || is_set("WSL_DISTRO_NAME"));
        add(ClipboardTool::WlPaste, is_set("WAYLAND_DISPLAY"));
        add(ClipboardTool::Xclip, is_set("DISPLAY"));
        Self { ways, path: std::env::var_os("PATH"), keeper }
    }

    async fn read(&self, patience: Duration) -> Result<ClipboardContent, ClipError> {
        let first = *self.ways.first().ok_or(ClipError::NoDesktop)?;
        let found = self.ways.iter().find_map(|way| Some((*way, self.find(*way)?)));
        let (way, program) = found.ok_or(ClipError::Missing(first.package()))?;
        let ask = ClipboardRead {
            way,
            program,
            keeper: &self.keeper,
            until: tokio::time::Instant::now() + patience,
            patience,
        };
        match way {
            ClipboardTool::WlPaste => ask.by_type(&["--list-types"], &["--no-newline", "--type"]).await,
            ClipboardTool::Xclip => {
                let list = ["-selection", "clipboard", "-o", "-t", "TARGETS"];
                ask.by_type(&list, &["-selection", "clipboard", "-o", "-t"]).await
            }
            ClipboardTool::Osascript => ask.of_macos().await,
            ClipboardTool::PowerShell => ask.of_windows().await,
        }
    }

    fn find(&self, way: ClipboardTool) -> Option<PathBuf> {
        let folder = std::env::current_dir().unwrap_or_default();
        which::which_in(way.to_string(), self.path.as_ref(), folder).ok()
    }
}

/// One read of the clipboard by one program, which may have to run more than once.
struct ClipboardRead<'a> {
    way: ClipboardTool,
    program: PathBuf,
    keeper: &'a Keeper,
    until: tokio::time::Instant,
    patience: Duration,
}

impl ClipboardRead<'_> {
    /// Lists the available types, then reads the best one.
    async fn by_type(&self, list: &[&str], take: &[&str]) -> Result<ClipboardContent, ClipError> {
        let Some(types) = self.look(list).await? else { return Ok(ClipboardContent::Nothing) };
        let types = String::from_utf8_lossy(&types).into_owned();
        let has = |wanted: &&str| types.lines().any(|line| line.trim().eq_ignore_ascii_case(wanted));
        if let Some(picture) = PICTURES.into_iter().find(has) {
            return Ok(ClipboardContent::Picture(self.run(&[take, &[picture]].concat()).await?));
        }
        match TEXTS.into_iter().find(has) {
            Some(text) => Ok(words(&self.run(&[take, &[text]].concat()).await?)),
            None => Ok(ClipboardContent::Nothing),
        }
    }

    async fn of_macos(&self) -> Result<ClipboardContent, ClipError> {
        let picture = self.look(&["-e", "the clipboard as «class PNGf»"]).await?;
        if let Some(picture) = picture.as_deref().and_then(hexadecimal) {
            return Ok(ClipboardContent::Picture(picture));
        }
        let text = self.look(&["-e", "the clipboard as text"]).await?;
        Ok(text.map_or(ClipboardContent::Nothing, |text| words(text.strip_suffix(b"\n").unwrap_or(&text))))
    }

    async fn of_windows(&self) -> Result<ClipboardContent, ClipError> {
        let told = self.run(&["-NoProfile", "-NonInteractive", "-STA", "-Command", POWERSHELL]).await?;
        match (told.strip_prefix(b"picture\n"), told.strip_prefix(b"text\n")) {
            (Some(picture), _) => Ok(ClipboardContent::Picture(picture.to_vec())),
            (None, Some(text)) => Ok(words(text)),
            (None, None) => Err(ClipError::Failed { program: self.way, why: "it printed something else".to_owned() }),
        }
    }

    /// Like `run`; `None` if there is nothing of that type.
    async fn look(&self, args: &[&str]) -> Result<Option<Vec<u8>>, ClipError> {
        match self.run(args).await {
            Err(ClipError::Failed { why, .. }) if NOTHING.iter().any(|words| why.contains(words)) => Ok(None),
            reported => reported.map(Some),
        }
    }

    /// Returns what the program prints.
    async fn run(&self, args: &[&str]) -> Result<Vec<u8>, ClipError> {
        let failed = |why: String| ClipError::Failed { program: self.way, why };
        let program = Program {
            program: self.program.clone(),
            args: args.iter().map(OsString::from).collect(),
            env: Vec::new(),
            env_remove: Vec::new(),
            cwd: None,
            stdin: StdinMode::Null,
        };
        let mut child = spawn(program, self.keeper).await.map_err(|error| failed(error.to_string()))?;
        let reading = async {
            let (mut all, mut piece) = (Vec::new(), vec![0; 64 * 1024]);
            loop {
                match child.read(&mut piece).await.map_err(|error| failed(error.to_string()))? {
                    0 => return Ok(all),
                    read => all.extend_from_slice(&piece[..read]),
                }
                if all.len() > MOST {
                    return Err(ClipError::TooLarge);
                }
            }
        };
        let reported = match tokio::time::timeout_at(self.until, reading).await {
            Ok(Ok(reported)) => reported,
            Ok(Err(error)) => {
                child.stop(ENDING).await;
                return Err(error);
            }
            Err(_) => {
                child.stop(ENDING).await;
                return Err(ClipError::TooSlow { program: self.way, patience: self.patience });
            }
        };
        let exit = child.wait().await;
        if exit.success() {
            Ok(reported)
        } else {
            Err(failed(format!("{exit} {}", exit.stderr_tail).trim().to_owned()))
        }
    }
}

fn words(text: &[u8]) -> ClipboardContent {
    let text = String::from_utf8_lossy(text);
    if text.is_empty() { ClipboardContent::Nothing } else { ClipboardContent::Text(text.into_owned()) }
}

/// Decodes `«data PNGf8950…»`, as macOS prints it.
fn hexadecimal(reported: &[u8]) -> Option<Vec<u8>> {
    let reported = std::str::from_utf8(reported).ok()?;
    let digits = reported.trim().strip_prefix("«data PNGf")?.strip_suffix('»')?;
    let digit = |letter: u8| char::from(letter).to_digit(16);
    let byte = |pair: &[u8]| match pair {
        [high, low] => u8::try_from(digit(*high)? * 16 + digit(*low)?).ok(),
        _ => None,
    };
    digits.as_bytes().chunks(2).map(byte).collect()
}
