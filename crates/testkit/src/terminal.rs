//! A real terminal, by tmux: keys go in, and the screen comes out.
//!
//! Each has a tmux server of its own, with the environment of a [`Scratch`] and no settings; it ends with this.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};

use crate::Scratch;
use crate::shell::quote;
use crate::wait::until_blocking;

/// Time limit for text to appear on the screen of a busy machine; an agent may have to start first.
const PATIENCE: Duration = Duration::from_secs(60);

/// A terminal with a program in it.
#[derive(Debug)]
pub struct Terminal<'a> {
    scratch: &'a Scratch,
    tmux: PathBuf,
    socket: PathBuf,
    /// The file with the process id of the program, and the one with its exit code.
    pid: PathBuf,
    code: PathBuf,
}

impl<'a> Terminal<'a> {
    /// Starts a program in a terminal of so many columns and rows. `tmux` is what [`crate::interop::tmux`] found.
    pub fn start(tmux: PathBuf, scratch: &'a Scratch, program: &[&str], size: (u16, u16)) -> Result<Self> {
        let name = uuid::Uuid::new_v4().simple().to_string();
        let place = |what: &str| scratch.root().join(format!("{what}-{name}"));
        let terminal = Self { scratch, tmux, socket: place("tmux"), pid: place("pid"), code: place("code") };
        let settings = place("conf");
        std::fs::write(&settings, "set -g escape-time 0\nset -g focus-events on\n")?;
        let words: Vec<String> = program.iter().map(|word| quote(word)).collect();
        let start = format!("echo $$ > {}; exec {}", path(&terminal.pid), words.join(" "));
        // The last screen stays visible and the exit code is stored, since tmux does not always report it.
        let command = format!("trap : INT; sh -c {}; echo $? > {}; sleep 600", quote(&start), path(&terminal.code));
        let (columns, rows) = (size.0.to_string(), size.1.to_string());
        let settings = settings.display().to_string();
        terminal.tmux(&["-f", &settings, "new-session", "-d", "-x", &columns, "-y", &rows, &command])?;
        Ok(terminal)
    }

    fn tmux(&self, args: &[&str]) -> Result<String> {
        let output = self.scratch.command(&self.tmux).arg("-S").arg(&self.socket).args(args).output();
        let output = output.context("run tmux")?;
        ensure!(output.status.success(), "tmux {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Presses keys, by the names that tmux has for them: `Enter`, `Escape`, `C-c`, `BTab`.
    pub fn press(&self, keys: &[&str]) -> Result<()> {
        self.tmux(&[&["send-keys"], keys].concat()).map(drop)
    }

    /// Types letters as they are.
    pub fn say(&self, text: &str) -> Result<()> {
        self.tmux(&["send-keys", "-l", "--", text]).map(drop)
    }

    pub fn enter(&self, text: &str) -> Result<()> {
        self.say(text)?;
        self.press(&["Enter"])
    }

    pub fn screen(&self) -> Result<String> {
        self.tmux(&["capture-pane", "-p"])
    }

    /// Waits until the screen is as it should be, and gives it back. The error shows the screen.
    pub fn until(&self, what: &str, fits: impl Fn(&str) -> bool) -> Result<String> {
        let found = until_blocking(what, PATIENCE, || self.screen().ok().filter(|screen| fits(screen)));
        match found {
            Ok(screen) => Ok(screen),
            Err(error) => bail!("{error}; the screen is\n{}", self.screen().unwrap_or_default()),
        }
    }

    /// Waits until the screen shows these words.
    pub fn shows(&self, words: &str) -> Result<String> {
        self.until(words, |screen| screen.contains(words))
    }

    /// Waits until it shows them no longer.
    pub fn hides(&self, words: &str) -> Result<String> {
        self.until(&format!("no {words}"), |screen| !screen.contains(words))
    }

    /// A value that tmux knows about the terminal, by its own name: `#{alternate_on}`.
    pub fn about(&self, what: &str) -> Result<String> {
        Ok(self.tmux(&["display-message", "-p", what])?.trim().to_owned())
    }

    /// The process of the program.
    pub fn pid(&self) -> Result<u32> {
        until_blocking("the start of the program", PATIENCE, || number(&self.pid))
    }

    /// Whether a program has the whole screen, and what was there before is hidden.
    pub fn is_taken(&self) -> Result<bool> {
        Ok(self.about("#{alternate_on}")? == "1")
    }

    /// Waits until the program has ended, and gives back its exit code.
    pub fn ended(&self) -> Result<i32> {
        let ended = until_blocking("the end of the program", PATIENCE, || number(&self.code));
        ended.with_context(|| format!("the screen is\n{}", self.screen().unwrap_or_default()))
    }

    /// Closes the terminal, as somebody does who closes its window.
    pub fn close(&self) -> Result<()> {
        self.tmux(&["kill-server"]).map(drop)
    }

    /// Kills the terminal itself: nobody tells the program, but its end of the line is dead.
    pub fn kill(&self) -> Result<()> {
        let killed = self.scratch.command("kill").args(["-KILL", &self.about("#{pid}")?]).status();
        ensure!(killed.context("run kill")?.success(), "the terminal cannot be killed");
        Ok(())
    }
}

fn path(path: &Path) -> String {
    quote(&path.to_string_lossy())
}

/// The number in a file, once it is all there.
fn number<T: std::str::FromStr>(file: &Path) -> Option<T> {
    std::fs::read_to_string(file).ok()?.strip_suffix('\n')?.parse().ok()
}

impl Drop for Terminal<'_> {
    fn drop(&mut self) {
        self.close().ok(); // it may be closed already
    }
}
