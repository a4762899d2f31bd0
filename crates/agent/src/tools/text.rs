//! Reads some lines of a file for a model, in bounded memory however large the file is.
//!
//! Line ends are shown as `\n` where all of them are `\r\n`; invalid UTF-8 is marked; binary data is recognised.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use memchr::memchr;
use multitap_event::Image;
use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;

use crate::seen::Stamp;

/// Most characters of one line; the rest is cut.
const LONGEST_LINE: usize = 2000;
/// Most bytes of one line in memory.
const HELD: usize = LONGEST_LINE * 4;
/// Bytes at the beginning that decide the kind of file.
const FIRST: usize = 8 * 1024;
/// In larger files the lines after the requested ones are not counted.
const MOST_COUNTED: u64 = 64 * 1024 * 1024;
/// Largest picture that models accept.
const LARGEST_PICTURE: u64 = 5 * 1024 * 1024;

/// The range of requested lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LineRange {
    pub(super) skip: u64,
    pub(super) lines: u64,
    pub(super) bytes: usize,
}

#[derive(Debug, PartialEq)]
pub(super) enum Content {
    Text(Page),
    Picture(Image),
    /// A picture of that many bytes.
    LargePicture(u64),
    Binary,
}

/// Lines of a text, and notes about them for the model.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) text: String,
    /// Lines skipped before these.
    pub(super) skipped: u64,
    pub(super) lines: u64,
    /// Lines in the whole file; absent where they were not counted.
    pub(super) total: Option<u64>,
    /// Every line shown ends in `\r\n`.
    crlf: bool,
    cut: usize,
    broken: usize,
}

impl Page {
    pub(super) fn goes_on(&self) -> bool {
        self.total.is_none_or(|total| self.skipped + self.lines < total)
    }

    /// Notes for the reader, one per line.
    pub(super) fn notes(&self) -> String {
        let mut notes = String::new();
        let (from, to) = (self.skipped + 1, self.skipped + self.lines);
        if self.goes_on() || self.skipped > 0 {
            let of = self.total.map(|total| format!(" of {total}")).unwrap_or_default();
            let on = if self.goes_on() { format!(" To read on, use offset {to}.") } else { String::new() };
            notes.push_str(&format!("[Lines {from} to {to}{of}.{on}]\n"));
        }
        if self.crlf {
            notes.push_str("[Lines end in CRLF here; replace and write_file keep that.]\n");
        }
        if self.cut > 0 {
            let lines = if self.cut == 1 { "1 line is".to_owned() } else { format!("{} lines are", self.cut) };
            notes.push_str(&format!("[{lines} longer than {LONGEST_LINE} characters and cut.]\n"));
        }
        if self.broken > 0 {
            notes.push_str("[It is not all UTF-8: what is not is shown as \u{fffd}.]\n");
        }
        notes
    }
}

/// Reads the requested part of an open file, and its stamp.
pub(super) fn read(file: File, wanted: LineRange, stop: &CancellationToken) -> io::Result<(Content, Stamp)> {
    let metadata = file.metadata()?;
    let mut reader = BufReader::with_capacity(64 * 1024, file);
    let first = &first_bytes(&mut reader)?[..];
    if let Ok(media_type) = Image::media_type_of(first) {
        let stamp = Stamp::unread(&metadata);
        if metadata.len() > LARGEST_PICTURE {
            return Ok((Content::LargePicture(metadata.len()), stamp));
        }
        let mut bytes = first.to_vec();
        reader.take(LARGEST_PICTURE).read_to_end(&mut bytes)?;
        let image = Image { media_type: media_type.to_owned(), data: STANDARD.encode(bytes) };
        return Ok((Content::Picture(image), stamp));
    }
    if memchr(0, first).is_some() {
        return Ok((Content::Binary, Stamp::unread(&metadata)));
    }
    let small = metadata.len() <= MOST_COUNTED;
    let mut lines = Lines { reader: first.chain(reader), hash: small.then(Sha256::new), stop };
    let Some(page) = lines.page(wanted, small)? else {
        return Ok((Content::Binary, Stamp::unread(&metadata)));
    };
    let stamp = match lines.hash.take() {
        Some(hash) => Stamp::hashed(&metadata, hash),
        None => Stamp::unread(&metadata),
    };
    Ok((Content::Text(page), stamp))
}

/// The first bytes of a file, even if reads return them in pieces.
fn first_bytes(reader: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut first = Vec::with_capacity(FIRST);
    reader.take(FIRST as u64).read_to_end(&mut first)?;
    Ok(first)
}

/// The lines of a file, read from its beginning.
struct Lines<'a, R> {
    reader: R,
    /// Hash of everything that was read.
    hash: Option<Sha256>,
    stop: &'a CancellationToken,
}

/// A line: its length, and how many bytes of it are not in memory.
struct Line {
    dropped: usize,
    binary: bool,
}

impl<R: BufRead> Lines<'_, R> {
    /// The requested page; reads to the end of the file if the lines must be counted. `None` for binary data.
    fn page(&mut self, wanted: LineRange, count: bool) -> io::Result<Option<Page>> {
        let mut page = Page { skipped: wanted.skip, crlf: true, ..Page::default() };
        let mut seen = 0;
        let mut full = false;
        let mut held = Vec::new();
        while let Some(line) = self.next(&mut held)? {
            seen += 1;
            if line.binary {
                // The rest is not text; the requested lines may have come before it.
                self.hash = None;
                return Ok(full.then(|| page.finish(None)));
            }
            if seen <= wanted.skip || full {
                continue;
            }
            full = page.lines == wanted.lines || (page.lines > 0 && page.text.len() + held.len() > wanted.bytes);
            if full && !count {
                return Ok(Some(page.finish(None)));
            }
            if !full {
                page.push(&held, line.dropped, seen == 1);
            }
        }
        Ok(Some(page.finish(Some(seen))))
    }

    /// Reads the next line into `held`, with its end.
    fn next(&mut self, held: &mut Vec<u8>) -> io::Result<Option<Line>> {
        held.clear();
        let mut line = Line { dropped: 0, binary: false };
        let mut any = false;
        loop {
            if self.stop.is_cancelled() {
                return Err(io::Error::other("stopped"));
            }
            let chunk = self.reader.fill_buf()?;
            if chunk.is_empty() {
                return Ok(any.then_some(line));
            }
            any = true;
            let end = memchr(b'\n', chunk);
            let taken = &chunk[..end.map_or(chunk.len(), |end| end + 1)];
            let keep = taken.len().min(HELD.saturating_sub(held.len()));
            held.extend_from_slice(&taken[..keep]);
            line.dropped += taken.len() - keep;
            line.binary |= memchr(0, taken).is_some();
            if let Some(hash) = &mut self.hash {
                hash.update(taken);
            }
            let count = taken.len();
            self.reader.consume(count);
            if end.is_some() || line.binary {
                return Ok(Some(line));
            }
        }
    }
}

impl Page {
    fn push(&mut self, line: &[u8], dropped: usize, first: bool) {
        self.lines += 1;
        let text = String::from_utf8_lossy(line);
        self.broken += usize::from(dropped == 0 && std::str::from_utf8(line).is_err());
        let text = if first { text.trim_start_matches('\u{feff}') } else { &text };
        self.crlf &= text.ends_with("\r\n") || (!text.ends_with('\n') && self.lines > 1) || dropped > 0;
        match text.char_indices().nth(LONGEST_LINE) {
            Some((at, _)) if text[at..].trim_end_matches(['\r', '\n']).is_empty() && dropped == 0 => {
                self.text.push_str(text);
            }
            Some((at, _)) => {
                self.cut += 1;
                let more = text.len() - at + dropped;
                self.text.push_str(&text[..at]);
                self.text.push_str(&format!("… [{more} more bytes in this line]\n"));
            }
            None => self.text.push_str(text),
        }
    }

    fn finish(mut self, total: Option<u64>) -> Self {
        self.total = total;
        self.crlf &= self.lines > 0 && self.text.contains("\r\n");
        if self.crlf {
            self.text = self.text.replace("\r\n", "\n");
        }
        self
    }
}
