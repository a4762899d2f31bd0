//! A terminal's screen as cells, and the few words of the terminal's language that a recording is made of.
//!
//! The same words are read from tmux and from a recording, and written into one: text, colours, where the cursor
//! stands. Anything else is an error, so a picture never shows less than the terminal did. Every character is taken to
//! be one column wide. No files, no clock, no programs here.

use std::fmt::Write as _;
use std::ops::Range;

use anyhow::{Context as _, Result, bail, ensure};

/// One of the sixteen colours of a terminal's palette; none is the terminal's own.
pub(crate) type Colour = Option<u8>;

/// How a cell looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Style {
    pub(crate) front: Colour,
    pub(crate) back: Colour,
    pub(crate) marks: Marks,
}

/// Bold, dim and so on: one bit each, at the number that SGR has for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Marks(u16);

pub(crate) const BOLD: u8 = 1;
pub(crate) const DIM: u8 = 2;
pub(crate) const SLANTED: u8 = 3;
pub(crate) const UNDERLINED: u8 = 4;
pub(crate) const INVERSE: u8 = 7;
pub(crate) const STRUCK: u8 = 9;
const MARKS: [u8; 6] = [BOLD, DIM, SLANTED, UNDERLINED, INVERSE, STRUCK];

impl Marks {
    pub(crate) fn has(self, mark: u8) -> bool {
        self.0 & (1 << mark) != 0
    }

    fn set(&mut self, mark: u8, on: bool) {
        let bit = 1 << mark;
        self.0 = if on { self.0 | bit } else { self.0 & !bit };
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Cell {
    pub(crate) letter: char,
    pub(crate) style: Style,
}

const BLANK: Cell = Cell { letter: ' ', style: Style { front: None, back: None, marks: Marks(0) } };

/// Where the cursor stands, if it is to be seen.
pub(crate) type Cursor = Option<(usize, usize)>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Screen {
    rows: Vec<Vec<Cell>>,
    pub(crate) cursor: Cursor,
}

impl Screen {
    /// An empty one.
    pub(crate) fn new(columns: usize, rows: usize) -> Self {
        Self { rows: vec![vec![BLANK; columns]; rows], cursor: None }
    }

    pub(crate) fn rows(&self) -> &[Vec<Cell>] {
        &self.rows
    }

    /// What is to be read in these columns, a line for each row.
    pub(crate) fn text(&self, columns: Range<usize>) -> String {
        let line =
            |row: &Vec<Cell>| row.get(columns.clone()).unwrap_or_default().iter().map(|cell| cell.letter).collect();
        self.rows.iter().map(line).collect::<Vec<String>>().join("\n")
    }

    /// Takes what tmux tells of a screen: a line for each row, in which a style lasts until another is named.
    pub(crate) fn draw(&mut self, told: &str) -> Result<()> {
        let mut pen = Pen { screen: self, row: 0, column: 0, style: Style::default(), shown: false };
        for (at, line) in told.lines().enumerate() {
            (pen.row, pen.column) = (at, 0);
            pen.write(line)?;
        }
        Ok(())
    }

    /// Takes what a program writes to a terminal.
    pub(crate) fn take(&mut self, written: &str) -> Result<()> {
        let (column, row) = self.cursor.unwrap_or_default();
        let shown = self.cursor.is_some();
        let mut pen = Pen { screen: self, row, column, style: Style::default(), shown };
        pen.write(written)?;
        self.cursor = pen.shown.then_some((pen.column, pen.row));
        Ok(())
    }

    /// What a program would write to make this of another screen: the rows that are different, each as a whole.
    pub(crate) fn since(&self, old: &Self) -> String {
        let mut written = String::from("\x1b[?25l");
        for (at, (row, before)) in self.rows.iter().zip(&old.rows).enumerate() {
            if row != before {
                write!(written, "\x1b[{};1H", at + 1).ok(); // a String takes everything
                line(row, &mut written);
            }
        }
        if let Some((column, row)) = self.cursor {
            write!(written, "\x1b[{};{}H\x1b[?25h", row + 1, column + 1).ok(); // a String takes everything
        }
        written
    }
}

/// A row as it is written: its end is cleared, and no style lasts beyond it.
fn line(row: &[Cell], written: &mut String) {
    let end = row.iter().rposition(|cell| *cell != BLANK).map_or(0, |last| last + 1);
    let mut style = Style::default();
    for cell in &row[..end] {
        if cell.style != style {
            style = cell.style;
            written.push_str(&words(style));
        }
        written.push(cell.letter);
    }
    if style != Style::default() {
        written.push_str("\x1b[0m");
    }
    // In the last column it would take the letter there away.
    if end < row.len() {
        written.push_str("\x1b[K");
    }
}

/// The style by itself, whatever was before it.
fn words(style: Style) -> String {
    let mut numbers = vec!["0".to_owned()];
    numbers.extend(MARKS.iter().filter(|mark| style.marks.has(**mark)).map(u8::to_string));
    numbers.extend(style.front.map(|colour| format!("38;5;{colour}")));
    numbers.extend(style.back.map(|colour| format!("48;5;{colour}")));
    format!("\x1b[{}m", numbers.join(";"))
}

/// Where the next letter goes, and how it looks.
struct Pen<'a> {
    screen: &'a mut Screen,
    row: usize,
    column: usize,
    style: Style,
    shown: bool,
}

impl Pen<'_> {
    fn write(&mut self, written: &str) -> Result<()> {
        let mut rest = written;
        while let Some(letter) = rest.chars().next() {
            if let Some(order) = rest.strip_prefix("\x1b[") {
                let end =
                    order.find(|letter: char| ('@'..='~').contains(&letter)).context("an order without an end")?;
                let (numbers, verb) = order.split_at(end);
                rest = &verb[1..];
                let known = self.order(numbers, &verb[..1]);
                known.with_context(|| format!("the terminal was told {:?}", &order[..=end]))?;
            } else {
                self.put(letter)?;
                rest = &rest[letter.len_utf8()..];
            }
        }
        Ok(())
    }

    fn put(&mut self, letter: char) -> Result<()> {
        ensure!(!letter.is_control(), "the terminal was told {letter:?}, of which a film knows nothing");
        let cell = self.screen.rows.get_mut(self.row).and_then(|row| row.get_mut(self.column));
        *cell.context("a letter beyond the edge of the screen")? = Cell { letter, style: self.style };
        self.column += 1;
        Ok(())
    }

    fn order(&mut self, numbers: &str, verb: &str) -> Result<()> {
        match (numbers, verb) {
            ("?25", "l") => self.shown = false,
            ("?25", "h") => self.shown = true,
            ("2", "J") => self.screen.rows.iter_mut().for_each(|row| row.fill(BLANK)),
            ("", "K") => {
                let row = self.screen.rows.get_mut(self.row).context("beyond the last row")?;
                row.iter_mut().skip(self.column).for_each(|cell| *cell = BLANK);
            }
            (place, "H") => {
                let (row, column) = place.split_once(';').unwrap_or(("1", "1"));
                let from_one = |number: &str| number.parse::<usize>()?.checked_sub(1).context("places begin with 1");
                (self.row, self.column) = (from_one(row)?, from_one(column)?);
            }
            (numbers, "m") => self.style.change(numbers)?,
            _ => bail!("a film has no word for that"),
        }
        Ok(())
    }
}

impl Style {
    fn change(&mut self, numbers: &str) -> Result<()> {
        let numbers = numbers.split(';').map(|number| if number.is_empty() { Ok(0) } else { number.parse() });
        let numbers: Vec<u8> = numbers.collect::<Result<_, _>>()?;
        let mut rest = &numbers[..];
        while let [number, after @ ..] = rest {
            rest = after;
            match number {
                0 => *self = Self::default(),
                22 => {
                    self.marks.set(BOLD, false);
                    self.marks.set(DIM, false);
                }
                number if MARKS.contains(number) => self.marks.set(*number, true),
                23..=29 if MARKS.contains(&(number - 20)) => self.marks.set(number - 20, false),
                30..=37 => self.front = Some(number - 30),
                90..=97 => self.front = Some(number - 82),
                40..=47 => self.back = Some(number - 40),
                100..=107 => self.back = Some(number - 92),
                39 => self.front = None,
                49 => self.back = None,
                38 | 48 => {
                    let [5, colour @ 0..=15, after @ ..] = rest else { bail!("a colour that is not of the sixteen") };
                    *(if *number == 38 { &mut self.front } else { &mut self.back }) = Some(*colour);
                    rest = after;
                }
                _ => bail!("a film has no word for that"),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn screen(told: &str, cursor: Cursor) -> Screen {
        let mut screen = Screen::new(12, 3);
        screen.draw(told).unwrap();
        screen.cursor = cursor;
        screen
    }

    #[test]
    fn a_style_lasts_into_the_next_row_where_tmux_tells_and_into_none_where_we_write() {
        let told = screen("\x1b[1m\x1b[38;5;3m┌ ask ┐\n│\x1b[0m\x1b[2;7m in \x1b[22m", None);
        let styles = |row: usize, column: usize| told.rows()[row][column].style;
        assert!(styles(0, 0).marks.has(BOLD) && styles(0, 0).front == Some(3));
        assert_eq!(styles(1, 0), styles(0, 0));
        assert!(styles(1, 2).marks.has(DIM) && styles(1, 2).marks.has(INVERSE) && styles(1, 2).front.is_none());
        assert_eq!(told.text(2..5), "ask\nin \n   ");
    }

    #[test]
    fn what_is_written_makes_the_one_of_the_other() {
        let all = [
            Screen::new(12, 3),
            screen("\x1b[31mred\x1b[39m plain\n\n\x1b[4;9mend", Some((3, 2))),
            screen("to the edge.\n\x1b[107;30mon white\x1b[0m", Some((11, 0))),
            screen("to\n\x1b[97m\x1b[3ma\x1b[23mb", None),
        ];
        for old in &all {
            for new in &all {
                let mut made = old.clone();
                made.take(&new.since(old)).unwrap();
                assert_eq!(made, *new, "{:?}", new.since(old));
            }
        }
    }

    #[test]
    fn what_a_film_has_no_word_for_is_an_error() {
        let mut screen = Screen::new(4, 1);
        for (written, why) in [
            ("\x1b[38;5;200m", "not of the sixteen"),
            ("\x1b[38;2;1;2;3m", "not of the sixteen"),
            ("\x1b[3T", "no word"),
            ("\x1b[21m", "no word"),
            ("\x1b[3", "without an end"),
            ("\x0e", "knows nothing"),
            ("12345", "beyond the edge"),
            ("\x1b[9;1Hx", "beyond the edge"),
        ] {
            let error = format!("{:#}", screen.take(written).unwrap_err());
            assert!(error.contains(why), "{written:?}: {error}");
        }
    }
}
