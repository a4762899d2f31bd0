//! Converts HTML to readable text: headings, lists, links, code; no scripts, no styles, no tags. Pure, and never
//! fails.
//!
//! Linear in the size of the page whatever it holds: pages are hostile input. Crates that build a document tree
//! (html2text) are quadratic for deeply nested pages.

use std::borrow::Cow;

/// Elements whose content is not for reading.
const HIDDEN: [&str; 8] = ["script", "style", "noscript", "template", "svg", "iframe", "head", "canvas"];
/// Elements that stand on lines of their own.
const BLOCKS: [&str; 34] = [
    "address",
    "article",
    "aside",
    "blockquote",
    "body",
    "br",
    "caption",
    "dd",
    "details",
    "div",
    "dl",
    "dt",
    "fieldset",
    "figcaption",
    "figure",
    "footer",
    "form",
    "header",
    "hr",
    "html",
    "li",
    "main",
    "nav",
    "ol",
    "option",
    "p",
    "pre",
    "section",
    "summary",
    "table",
    "tbody",
    "thead",
    "tr",
    "ul",
];

/// The text of a page.
pub(super) fn text(html: &str) -> String {
    let mut page = Page::default();
    if let Some(title) = title(html) {
        page.line();
        page.words(&format!("# {title}"));
        page.gap();
    }
    let mut rest = html;
    while !rest.is_empty() {
        let Some(open) = rest.find('<') else {
            page.words(&entities(rest));
            break;
        };
        page.words(&entities(&rest[..open]));
        rest = &rest[open..];
        rest = match Tag::read(rest) {
            Some((tag, after)) => page.tag(&tag, after),
            None => comment(rest).unwrap_or_else(|| {
                page.words("<");
                &rest[1..]
            }),
        };
    }
    page.finish()
}

fn title(html: &str) -> Option<String> {
    let start = find(html, "<title")?;
    let inner = &html[start + html[start..].find('>')? + 1..];
    let title = entities(&inner[..find(inner, "</title")?]).split_whitespace().collect::<Vec<_>>().join(" ");
    Some(title).filter(|title| !title.is_empty())
}

/// Finds a word, ignoring ASCII case.
fn find(text: &str, word: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let fits = |at: &usize| bytes[*at..at + word.len()].eq_ignore_ascii_case(word.as_bytes());
    let last = bytes.len().checked_sub(word.len())?;
    (0..=last).filter(|at| bytes[*at] == word.as_bytes()[0]).find(fits)
}

/// What comes after a comment or a declaration.
fn comment(rest: &str) -> Option<&str> {
    if let Some(inner) = rest.strip_prefix("<!--") {
        return Some(inner.find("-->").map_or("", |end| &inner[end + 3..]));
    }
    let declares = rest.starts_with("<!") || rest.starts_with("<?");
    declares.then(|| rest.find('>').map_or("", |end| &rest[end + 1..]))
}

struct Tag {
    name: String,
    closes: bool,
    href: Option<String>,
}

impl Tag {
    /// Reads a tag; returns it and the rest, or `None` if the bracket is literal.
    fn read(rest: &str) -> Option<(Self, &str)> {
        let inner = &rest[1..];
        let (closes, inner) = inner.strip_prefix('/').map_or((false, inner), |inner| (true, inner));
        if !inner.starts_with(|char: char| char.is_ascii_alphabetic()) {
            return None;
        }
        let end = inner.find(|char: char| char.is_whitespace() || matches!(char, '>' | '/')).unwrap_or(inner.len());
        let name = inner[..end].to_ascii_lowercase();
        let (attributes, after) = attributes(&inner[end..]);
        let href = (name == "a").then(|| href(attributes)).flatten();
        Some((Self { name, closes, href }, after))
    }
}

/// The attributes of a tag and what comes after it. A bracket in quotes does not end it.
fn attributes(rest: &str) -> (&str, &str) {
    let mut quote = None;
    for (place, char) in rest.char_indices() {
        match (quote, char) {
            (None, '>') => return (&rest[..place], &rest[place + 1..]),
            (None, '"' | '\'') => quote = Some(char),
            (Some(open), char) if open == char => quote = None,
            _ => {}
        }
    }
    (rest, "")
}

fn href(attributes: &str) -> Option<String> {
    let value = attributes[find(attributes, "href")? + 4..].trim_start().strip_prefix('=')?.trim_start();
    let value = match value.chars().next()? {
        quote @ ('"' | '\'') => value[1..].split(quote).next()?,
        _ => value.split_whitespace().next()?,
    };
    let href = entities(value).into_owned();
    Some(href).filter(|href| href.starts_with("http://") || href.starts_with("https://") || href.starts_with('/'))
}

#[derive(Default)]
struct Page {
    text: String,
    /// Depth of `pre` elements.
    code: usize,
    /// Targets of the open links.
    links: Vec<Option<String>>,
}

impl Page {
    /// Handles a tag; returns what comes after everything that belongs to it.
    fn tag<'a>(&mut self, tag: &Tag, after: &'a str) -> &'a str {
        let name = tag.name.as_str();
        if HIDDEN.contains(&name) && !tag.closes {
            let end = format!("</{name}");
            let Some(at) = find(after, &end) else { return "" };
            return after[at..].find('>').map_or("", |close| &after[at + close + 1..]);
        }
        match (name, tag.closes) {
            ("h1" | "h2" | "h3" | "h4" | "h5" | "h6", false) => {
                self.gap();
                let level = usize::from(name.as_bytes()[1] - b'0');
                self.text.push_str(&"#".repeat(level));
                self.text.push(' ');
            }
            ("h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "p" | "table" | "blockquote", _) => self.gap(),
            ("ul" | "ol", _) => self.line(),
            ("li", false) => {
                self.line();
                self.text.push_str("- ");
            }
            ("td" | "th", true) => self.text.push_str(" | "),
            ("pre", false) => {
                self.gap();
                self.text.push_str("```\n");
                self.code += 1;
            }
            ("pre", true) if self.code > 0 => {
                self.line();
                self.text.push_str("```\n");
                self.code -= 1;
            }
            ("a", false) => {
                if tag.href.is_some() {
                    self.text.push('[');
                }
                self.links.push(tag.href.clone());
            }
            ("a", true) => {
                if let Some(Some(href)) = self.links.pop() {
                    self.text.push_str("](");
                    self.text.push_str(&href);
                    self.text.push(')');
                }
            }
            _ if BLOCKS.contains(&name) => self.line(),
            _ => {}
        }
        after
    }

    fn words(&mut self, words: &str) {
        if self.code > 0 {
            return self.text.push_str(words);
        }
        for word in words.split_inclusive(char::is_whitespace) {
            let spaced = word.ends_with(char::is_whitespace);
            self.text.push_str(word.trim_end());
            if spaced && !self.text.is_empty() && !self.text.ends_with([' ', '\n']) {
                self.text.push(' ');
            }
        }
    }

    /// Begins a line.
    fn line(&mut self) {
        if self.code == 0 {
            let end = self.text.trim_end_matches(' ').len();
            self.text.truncate(end);
        }
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
    }

    /// Leaves an empty line.
    fn gap(&mut self) {
        self.line();
        if !self.text.is_empty() && !self.text.ends_with("\n\n") {
            self.text.push('\n');
        }
    }

    fn finish(self) -> String {
        self.text.trim().to_owned()
    }
}

/// From the ampersand to the semicolon.
const LONGEST_ENTITY: usize = 12;

/// Decodes character references.
fn entities(text: &str) -> Cow<'_, str> {
    if !text.contains('&') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let end = rest.bytes().take(LONGEST_ENTITY).position(|byte| byte == b';');
        let named = end.and_then(|end| Some((entity(&rest[1..end])?, end + 1)));
        match named {
            Some((char, length)) => {
                out.push(char);
                rest = &rest[length..];
            }
            None => {
                out.push('&');
                rest = &rest[1..];
            }
        }
    }
    out.push_str(rest);
    Cow::Owned(out)
}

fn entity(name: &str) -> Option<char> {
    if let Some(number) = name.strip_prefix('#') {
        let code = match number.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16).ok()?,
            None => number.parse().ok()?,
        };
        return char::from_u32(code).filter(|char| !char.is_control() || char.is_whitespace());
    }
    Some(match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => ' ',
        "copy" => '©',
        "reg" => '®',
        "trade" => '™',
        "hellip" => '…',
        "mdash" => '—',
        "ndash" => '–',
        "lsquo" => '‘',
        "rsquo" => '’',
        "ldquo" => '“',
        "rdquo" => '”',
        "laquo" => '«',
        "raquo" => '»',
        "bull" => '•',
        "middot" => '·',
        "times" => '×',
        "rarr" => '→',
        "larr" => '←',
        "euro" => '€',
        "pound" => '£',
        "sect" => '§',
        "deg" => '°',
        "auml" => 'ä',
        "ouml" => 'ö',
        "uuml" => 'ü',
        "Auml" => 'Ä',
        "Ouml" => 'Ö',
        "Uuml" => 'Ü',
        "szlig" => 'ß',
        "eacute" => 'é',
        "egrave" => 'è',
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_page_becomes_readable() {
        let page = r#"<!DOCTYPE html><html><head><title>The &amp; Page</title><style>p { color: red }</style></head>
            <body><!-- not <b>this</b> --><script>if (a < b) { alert("x") }</script>
            <h2 class="a>b">News</h2><p>One   <b>bold</b>
            word.</p><p>Two &lt;tags&gt; &#8211; &#x41;&nbsp;b</p>
            <ul><li>first <a href="https://example.com/a?b&amp;c">link</a></li><li>second</li></ul>
            <pre>fn main() {
    a  b
}</pre><table><tr><td>1</td><td>2</td></tr></table> 1 < 2 &unknown; </body></html>"#;
        let expected = [
            "# The & Page\n\n## News\n\nOne bold word.\n\nTwo <tags> – A b\n",
            "- first [link](https://example.com/a?b&c)\n- second\n",
            "```\nfn main() {\n    a  b\n}\n```\n\n1 | 2 |\n\n1 < 2 &unknown;",
        ];
        assert_eq!(text(page), expected.join("\n"));
    }

    #[test]
    fn what_is_not_closed_hides_the_rest_and_breaks_nothing() {
        assert_eq!(text("a<script>b"), "a");
        assert_eq!(text("a<b"), "a");
        assert_eq!(text("a<!-- b"), "a");
        assert_eq!(text("<pre></pre></pre></a>x"), "```\n```\nx");
    }

    /// At a size at which a cost that grows with its square takes minutes.
    #[test]
    fn any_page_is_read_in_linear_time() {
        let parts = [
            "<",
            "</",
            "<!",
            "<!--",
            "<?",
            "<a",
            "<a>",
            "<a href=",
            "<a href='/x'>",
            "<b \"",
            "</a>",
            "<pre>",
            "</pre>",
            "<li>",
            "<h6>",
            "</td>",
            "<p>",
            "<br> ",
            "<script>",
            "</script>",
            "<script></script>",
            "<title",
            "<title>",
            "</title",
            "&",
            "&#",
            "&amp;",
            "&#x41;",
            " ",
            "a ",
            "\n",
        ];
        for part in parts {
            let page = part.repeat(1_000_000 / part.len());
            assert!(text(&page).len() <= 3 * page.len(), "{part}");
        }
    }

    proptest! {
        #[test]
        fn nothing_is_too_broken(html in "(<|>|/|a|pre|li|&|#|;|\"|'|=|href| |é|script|title|h1|!|--){0,40}") {
            text(&html);
        }
    }
}
