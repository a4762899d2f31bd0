//! The screen without a terminal, for `cargo xtask bench tui`. Not part of the API.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use multitap_event::{ClientRef, Door, Event};
use ratatui::backend::CrosstermBackend;
use ratatui::layout::{Position, Rect, Size};
use ratatui::{Terminal, TerminalOptions, Viewport};

use crate::app::{Model, update};
use crate::msg::Msg;
use crate::preferences::Colours;
use crate::theme::Theme;
use crate::view::{Layout, view};

/// A session on a screen that counts its bytes and drops them.
pub struct BenchScreen {
    model: Model,
    layout: Layout,
    terminal: Terminal<CrosstermBackend<Counted>>,
    bytes: Arc<AtomicU64>,
}

impl std::fmt::Debug for BenchScreen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BenchScreen").finish_non_exhaustive()
    }
}

impl BenchScreen {
    pub fn new(columns: u16, rows: u16) -> io::Result<Self> {
        let model =
            Model::new(ClientRef::new("terminal", Door::Terminal), "~/src".to_owned(), Theme::new(Colours::Sixteen));
        let layout = Layout::new(&model, Size::new(columns, rows));
        let bytes: Arc<AtomicU64> = Arc::default();
        let viewport = Viewport::Fixed(Rect::new(0, 0, columns, rows));
        let terminal =
            Terminal::with_options(CrosstermBackend::new(Counted(bytes.clone())), TerminalOptions { viewport })?;
        Ok(Self { model, layout, terminal, bytes })
    }

    pub fn apply(&mut self, event: Event) {
        self.on(Msg::Event(Box::new(event)));
    }

    pub fn resize(&mut self, columns: u16) -> io::Result<()> {
        let size = Size { width: columns, ..self.layout.size };
        self.on(Msg::Resized(size));
        self.layout = Layout::new(&self.model, size);
        self.terminal.resize(Rect::from((Position::ORIGIN, size)))
    }

    pub fn page_up(&mut self) {
        self.press(KeyCode::PageUp, KeyModifiers::NONE);
    }

    /// Scrolls a page down, in a question through its details.
    pub fn page_down(&mut self) {
        self.press(KeyCode::PageDown, KeyModifiers::NONE);
    }

    pub fn to_top(&mut self) {
        self.press(KeyCode::Home, KeyModifiers::CONTROL);
    }

    pub fn to_latest(&mut self) {
        self.press(KeyCode::End, KeyModifiers::CONTROL);
    }

    pub fn search(&mut self, words: &str) {
        self.press(KeyCode::Char('f'), KeyModifiers::CONTROL);
        words.chars().for_each(|letter| self.press(KeyCode::Char(letter), KeyModifiers::NONE));
        self.press(KeyCode::Esc, KeyModifiers::NONE);
    }

    fn press(&mut self, code: KeyCode, modifiers: KeyModifiers) {
        self.on(Msg::Key(KeyEvent::new(code, modifiers)));
    }

    fn on(&mut self, msg: Msg) {
        update(&mut self.model, &self.layout, msg);
    }

    /// Draws a frame. Returns how long that took.
    pub fn draw(&mut self) -> io::Result<Duration> {
        let began = Instant::now();
        self.layout = Layout::new(&self.model, self.layout.size);
        let (model, layout) = (&self.model, &self.layout);
        self.terminal.draw(|frame| view(model, layout, frame))?;
        Ok(began.elapsed())
    }

    /// How many bytes were written so far.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

struct Counted(Arc<AtomicU64>);

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
