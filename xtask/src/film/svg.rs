//! A film as one picture that moves: an SVG with styles and no script, so that it plays where pictures are shown.
//!
//! Each row of the screen is a window of one line; behind it all lines that ever stand there hang below each other, and
//! an animation moves the right one up. Lines that look the same are drawn once. Each piece of text is told its
//! width, so that columns stand straight whatever font there is. No files, no terminal here.

mod row;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::cast::{Film, Frame};
use super::screen::Cursor;

const CELL: f64 = 8.4;
const LINE: f64 = 18.0;
const FONT: f64 = 14.0;
const MARGIN: f64 = 14.0;

const FRONT: &str = "#d4d7dd";
const BACK: &str = "#23262d";
const PALETTE: [&str; 16] = [
    "#3b4048", "#e5707a", "#93c47a", "#e3bd75", "#6cabe8", "#c68add", "#5fb8c2", "#c3c8d1", "#7d8590", "#f08d96",
    "#aedb97", "#f0d197", "#8fc3f5", "#d9a9ec", "#86d2da", "#f2f4f7",
];
const FONTS: &str = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono','Liberation Mono',monospace";

/// The picture of a film; the title is for those who cannot see it.
pub(crate) fn draw(film: &Film, title: &str) -> String {
    let mut sheet = Sheet { film, lines: BTreeMap::new(), drawn: String::new(), styles: String::new() };
    let mut rows = String::new();
    for row in 0..film.rows {
        rows.push_str(&sheet.row(row));
    }
    let cursor = sheet.cursor();
    let (width, height) = (film.columns as f64 * CELL, film.rows as f64 * LINE);
    let (whole_width, whole_height) = (width + 2.0 * MARGIN, height + 2.0 * MARGIN);
    let mut classes = String::new();
    for (at, colour) in PALETTE.iter().enumerate() {
        write!(classes, ".f{at}{{fill:{colour}}}").ok(); // a String takes everything
    }
    let Sheet { drawn, styles, .. } = sheet;
    let time = number(film.end);
    format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {} {}" width="{0}" height="{1}" role="img">
<title>{title}</title>
<style>
text{{font:{FONT}px {FONTS};white-space:pre}}text,path{{fill:{FRONT}}}
{classes}.fb{{fill:{BACK}}}.b{{font-weight:bold}}.d{{fill-opacity:.62}}.i{{font-style:italic}}.u{{text-decoration:underline}}.s{{text-decoration:line-through}}
.m{{animation:{time}s step-end infinite}}
@media (prefers-reduced-motion:reduce){{.m{{animation-play-state:paused;animation-delay:-{}s!important}}}}
{styles}</style>
<defs>
{drawn}</defs>
<rect width="100%" height="100%" rx="9" fill="{BACK}"/>
<svg x="{MARGIN}" y="{MARGIN}" width="{}" height="{}">
{cursor}{rows}</svg>
</svg>
"##,
        number(whole_width),
        number(whole_height),
        number(film.end - 0.05),
        number(width),
        number(height),
    )
}

/// What has been drawn so far.
struct Sheet<'a> {
    film: &'a Film,
    /// Each line that was drawn, and its name.
    lines: BTreeMap<String, String>,
    drawn: String,
    styles: String,
}

impl Sheet<'_> {
    /// The window of a row, and all that is to be seen in it.
    fn row(&mut self, row: usize) -> String {
        let name = format!("r{row}");
        let mut strip: Vec<String> = Vec::new();
        let mut places = Vec::new();
        let mut uses = String::new();
        for frame in &self.film.frames {
            let line = row::drawn(&frame.screen.rows()[row]);
            let place = strip.iter().position(|known| *known == line).unwrap_or_else(|| {
                if !line.is_empty() {
                    let y = number(strip.len() as f64 * LINE);
                    write!(uses, r##"<use href="#{}" y="{y}"/>"##, self.name(&line)).ok(); // a String takes everything
                }
                strip.push(line);
                strip.len() - 1
            });
            places.push((frame.at, format!("translateY({}px)", number(place as f64 * -LINE))));
        }
        if uses.is_empty() {
            return String::new();
        }
        let moves = self.moves(&name, places);
        let (y, width) = (number(row as f64 * LINE), number(self.film.columns as f64 * CELL));
        format!("<svg y=\"{y}\" width=\"{width}\" height=\"{LINE}\"><g{moves}>{uses}</g></svg>\n")
    }

    /// The name under which a line is drawn.
    fn name(&mut self, line: &str) -> String {
        if let Some(name) = self.lines.get(line) {
            return name.clone();
        }
        let name = format!("l{}", self.lines.len());
        writeln!(self.drawn, "<g id=\"{name}\">{line}</g>").ok(); // a String takes everything
        self.lines.insert(line.to_owned(), name.clone());
        name
    }

    fn cursor(&mut self) -> String {
        let place = |cursor: Cursor| match cursor {
            Some((column, row)) => (column as f64 * CELL, row as f64 * LINE),
            None => (-2.0 * CELL, 0.0),
        };
        let at = |frame: &Frame| {
            let (x, y) = place(frame.screen.cursor);
            (frame.at, format!("translate({}px,{}px)", number(x), number(y)))
        };
        let places = self.film.frames.iter().map(at).collect();
        let moves = self.moves("c", places);
        format!("<rect width=\"{CELL}\" height=\"{LINE}\" fill=\"{FRONT}\" opacity=\".45\"{moves}/>\n")
    }

    /// The animation that moves something to these places, as its attribute; nothing for what stays where it is.
    fn moves(&mut self, name: &str, mut places: Vec<(f64, String)>) -> String {
        places.dedup_by(|next, before| next.1 == before.1);
        match &places[..] {
            [] => String::new(),
            [(_, only)] => format!(" style=\"transform:{only}\""),
            _ => {
                let mut steps = String::new();
                for (place, (at, moved)) in places.iter().enumerate() {
                    // What comes first is there from the beginning.
                    let share = if place == 0 { 0.0 } else { at / self.film.end * 100.0 };
                    write!(steps, "{}%{{transform:{moved}}}", number(share)).ok(); // a String takes everything
                }
                writeln!(self.styles, "@keyframes {name}{{{steps}}}").ok(); // a String takes everything
                format!(" class=\"m\" style=\"animation-name:{name}\"")
            }
        }
    }
}

/// A number in as few letters as will do.
fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::super::screen::Screen;
    use super::*;

    fn film(told: &[&str]) -> Film {
        let frame = |(at, told): (usize, &&str)| {
            let mut screen = Screen::new(10, 2);
            screen.draw(told).unwrap();
            Frame { at: at as f64, screen }
        };
        let frames: Vec<Frame> = told.iter().enumerate().map(frame).collect();
        Film { columns: 10, rows: 2, end: frames.len() as f64, frames }
    }

    #[test]
    fn a_line_that_comes_again_is_drawn_once_and_moved_to() {
        let picture = draw(&film(&["a\nb", "b\nb", "a\nb", "a\nb"]), "two letters");
        assert_eq!(picture.matches("<g id=").count(), 2, "{picture}");
        let moves = "@keyframes r0{0%{transform:translateY(0px)}25%{transform:translateY(-18px)}\
                     50%{transform:translateY(0px)}}\n";
        assert!(picture.contains(moves), "{picture}");
        assert!(!picture.contains("@keyframes r1"), "what never changes does not move: {picture}");
    }

    #[test]
    fn text_is_escaped_and_keeps_its_place() {
        let picture = draw(&film(&["  a<b &c\n\x1b[7m on"]), "odd letters");
        assert!(picture.contains(r#"<text x="16.8" y="13.5" textLength="50.4""#), "{picture}");
        assert!(picture.contains(">a&lt;b &amp;c</text>"), "{picture}");
        assert!(picture.contains(r#"<rect x="0" width="25.2" height="18" class="f7"/>"#), "{picture}");
    }
}
