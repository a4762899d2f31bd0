//! How far a text is laid out, and in what: the same at any width, so that the end can be laid out without the beginning.
//! Pure.

use super::fence::Fence;
use crate::highlight::Code;

#[derive(Debug, Clone)]
pub(super) struct Place {
    /// The lines up to here are final.
    pub(super) done: usize,
    pub(super) within: Within,
    /// The first incomplete line, and up to where its end was searched.
    pub(super) scanned: usize,
    pub(super) searched: usize,
    /// Only the beginning of that line was read.
    pub(super) is_long: bool,
    pub(super) fence: Option<Fence>,
    pub(super) after_blank: bool,
    pub(super) in_html: bool,
}

#[derive(Debug, Clone)]
pub(super) enum Within {
    /// `apart`: an empty line comes before the next block.
    Page { apart: bool },
    /// `blanks`: empty lines that are shown once something follows them.
    Code { code: Code, indent: usize, blanks: usize },
}

impl Place {
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
