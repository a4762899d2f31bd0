//! Markdown to lines, as far as a screen of characters can show it. Pure.

mod flow;
mod hidden;
mod table;

use multitap_event::visible;
use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

pub(crate) use self::flow::{Flow, TextStyle};
use self::table::Table;
use crate::clean::clean;
use crate::highlight;
use crate::theme::Theme;
use crate::wrap::{width, wrap};

/// The lines of a text on a screen of that width.
pub(crate) fn lines(text: &str, columns: usize, theme: Theme) -> Vec<Line<'static>> {
    Page::new(columns, theme).read(text).0
}

/// The last block of code in a text, as it is written.
pub(crate) fn last_code(text: &str) -> Option<String> {
    let (mut last, mut code) = (None, None);
    for event in Parser::new(text) {
        match event {
            Event::Start(Tag::CodeBlock(_)) => code = Some(String::new()),
            Event::Text(text) => code.iter_mut().for_each(|code| code.push_str(&text)),
            Event::End(TagEnd::CodeBlock) => last = code.take().or(last),
            _ => {}
        }
    }
    last
}

/// How deep nested quotes and lists are indented. Deeper ones fit on no screen, and each of their lines would cost as much
/// as the depth.
const MAX_DEPTH: usize = 32;

struct Page {
    theme: Theme,
    columns: usize,
    lines: Vec<Line<'static>>,
    spans: Vec<Span<'static>>,
    styles: Vec<Style>,
    /// Prefix of each line: quote marks and the indentation of lists.
    margins: Vec<Margin>,
    /// Open quotes and lists that are not indented.
    too_deep: usize,
    /// The next numbers of the open lists; `None` for bullets.
    lists: Vec<Option<u64>>,
    /// The open block of code, and its language.
    code: Option<(String, String)>,
    table: Option<Table>,
    /// The targets of the open links, with their titles.
    links: Vec<String>,
    /// The next block begins after an empty line.
    apart: bool,
    /// The text begins with this page.
    is_first: bool,
    /// The text up to here is shown.
    shown: usize,
}

/// Prefix of the lines of a quote or an item: of the first line, and of the others.
struct Margin {
    first: Option<String>,
    rest: String,
}

impl Page {
    fn new(columns: usize, theme: Theme) -> Self {
        Self {
            theme,
            columns,
            lines: Vec::new(),
            spans: Vec::new(),
            styles: vec![Style::new()],
            margins: Vec::new(),
            too_deep: 0,
            lists: Vec::new(),
            code: None,
            table: None,
            links: Vec::new(),
            apart: false,
            is_first: true,
            shown: 0,
        }
    }

    /// The lines of a text, and whether an empty line must follow them.
    fn read(mut self, text: &str) -> (Vec<Line<'static>>, bool) {
        let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
        let text = visible(text);
        for (event, range) in Parser::new_ext(&text, options).into_offset_iter() {
            self.show_left_out(&text, &event, &range);
            self.take(event);
        }
        self.end();
        self.define(&text[self.shown.min(text.len())..]);
        self.end_line();
        (self.lines, self.apart)
    }

    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.finish(tag),
            Event::Text(text) => self.text(&text),
            Event::Code(code) => {
                let style = self.theme.code();
                self.say(&code, style);
            }
            Event::SoftBreak | Event::HardBreak => self.break_line(),
            Event::Rule => {
                self.block();
                let rule = "─".repeat(self.columns.saturating_sub(self.indent()).min(40));
                self.spans.push(Span::styled(rule, self.theme.quiet()));
                self.break_line();
            }
            Event::TaskListMarker(done) => self.say(if done { "[x] " } else { "[ ] " }, Style::new()),
            Event::Html(text) | Event::InlineHtml(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.text(&text);
            }
            Event::FootnoteReference(name) => self.text(&format!("[{name}]")),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph => self.block(),
            Tag::Heading { level, .. } => {
                self.block();
                let style = match level {
                    HeadingLevel::H1 => self.theme.heading().add_modifier(Modifier::UNDERLINED),
                    _ => self.theme.heading(),
                };
                self.styles.push(style);
            }
            Tag::BlockQuote(_) => {
                self.block();
                self.indent_by(Margin { first: None, rest: "│ ".to_owned() });
            }
            Tag::CodeBlock(kind) => {
                self.block();
                let info = match kind {
                    CodeBlockKind::Fenced(info) => info.to_string(),
                    CodeBlockKind::Indented => String::new(),
                };
                if let Some(words) = hidden::beside_language(&info) {
                    let line = Line::from(Span::styled(clean(words), self.theme.quiet()));
                    self.put_further_in(line);
                }
                self.code = Some((String::new(), hidden::language(&info).to_owned()));
            }
            Tag::List(first) => {
                self.end_line();
                if self.lists.is_empty() {
                    self.block();
                }
                self.lists.push(first);
            }
            Tag::Item => {
                self.end_line();
                let bullet = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        *number += 1;
                        format!("{}. ", *number - 1)
                    }
                    _ => "• ".to_owned(),
                };
                let rest = " ".repeat(width(&bullet));
                self.indent_by(Margin { first: Some(bullet), rest });
                self.apart = false;
            }
            Tag::Table(alignments) => {
                self.block();
                self.table = Some(Table { alignments, ..Table::default() });
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.rows.push(Vec::new());
                }
            }
            Tag::TableCell => {
                if let Some(table) = &mut self.table {
                    table.cell = Some(String::new());
                }
            }
            Tag::Emphasis => self.push_style(Modifier::ITALIC),
            Tag::Strong => self.push_style(Modifier::BOLD),
            Tag::Strikethrough => self.push_style(Modifier::CROSSED_OUT),
            Tag::Link { dest_url, title, .. } | Tag::Image { dest_url, title, .. } => {
                self.links.push(if title.is_empty() {
                    dest_url.to_string()
                } else {
                    format!("{dest_url} \"{title}\"")
                });
                self.push_style(Modifier::UNDERLINED);
            }
            // HTML; the rest is not enabled.
            _ => self.block(),
        }
    }

    fn finish(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.end_block(),
            TagEnd::Heading(_) => {
                self.styles.pop();
                self.end_block();
            }
            TagEnd::BlockQuote(_) => {
                self.end_line();
                self.outdent();
                self.apart = true;
            }
            TagEnd::CodeBlock => self.end_code(),
            TagEnd::List(_) => {
                self.end_line();
                self.lists.pop();
                self.apart = self.lists.is_empty();
            }
            TagEnd::Item => {
                self.end_line();
                self.outdent();
                self.apart = false;
            }
            TagEnd::Table => self.end_table(),
            TagEnd::TableCell => {
                if let Some(table) = &mut self.table
                    && let (Some(cell), Some(row)) = (table.cell.take(), table.rows.last_mut())
                {
                    row.push(cell);
                }
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => {
                self.styles.pop();
            }
            TagEnd::Link | TagEnd::Image => {
                self.styles.pop();
                if let Some(url) = self.links.pop().filter(|url| !self.ends_with(url)) {
                    let style = self.theme.quiet();
                    self.say(&format!(" ({url})"), style);
                }
            }
            _ => {}
        }
    }

    fn text(&mut self, text: &str) {
        if let Some((code, _)) = &mut self.code {
            return code.push_str(text);
        }
        let style = self.styles.last().copied().unwrap_or_default();
        self.say(text, style);
    }

    fn say(&mut self, text: &str, style: Style) {
        let text = clean(text);
        if let Some(cell) = self.table.as_mut().and_then(|table| table.cell.as_mut()) {
            return cell.push_str(&text);
        }
        for (number, line) in text.split('\n').enumerate() {
            if number > 0 {
                self.break_line();
            }
            if !line.is_empty() {
                self.spans.push(Span::styled(line.to_owned(), style));
            }
        }
    }

    fn push_style(&mut self, modifier: Modifier) {
        let style = self.styles.last().copied().unwrap_or_default();
        self.styles.push(style.add_modifier(modifier));
    }

    fn ends_with(&self, url: &str) -> bool {
        self.spans.last().is_some_and(|span| span.content == url)
    }

    fn block(&mut self) {
        self.end_line();
        if std::mem::take(&mut self.apart) && !(self.is_first && self.lines.is_empty()) {
            self.lines.push(Line::default());
        }
    }

    fn end_block(&mut self) {
        self.end_line();
        self.apart = true;
    }

    fn indent_by(&mut self, margin: Margin) {
        let leaves_room = self.indent() + width(&margin.rest) <= self.columns.div_ceil(2);
        if self.margins.len() < MAX_DEPTH && leaves_room {
            self.margins.push(margin);
        } else {
            self.too_deep += 1;
        }
    }

    fn outdent(&mut self) {
        match self.too_deep.checked_sub(1) {
            Some(left) => self.too_deep = left,
            None => {
                self.margins.pop();
            }
        }
    }

    fn indent(&self) -> usize {
        self.margins.iter().map(|margin| width(&margin.rest)).sum()
    }

    fn end_line(&mut self) {
        let waits = self.margins.last().is_some_and(|margin| margin.first.is_some());
        if !self.spans.is_empty() || waits {
            self.break_line();
        }
    }

    fn break_line(&mut self) {
        let line = Line::from(std::mem::take(&mut self.spans));
        let columns = self.columns.saturating_sub(self.indent());
        for line in wrap(line, columns, 0) {
            self.put(line);
        }
    }

    /// Adds a line that fits, with its margins.
    fn put(&mut self, line: Line<'static>) {
        let quiet = self.theme.quiet();
        let margins = self.margins.iter_mut();
        let before =
            margins.map(|margin| Span::styled(margin.first.take().unwrap_or_else(|| margin.rest.clone()), quiet));
        let mut spans: Vec<Span<'static>> = before.collect();
        spans.extend(line.spans);
        self.lines.push(Line::from(spans));
    }

    fn end_code(&mut self) {
        let Some((code, language)) = self.code.take() else { return };
        for line in highlight::lines(clean(&code).trim_end_matches('\n'), &language, self.theme) {
            self.put_further_in(line);
        }
        self.apart = true;
    }

    /// Adds a line of code, or about it.
    fn put_further_in(&mut self, line: Line<'static>) {
        let columns = self.columns.saturating_sub(self.indent() + 2);
        for piece in wrap(line, columns, 2) {
            let mut spans = vec![Span::raw("  ")];
            spans.extend(piece.spans);
            self.put(Line::from(spans));
        }
    }

    fn end_table(&mut self) {
        let Some(table) = self.table.take() else { return };
        let columns = self.columns.saturating_sub(self.indent());
        for line in table.lines(columns, self.theme) {
            self.put(line);
        }
        self.apart = true;
    }

    fn end(&mut self) {
        // A text that is still being written may end anywhere.
        self.end_code();
        self.end_table();
        self.end_line();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preferences::Colours;

    pub(super) fn shown(text: &str, columns: usize) -> String {
        let lines = lines(text, columns, Theme::new(Colours::None));
        lines.iter().map(|line| line.to_string().trim_end().to_owned()).collect::<Vec<_>>().join("\n")
    }

    /// The size of the result is linear in the text, however deep it is nested. Counts spans, not time.
    #[test]
    fn deep_nesting_grows_no_faster_than_its_text() {
        let texts: [fn(usize) -> String; 8] = [
            |n| format!("{} a\n{}", ">".repeat(n), "b\n".repeat(n)),
            |n| format!("{}a", "- ".repeat(n)),
            |n| (0..n.isqrt()).map(|depth| format!("{}- a\n", "  ".repeat(depth))).collect(),
            |n| "[".repeat(n),
            |n| "`".repeat(n),
            |n| "*a _b ".repeat(n),
            |n| format!("{}\n{}\n{}", "|a".repeat(n.isqrt()), "|-".repeat(n.isqrt()), "|b\n".repeat(n.isqrt())),
            |n| "![a](b".repeat(n),
        ];
        for (at, text) in texts.iter().enumerate() {
            let size = |n: usize| {
                let lines = lines(&text(n), 80, Theme::new(Colours::Sixteen));
                lines.iter().map(|line| line.spans.len() + 1).sum::<usize>()
            };
            let (small, large) = (size(1000), size(4000));
            assert!(large <= 5 * small + 200, "text {at}: {small} spans at 1000, {large} at 4000");
        }
    }

    #[test]
    fn what_agents_write_is_readable() {
        let text = "# Plan\n\nFirst *read* the **file** `a.rs`, then:\n\n- one\n- two\n  1. deeper\n  2. still\n\n> quoted\n\n```rust\nfn main() {\n\tprintln!();\n}\n```\n\n| a | b |\n|---|--:|\n| 1 | 22 |\n\nSee [docs](https://x.y).";
        insta::assert_snapshot!(shown(text, 40));
    }

    #[test]
    fn a_text_under_way_is_shown_as_far_as_it_goes() {
        assert_eq!(shown("a `b", 40), "a `b");
        assert_eq!(shown("```\ncode", 40), "  code");
        assert_eq!(shown("| a | b |\n|--", 40), "| a | b |\n|--");
    }

    #[test]
    fn nothing_is_wider_than_the_screen() {
        let text = "- a very long line that has to be cut somewhere\n\n> and another one in a quote that is long\n\n```\nsome_code_that_is_far_too_long_for_this\n```";
        for columns in [8, 12, 20] {
            let lines = lines(text, columns, Theme::new(Colours::Sixteen));
            assert!(lines.iter().all(|line| line.width() <= columns), "{columns}: {lines:#?}");
        }
    }

    #[test]
    fn control_characters_do_not_reach_the_screen() {
        assert_eq!(shown("a\u{1b}[31mred\u{7}", 40), "a␛[31mred␇");
    }
}
