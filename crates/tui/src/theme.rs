//! The colours of the screen, all from the palette of the terminal, so that light and dark themes work.

use multitap_event::ApprovalMode;
use ratatui::style::{Color, Modifier, Style};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Theme {
    /// Without colours, only bold, dim and italic are used.
    colours: bool,
}

impl Theme {
    pub(crate) fn new(colours: bool) -> Self {
        Self { colours }
    }

    fn colour(self, colour: Color) -> Style {
        if self.colours { Style::new().fg(colour) } else { Style::new() }
    }

    /// Dim, not grey: in some palettes that grey is the background.
    pub(crate) fn quiet(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    pub(crate) fn accent(self) -> Style {
        self.colour(Color::Cyan)
    }

    pub(crate) fn user(self) -> Style {
        self.colour(Color::Blue).add_modifier(Modifier::BOLD)
    }

    pub(crate) fn good(self) -> Style {
        self.colour(Color::Green)
    }

    pub(crate) fn bad(self) -> Style {
        self.colour(Color::Red)
    }

    pub(crate) fn warning(self) -> Style {
        self.colour(Color::Yellow)
    }

    pub(crate) fn code(self) -> Style {
        self.colour(Color::Magenta)
    }

    pub(crate) fn keyword(self) -> Style {
        if self.colours { Style::new().fg(Color::Magenta) } else { Style::new().add_modifier(Modifier::BOLD) }
    }

    pub(crate) fn found(self) -> Style {
        if self.colours {
            Style::new().fg(Color::Black).bg(Color::Yellow)
        } else {
            Style::new().add_modifier(Modifier::REVERSED)
        }
    }

    pub(crate) fn thought(self) -> Style {
        self.quiet().add_modifier(Modifier::ITALIC)
    }

    pub(crate) fn heading(self) -> Style {
        self.accent().add_modifier(Modifier::BOLD)
    }

    /// The colour of an approval mode, by its word: the less it asks, the more it warns.
    pub(crate) fn mode(self, word: &str) -> Style {
        match word.parse() {
            Ok(ApprovalMode::Plan) => self.accent(),
            Ok(ApprovalMode::AutoEdit) => self.code(),
            Ok(ApprovalMode::AskDangerous | ApprovalMode::DontAsk) => self.warning(),
            Ok(ApprovalMode::AutoAll) => self.bad(),
            Ok(ApprovalMode::Ask) | Err(()) => self.quiet(),
        }
    }

    pub(crate) fn chosen(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }
}
