//! The colours of the screen. All are from the palette of the terminal, so that light and dark themes work, except for the
//! bars behind changed lines: those bring a background, and every colour that is read on it.

use multitap_event::ApprovalMode;
use ratatui::style::{Color, Modifier, Style};

use crate::preferences::Colours;

/// The side of a diff that has a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DiffSide {
    Removed,
    Added,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Theme {
    colours: Colours,
}

impl Theme {
    pub(crate) fn new(colours: Colours) -> Self {
        Self { colours }
    }

    fn has_colours(self) -> bool {
        self.colours != Colours::None
    }

    fn colour(self, colour: Color) -> Style {
        if self.has_colours() { Style::new().fg(colour) } else { Style::new() }
    }

    /// Dim, not grey: in some palettes that grey is the background.
    pub(crate) fn quiet(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    pub(crate) fn accent(self) -> Style {
        self.colour(Color::Cyan)
    }

    /// Text that a program printed in that colour.
    pub(crate) fn of_program(self, colour: Option<Color>) -> Style {
        colour.map_or_else(Style::new, |colour| self.colour(colour))
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
        if self.has_colours() { Style::new().fg(Color::Magenta) } else { Style::new().add_modifier(Modifier::BOLD) }
    }

    pub(crate) fn found(self) -> Style {
        if self.has_colours() {
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

    /// Whether changed lines have a bar behind them.
    pub(crate) fn has_bars(self) -> bool {
        matches!(self.colours, Colours::Dark | Colours::Light)
    }

    /// An unchanged line of a diff. With bars, its own colours set it apart from changed ones.
    pub(crate) fn unchanged(self) -> Style {
        if self.has_bars() { Style::new() } else { self.quiet() }
    }

    pub(crate) fn changed(self, side: DiffSide) -> Style {
        let (front, back) = match (self.colours, side) {
            (Colours::None, _) => return Style::new(),
            (Colours::Sixteen, DiffSide::Added) => return self.good(),
            (Colours::Sixteen, DiffSide::Removed) => return self.bad(),
            (Colours::Dark, DiffSide::Added) => (254, 22),
            (Colours::Dark, DiffSide::Removed) => (254, 52),
            (Colours::Light, DiffSide::Added) => (235, 194),
            (Colours::Light, DiffSide::Removed) => (235, 224),
        };
        Style::new().fg(Color::Indexed(front)).bg(Color::Indexed(back))
    }

    /// A word that differs between two versions of a line.
    pub(crate) fn changed_word(self, side: DiffSide) -> Style {
        let back = match (self.colours, side) {
            (Colours::None, _) => return Style::new().add_modifier(Modifier::BOLD | Modifier::UNDERLINED),
            (Colours::Sixteen, _) => return Style::new().add_modifier(Modifier::REVERSED),
            (Colours::Dark, DiffSide::Added) => 28,
            (Colours::Dark, DiffSide::Removed) => 124,
            (Colours::Light, DiffSide::Added) => 157,
            (Colours::Light, DiffSide::Removed) => 217,
        };
        Style::new().bg(Color::Indexed(back)).add_modifier(Modifier::BOLD)
    }

    /// A style with a colour of the palette, to be read on a bar.
    pub(crate) fn on_bar(self, style: Style) -> Style {
        let is_light = self.colours == Colours::Light;
        let fixed = match style.fg {
            Some(Color::Cyan) => {
                if is_light {
                    23
                } else {
                    116
                }
            }
            Some(Color::Blue) => {
                if is_light {
                    18
                } else {
                    111
                }
            }
            Some(Color::Green) => {
                if is_light {
                    22
                } else {
                    150
                }
            }
            Some(Color::Red) => {
                if is_light {
                    88
                } else {
                    217
                }
            }
            Some(Color::Yellow) => {
                if is_light {
                    58
                } else {
                    222
                }
            }
            Some(Color::Magenta) => {
                if is_light {
                    90
                } else {
                    183
                }
            }
            _ => return style,
        };
        if self.has_bars() { style.fg(Color::Indexed(fixed)) } else { style }
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
