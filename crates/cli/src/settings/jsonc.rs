//! Converts JSON with comments and trailing commas to plain JSON.
//!
//! Removed characters become spaces, so that positions in errors are those of the file.

/// The text without `//` and `/* */` comments and trailing commas.
pub(crate) fn plain(text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    // Some editors write a byte order mark.
    if bytes.starts_with(b"\xef\xbb\xbf") {
        bytes[..3].fill(b' ');
    }
    let mut at = 0;
    // The last comma, if only white space and comments followed so far.
    let mut comma = None;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                comma = None;
                at = end_of_string(&bytes, at);
            }
            b'/' if matches!(bytes.get(at + 1), Some(b'/' | b'*')) => {
                let end = end_of_comment(&bytes, at);
                blank(&mut bytes[at..end]);
                at = end;
            }
            b',' => {
                comma = Some(at);
                at += 1;
            }
            b'}' | b']' => {
                if let Some(comma) = comma.take() {
                    bytes[comma] = b' ';
                }
                at += 1;
            }
            byte => {
                if !byte.is_ascii_whitespace() {
                    comma = None;
                }
                at += 1;
            }
        }
    }
    // Only whole comments and single ASCII bytes were replaced.
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

/// Index after the string that begins here.
fn end_of_string(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Index after the comment that begins here.
fn end_of_comment(bytes: &[u8], start: usize) -> usize {
    let rest = &bytes[start + 2..];
    let length = if bytes[start + 1] == b'/' {
        rest.iter().position(|byte| *byte == b'\n')
    } else {
        rest.windows(2).position(|pair| pair == b"*/").map(|at| at + 2)
    };
    length.map_or(bytes.len(), |length| start + 2 + length)
}

fn blank(bytes: &mut [u8]) {
    for byte in bytes.iter_mut().filter(|byte| **byte != b'\n') {
        *byte = b' ';
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &Value) {
        assert_eq!(serde_json::from_str::<Value>(&plain(text)).unwrap(), *expected, "{text}");
    }

    #[test]
    fn comments_and_trailing_commas_go() {
        check("{\n// hello\n\"a\": 1, /* é, \" */ \"b\": [1, 2, /* x */ ], // end\n}", &json!({"a": 1, "b": [1, 2]}));
        check("/* a */ {} // b", &json!({}));
        check("\u{feff}{\"a\":[1,],}", &json!({"a": [1]}));
    }

    #[test]
    fn strings_stay_as_they_are() {
        check(r#"{"url": "http://x/*y*/", "s": "a\",]//", "t": ",}"}"#, &{
            json!({"url": "http://x/*y*/", "s": "a\",]//", "t": ",}"})
        });
    }

    #[test]
    fn errors_name_the_place_in_the_file() {
        let error = serde_json::from_str::<Value>(&plain("{\n  // one\n  \"a\": nonsense\n}")).unwrap_err();
        assert_eq!(error.line(), 3);
    }

    #[test]
    fn half_a_file_does_no_harm() {
        for text in ["/*", "//", "\"", "\"\\", "{\"a\": \"b", ",", "[,]", "/"] {
            plain(text);
        }
        assert!(serde_json::from_str::<Value>(&plain("[1,,]")).is_err());
    }

    proptest! {
        /// Whatever the text: no panic, and every place stays where it was.
        #[test]
        fn nothing_moves(text in r#"([{}\[\],:"/*\\ \né]|[a-z])*"#) {
            let plain = plain(&text);
            prop_assert_eq!(plain.len(), text.len());
            prop_assert_eq!(plain.lines().count(), text.lines().count());
        }

        /// What is JSON already means the same afterwards.
        #[test]
        fn json_stays_json(words in prop::collection::vec(r#"[a-z/*,\]}"\\]{0,8}"#, 0..6)) {
            let value = json!({ "words": words });
            prop_assert_eq!(serde_json::from_str::<Value>(&plain(&value.to_string())).unwrap(), value);
        }
    }
}
