//! Screens as text: scripts of events and keys go in, what would be seen comes out.

mod any;
mod events;
mod growth;
mod hidden;
mod keys;
mod questions;
mod queue;
mod screens;
mod states;
mod styles;
mod words;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use multitap_event::{ClientRef, Door, Draft, Event, EventKind, Timestamp};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::layout::Size;
use serde_json::Value;

use crate::app::{Model, update};
use crate::effect::Effect;
use crate::msg::Msg;
use crate::preferences::Colours;
use crate::theme::Theme;
use crate::view::{Layout, view};

/// A screen that is played on.
struct Play {
    model: Model,
    layout: Layout,
    seq: u64,
}

impl Play {
    fn new(columns: u16, rows: u16) -> Self {
        let me = ClientRef { client_id: Some("me".into()), ..ClientRef::new("terminal", Door::Terminal) };
        let mut model = Model::new(me, "~/src/app".to_owned(), Theme::new(Colours::Sixteen));
        model.session.branch = Some("main".to_owned());
        let layout = Layout::new(&model, Size::new(columns, rows));
        Self { model, layout, seq: 0 }
    }

    fn event(&mut self, kind: EventKind) -> Event {
        self.seq += 1;
        Draft::new(Timestamp::from_millis(0), kind).stamp("session".into(), self.seq)
    }

    /// An event as it stands in a log, without what is the same for all.
    #[track_caller]
    fn tell(&mut self, event: &Value) -> Vec<Effect> {
        let effects = self.tell_now(event);
        // What is on the screen is read.
        self.on(Msg::QuestionSeen);
        effects
    }

    /// The same just now: nobody can have read it.
    #[track_caller]
    fn tell_now(&mut self, event: &Value) -> Vec<Effect> {
        let kind = serde_json::from_value(event.clone()).unwrap_or_else(|error| panic!("{event}: {error}"));
        let event = self.event(kind);
        self.on(Msg::Event(Box::new(event)))
    }

    /// Another number of rows.
    fn set_rows(&mut self, rows: u16) {
        self.on(Msg::Resized(Size { height: rows, ..self.layout.size }));
    }

    fn on(&mut self, msg: Msg) -> Vec<Effect> {
        let size = if let Msg::Resized(size) = msg { size } else { self.layout.size };
        let effects = update(&mut self.model, &self.layout, msg);
        self.layout = Layout::new(&self.model, size);
        effects
    }

    fn press(&mut self, code: KeyCode) -> Vec<Effect> {
        self.on(Msg::Key(KeyEvent::new(code, KeyModifiers::NONE)))
    }

    fn control(&mut self, letter: char) -> Vec<Effect> {
        self.on(Msg::Key(KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL)))
    }

    fn write(&mut self, text: &str) {
        for letter in text.chars() {
            self.press(KeyCode::Char(letter));
        }
    }

    fn buffer(&self) -> Buffer {
        let mut terminal = Terminal::new(TestBackend::new(self.layout.size.width, self.layout.size.height)).unwrap();
        terminal.draw(|frame| view(&self.model, &Layout::new(&self.model, self.layout.size), frame)).unwrap();
        terminal.backend().buffer().clone()
    }

    /// What is seen, without the blanks at the end of lines.
    fn screen(&self) -> String {
        let buffer = self.buffer();
        let area = buffer.area;
        let mut rows = Vec::new();
        for y in 0..area.height {
            let (mut row, mut skip) = (String::new(), 0);
            for x in 0..area.width {
                // A wide character covers the cell after it.
                if skip == 0 {
                    row.push_str(buffer[(x, y)].symbol());
                    skip = crate::wrap::width(buffer[(x, y)].symbol()).saturating_sub(1);
                } else {
                    skip -= 1;
                }
            }
            rows.push(row.trim_end().to_owned());
        }
        rows.join("\n")
    }
}
