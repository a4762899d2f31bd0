//! One row of a screen as shapes of an SVG: what is behind letters, the letters, and the lines of frames.

use std::fmt::Write as _;

use super::super::screen::{BOLD, Cell, Colour, DIM, INVERSE, SLANTED, STRUCK, Style, UNDERLINED};
use super::{CELL, LINE, number};

/// From the top of a row to the foot of its letters.
const FOOT: f64 = 13.5;
/// How thick lines are: whole, and at a whole place, so that they are sharp.
const THIN: f64 = 1.0;

/// A row as shapes; empty if nothing is to be seen in it.
pub(super) fn drawn(row: &[Cell]) -> String {
    let mut shapes = String::new();
    let mut start = 0;
    for piece in row.chunk_by(|one, next| one.style == next.style && kind(one) == kind(next)) {
        let (x, width) = (number(start as f64 * CELL), number(piece.len() as f64 * CELL));
        let style = piece[0].style;
        let (front, back) = colours(style);
        if let Some(back) = back {
            write!(shapes, r#"<rect x="{x}" width="{width}" height="{LINE}" class="{back}"/>"#).ok(); // a String takes everything
        }
        let class = classes(style, front);
        shapes.push_str(&match kind(&piece[0]) {
            Kind::Plain | Kind::Odd => letters(piece, start, &class),
            Kind::Line => format!("<path d=\"{}\"{class}/>", lines(piece, start)),
        });
        start += piece.len();
    }
    shapes
}

/// How a letter is drawn.
#[derive(PartialEq)]
enum Kind {
    Plain,
    /// May come from a font of another width, so it stands apart.
    Odd,
    /// Of a frame or a rule. Drawn by us, since letters of one row do not reach those of the next.
    Line,
}

fn kind(cell: &Cell) -> Kind {
    match cell.letter {
        letter if letter.is_ascii() => Kind::Plain,
        letter if arms(letter).is_some() => Kind::Line,
        _ => Kind::Odd,
    }
}

/// Which of left, right, up and down a line goes from the middle of its cell.
fn arms(letter: char) -> Option<[bool; 4]> {
    let arms = match letter {
        '─' => [1, 1, 0, 0],
        '│' => [0, 0, 1, 1],
        '┌' => [0, 1, 0, 1],
        '┐' => [1, 0, 0, 1],
        '└' => [0, 1, 1, 0],
        '┘' => [1, 0, 1, 0],
        '├' => [0, 1, 1, 1],
        '┤' => [1, 0, 1, 1],
        '┬' => [1, 1, 0, 1],
        '┴' => [1, 1, 1, 0],
        '┼' => [1, 1, 1, 1],
        _ => return None,
    };
    Some(arms.map(|arm| arm == 1))
}

/// Thin boxes along the arms; those that meet sideways are one.
fn lines(piece: &[Cell], start: usize) -> String {
    let mut path = String::new();
    let mut add = |x: f64, y: f64, width: f64, height: f64| {
        let [x, y, width, height] = [x, y, width, height].map(number);
        write!(path, "M{x} {y}h{width}v{height}h-{width}z").ok(); // a String takes everything
    };
    let mut across: Option<(f64, f64)> = None;
    for (at, cell) in piece.iter().enumerate() {
        let [left, right, up, down] = arms(cell.letter).unwrap_or_default();
        let edge = (start + at) as f64 * CELL;
        let middle = edge + (CELL - THIN) / 2.0;
        let (from, to) = (if left { edge } else { middle }, if right { edge + CELL } else { middle + THIN });
        if left || right {
            match &mut across {
                Some((_, end)) if left && (*end - from).abs() < THIN / 2.0 => *end = to,
                _ => {
                    if let Some((from, to)) = across.replace((from, to)) {
                        add(from, LINE / 2.0, to - from, THIN);
                    }
                }
            }
        }
        if up || down {
            let (top, bottom) = (if up { 0.0 } else { LINE / 2.0 }, if down { LINE } else { LINE / 2.0 });
            add(middle, top, THIN, bottom - top);
        }
    }
    if let Some((from, to)) = across {
        add(from, LINE / 2.0, to - from, THIN);
    }
    path
}

fn letters(piece: &[Cell], start: usize, class: &str) -> String {
    let text: String = piece.iter().map(|cell| cell.letter).collect();
    let (shown, before) = (text.trim(), text.chars().take_while(|letter| *letter == ' ').count());
    if shown.is_empty() {
        return String::new();
    }
    let (x, length) = (number((start + before) as f64 * CELL), number(shown.chars().count() as f64 * CELL));
    let shown = shown.replace('&', "&amp;").replace('<', "&lt;");
    let fit = "lengthAdjust=\"spacingAndGlyphs\"";
    format!(r#"<text x="{x}" y="{FOOT}" textLength="{length}" {fit}{class}>{shown}</text>"#)
}

/// The classes of the letters and of what is behind them.
fn colours(style: Style) -> (Option<String>, Option<String>) {
    let class = |colour: Colour| colour.map(|colour| format!("f{colour}"));
    match style.marks.has(INVERSE) {
        false => (class(style.front), class(style.back)),
        true => (
            Some(class(style.back).unwrap_or_else(|| "fb".to_owned())),
            Some(class(style.front).unwrap_or_else(|| "f7".to_owned())),
        ),
    }
}

fn classes(style: Style, front: Option<String>) -> String {
    let marks = [(BOLD, "b"), (DIM, "d"), (SLANTED, "i"), (UNDERLINED, "u"), (STRUCK, "s")];
    let marks = marks.into_iter().filter(|(mark, _)| style.marks.has(*mark)).map(|(_, class)| class.to_owned());
    let all: Vec<String> = front.into_iter().chain(marks).collect();
    if all.is_empty() { String::new() } else { format!(" class=\"{}\"", all.join(" ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_reach_the_edges_that_they_should() {
        let row = |text: &str| text.chars().map(|letter| Cell { letter, style: Style::default() }).collect::<Vec<_>>();
        assert_eq!(lines(&row("──"), 1), "M8.4 9h16.8v1h-16.8z");
        assert_eq!(lines(&row("│"), 0), "M3.7 0h1v18h-1z");
        assert_eq!(lines(&row("└─"), 0), "M3.7 0h1v9h-1zM3.7 9h13.1v1h-13.1z");
        assert_eq!(lines(&row("┐│"), 0).matches('M').count(), 3);
    }
}
