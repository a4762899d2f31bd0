//! Text of others on a screen: nothing is hidden, and nothing is obeyed.

use multitap_event::{visible, visible_line, visible_output};
use proptest::prelude::*;

#[test]
fn controls_become_marks_and_what_follows_stays() {
    for (text, shown) in [
        ("echo hi \u{1b}]; touch /tmp/x \u{7}", "echo hi ␛]; touch /tmp/x ␇"),
        ("\u{1b}[2J\u{1b}[Hhome\u{0}\u{7f}", "␛[2J␛[Hhome␀␡"),
        ("\u{9b}31mred\u{9d}0;title\u{9c}", "\\u009b31mred\\u009d0;title\\u009c"),
        ("safe\u{202e}txt.exe\u{2066}\u{61c}\u{200f}", "safe\\u202etxt.exe\\u2066\\u061c\\u200f"),
        ("a\u{200b}b\u{2060}c\u{feff}d\u{ad}e\u{3164}f\u{180e}", "a\\u200bb\\u2060c\\ufeffd\\u00ade\\u3164f\\u180e"),
        ("tag\u{e0041}\u{e007f}", "tag\\u{e0041}\\u{e007f}"),
        ("x\u{fe0f}y\u{e0100}z\u{fffe}", "x\\ufe0fy\\u{e0100}z\\ufffe"),
        ("sep\u{2028}ar\u{2029}ated\u{fff9}", "sep\\u2028ar\\u2029ated\\ufff9"),
        // The blank braille pattern, controls of hieroglyphs, a notehead and a filler without a shape.
        ("a\u{2800}b\u{13430}\u{1343f}c\u{1d159}\u{16fe4}d⠋", "a\\u2800b\\u{13430}\\u{1343f}c\\u{1d159}\\u{16fe4}d⠋"),
        ("one\r\ntwo\rthree\ttab\n", "one\ntwo␍three\ttab\n"),
        ("日本 é e\u{301} 👩‍👧 ❤️‍🔥 ☺️ 1️⃣ 👍🏽", "日本 é e\u{301} 👩‍👧 ❤️‍🔥 ☺️ 1️⃣ 👍🏽"),
        ("نمی‌خواهم क्‍ष", "نمی‌خواهم क्‍ष"),
        ("👩\u{200d}x a\u{200d}b ☺\u{fe0f}\u{fe0f}", "👩\\u200dx a\\u200db ☺\u{fe0f}\\ufe0f"),
    ] {
        assert_eq!(visible(text), shown, "{text:?}");
    }
}

#[test]
fn a_line_stays_one_line() {
    assert_eq!(visible_line("key\nmultitap: all is well\r\n\t"), "key␊multitap: all is well␍␊␉");
}

#[test]
fn output_of_programs_keeps_its_text() {
    for (text, shown) in [
        ("\u{1b}[1;31mred\u{1b}[0m\u{1b}[K", "red"),
        ("\u{1b}[38:5:1mred\u{1b}[m", "red"),
        ("\u{1b}]0;a title\u{7}after", "␛]0;a title␇after"),
        ("\u{1b}[31 secret m", "␛[31 secret m"),
        ("\u{1b}[2Jcleared", "␛[2Jcleared"),
        ("10%\r50%\r100%", "␍100%"),
        ("10%\r\u{1b}[K\rdone", "␍done"),
        ("10%\r", "10%"),
        ("\rfirst\r\nsecond\r\n", "first\nsecond\n"),
        ("a\u{8}b", "a␈b"),
        ("cut off \u{1b}[31", "cut off ␛[31"),
    ] {
        assert_eq!(visible_output(text), shown, "{text:?}");
    }
}

/// At a size at which a cost that grows with its square takes minutes.
#[test]
fn text_of_others_is_made_visible_in_linear_time() {
    let parts = [
        "\u{1b}",
        "\u{1b}[",
        "\u{1b}[1;",
        "\u{1b}[31m",
        "\r",
        "\ra",
        "\r\n",
        "\n",
        "\t",
        "👩\u{200d}",
        "\u{fe0f}",
        "a",
    ];
    for part in parts {
        let text = part.repeat(1_000_000 / part.len());
        for shown in [visible(&text), visible_line(&text), visible_output(&text)] {
            assert!(shown.len() <= 6 * text.len(), "{part:?}");
        }
    }
}

/// Characters of every kind that these functions know, and others.
fn any_text() -> impl Strategy<Value = String> {
    let special = prop::sample::select(vec![
        '\u{1b}',
        '[',
        ']',
        'm',
        'K',
        '1',
        ';',
        '\r',
        '\n',
        '\t',
        '\u{7}',
        '\u{9b}',
        '\u{202e}',
        '\u{200d}',
        '\u{200c}',
        '\u{fe0f}',
        '👩',
        '☺',
        'ی',
        '\u{e0041}',
        '\u{ad}',
        '\u{3164}',
        'a',
        '日',
        '\u{301}',
    ]);
    prop::collection::vec(prop_oneof![3 => special, 1 => any::<char>()], 0..40)
        .prop_map(|chars| chars.into_iter().collect())
}

/// What a terminal would obey or not show, wherever it stands.
fn is_unseen(c: char) -> bool {
    c.is_control() && c != '\n' && c != '\t'
        || matches!(
            c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{feff}'
        )
        || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{e0000}'..='\u{e0fff}')
        || matches!(c, '\u{2800}' | '\u{13430}'..='\u{1343f}')
        || matches!(c, '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}')
}

/// How one character may stand in what is shown.
fn forms(c: char) -> Vec<String> {
    let code = u32::from(c);
    let picture = char::from_u32(0x2400 + code).filter(|_| code < 0x20).or((code == 0x7f).then_some('\u{2421}'));
    let coded = if code > 0xffff { format!("\\u{{{code:x}}}") } else { format!("\\u{code:04x}") };
    vec![c.to_string(), picture.map_or(coded, String::from)]
}

proptest! {
    /// Each character is there in its place, as itself or as its mark, and nothing else is.
    #[test]
    fn nothing_is_left_out_and_nothing_is_unseen(text in any_text()) {
        for shown in [visible(&text), visible_line(&text)] {
            prop_assert!(!shown.contains(is_unseen), "{text:?} -> {shown:?}");
            let mut rest: &str = &shown;
            let mut chars = text.chars().peekable();
            while let Some(c) = chars.next() {
                let found = forms(c).into_iter().find_map(|form| rest.strip_prefix(form.as_str()));
                let is_line_end = c == '\r' && chars.peek() == Some(&'\n');
                match found {
                    Some(after) => rest = after,
                    None => prop_assert!(is_line_end, "{c:?} of {text:?} is not in {shown:?}"),
                }
            }
            prop_assert_eq!(rest, "", "{:?} -> {:?}", text, shown);
        }
        prop_assert!(!visible_line(&text).contains(char::is_control));
        prop_assert!(!visible_output(&text).contains(is_unseen));
        // What was made visible once stays as it is.
        let once = visible(&text);
        prop_assert_eq!(visible(&once), once.as_ref());
    }

    /// What a program printed is there, apart from colours and from what it wrote over itself, which leaves a mark.
    #[test]
    fn output_is_left_out_only_where_it_was_written_over(text in "[a-c\\x1b\\[\\]m;1\\r\\n\\x07]{0,30}") {
        let shown = visible_output(&text);
        for (line, shown) in text.split('\n').zip(shown.split('\n')) {
            let words = |text: &str| text.chars().filter(|c| matches!(c, 'a'..='c' | '\u{7}' | '␇')).count();
            prop_assert!(words(line) == words(shown) || shown.starts_with('␍'), "{line:?} -> {shown:?}");
        }
    }
}

/// A terminal that does not know an emoji draws its parts side by side: an endless one would cover the screen.
#[test]
fn an_emoji_has_an_end() {
    let whole = "👩\u{200d}❤\u{fe0f}\u{200d}💋\u{200d}👨 👨🏽\u{200d}👩🏽\u{200d}👧🏽\u{200d}👦🏽";
    assert_eq!(visible(whole), whole);
    for part in ["👨\u{200d}", "👨🏽\u{200d}", "❤\u{fe0f}\u{200d}"] {
        let shown = visible(&part.repeat(1000)).into_owned();
        let longest = shown.split("\\u200d").map(|piece| piece.matches('\u{200d}').count()).max();
        assert!(longest <= Some(4), "{part}: {longest:?}");
        assert_eq!(shown.replace("\\u200d", "\u{200d}"), part.repeat(1000), "nothing is left out");
    }
}
