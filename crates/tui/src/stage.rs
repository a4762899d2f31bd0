//! The screen without a terminal: what a frame costs is measured on it. Not for programs.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use multitap_event::{ClientRef, Door, Event};
use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;
use ratatui::{Terminal, TerminalOptions, Viewport};

use crate::app::{Model, update};
use crate::msg::Msg;
use crate::theme::Theme;
use crate::view::view;

/// A session on a screen whose bytes are counted and thrown away.
pub struct Stage {
    model: Model,
    terminal: Terminal<CrosstermBackend<Counted>>,
    bytes: Arc<AtomicU64>,
}

impl std::fmt::Debug for Stage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stage").finish_non_exhaustive()
    }
}

impl Stage {
    pub fn new(columns: u16, rows: u16) -> io::Result<Self> {
        let mut model = Model::new(ClientRef::new("terminal", Door::Terminal), "~/src".to_owned(), Theme::new(true));
        (model.columns, model.rows) = (columns, rows);
        let bytes: Arc<AtomicU64> = Arc::default();
        let viewport = Viewport::Fixed(Rect::new(0, 0, columns, rows));
        let terminal =
            Terminal::with_options(CrosstermBackend::new(Counted(bytes.clone())), TerminalOptions { viewport })?;
        Ok(Self { model, terminal, bytes })
    }

    /// Something happened in the session.
    pub fn tell(&mut self, event: Event) {
        update(&mut self.model, Msg::Told(Box::new(event)));
    }

    /// Another width.
    pub fn resize(&mut self, columns: u16) -> io::Result<()> {
        let rows = self.model.rows;
        update(&mut self.model, Msg::Resized { columns, rows });
        self.terminal.resize(Rect::new(0, 0, columns, rows))
    }

    /// A page up.
    pub fn page_up(&mut self) {
        update(&mut self.model, Msg::Key(KeyEvent::new(KeyCode::PageUp, KeyModifiers::NONE)));
    }

    /// To the first line there is.
    pub fn to_top(&mut self) {
        update(&mut self.model, Msg::Key(KeyEvent::new(KeyCode::Home, KeyModifiers::CONTROL)));
    }

    /// And back to the last.
    pub fn to_latest(&mut self) {
        update(&mut self.model, Msg::Key(KeyEvent::new(KeyCode::End, KeyModifiers::CONTROL)));
    }

    /// Looks for words.
    pub fn search(&mut self, words: &str) {
        update(&mut self.model, Msg::Key(KeyEvent::new(KeyCode::Char('f'), KeyModifiers::CONTROL)));
        for letter in words.chars() {
            update(&mut self.model, Msg::Key(KeyEvent::new(KeyCode::Char(letter), KeyModifiers::NONE)));
        }
        update(&mut self.model, Msg::Key(KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE)));
    }

    /// Draws a frame, and says how long that took.
    pub fn draw(&mut self) -> io::Result<Duration> {
        let began = Instant::now();
        let model = &self.model;
        self.terminal.draw(|frame| view(model, frame))?;
        Ok(began.elapsed())
    }

    /// How many bytes a terminal would have been sent.
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
