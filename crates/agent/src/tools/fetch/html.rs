//! Converts HTML to readable text: headings, lists, links, code; no scripts, no styles, no tags. Pure, and never
//! fails.
//!
//! Linear in the size of the page whatever it holds: pages are hostile input. `html5gum` splits the page into tags and
//! words; crates that build a document tree (html2text) are quadratic for deeply nested pages.

use html5gum::{DefaultEmitter, StartTag, Token, Tokenizer};

/// Elements whose content is not for reading.
const HIDDEN: [&str; 8] = ["script", "style", "noscript", "template", "svg", "iframe", "head", "canvas"];

pub(super) fn text(html: &str) -> String {
    let mut emitter = DefaultEmitter::default();
    // The content of scripts and similar elements is not markup.
    emitter.naively_switch_states(true);
    let mut page = Page::default();
    for Ok(token) in Tokenizer::new_with_emitter(html, emitter) {
        match token {
            Token::StartTag(tag) => page.tag(&String::from_utf8_lossy(&tag.name), Some(&tag)),
            Token::EndTag(tag) => page.tag(&String::from_utf8_lossy(&tag.name), None),
            Token::String(words) => page.words(&String::from_utf8_lossy(&words).replace('\u{a0}', " ")),
            Token::Comment(_) | Token::Doctype(_) | Token::Error(_) => {}
        }
    }
    page.finish()
}

/// The target of a link, if it leads anywhere.
fn href(tag: &StartTag<()>) -> Option<String> {
    let target = String::from_utf8_lossy(tag.attributes.get(b"href".as_slice())?);
    ["http://", "https://", "/"].iter().any(|begin| target.starts_with(begin)).then(|| target.into_owned())
}

#[derive(Default)]
struct Page {
    title: String,
    in_title: bool,
    /// The open element that hides its content.
    hidden: Option<String>,
    text: String,
    code: usize,
    /// Targets of the open links.
    links: Vec<Option<String>>,
}

impl Page {
    /// Handles a tag that opens an element, or one that closes it.
    fn tag(&mut self, name: &str, opens: Option<&StartTag<()>>) {
        if name == "title" {
            self.in_title = opens.is_some() && self.title.is_empty();
        }
        if let Some(hidden) = &self.hidden {
            if hidden == name && opens.is_none() {
                self.hidden = None;
            }
            return;
        }
        match (name, opens) {
            (_, Some(_)) if HIDDEN.contains(&name) => self.hidden = Some(name.to_owned()),
            ("h1" | "h2" | "h3" | "h4" | "h5" | "h6", Some(_)) => {
                self.gap();
                let level = usize::from(name.as_bytes()[1] - b'0');
                self.text.push_str(&"#".repeat(level));
                self.text.push(' ');
            }
            ("h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "p" | "table" | "blockquote", _) => self.gap(),
            ("li", Some(_)) => {
                self.line();
                self.text.push_str("- ");
            }
            ("td" | "th", None) => self.text.push_str(" | "),
            ("pre", Some(_)) => {
                self.gap();
                self.text.push_str("```\n");
                self.code += 1;
            }
            ("pre", None) if self.code > 0 => {
                self.line();
                self.text.push_str("```\n");
                self.code -= 1;
            }
            ("a", Some(tag)) => {
                let href = href(tag);
                if href.is_some() {
                    self.text.push('[');
                }
                self.links.push(href);
            }
            ("a", None) => {
                if let Some(Some(href)) = self.links.pop() {
                    self.text.push_str("](");
                    self.text.push_str(&href);
                    self.text.push(')');
                }
            }
            (
                "address" | "article" | "aside" | "body" | "br" | "caption" | "dd" | "details" | "div" | "dl" | "dt"
                | "fieldset" | "figcaption" | "figure" | "footer" | "form" | "header" | "hr" | "html" | "li" | "main"
                | "nav" | "ol" | "option" | "pre" | "section" | "summary" | "tbody" | "thead" | "tr" | "ul",
                _,
            ) => self.line(),
            _ => {}
        }
    }

    fn words(&mut self, words: &str) {
        if self.in_title {
            return self.title.push_str(words);
        }
        if self.hidden.is_some() {
            return;
        }
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
        let title = self.title.split_whitespace().collect::<Vec<_>>().join(" ");
        let title = if title.is_empty() { title } else { format!("# {title}\n\n") };
        (title + self.text.trim()).trim_end().to_owned()
    }
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
