//! Parts of a text as it is written: its last code, and where it can be cut. Pure.

use pulldown_cmark::{Event, Parser, Tag, TagEnd};

/// The last place at which a text can be cut so that both parts by themselves look as they do together: where a
/// paragraph, a heading or code begins after an empty line, outside of code, lists and HTML. (Links that are defined
/// elsewhere do not find their definition then.)
pub(crate) fn last_cut(text: &str) -> Option<usize> {
    let (mut at, mut last, mut fence, mut after_blank) = (0, None, None::<&str>, false);
    for line in text.split_inclusive('\n') {
        let mark = line.trim_start();
        let marks = mark.len() - mark.trim_start_matches(mark.chars().next().unwrap_or_default()).len();
        match fence {
            Some(open) if mark.starts_with(open) && mark[marks..].trim().is_empty() => fence = None,
            Some(_) => {}
            None if mark.starts_with('<') => break,
            None => {
                let begins = |c: char| c.is_alphabetic() || matches!(c, '#' | '`');
                if after_blank && line.starts_with(begins) && at > 0 {
                    last = Some(at);
                }
                if mark.starts_with("```") || mark.starts_with("~~~") {
                    fence = Some(&mark[..marks]);
                }
            }
        }
        after_blank = line.trim().is_empty();
        at += line.len();
    }
    last
}

/// The last block of code in a text, as it is written there.
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

#[cfg(test)]
mod tests {
    use super::super::tests::shown;
    use super::*;

    #[test]
    fn a_text_is_cut_where_it_does_not_show() {
        let text = "One\ntwo.\n\n# Three\n\n- a\n\n  in a\n\nFour `x`:\n\n```rust\nfn f() {}\n\nfn g() {}\n```\n\nFive\n\n1. six\n";
        let mut rest = text;
        let mut parts = Vec::new();
        while let Some(cut) = last_cut(rest) {
            parts.insert(0, shown(&rest[cut..], 40));
            rest = &rest[..cut];
        }
        parts.insert(0, shown(rest, 40));
        assert_eq!(parts.len(), 5, "{parts:#?}");
        assert_eq!(parts.join("\n\n"), shown(text, 40));
        assert_eq!(last_cut("```\na\n\nb"), None, "not within code");
        assert_eq!(last_cut("~~~~\na\n~~~\n\nb"), None, "nor within longer fences");
    }
}
