//! A recording in the form of asciinema, version 2: a header, then what was written to the terminal and when.
//!
//! tmux tells whole screens; what is kept of each is the rows that changed. So any player shows exactly what was to
//! be seen, and needs none of the tricks that tmux plays on the terminal it draws on. The header has no date and no
//! name of a machine. No files here.

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};

use super::screen::Screen;

/// What was to be seen, from that second on.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Frame {
    pub(crate) at: f64,
    pub(crate) screen: Screen,
}

/// A film: its frames, and when the last one has been seen long enough.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Film {
    pub(crate) columns: usize,
    pub(crate) rows: usize,
    pub(crate) frames: Vec<Frame>,
    pub(crate) end: f64,
}

/// The text of a cast.
pub(crate) fn write(film: &Film, title: &str) -> String {
    let env = json!({ "TERM": "xterm-256color" });
    let header = json!({ "version": 2, "width": film.columns, "height": film.rows, "title": title, "env": env });
    let mut lines = vec![header];
    let mut old = Screen::new(film.columns, film.rows);
    for frame in &film.frames {
        let written = frame.screen.since(&old);
        // A player's screen may have something on it before.
        let first = if lines.len() == 1 { "\x1b[2J" } else { "" };
        lines.push(json!([millis(frame.at), "o", format!("{first}{written}")]));
        old.clone_from(&frame.screen);
    }
    // Nothing more is written, but players wait for it.
    lines.push(json!([millis(film.end), "o", ""]));
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn millis(seconds: f64) -> f64 {
    (seconds * 1000.0).round() / 1000.0
}

/// The film that a cast shows. An error names the line.
pub(crate) fn read(text: &str) -> Result<Film> {
    let mut lines = text.lines();
    let header: Value = serde_json::from_str(lines.next().context("an empty cast")?).context("the header")?;
    ensure!(header["version"] == 2, "a cast of version 2, not {}", header["version"]);
    let size = |name: &str| header[name].as_u64().and_then(|size| usize::try_from(size).ok()).context("its size");
    let (columns, rows) = (size("width")?, size("height")?);
    let mut film = Film { columns, rows, frames: Vec::new(), end: 0.0 };
    let mut screen = Screen::new(columns, rows);
    for (at, line) in lines.enumerate() {
        let event = event(line, film.end).and_then(|(time, written)| {
            screen.take(&written)?;
            Ok((time, written))
        });
        let (time, written) = event.with_context(|| format!("line {} of the cast", at + 2))?;
        film.end = time;
        if !written.is_empty() {
            film.frames.push(Frame { at: time, screen: screen.clone() });
        }
    }
    Ok(film)
}

fn event(line: &str, last: f64) -> Result<(f64, String)> {
    let event: Value = serde_json::from_str(line)?;
    let [Value::Number(time), Value::String(kind), Value::String(written)] = &event.as_array().context("no list")?[..]
    else {
        bail!("not a time, a kind and a text")
    };
    ensure!(kind == "o", "an event of kind {kind}");
    let time = time.as_f64().context("no time")?;
    ensure!(time >= last, "it goes back in time");
    Ok((time, written.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let mut frames = Vec::new();
        for (at, told) in [(0.0, "$ "), (0.125, "$ echo \"\x1b[32mhi\x1b[39m\""), (2.5, "")] {
            let mut screen = Screen::new(20, 2);
            screen.draw(told).unwrap();
            screen.cursor = Some((told.len().min(19), 0));
            frames.push(Frame { at, screen });
        }
        let film = Film { columns: 20, rows: 2, frames, end: 4.0 };
        assert_eq!(read(&write(&film, "a test")).unwrap(), film);
    }

    #[test]
    fn a_cast_that_is_none_is_refused_with_its_line() {
        let header = r#"{"version":2,"width":4,"height":1}"#;
        for (cast, why) in [
            (String::new(), "empty"),
            (r#"{"version":1,"width":4,"height":1}"#.to_owned(), "version 2, not 1"),
            (r#"{"version":2,"height":1}"#.to_owned(), "size"),
            (format!("{header}\n[1,\"o\",\"a\"]\n[0.5,\"o\",\"b\"]"), "line 3 of the cast: it goes back"),
            (format!("{header}\n[1,\"i\",\"a\"]"), "line 2 of the cast: an event of kind i"),
            (format!("{header}\n[1,\"o\"]"), "line 2 of the cast: not a time"),
        ] {
            let error = format!("{:#}", read(&cast).unwrap_err());
            assert!(error.contains(why), "{cast}: {error}");
        }
    }
}
