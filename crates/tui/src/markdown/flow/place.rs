//! How far a text is laid out, and what it is in the middle of there: the same at any width, so that its end can be laid
//! out anew without its beginning. Pure.

use super::fence::Fence;
use crate::highlight::Code;

#[derive(Debug, Clone)]
pub(super) struct Place {
    /// The text up to here is settled.
    pub(super) done: usize,
    /// What the text is in the middle of there.
    pub(super) within: Within,
    /// The first line that was not looked at whole, and how far there is no end of it.
    pub(super) scanned: usize,
    pub(super) searched: usize,
    /// Of that line only the beginning was looked at.
    pub(super) is_long: bool,
    pub(super) fence: Option<Fence>,
    pub(super) after_blank: bool,
    pub(super) in_html: bool,
}

#[derive(Debug, Clone)]
pub(super) enum Within {
    /// Whether the next block stands apart from what is before it.
    Page { apart: bool },
    /// Code; and the empty lines of it that are shown if something follows them.
    Code { code: Code, indent: usize, blanks: usize },
}

impl Place {
    /// The beginning of a text.
    pub(super) fn first() -> Self {
        Self {
            done: 0,
            within: Within::Page { apart: false },
            scanned: 0,
            searched: 0,
            is_long: false,
            fence: None,
            after_blank: false,
            in_html: false,
        }
    }
}
