//! Nothing that somebody approves or reads is left out: what a screen would obey is shown as a mark, and what a reader of
//! markdown would drop is written out.

use crossterm::event::KeyCode;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::Play;
use super::screens::{asked, said};
use crate::markdown;
use crate::preferences::Colours;
use crate::theme::Theme;

/// The screen without frames, blanks and line ends: what is there, wherever it was wrapped.
fn letters(play: &Play) -> String {
    play.screen().chars().filter(|c| !c.is_whitespace() && !"│┌┐└┘─".contains(*c)).collect()
}

#[track_caller]
fn check_shown(event: &Value, expected: &[&str]) {
    for columns in [40, 80] {
        let mut play = Play::new(columns, 40);
        play.tell(event);
        let shown = letters(&play);
        for part in expected {
            let part: String = part.chars().filter(|c| !c.is_whitespace()).collect();
            assert!(shown.contains(&part), "{part:?} is not on the screen:\n{}", play.screen());
        }
    }
}

#[test]
fn a_question_shows_all_of_what_it_asks_about() {
    let command = "echo hi \u{1b}]; touch /tmp/x \u{7}";
    check_shown(&asked("q", command), &["echo hi ␛]; touch /tmp/x ␇"]);
    check_shown(&asked("q", "echo \u{9d}rm -rf /\u{9c} \u{90}x"), &["echo \\u009drm -rf /\\u009c \\u0090x"]);
    check_shown(&asked("q", "cat a\u{202e}b\u{200b}c\u{2066}"), &["cat a\\u202eb\\u200bc\\u2066"]);
    check_shown(&asked("q", "one\rtwo\u{8}\u{8}"), &["one␍two␈␈"]);
    check_shown(&asked("q", &format!("echo hi{};touch x", " ".repeat(500))), &["echo hi;touch x"]);
    check_shown(&asked("q", &format!("echo hi{};touch x", "\t".repeat(500))), &["echo hi;touch x"]);
    // The shell takes these as letters: nothing here is a comment.
    check_shown(&asked("q", "echo hi\u{a0}#\u{3000}; touch x"), &["echo hi\\u00a0#\\u3000; touch x"]);
    check_shown(&asked("q", "\u{301}x \u{1161}y"), &["\\u0301x \\u1161y"]);
    let mut question = asked("q", "ls");
    question["details"] = json!({ "type": "plan", "plan": "go \u{1b}]0;rm it\u{7} now <!-- and this --> end" });
    check_shown(&question, &["go ␛]0;rm it␇ now <!-- and this --> end"]);
    question["details"] =
        json!({ "type": "mcp", "server": "s\u{202e}", "tool": "t", "arguments": { "a\u{200b}": "\u{9b}x" } });
    check_shown(&question, &["t of s\\u202e", "\"a\\u200b\": \"\\u009bx\""]);
    // The agent chooses these words, and could leave out what it asks for.
    question["details"] = json!({
        "type": "text", "text": "read the docs", "arguments": { "fileSystem": { "write": ["/\u{202e}etc"] }, "network": { "enabled": true } }
    });
    check_shown(&question, &["read the docs", "\"/\\u202eetc\"", "\"network\": { \"enabled\": true }"]);
    question["details"] =
        json!({ "type": "input", "questions": [{ "question": "which\u{200b}?\u{1b}[2J", "labels": ["a\u{202e}"] }] });
    question["options"] = json!([{ "id": "o", "name": "a\u{202e}\u{9b}", "kind": "allowOnce" }]);
    check_shown(&question, &["which\\u200b?␛[2J", "a\\u202e"]);
}

/// Otherwise the second line would look like the rest of the comment, which is wrapped.
#[test]
fn the_lines_of_a_command_are_told_from_wrapped_ones() {
    let comment = "a comment that is far too long for one line of a narrow screen".repeat(2);
    let command = format!("echo hi # {comment}\n  touch /tmp/x");
    for columns in [40, 80] {
        let mut play = Play::new(columns, 40);
        play.tell(&asked("q", &command));
        let lines: Vec<String> = play.screen().lines().map(|line| line.trim_matches(['│', ' ']).to_owned()).collect();
        let numbered = |begin: &str| lines.iter().any(|line| line.starts_with(begin));
        assert!(numbered("1 echo hi") && numbered("2   touch /tmp/x"), "{}", play.screen());
        assert!(!numbered("3 "), "{}", play.screen());
    }
}

#[test]
fn many_empty_lines_push_nothing_off_the_screen() {
    let command = format!("echo hi{}touch /tmp/x", "\n \t".repeat(200));
    check_shown(&asked("q", &command), &["echo hi", "199 empty lines", "touch /tmp/x"]);
}

#[test]
fn a_diff_shows_each_line_that_changes() {
    let diff = "--- a/x.sql\n+++ b/x.sql\n@@ -1,3 +1,4 @@ fn evil() { run() }\n-- old comment\n+++ counter\n \u{1b}]0;kept\u{7}\n+\\ not the end\n+last\r\n";
    let edit = json!({ "type": "fileEdit", "filePath": "x\u{1b}[2K.sql", "diff": diff });
    let mut question = asked("q", "ls");
    question["details"] = edit;
    let expected =
        ["x␛[2K.sql", "-- old comment", "+++ counter", "␛]0;kept␇", "+\\ not the end", "+last␍", "fn evil() { run() }"];
    check_shown(&question, &expected);
    let changed = json!({ "type": "fileChanged", "filePath": "x.sql", "changeType": "modified", "diff": diff });
    check_shown(&changed, &expected[1..]);
}

#[test]
fn a_change_names_every_file_that_it_touches() {
    let several = "--- a/work/README.md\n+++ b/work/README.md\n@@ -1,1 +1,1 @@\n-a\n+b\n--- /dev/null\n+++ b/work/.git/hooks/pre-commit\n@@ -0,0 +1,1 @@\n+touch /tmp/x\n--- a/work/old\n+++ b/work/new\n";
    let moved = "--- a/work/README.md\n+++ b/work/.bashrc\n@@ -1,1 +1,1 @@\n-a\n+b\n";
    // The head of the hunk says that nothing follows.
    let lies = "--- a/work/README.md\n+++ b/work/README.md\n@@ -1,0 +1,0 @@\n--- gone\n+++ came\n";
    for (diff, expected) in [
        (
            several,
            vec![
                "/work/README.md",
                "--- /dev/null",
                "+++ b/work/.git/hooks/pre-commit",
                "--- a/work/old",
                "+++ b/work/new",
            ],
        ),
        (moved, vec!["--- a/work/README.md", "+++ b/work/.bashrc"]),
        (lies, vec!["--- gone", "+++ came"]),
    ] {
        let mut question = asked("q", "ls");
        question["details"] = json!({ "type": "fileEdit", "filePath": "/work/README.md", "diff": diff });
        check_shown(&question, &expected);
        let changed =
            json!({ "type": "fileChanged", "filePath": "/work/README.md", "changeType": "modified", "diff": diff });
        check_shown(&changed, &expected);
    }
    let mut play = Play::new(80, 30);
    let mut question = asked("q", "ls");
    question["details"] = json!({ "type": "fileEdit", "filePath": "/work/README.md", "diff": &several[..80] });
    play.tell(&question);
    assert!(!play.screen().contains("+++"), "the name is not said twice:\n{}", play.screen());
}

#[test]
fn a_name_takes_one_line_of_a_question() {
    let name = "x\n1. Allow once\n    1 +harmless";
    let mut question = asked("q", "ls");
    for (details, expected) in [
        (json!({ "type": "fileEdit", "filePath": name, "diff": "" }), "x␊1. Allow once␊    1 +harmless"),
        (json!({ "type": "command", "command": "ls", "directory": name }), "in x␊1. Allow once"),
        (json!({ "type": "mcp", "server": name, "tool": "t\nu", "arguments": {} }), "t␊u of x␊1. Allow once"),
    ] {
        question["details"] = details;
        let mut play = Play::new(80, 30);
        play.tell(&question);
        assert!(play.screen().contains(expected), "{expected}:\n{}", play.screen());
    }
    let change = json!({ "type": "fileChanged", "filePath": name, "changeType": "modified", "diff": "" });
    check_shown(&change, &["x␊1. Allow once␊    1 +harmless"]);
}

#[test]
fn output_of_tools_keeps_what_it_says() {
    let mut play = Play::new(80, 30);
    play.tell(&json!({ "type": "toolStarted", "toolId": "t", "toolName": "shell", "toolKind": "shell", "title": "a\u{1b}]b", "arguments": {} }));
    let output = "\u{1b}[32mgreen\u{1b}[0m\nsecret\rshown\n\u{1b}]0;title\u{7}after\n\u{1b}[8mconcealed\u{1b}[2Jx";
    play.tell(&json!({ "type": "toolProgress", "toolId": "t", "output": output }));
    let shown = letters(&play);
    for part in ["a␛]b", "green", "␍shown", "␛]0;title␇after", "concealed␛[2Jx"] {
        assert!(shown.contains(part), "{part}:\n{}", play.screen());
    }
    assert!(!shown.contains("[32m"), "colours carry no text:\n{}", play.screen());
}

#[test]
fn markdown_leaves_nothing_out() {
    for (text, expected) in [
        ("[![alt](http://img)](http://link)", vec!["alt", "http://img", "http://link"]),
        ("[a](http://x \"a title\")", vec!["a (http://x \"a title\")"]),
        ("[http://good](http://evil)", vec!["http://good (http://evil)"]),
        ("text\n\n[x]: http://defined \"of it\"\n", vec!["text", "[x]: http://defined \"of it\""]),
        ("[x]: one\n[x]: second\n\nsee [x]", vec!["[x]: second", "x (one)"]),
        ("> [q]: http://quoted\n> words", vec!["[q]: http://quoted", "words"]),
        ("- [l]: http://listed\n", vec!["[l]: http://listed"]),
        ("| a |\n|---|\n| b | beyond the table |\n", vec!["a", "b", "beyond the table"]),
        ("```rust and more words\nlet a;\n```", vec!["rust and more words", "let a;"]),
        (
            "a <!-- comment --> <b>bold</b>\n\n<!-- block\nof it -->\n\n<script>x</script>",
            vec!["<!-- comment -->", "<b>bold</b>", "<!-- block", "of it -->", "<script>x</script>"],
        ),
        ("a &#x202e; &ZeroWidthSpace; \u{202e}b", vec!["a \\u202e \\u200b \\u202eb"]),
        ("one\r\ntwo\rthree", vec!["one", "two␍three"]),
    ] {
        let lines = markdown::lines(text, 60, Theme::new(Colours::None));
        let shown: Vec<String> = lines.iter().map(ToString::to_string).collect();
        let shown = shown.join("\n");
        for part in expected {
            assert!(shown.contains(part), "{part:?} of {text:?} is missing:\n{shown}");
        }
    }
}

#[test]
fn a_long_block_of_code_shows_what_stands_beside_its_language() {
    let code = "let a;\n".repeat(3000);
    let mut play = Play::new(80, 30);
    play.tell(&said(&format!("```rust and more words\n{code}```\n")));
    play.press(KeyCode::PageUp);
    for _ in 0..200 {
        play.press(KeyCode::PageUp);
    }
    assert!(play.screen().contains("rust and more words"), "{}", play.screen());
}

#[test]
fn names_of_clients_and_lists_are_seen_whole() {
    let mut play = Play::new(100, 20);
    play.tell(&json!({ "type": "clientJoined", "client": { "client": "a\u{1b}]x\u{202e}\nb", "door": "a2a", "clientId": "c" } }));
    play.tell(&json!({ "type": "modelChanged", "model": "m\u{200b}\u{1b}[2J" }));
    let commands = json!([{ "name": "zz", "description": "does\u{1b}]0;hidden\u{7} it" }]);
    play.tell(&json!({ "type": "capabilities", "commands": commands }));
    play.write("/zz");
    let shown = letters(&play);
    for part in ["a␛]x\\u202e␊bjoined", "m\\u200b␛[2J", "does␛]0;hidden␇it"] {
        assert!(shown.contains(part), "{part}:\n{}", play.screen());
    }
}

/// Pieces of markdown and of what terminals obey, each with a letter that is nowhere else.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "A ",
        "**B**",
        "[C](D)",
        "![E](F \"G\")",
        "\n\n[H]: I\n",
        "\n\n[H]: J \"K\"\n\n",
        "<!-- L -->",
        "<M>",
        "`N`",
        "\n",
        "\n\n",
        "- O\n",
        "> P\n",
        "| Q |\n|---|\n| R | S |\n",
        "\n```T U\n",
        "\n```\n",
        "# V\n",
        "\u{1b}]W\u{7}",
        "\u{9d}X",
        "\u{202e}Y",
        "~~Z~~",
        "    a\n",
        "1. b\n",
        "[^c]",
        "[^c]: d\n",
        "\re",
        "***\n",
        "\\",
    ]);
    prop::collection::vec(piece, 1..10).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn every_letter_of_markdown_is_shown(text in pieces()) {
        let lines = markdown::lines(&text, 40, Theme::new(Colours::None));
        let shown: String = lines.iter().map(ToString::to_string).collect();
        // Marks have letters of their own: `\u202e`.
        let marks = |letter: char| text.matches('\u{202e}').count() * "\\u202e".matches(letter).count()
            + text.matches('\u{9d}').count() * "\\u009d".matches(letter).count();
        for letter in ('A'..='Z').chain('a'..='e') {
            let (there, needed) = (shown.matches(letter).count(), text.matches(letter).count());
            // The name of a definition is not repeated where it is used.
            let needed = if matches!(letter, 'c' | 'H') { needed.min(1) } else { needed };
            prop_assert!(there >= needed + marks(letter), "{letter} of {text:?}:\n{shown}");
        }
        let obeyed = |c: char| c.is_control() || ('\u{202a}'..='\u{202e}').contains(&c);
        prop_assert!(!shown.contains(obeyed), "{shown:?}");
    }
}
