//! The files that the lines of tool calls name, as links. Pure.

use std::fmt::Write as _;
use std::ops::Range;

use super::draw::indent;
use super::label::ToolLabel;
use super::rendered::Rendered;
use super::scroll::{Scroll, Shape};
use super::{Cell, Transcript};
use crate::clean::clean_line;
use crate::wrap::width;

/// A place on the screen, and the file that it names.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PathLink {
    pub(crate) row: usize,
    pub(crate) columns: Range<usize>,
    pub(crate) url: String,
}

impl Transcript {
    /// The links of the lines that are on the screen. Their cells are laid out already.
    pub(crate) fn links(&self, scroll: Scroll, shape: Shape) -> Vec<PathLink> {
        let mut parts: Vec<(i64, usize, usize)> = Vec::new();
        let mut room = shape.rows;
        match scroll {
            Scroll::At { .. } => {
                let (mut at, mut skip) = self.settle(scroll, shape);
                while at < self.end() && room > 0 {
                    let count = self.lines(at, shape).len().saturating_sub(skip).min(room);
                    parts.push((at, skip, count));
                    (at, skip, room) = (at + 1, 0, room - count);
                }
            }
            Scroll::Latest => {
                let mut at = self.end();
                while at > self.base && room > 0 {
                    at -= 1;
                    let lines = self.take(at, shape, |made: &mut Rendered, cell| made.end(cell, room)).len();
                    let count = lines.min(room);
                    parts.push((at, lines - count, count));
                    room -= count;
                }
                parts.reverse();
            }
        }
        let mut links = Vec::new();
        let mut row = 0;
        for (at, skip, count) in parts {
            let link = self.held(at).and_then(|held| held.cell.link(shape.columns));
            // An empty line comes before the line of a call.
            let visible = link.filter(|_| (skip..skip + count).contains(&1));
            links.extend(visible.map(|(columns, url)| PathLink { row: row + 1 - skip, columns, url }));
            row += count;
        }
        links
    }
}

impl Cell {
    /// The columns of the name of a file in the line of a call, and its address.
    fn link(&self, columns: usize) -> Option<(Range<usize>, String)> {
        let Self::Tool(tool) = self else { return None };
        let ToolLabel { verb, target, file } = tool.label();
        let file = file?;
        let path = if file.starts_with('/') { file } else { format!("{}/{file}", tool.folder.as_deref()?) };
        // The sign takes two columns.
        let start = indent(tool.call.parent_tool_id.is_some()) + 2 + width(&clean_line(&verb)) + 1;
        let end = start + width(&target);
        (end <= columns && path.starts_with('/')).then(|| (start..end, address(&path)))
    }
}

/// The address of a file. Nothing of its name can end the sequence that the address stands in.
fn address(path: &str) -> String {
    let mut url = "file://".to_owned();
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b'~' => url.push(char::from(byte)),
            byte => write!(url, "%{byte:02X}").unwrap_or_default(),
        }
    }
    url
}
