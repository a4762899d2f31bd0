use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

const MOST: usize = 1 << 16;

fn read(pieces: &[&[u8]]) -> Vec<Event> {
    let (mut parser, mut events) = (Parser::new(MOST), VecDeque::new());
    for piece in pieces {
        parser.push(piece, &mut events).unwrap();
    }
    events.into()
}

fn data(text: &str) -> Event {
    Event { data: text.to_owned(), ..Event::default() }
}

#[test]
fn events_are_what_stands_between_empty_lines() {
    let check = |text: &str, expected: &[Event]| assert_eq!(read(&[text.as_bytes()]), expected, "{text:?}");
    check("data: a\n\ndata:b\n\n", &[data("a"), data("b")]);
    check("data: a\r\n\r\ndata: b\r\rdata: c\n\n", &[data("a"), data("b"), data("c")]);
    check("data: a\ndata\ndata:  b\n\n", &[data("a\n\n b")]);
    check(": ping\n\n: more\ndata: a\n: within\n\n", &[data("a")]);
    check(
        "event: error\nid: 7.1\nretry: 5\nother: x\ndata: a\n\n",
        &[Event { id: Some("7.1".to_owned()), name: "error".to_owned(), data: "a".to_owned() }],
    );
    check("\u{feff}data: a\n\n", &[data("a")]);
    // Nothing to say, and nothing that goes over to the next.
    check("event: x\nid: 1\n\ndata: a\n\n", &[data("a")]);
    check("id: a\0b\ndata: a\n\n", &[data("a")]);
    // An interrupted event is none.
    check("data: a\n\ndata: b\n", &[data("a")]);
    check("data: a", &[]);
    check("data:\n\n", &[data("")]);
}

#[test]
fn bytes_that_are_no_text_do_not_stop_it() {
    assert_eq!(read(&[b"data: \xff\xfe\n\ndata: b\n\n"]), [data("\u{fffd}\u{fffd}"), data("b")]);
}

#[test]
fn an_event_has_a_size_it_may_not_go_beyond() {
    let events = &mut VecDeque::new();
    assert_eq!(Parser::new(16).push(b"data: 0123456789\n\n", events), Ok(()));
    assert_eq!(Parser::new(15).push(b"data: 0123456789\n\n", events), Err(TooLarge));
    // Neither in one line nor in many, nor without an end.
    let mut parser = Parser::new(64);
    assert!((0..64).any(|_| parser.push(b"data: x\n", events) == Err(TooLarge)));
    let mut parser = Parser::new(64);
    assert!((0..64).any(|_| parser.push(b"xx", events) == Err(TooLarge)));
    // What keeps a connection alive may be as long as it likes: it is not kept.
    let mut parser = Parser::new(16);
    for _ in 0..64 {
        assert_eq!(parser.push(b": 0123456789 0123456789", events), Ok(()));
    }
    assert_eq!(parser.push(b"\ndata: a\n\n", events), Ok(()));
    assert_eq!(events.pop_back(), Some(data("a")));
}

/// Events, and the bytes of one way to write them.
fn written() -> impl Strategy<Value = (Vec<Event>, Vec<u8>)> {
    let line = "[a-zäß{}\": ]{0,8}";
    let event = (proptest::option::of("[0-9.]{1,4}"), "[a-z]{0,3}", vec(line, 1..4));
    let end = prop_oneof![Just("\n"), Just("\r\n"), Just("\r")];
    vec((event, end, any::<bool>()), 0..6).prop_map(|all| {
        let (mut events, mut text) = (Vec::new(), String::new());
        for ((id, name, lines), end, pings) in all {
            if pings {
                text += &format!(": ping{end}{end}");
            }
            text.extend(id.iter().map(|id| format!("id: {id}{end}")));
            if !name.is_empty() {
                text += &format!("event: {name}{end}");
            }
            text.extend(lines.iter().map(|line| format!("data: {line}{end}")));
            text += end;
            events.push(Event { id, name, data: lines.join("\n") });
        }
        (events, text.into_bytes())
    })
}

proptest! {
    #[test]
    fn it_does_not_matter_where_the_bytes_are_cut((events, bytes) in written(), cuts in vec(any::<prop::sample::Index>(), 0..12)) {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]).collect();
        prop_assert_eq!(read(&pieces), events);
    }

    #[test]
    fn one_byte_at_a_time_is_the_same((events, bytes) in written()) {
        let pieces: Vec<&[u8]> = bytes.chunks(1).collect();
        prop_assert_eq!(read(&pieces), events);
    }

    #[test]
    fn any_bytes_are_read_and_the_size_is_kept(bytes in vec(any::<u8>(), 0..400), most in 1..64_usize) {
        let (mut parser, mut events) = (Parser::new(most), VecDeque::new());
        let read = parser.push(&bytes, &mut events);
        // A byte that is no text becomes three.
        prop_assert!(events.iter().all(|event| event.data.len() <= 3 * most));
        prop_assert!(read == Ok(()) || bytes.len() > most);
    }
}
