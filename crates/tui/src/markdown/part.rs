//! The last code of a text. Pure.

use pulldown_cmark::{Event, Parser, Tag, TagEnd};

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
