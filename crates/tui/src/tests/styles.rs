//! Colours and styles, where they say something: sides of a diff, changed words, the output of programs, modes.

use std::fmt::Write as _;

use ratatui::buffer::Cell;
use ratatui::style::{Color, Modifier};
use serde_json::json;

use super::Play;
use crate::preferences::Colours;
use crate::theme::Theme;

/// The rows of a screen, with the style before each part that has one: `‹fg on bg modifiers›`.
fn styled(play: &Play) -> String {
    let buffer = play.buffer();
    let mut shown = String::new();
    for y in 0..buffer.area.height {
        let (mut row, mut last) = (String::new(), String::new());
        for x in 0..buffer.area.width {
            let cell = &buffer[(x, y)];
            let style = style(cell);
            if style != last {
                write!(row, "‹{style}›").unwrap();
            }
            last = style;
            row.push_str(cell.symbol());
        }
        writeln!(shown, "{}", row.trim_end()).unwrap();
    }
    shown
}

fn style(cell: &Cell) -> String {
    let colour = |colour: Color| match colour {
        Color::Reset => String::new(),
        Color::Indexed(number) => number.to_string(),
        other => other.to_string().to_lowercase(),
    };
    let (front, back) = (colour(cell.fg), colour(cell.bg));
    let mut words = vec![front];
    words.extend((!back.is_empty()).then(|| format!("on {back}")));
    words.extend(cell.modifier.iter_names().map(|(name, _): (_, Modifier)| name.to_lowercase()));
    words.join(" ").trim().to_owned()
}

#[track_caller]
fn check(name: &str, sizes: &[u16], rows: u16, colours: &[Colours], happen: impl Fn(&mut Play)) {
    let mut shown = String::new();
    for colours in colours {
        for columns in sizes {
            let mut play = Play::new(*columns, rows);
            play.model.theme = Theme::new(*colours);
            happen(&mut play);
            // Without the composer and the status line.
            let screen = styled(&play);
            let rows: Vec<&str> = screen.lines().take(usize::from(rows) - 4).collect();
            writeln!(shown, "▔▔ {columns} columns, {colours:?}\n{}", rows.join("\n")).unwrap();
        }
    }
    insta::assert_snapshot!(name, shown);
}

fn changed(play: &mut Play) {
    let diff = "--- a/src/main.rs\n+++ b/src/main.rs\n@@ -8,5 +8,6 @@ fn main() {\n     // Both sides.\n-    let total = sum(&items, 10);\n+    let total = sum(&items, \"12\");\n     print(total);\n-    return;\n+    for item in items {}\n+    done()\n";
    play.tell(&json!({ "type": "fileChanged", "filePath": "src/main.rs", "changeType": "modified", "diff": diff }));
}

#[test]
fn a_diff_shows_sides_syntax_and_changed_words() {
    check("style_diff", &[40, 80, 160], 16, &[Colours::Dark], changed);
    check("style_diff_colours", &[60], 16, &[Colours::Light, Colours::Sixteen, Colours::None], changed);
}

#[test]
fn output_of_programs_keeps_its_colours() {
    let output = "\u{1b}[1m\u{1b}[32m   Compiling\u{1b}[0m app v0.1.0\n\u{1b}[31merror\u{1b}[0m: \u{1b}[38;5;208mmismatched\u{1b}[0m types\n\u{1b}[42;30m PASS \u{1b}[0m src/a.test.js\n\u{1b}[8mconcealed\u{1b}[0m \u{1b}[30;40mblack on black\u{1b}[0m\nplain\n";
    let happen = |play: &mut Play| {
        play.tell(&json!({ "type": "toolStarted", "toolId": "t", "toolName": "shell", "toolKind": "shell", "title": "make", "arguments": {} }));
        play.tell(&json!({ "type": "toolCompleted", "toolId": "t", "success": true, "outcome": "completed", "result": output }));
    };
    check("style_output", &[40, 80, 160], 14, &[Colours::Sixteen], happen);
    check("style_output_none", &[80], 14, &[Colours::None], happen);
}

#[test]
fn names_of_files_are_links_where_the_terminal_shows_them() {
    for at_end in [true, false] {
        let mut play = Play::new(60, 16);
        play.tell(
            &json!({ "type": "sessionStarted", "agentType": "codex", "config": { "workingDirectory": "/work dir" } }),
        );
        let call = |id: &str, path: &str| json!({ "type": "toolStarted", "toolId": id, "toolName": "Read", "toolKind": "read", "title": "", "arguments": { "file_path": path } });
        play.tell(&call("t", "/work dir/src/日.rs"));
        play.tell(&call("u", "/else/\u{1b}]8;;http://evil\u{7}x"));
        if !at_end {
            let text = (0..30).map(|line| format!("line {line}\n\n")).collect::<String>();
            play.tell(&json!({ "type": "textChunk", "content": text }));
            (0..9).for_each(|_| drop(play.press(crossterm::event::KeyCode::PageUp)));
        }
        let plain = play.screen();
        assert!(!plain.contains('\u{1b}'), "{plain}");
        play.model.has_links = true;
        let buffer = play.buffer();
        let (open, close) = ("\u{1b}]8;id=file;file:///work%20dir/src/%E6%97%A5.rs\u{1b}\\", "\u{1b}]8;;\u{1b}\\");
        let links = |y: u16| {
            (0..60).map(|x| buffer[(x, y)].symbol()).filter(|symbol| symbol.contains("]8;")).collect::<Vec<_>>()
        };
        let expected: Vec<String> =
            ["s", "r", "c", "/", "日", ".", "r", "s"].map(|c| format!("{open}{c}{close}")).into();
        assert_eq!(links(1), expected, "{plain}");
        // The name of a file ends no address.
        let evil = links(3);
        assert!(
            evil.iter()
                .all(|symbol| symbol.starts_with("\u{1b}]8;id=file;file:///else/%1B%5D8%3B%3Bhttp%3A//evil%07x\u{1b}")),
            "{evil:?}"
        );
        assert!(!evil.is_empty(), "{plain}");
    }
}

#[test]
fn a_character_is_not_torn_from_its_accent() {
    let mut play = Play::new(60, 16);
    play.model.theme = Theme::new(Colours::Dark);
    let diff = "--- a/x.rs\n+++ b/x.rs\n@@ -1 +1 @@\n-let a = (\u{301}1);\n+let a = (\u{301}2);\n";
    play.tell(&json!({ "type": "fileChanged", "filePath": "x.rs", "changeType": "modified", "diff": diff }));
    assert_eq!(play.screen().matches("(\u{301}").count(), 2, "{}", play.screen());
}
