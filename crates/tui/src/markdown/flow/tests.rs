//! Where a text is parted, and that it does not show.

use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::preferences::Colours;

const PLAIN: TextStyle = TextStyle { apart: false, sign: "", indent: 0, style: Style::new() };

fn shown(lines: &[Line<'static>]) -> Vec<String> {
    lines.iter().map(|line| line.to_string().trim_end().to_owned()).collect()
}

fn flow(limits: Limits) -> Flow {
    Flow { limits, ..Flow::new(40, Theme::new(Colours::Sixteen), PLAIN) }
}

/// Parted wherever it does not show.
const OFTEN: Limits = Limits { part: 1, longest: 100_000, place: 16 };
/// Parted all the time.
const ALWAYS: Limits = Limits { part: 8, longest: 24, place: 16 };

#[track_caller]
fn check_unseen(text: &str, parts: usize) {
    let mut flow = flow(OFTEN);
    let mut settled = Vec::new();
    for end in (0..=text.len()).filter(|end| text.is_char_boundary(*end)) {
        flow.lay_out(&text[..end]);
        settled.push(flow.at.done);
    }
    settled.dedup();
    assert_eq!(settled.len(), parts, "{settled:?}");
    assert_eq!(flow.lines().to_vec(), crate::markdown::lines(text, 40, Theme::new(Colours::Sixteen)));
}

#[test]
fn a_text_is_parted_where_it_does_not_show() {
    check_unseen(
        "One\ntwo.\n\n# Three\n\n- a\n\n  in a\n\nFour `x`:\n\n```rust\nfn f() {}\n\nfn g() {}\n```\n\nFive\n\n1. six\n",
        5,
    );
    check_unseen("```\na\n\nb", 1);
    check_unseen("~~~~\na\n~~~\n\nb", 1);
    check_unseen("---\n\nafter a rule\n\nand more\n", 3);
}

#[test]
fn code_is_parted_between_its_lines() {
    let code: String = (0..300).map(|n| format!("let x{n} = \"{n}\"; /* goes\n on */\n\n")).collect();
    let text = format!("Before:\n\n```rust\n{code}```\n\nAfter.");
    let mut flow = flow(Limits { part: 64, longest: 256, place: 512 });
    for end in (0..text.len()).step_by(7) {
        flow.lay_out(&text[..end]);
        assert!(end < 512 || end - flow.at.done < 512, "{end} {}", flow.at.done);
    }
    flow.lay_out(&text);
    let whole = crate::markdown::lines(&text, 40, Theme::new(Colours::Sixteen));
    assert_eq!(shown(&flow.lines()), shown(&whole));
    let styles = |lines: &[Line<'static>]| {
        let spans = lines.iter().flat_map(|line| line.spans.clone());
        spans.filter(|span| !span.content.trim().is_empty()).map(|span| span.style).collect::<Vec<_>>()
    };
    assert_eq!(styles(&flow.lines()), styles(&whole));
}

#[test]
fn a_paragraph_without_an_end_is_parted_too() {
    for word in ["word ", "word\n", "- item\n", "日本語"] {
        let text = word.repeat(20_000);
        let mut flow = flow(LIMITS);
        for end in (0..text.len()).step_by(word.len() * 50) {
            flow.lay_out(&text[..end]);
            assert!(end - flow.at.done <= 3 * LIMITS.longest, "{word:?}: {} of {end} are settled", flow.at.done);
        }
        flow.lay_out(&text);
        let said: String = shown(&flow.lines()).concat();
        assert_eq!(said.matches(word.trim_matches(['-', ' ', '\n'])).count(), 20_000, "{word:?}");
    }
}

/// The last lines at another width are those that all of it would have.
fn check_end(text: &str, limits: Limits) {
    let mut flow = flow(limits);
    for end in [text.len() / 2, text.len() * 3 / 4].into_iter().filter(|end| text.is_char_boundary(*end)) {
        flow.lay_out(&text[..end]);
    }
    let places = flow.places.len();
    for (columns, rows) in [(20, 5), (61, 12), (8, 3), (40, 1000)] {
        let mut whole = Flow { limits, ..Flow::new(columns, Theme::new(Colours::Sixteen), PLAIN) };
        whole.lay_out(text);
        flow = flow.resized(columns);
        // It goes on meanwhile.
        if let Some(more) = text.get(..text.len() * 7 / 8).filter(|_| columns == 20) {
            flow.lay_out_end(more, rows);
        }
        flow.lay_out_end(text, rows);
        let (whole, end) = (whole.lines(), flow.lines());
        let last = |lines: &[Line<'static>]| lines[lines.len().saturating_sub(rows)..].to_vec();
        assert_eq!(last(&end), last(&whole), "{columns} columns, {places} places:\n{text}");
        flow.lay_out_whole(text);
        assert_eq!(flow.lines(), whole, "{columns} columns:\n{text}");
    }
}

#[test]
fn at_another_width_only_the_end_is_laid_out() {
    let code: String = (0..3000).map(|n| format!("let x{n} = \"{n}\"; /* goes\n on */\n\n")).collect();
    let texts = [
        format!("Before:\n\n```rust\n{code}```\n\nAfter."),
        format!("Before:\n\n```rust\n{code}"),
        "word ".repeat(20_000),
        "- item\n".repeat(12_000),
        "# Head\n\nSome words.\n\n- a\n- b\n\n".repeat(2_500),
    ];
    for text in texts {
        check_end(&text, LIMITS);
        let mut flow = flow(LIMITS);
        flow.lay_out(&text);
        let all = flow.lines().len();
        let mut flow = flow.resized(39);
        flow.lay_out_end(&text, 50);
        assert!((50..all).contains(&flow.lines().len()), "{} of {all}", flow.lines().len());
        assert!(!flow.is_whole);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// The pieces in which a text comes do not show.
    #[test]
    fn pieces_do_not_show(pieces in prop::collection::vec(select(vec![
        "word ", "日本", "\n", "\n\n", "```rust\n", "```\n", "  ```\n", "~~~\n", "- ", "1. ", "> ", "**", "`", "# ", "<p>", "| a | b |\n",
        "|---|---|\n", "    ", "/* ", "a_very_long_word_that_fits_on_no_line_at_all_however_long_it_may_be", "\t", "---\n",
    ]), 0..60)) {
        let text = pieces.concat();
        for limits in [OFTEN, ALWAYS] {
            let (mut whole, mut growing) = (flow(limits), flow(limits));
            whole.lay_out(&text);
            let mut now = String::new();
            for piece in &pieces {
                now.push_str(piece);
                growing.lay_out(&now);
            }
            prop_assert_eq!(growing.lines(), whole.lines());
            prop_assert!(whole.lines().iter().all(|line| line.width() <= 40));
            check_end(&text, limits);
        }
    }
}
