//! What reads text of others, at a size at which a cost that grows with the square of it takes minutes.

use ratatui::text::Line;

use crate::ansi::printed;
use crate::clean::clean;
use crate::complete::{Item, first_path, matching, wanted};
use crate::composer::Composer;
use crate::preferences::Colours;
use crate::theme::Theme;
use crate::{highlight, markdown, wrap};

/// Bytes of each text.
const SIZE: usize = 100_000;

/// Texts that a reader might look through again for each of their parts.
fn texts() -> Vec<String> {
    let parts = [
        "x",
        " ",
        "\n",
        "a ",
        "a\n",
        "'",
        "\"",
        "`",
        "*",
        "_a",
        "[",
        "[a](",
        "![",
        "<a",
        "<!--",
        "> ",
        "- ",
        "1. ",
        "|a",
        "|-\n",
        "#",
        "\\",
        "/*",
        "//",
        "\u{1b}[1;",
        "\u{1b}]",
        "\r",
        "\t",
        "\u{202e}",
        "日",
        "é\u{301}",
        "(",
        "{",
        "@a ",
        "/",
        "~",
        "```\n",
        "a\n=\n",
        "&amp;",
        "http://a ",
        "$",
        "\u{200d}👩",
        "[^a]",
        "[a]: b\n",
    ];
    parts.iter().map(|part| part.repeat(SIZE / part.len())).collect()
}

fn each(read: impl Fn(&str)) {
    texts().iter().for_each(|text| read(text));
}

#[test]
fn text_of_others_is_wrapped_and_cleaned_in_linear_time() {
    each(|text| drop(clean(text)));
    each(|text| drop(printed(text, Theme::new(Colours::Sixteen))));
    each(|text| drop(wrap::wrap(Line::raw(clean(text)), 80, 2)));
}

#[test]
fn code_is_coloured_in_linear_time() {
    let theme = Theme::new(Colours::Sixteen);
    for language in ["rust", "python", "json", "sh", "html", "sql", "diff"] {
        each(|text| assert!(!highlight::lines(text, language, theme).is_empty()));
    }
}

#[test]
fn markdown_is_read_in_linear_time() {
    each(|text| drop(markdown::lines(text, 80, Theme::new(Colours::Sixteen))));
}

#[test]
fn what_is_typed_and_pasted_is_read_in_linear_time() {
    each(|text| drop(wanted(text, text.len())));
    each(|text| drop(first_path(text)));
    each(|text| {
        let mut composer = Composer::default();
        composer.paste(text);
        composer.insert(text);
        composer.paste(text);
        assert!(composer.whole().len() >= text.len() / 2);
    });
    each(|text| {
        let item =
            |text: &str| Item { shown: String::new(), does: String::new(), text: text.to_owned(), is_whole: true };
        drop(matching([item(text)].into_iter(), &text.chars().take(20).collect::<String>()));
    });
}
