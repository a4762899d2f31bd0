//! The terminal itself: taken over, and restored however this process ends.

use std::io::{self, Stdout, Write as _};
use std::panic;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use base64::Engine as _;
use crossterm::event::{
    DisableBracketedPaste, DisableFocusChange, DisableMouseCapture, EnableBracketedPaste, EnableFocusChange,
    EnableMouseCapture, KeyboardEnhancementFlags, PopKeyboardEnhancementFlags, PushKeyboardEnhancementFlags,
};
use crossterm::style::Print;
use crossterm::terminal::{self, Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, SetTitle};
use crossterm::{cursor, execute};
use multitap_event::visible_line;
use ratatui::backend::CrosstermBackend;
use ratatui::layout::Size;
use ratatui::{Frame, Terminal};

use crate::preferences::TerminalPreferences;

/// The wheel must not press the arrow keys: they walk through the history.
const NO_ARROWS: &str = "\x1b[?1007l";
const ARROWS: &str = "\x1b[?1007h";

/// Saves the title of the window, and restores it.
const SAVE_TITLE: &str = "\x1b[22;2t";
const RESTORE_TITLE: &str = "\x1b[23;2t";
static HAS_TITLE: AtomicBool = AtomicBool::new(false);

/// The alternate screen. Dropping it restores the terminal.
pub(crate) struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
    preferences: TerminalPreferences,
    title: String,
}

impl Screen {
    pub(crate) fn take(preferences: TerminalPreferences) -> io::Result<Self> {
        restore_on_panic();
        enter(preferences)?;
        let terminal = Terminal::new(CrosstermBackend::new(io::stdout()));
        terminal.map(|terminal| Self { terminal, preferences, title: String::new() }).inspect_err(|_| leave())
    }

    pub(crate) fn size(&self) -> io::Result<Size> {
        self.terminal.size()
    }

    /// Leaves the terminal to another program for a while.
    pub(crate) fn suspend(&mut self) {
        leave();
    }

    /// Takes the terminal back, whatever was drawn on it meanwhile.
    pub(crate) fn resume(&mut self) -> io::Result<()> {
        // Its modes are unknown: reset and set them again.
        leave();
        enter(self.preferences)?;
        self.title.clear();
        execute!(io::stdout(), Clear(ClearType::All))?;
        // A new `Terminal` draws everything. Clearing the old one would ask the terminal for the position of its cursor,
        // and the reader of keys would get the reply.
        self.terminal = Terminal::new(CrosstermBackend::new(io::stdout()))?;
        Ok(())
    }

    /// Draws a frame, and sets the title of the window.
    pub(crate) fn draw(&mut self, title: &str, view: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        // The panic of another task left the alternate screen.
        if PANICKED.swap(false, Ordering::Relaxed) {
            self.resume()?;
        }
        if self.title != title {
            execute!(io::stdout(), SetTitle(title)).ok(); // optional
            title.clone_into(&mut self.title);
        }
        self.terminal.draw(view).map(drop)
    }

    /// Stops this program until the shell continues it, as Ctrl+Z does elsewhere.
    #[cfg(unix)]
    pub(crate) fn stop(&mut self) -> io::Result<()> {
        use rustix::process::{Signal, kill_current_process_group};
        self.suspend();
        let stopped = kill_current_process_group(Signal::TSTP);
        self.resume()?;
        Ok(stopped?)
    }

    /// Elsewhere there is no job control.
    #[cfg(not(unix))]
    pub(crate) fn stop(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Asks the terminal to put a text into the clipboard.
    pub(crate) fn copy(&mut self, text: &str) {
        let encoded = base64::prelude::BASE64_STANDARD.encode(text);
        write!(io::stdout(), "\x1b]52;c;{encoded}\x07").and_then(|()| io::stdout().flush()).ok(); // optional
    }

    pub(crate) fn notify(&mut self, words: &str) {
        let words: String = visible_line(words).chars().take(120).collect();
        let ring = if self.preferences.notify.rings() { "\x07" } else { "" };
        let show =
            if self.preferences.notify.shows() { format!("\x1b]9;multitap: {words}\x07") } else { String::new() };
        write!(io::stdout(), "{ring}{show}").and_then(|()| io::stdout().flush()).ok(); // optional
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        leave();
    }
}

fn enter(preferences: TerminalPreferences) -> io::Result<()> {
    terminal::enable_raw_mode()?;
    let entered = execute!(io::stdout(), EnterAlternateScreen, EnableBracketedPaste, EnableFocusChange);
    if entered.is_err() {
        leave();
    }
    // With this, terminals that support it report Shift+Enter; others ignore it. Querying first would delay the first frame
    // by seconds on a terminal that does not reply.
    let mut out = io::stdout();
    if !HAS_TITLE.swap(true, Ordering::Relaxed) {
        execute!(out, Print(SAVE_TITLE)).ok();
    }
    let flags = KeyboardEnhancementFlags::DISAMBIGUATE_ESCAPE_CODES;
    execute!(out, PushKeyboardEnhancementFlags(flags)).ok();
    if preferences.mouse {
        execute!(out, EnableMouseCapture).ok();
    } else {
        execute!(out, Print(NO_ARROWS)).ok();
    }
    entered
}

/// Restores the terminal. No step depends on the success of another.
fn leave() {
    let mut out = io::stdout();
    if HAS_TITLE.swap(false, Ordering::Relaxed) {
        execute!(out, Print(RESTORE_TITLE)).ok();
    }
    execute!(out, PopKeyboardEnhancementFlags, DisableMouseCapture, Print(ARROWS)).ok();
    execute!(out, DisableFocusChange, DisableBracketedPaste, LeaveAlternateScreen, cursor::Show).ok();
    terminal::disable_raw_mode().ok();
    out.flush().ok();
}

/// Restores the terminal from any thread, if a screen has it. Raw mode goes first: that takes no lock which another thread
/// may hold.
pub fn restore_terminal() {
    if terminal::is_raw_mode_enabled().unwrap_or_default() {
        terminal::disable_raw_mode().ok();
        leave();
    }
}

#[cfg(unix)]
pub(crate) struct Continued(tokio::signal::unix::Signal);

#[cfg(unix)]
impl Continued {
    pub(crate) fn new() -> io::Result<Self> {
        let continued = tokio::signal::unix::SignalKind::from_raw(rustix::process::Signal::CONT.as_raw());
        tokio::signal::unix::signal(continued).map(Self)
    }

    /// Cancel safe.
    pub(crate) async fn next(&mut self) {
        self.0.recv().await;
    }
}

/// Elsewhere no signal continues a program.
#[cfg(not(unix))]
pub(crate) struct Continued;

#[cfg(not(unix))]
impl Continued {
    #[expect(clippy::unnecessary_wraps, reason = "the same call as on Unix, where it can fail")]
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self)
    }

    pub(crate) async fn next(&mut self) {
        std::future::pending().await
    }
}

/// Replaces stdin with a pipe that is always empty, because the terminal may be gone.
///
/// A reader of keys that still runs would otherwise read the end of the file over and over.
#[cfg(unix)]
pub fn detach_stdin() -> io::Result<()> {
    use rustix::pipe::{PipeFlags, pipe_with};
    // A read that has begun must not block.
    let (reader, writer) = pipe_with(PipeFlags::NONBLOCK | PipeFlags::CLOEXEC)?;
    rustix::stdio::dup2_stdin(&reader)?;
    // The pipe stays open, and nobody writes to it.
    std::mem::forget(writer);
    Ok(())
}

/// Elsewhere a terminal that is gone is reported as an error.
#[cfg(not(unix))]
pub fn detach_stdin() -> io::Result<()> {
    Ok(())
}

/// A panic restored the terminal, to print its message.
static PANICKED: AtomicBool = AtomicBool::new(false);

/// Prints the message of a panic on the normal screen.
fn restore_on_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            leave();
            before(info);
            PANICKED.store(true, Ordering::Relaxed);
        }));
    });
}
