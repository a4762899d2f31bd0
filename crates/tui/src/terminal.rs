//! The terminal itself: taken over, and given back as it was, however this process ends.

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

use crate::preferences::Preferences;

/// The wheel does not press the arrow keys, as it does in programs that know no mouse: those walk through what was typed.
const NO_ARROWS: &str = "\x1b[?1007l";
const ARROWS: &str = "\x1b[?1007h";

/// The terminal remembers the title it had, and takes it back.
const KEEP_TITLE: &str = "\x1b[22;2t";
const TAKE_TITLE_BACK: &str = "\x1b[23;2t";
/// It remembers one.
static HAS_TITLE: AtomicBool = AtomicBool::new(false);

/// The screen, for as long as it is ours.
pub(crate) struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
    preferences: Preferences,
    /// The title that the window has from here.
    title: String,
}

impl Screen {
    /// Takes the screen over.
    pub(crate) fn take(preferences: Preferences) -> io::Result<Self> {
        give_back_on_panic();
        enter(preferences)?;
        let terminal = Terminal::new(CrosstermBackend::new(io::stdout()));
        // What was taken is given back, also if it cannot be used.
        terminal.map(|terminal| Self { terminal, preferences, title: String::new() }).inspect_err(|_| leave())
    }

    pub(crate) fn size(&self) -> io::Result<Size> {
        self.terminal.size()
    }

    /// Another program may have the terminal for a while.
    pub(crate) fn let_others(&mut self) {
        leave();
    }

    /// The terminal is ours again, whatever was drawn on it meanwhile.
    pub(crate) fn again(&mut self) -> io::Result<()> {
        // What was asked of it is asked anew: nobody knows what became of it.
        leave();
        enter(self.preferences)?;
        self.title.clear();
        execute!(io::stdout(), Clear(ClearType::All))?;
        // A new one knows of nothing that is drawn. To clear the old one would ask the terminal where its cursor is, and
        // whoever waits for keys would get the answer.
        self.terminal = Terminal::new(CrosstermBackend::new(io::stdout()))?;
        Ok(())
    }

    /// Draws a frame, under that title.
    pub(crate) fn draw(&mut self, title: &str, view: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        // A panic of some other task ends that task, and not this screen.
        if PANICKED.swap(false, Ordering::Relaxed) {
            self.again()?;
        }
        if self.title != title {
            execute!(io::stdout(), SetTitle(title)).ok(); // a courtesy
            title.clone_into(&mut self.title);
        }
        self.terminal.draw(view).map(drop)
    }

    /// Stops this program, as Ctrl+Z does elsewhere, until the shell lets it go on.
    #[cfg(unix)]
    pub(crate) fn stop(&mut self) -> io::Result<()> {
        use rustix::process::{Signal, kill_current_process_group};
        self.let_others();
        let stopped = kill_current_process_group(Signal::TSTP);
        self.again()?;
        Ok(stopped?)
    }

    /// There is no shell here that could.
    #[cfg(not(unix))]
    pub(crate) fn stop(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Screen {
    /// Puts a text into the clipboard, where the terminal takes it.
    pub(crate) fn copy(&mut self, text: &str) {
        let encoded = base64::prelude::BASE64_STANDARD.encode(text);
        write!(io::stdout(), "\x1b]52;c;{encoded}\x07").and_then(|()| io::stdout().flush()).ok(); // a courtesy
    }

    /// Calls whoever looks elsewhere.
    pub(crate) fn notify(&mut self, words: &str) {
        let words: String = visible_line(words).chars().take(120).collect();
        let ring = if self.preferences.notify.rings() { "\x07" } else { "" };
        let show =
            if self.preferences.notify.shows() { format!("\x1b]9;multitap: {words}\x07") } else { String::new() };
        write!(io::stdout(), "{ring}{show}").and_then(|()| io::stdout().flush()).ok(); // a courtesy
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        leave();
    }
}

fn enter(preferences: Preferences) -> io::Result<()> {
    terminal::enable_raw_mode()?;
    let entered = execute!(io::stdout(), EnterAlternateScreen, EnableBracketedPaste, EnableFocusChange);
    if entered.is_err() {
        leave();
    }
    // Shift+Enter is told apart only by terminals that know this; others take no notice. They are not asked first: one
    // that does not answer would keep the first frame waiting for seconds.
    let mut out = io::stdout();
    if !HAS_TITLE.swap(true, Ordering::Relaxed) {
        execute!(out, Print(KEEP_TITLE)).ok();
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

/// Every step, whatever became of the one before.
fn leave() {
    let mut out = io::stdout();
    if HAS_TITLE.swap(false, Ordering::Relaxed) {
        execute!(out, Print(TAKE_TITLE_BACK)).ok();
    }
    execute!(out, PopKeyboardEnhancementFlags, DisableMouseCapture, Print(ARROWS)).ok();
    execute!(out, DisableFocusChange, DisableBracketedPaste, LeaveAlternateScreen, cursor::Show).ok();
    terminal::disable_raw_mode().ok();
    out.flush().ok();
}

/// Gives the terminal back from any thread, if a screen has it. Raw mode goes first: it needs nothing that another thread
/// may hold.
pub fn give_back() {
    if terminal::is_raw_mode_enabled().unwrap_or_default() {
        terminal::disable_raw_mode().ok();
        leave();
    }
}

/// The shell let this program go on after it was stopped.
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

/// Nothing stops programs here.
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

/// Lets go of the terminal for good: it may be gone, or go any time.
///
/// Whoever reads keys may still be at it, and would read the end of a terminal that is gone over and over. From now on
/// stdin is something that never says anything.
#[cfg(unix)]
pub fn let_go() -> io::Result<()> {
    use rustix::pipe::{PipeFlags, pipe_with};
    // Whoever is in the middle of reading finds nothing, and does not wait for it.
    let (reader, writer) = pipe_with(PipeFlags::NONBLOCK | PipeFlags::CLOEXEC)?;
    rustix::stdio::dup2_stdin(&reader)?;
    // Nobody writes, and nobody closes it while this process lives.
    std::mem::forget(writer);
    Ok(())
}

/// The same where a terminal that is gone says so.
#[cfg(not(unix))]
pub fn let_go() -> io::Result<()> {
    Ok(())
}

/// Something panicked, and the screen was given back to tell it.
static PANICKED: AtomicBool = AtomicBool::new(false);

/// A panic is told on the screen that people see.
fn give_back_on_panic() {
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
