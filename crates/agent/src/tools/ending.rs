//! The byte order mark and line endings of a text, preserved across an edit.

use std::borrow::Cow;

const MARK: char = '\u{feff}';

/// How a text marks its beginning and its line ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ending {
    mark: bool,
    /// Every line ends in `\r\n`.
    crlf: bool,
}

impl Ending {
    pub(super) fn of(text: &str) -> Self {
        let lines = text.matches('\n').count();
        Self { mark: text.starts_with(MARK), crlf: lines > 0 && text.matches("\r\n").count() == lines }
    }

    /// The text as a model sees it: without the mark, with `\n`.
    pub(super) fn plain(self, text: &str) -> Cow<'_, str> {
        let text = text.strip_prefix(MARK).filter(|_| self.mark).unwrap_or(text);
        if self.crlf { Cow::Owned(text.replace("\r\n", "\n")) } else { Cow::Borrowed(text) }
    }

    /// The reverse of [`plain`](Self::plain).
    pub(super) fn dress(self, plain: &str) -> String {
        let text = if self.crlf { plain.replace('\n', "\r\n") } else { plain.to_owned() };
        if self.mark { format!("{MARK}{text}") } else { text }
    }

    /// A whole new text with the old line endings, unless it has its own.
    pub(super) fn fit(self, text: &str) -> String {
        let mark = self.mark && !text.starts_with(MARK);
        Self { mark, crlf: self.crlf && !text.contains('\r') }.dress(text)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_text_keeps_its_ends() {
        let windows = Ending::of("\u{feff}a\r\nb");
        assert_eq!(windows, Ending { mark: true, crlf: true });
        assert_eq!(windows.plain("\u{feff}a\r\nb"), "a\nb");
        assert_eq!(windows.fit("x\ny\n"), "\u{feff}x\r\ny\r\n");
        assert_eq!(windows.fit("x\r\ny\n"), "\u{feff}x\r\ny\n");
        for text in ["a\nb\r\n", "a", "", "a\n"] {
            assert!(!Ending::of(text).crlf, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn undressed_and_dressed_again_is_the_same(text in "\u{feff}?[ab\r\n]{0,12}") {
            let ending = Ending::of(&text);
            prop_assert_eq!(ending.dress(&ending.plain(&text)), text);
        }
    }
}
