//! Two terminals side by side, and a camera before them: one tmux server of our own, with no settings of anybody's.
//!
//! The two are panes of one window; the camera is a third terminal, in which tmux shows that window. So what is recorded
//! is what a person would see, frame and cursor and all. What is played on the stage is not known here.

use std::env;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use super::cast::{Film, Frame};
use super::screen::Screen;
use crate::run::program;

const COLUMNS: usize = 120;
const ROWS: usize = 30;
/// The right terminal; the frame between the two takes one column.
pub(crate) const RIGHT_COLUMNS: usize = 57;
/// Questions show whole paths. So the film's home has a path that says nothing about the machine, the same every time.
pub(crate) const HOME: &str = "/tmp/demo";
/// The folder in it where both terminals are.
pub(crate) const FOLDER: &str = "shop";
/// Between two looks of the camera.
const LOOK: Duration = Duration::from_millis(130);
const KEY: Duration = Duration::from_millis(38);
/// A person takes a breath between words.
const WORD: Duration = Duration::from_millis(85);
/// How long something may take to appear.
const PATIENCE: Duration = Duration::from_secs(30);
/// If nothing changes for longer than this, it is cut out: the machine was slow, and nobody wants to wait for it.
const LONGEST_REST: f64 = 2.0;

/// A terminal on the stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Left,
    Right,
}

impl Side {
    fn pane(self) -> &'static str {
        match self {
            Self::Left => "stage:0.0",
            Self::Right => "stage:0.1",
        }
    }

    fn columns(self) -> Range<usize> {
        let middle = COLUMNS - RIGHT_COLUMNS;
        match self {
            Self::Left => 0..middle - 1,
            Self::Right => middle..COLUMNS,
        }
    }
}

/// The stage while something is played on it. Gone on drop, with all that runs there.
pub(crate) struct Stage {
    path: String,
    start: Instant,
    frames: Vec<Frame>,
}

impl Stage {
    /// Sets it up: these files in the folder, and a shell in both terminals that finds this program.
    pub(crate) fn new(multitap: &Path, files: &[(&str, &str)], titles: [&str; 2]) -> Result<Self> {
        let home = Path::new(HOME);
        fs::create_dir(home)
            .with_context(|| format!("make {HOME} (if a film was cut off, remove what it left there)"))?;
        // From here on it is ours, and removed again.
        let bin = multitap.parent().context("the program is in no folder")?.to_owned();
        let rest = env::var_os("PATH").unwrap_or_default();
        let path = env::join_paths([bin].into_iter().chain(env::split_paths(&rest)))?;
        let path = path.into_string().ok().context("PATH is not text")?;
        let stage = Self { path, start: Instant::now(), frames: Vec::new() };
        for (name, text) in files {
            put(&home.join(name), text)?;
        }
        stage.open(titles)?;
        Ok(stage)
    }

    fn open(&self, titles: [&str; 2]) -> Result<()> {
        let home = Path::new(HOME);
        let [left, right] = titles;
        let title = format!(
            "#{{?pane_active,#[fg=colour15 bold],#[fg=brightblack]}} #{{?#{{==:#{{pane_index}},0}},{left},{right}}} "
        );
        let settings = format!(
            "set -g escape-time 0\nset -g focus-events on\nset -g status off\nset -g default-terminal tmux-256color\n\
             set -g pane-border-format '{title}'\n\
             set -g pane-border-style fg=brightblack\nset -g pane-active-border-style fg=brightblack\n"
        );
        put(&home.join(".tmux"), &settings)?;
        // Every shell that follows POSIX reads the file that ENV names.
        // A film has the sixteen colours of a palette, so the programs in it must not use more.
        put(&home.join(".shrc"), "PS1='$ '\nTERM=xterm\n")?;
        let (columns, rows, folder) = (COLUMNS.to_string(), ROWS.to_string(), format!("{HOME}/{FOLDER}"));
        let size = ["-x", &columns, "-y", &rows];
        let settings = home.join(".tmux").display().to_string();
        let new = ["-f", &settings, "new-session", "-d", "-s", "stage", "-c", &folder, "-e", "USER=ada"];
        self.tmux(&[&new[..], &size, &["sh"]].concat())?;
        let right = RIGHT_COLUMNS.to_string();
        self.tmux(&["split-window", "-h", "-l", &right, "-c", &folder, "-e", "USER=ben", "-t", "stage:0.0", "sh"])?;
        // Not for the camera, which has a window of its own.
        self.tmux(&["set", "-w", "-t", "stage:0", "pane-border-status", "top"])?;
        self.tmux(&["select-pane", "-t", Side::Left.pane()])?;
        let watch = format!("env -u TMUX tmux -u -S {} attach -t stage", socket().display());
        self.tmux(&[&["new-session", "-d", "-s", "camera"], &size[..], &[&watch]].concat())?;
        Ok(())
    }

    fn tmux(&self, args: &[&str]) -> Result<String> {
        let mut command = program("tmux".into());
        command.env_clear().env("PATH", &self.path).env("HOME", HOME).env("ENV", format!("{HOME}/.shrc"));
        command.env("LANG", "C.UTF-8").env("TERM", "xterm-256color").env("TMPDIR", HOME).env("SHELL", "/bin/sh");
        command.arg("-u").arg("-S").arg(socket()).args(args).stdin(Stdio::null());
        let output = command.output().context("cannot start tmux")?;
        ensure!(output.status.success(), "tmux {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).context("what tmux says is not text")
    }

    /// Both terminals show their shell: now the film begins.
    pub(crate) fn roll(&mut self) -> Result<()> {
        self.shows(Side::Left, "$ ")?;
        self.shows(Side::Right, "$ ")?;
        self.rest(Duration::from_millis(500))?; // a shell may draw its first line twice
        self.frames.clear();
        self.start = Instant::now();
        Ok(())
    }

    /// Types at one of the terminals, as a person does.
    pub(crate) fn types(&mut self, side: Side, text: &str) -> Result<()> {
        self.tmux(&["select-pane", "-t", side.pane()])?;
        for letter in text.chars() {
            // To tmux a semicolon by itself is the end of a command.
            let key = if letter == ';' { "\\;".to_owned() } else { letter.to_string() };
            self.tmux(&["send-keys", "-t", side.pane(), "-l", "--", &key])?;
            self.rest(if letter == ' ' { WORD } else { KEY })?;
        }
        Ok(())
    }

    /// Presses a key there, by the name that tmux has for it.
    pub(crate) fn presses(&mut self, side: Side, key: &str) -> Result<()> {
        self.tmux(&["select-pane", "-t", side.pane()])?;
        self.rest(Duration::from_millis(250))?;
        self.tmux(&["send-keys", "-t", side.pane(), key])?;
        Ok(())
    }

    /// Waits until that terminal shows these words.
    pub(crate) fn shows(&mut self, side: Side, words: &str) -> Result<()> {
        self.until(side, words, true)
    }

    /// Waits until it shows them no longer.
    pub(crate) fn hides(&mut self, side: Side, words: &str) -> Result<()> {
        self.until(side, words, false)
    }

    fn until(&mut self, side: Side, words: &str, there: bool) -> Result<()> {
        let start = Instant::now();
        loop {
            let screen = self.look()?;
            if screen.text(side.columns()).contains(words) == there {
                return Ok(());
            }
            if start.elapsed() > PATIENCE {
                let what = if there { "does not come" } else { "does not go" };
                bail!("the {side:?} terminal: {words:?} {what}; to be seen is\n{}", screen.text(0..COLUMNS));
            }
            sleep(LOOK);
        }
    }

    /// Lets time pass, with the camera on.
    pub(crate) fn rest(&mut self, time: Duration) -> Result<()> {
        let start = Instant::now();
        loop {
            self.look()?;
            let left = time.saturating_sub(start.elapsed());
            if left.is_zero() {
                return Ok(());
            }
            sleep(left.min(LOOK));
        }
    }

    /// What the camera sees now; kept if it is new.
    fn look(&mut self) -> Result<Screen> {
        let cursor = "#{cursor_flag} #{cursor_x} #{cursor_y}";
        let both = ["display-message", "-p", "-t", "camera:", cursor, ";", "capture-pane", "-p", "-e", "-t", "camera:"];
        let told = self.tmux(&both)?;
        let at = self.start.elapsed().as_secs_f64();
        let (cursor, rows) = told.split_once('\n').context("tmux tells nothing of the screen")?;
        let mut screen = Screen::new(COLUMNS, ROWS);
        screen.draw(rows)?;
        let numbers: Vec<usize> = cursor.split(' ').map(str::parse).collect::<Result<_, _>>().context("the cursor")?;
        screen.cursor = match numbers[..] {
            [1, column, row] => Some((column, row)),
            _ => None,
        };
        if self.frames.last().is_none_or(|last| last.screen != screen) {
            self.frames.push(Frame { at, screen: screen.clone() });
        }
        Ok(screen)
    }

    /// The film, without what nobody wants to wait for.
    pub(crate) fn cut(&mut self) -> Film {
        let end = self.start.elapsed().as_secs_f64();
        let mut frames = std::mem::take(&mut self.frames);
        let (mut last, mut out) = (0.0, 0.0);
        for frame in &mut frames {
            out += (frame.at - last - LONGEST_REST).max(0.0);
            last = frame.at;
            frame.at -= out;
        }
        Film { columns: COLUMNS, rows: ROWS, frames, end: end - out }
    }
}

fn socket() -> PathBuf {
    Path::new(HOME).join(".socket")
}

/// Writes a file; one that begins as a script can be run.
fn put(path: &Path, text: &str) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(|| format!("make {}", folder.display()))?;
    }
    fs::write(path, text).with_context(|| format!("write {}", path.display()))?;
    // Where there is no such right there is no tmux either.
    #[cfg(unix)]
    if text.starts_with("#!") {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(path, PermissionsExt::from_mode(0o755))?;
    }
    Ok(())
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]).ok(); // it may not have come up
        // Who is told to go writes a last word into its log first.
        for _ in 0..50 {
            sleep(LOOK);
            if fs::remove_dir_all(HOME).is_ok() && !Path::new(HOME).exists() {
                break;
            }
        }
    }
}
