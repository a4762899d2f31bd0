//! Lines in pieces of every size.

use proptest::prelude::*;

use super::{HEAD, Line, LineBuffer, Lines};

fn cut<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, max: usize) -> Vec<Line> {
    let mut buffer = LineBuffer::new(max);
    for piece in pieces {
        buffer.push(piece);
    }
    buffer.finish();
    std::iter::from_fn(|| buffer.pop()).collect()
}

fn whole(bytes: &[u8], max: usize) -> Vec<Line> {
    cut([bytes], max)
}

fn text(line: &str) -> Line {
    Line::Text(line.to_owned())
}

fn too_long(head: &str, bytes: u64) -> Line {
    Line::TooLong { head: head.to_owned(), bytes }
}

#[test]
fn a_line_at_the_cap_is_whole_and_one_byte_more_is_not() {
    assert_eq!(whole(b"1234\n12345\n1234", 4), [text("1234"), too_long("1234", 5), text("1234")]);
    assert_eq!(whole(b"12345", 4), [too_long("1234", 5)]);
}

#[test]
fn the_carriage_return_of_a_line_end_does_not_count() {
    assert_eq!(whole(b"1234\r\n12345\r\n", 4), [text("1234"), too_long("1234", 5)]);
    assert_eq!(whole(b"1234\r1\r\n", 4), [too_long("1234", 6)]);
    assert_eq!(whole(b"1234\r", 4), [too_long("1234", 5)]);
}

#[test]
fn a_lone_carriage_return_stays() {
    assert_eq!(whole(b"a\rb\n\r\r\nc\r", 10), [text("a\rb"), text("\r"), text("c\r")]);
}

#[test]
fn empty_lines_are_lines_and_nothing_is_none() {
    assert_eq!(whole(b"\n\r\n", 10), [text(""), text("")]);
    assert_eq!(whole(b"", 10), []);
    assert_eq!(whole(b"\na\n", 0), [text(""), too_long("", 1)]);
}

#[test]
fn a_byte_order_mark_is_text_like_any_other() {
    assert_eq!(whole("\u{feff}{}\n".as_bytes(), 10), [text("\u{feff}{}")]);
}

#[test]
fn bytes_that_are_no_text_are_replaced() {
    assert_eq!(whole(b"a\xffb\n\xe4\xb8\n", 10), [text("a\u{fffd}b"), text("\u{fffd}")]);
}

#[test]
fn a_head_never_ends_in_half_a_character() {
    assert_eq!(whole("漢字漢字".as_bytes(), 4), [too_long("漢", 12)]);
    assert_eq!(whole("漢字漢字".as_bytes(), 6), [too_long("漢字", 12)]);
    assert_eq!(whole("👩🏽\u{200d}🚀👩🏽".as_bytes(), 5), [too_long("👩", 23)]);
    assert_eq!(whole(b"a\xff\xffb\xe6\xbc", 5), [too_long("a\u{fffd}\u{fffd}b", 6)]);
    // Not half a character, but no character at all.
    assert_eq!(whole(b"abc\xff\xff", 4), [too_long("abc\u{fffd}", 5)]);
}

#[test]
fn characters_survive_a_cut_at_every_byte() {
    let input = "漢字かな\n👩🏽\u{200d}🚀 und\r\n한국어 🇨🇳\n".as_bytes();
    let expected = whole(input, 1024);
    assert_eq!(expected, [text("漢字かな"), text("👩🏽\u{200d}🚀 und"), text("한국어 🇨🇳")]);
    for at in 0..=input.len() {
        assert_eq!(cut([&input[..at], &input[at..]], 1024), expected, "cut at {at}");
        for max in 0..16 {
            assert_eq!(cut([&input[..at], &input[at..]], max), whole(input, max), "cut at {at}, cap {max}");
        }
    }
}

#[test]
fn only_the_head_of_a_long_line_is_held() {
    let mut buffer = LineBuffer::new(1024 * 1024);
    let piece = [b'x'; 64 * 1024];
    for _ in 0..1600 {
        buffer.push(&piece);
        assert!(buffer.head.capacity() <= 4 * 1024 * 1024);
    }
    assert!(buffer.head.capacity() <= 2 * HEAD);
    buffer.push(b"\nnext\n");
    assert_eq!(buffer.pop(), Some(too_long(&"x".repeat(HEAD), 1600 * 64 * 1024)));
    assert_eq!(buffer.pop(), Some(text("next")));
}

#[test]
fn a_line_in_tiny_pieces_is_moved_few_times() {
    let mut buffer = LineBuffer::new(8 * 1024 * 1024);
    let mut moves = 0;
    let mut capacity = 0;
    for _ in 0..4 * 1024 * 1024 {
        buffer.push(b"x");
        if buffer.head.capacity() != capacity {
            capacity = buffer.head.capacity();
            moves += 1;
        }
    }
    assert!(moves <= 32, "{moves} moves");
}

#[tokio::test]
async fn a_reader_gives_its_lines_and_then_its_end_for_good() {
    let mut lines = Lines::new(&b"one\r\n\ntwo"[..]);
    for expected in [Some(text("one")), Some(text("")), Some(text("two")), None, None] {
        assert_eq!(lines.next().await.unwrap(), expected);
    }
}

/// Bytes with many line ends, characters of every length, and broken ones.
fn input() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(b"\n".to_vec()),
        Just(b"\r\n".to_vec()),
        Just(b"\r".to_vec()),
        "[a-zäß漢字👩🚀]{0,6}".prop_map(String::into_bytes),
        prop::collection::vec(any::<u8>(), 0..4),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn lines_do_not_depend_on_the_pieces(
        input in input(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        max in 0_usize..24,
    ) {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(input.len() + 1)).collect();
        cuts.extend([0, input.len()]);
        cuts.sort_unstable();
        let pieces = cuts.windows(2).map(|pair| &input[pair[0]..pair[1]]);
        prop_assert_eq!(cut(pieces, max), whole(&input, max));
        prop_assert_eq!(cut(input.chunks(1), max), whole(&input, max));
    }

    #[test]
    fn every_line_is_told_once(input in input(), max in 0_usize..24) {
        let newlines = input.iter().filter(|byte| **byte == b'\n').count();
        let unfinished = usize::from(input.last().is_some_and(|byte| *byte != b'\n'));
        prop_assert_eq!(whole(&input, max).len(), newlines + unfinished);
    }

    #[test]
    fn text_is_cut_as_the_standard_library_cuts_it(input in "[a-c漢👩\r\n]{0,60}") {
        let expected: Vec<Line> = input.lines().map(text).collect();
        prop_assert_eq!(whole(input.as_bytes(), 1024), expected);
    }

    #[test]
    fn a_long_line_is_told_with_its_length_and_its_beginning(input in "[a-c漢👩\r\n]{0,60}", max in 0_usize..24) {
        for (line, expected) in whole(input.as_bytes(), max).into_iter().zip(input.lines()) {
            match line {
                Line::Text(line) => {
                    prop_assert!(line.len() <= max);
                    prop_assert_eq!(line, expected);
                }
                Line::TooLong { head, bytes } => {
                    prop_assert!(expected.len() > max);
                    prop_assert_eq!(bytes, expected.len() as u64);
                    prop_assert!(expected.starts_with(&head) && head.len() + 3 >= max.min(HEAD));
                }
            }
        }
    }
}
