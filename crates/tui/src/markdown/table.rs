//! Lays out tables: with natural columns, with narrower columns, or as a list where there is no room for columns. Pure.

use pulldown_cmark::Alignment;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use crate::theme::Theme;
use crate::wrap::{width, wrap};

/// The space between two columns.
const BETWEEN: usize = 2;
/// The minimum width of a column.
const NARROW: usize = 12;

#[derive(Default)]
pub(super) struct Table {
    pub(super) alignments: Vec<Alignment>,
    /// The first row is the header.
    pub(super) rows: Vec<Vec<String>>,
    pub(super) cell: Option<String>,
}

impl Table {
    pub(super) fn lines(&self, columns: usize, theme: Theme) -> Vec<Line<'static>> {
        let count = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let widest = |column: usize| self.rows.iter().filter_map(|row| row.get(column)).map(|cell| width(cell)).max();
        let natural: Vec<usize> = (0..count).map(|column| widest(column).unwrap_or(0)).collect();
        match fitted(&natural, columns.saturating_sub(BETWEEN * count.saturating_sub(1))) {
            Some(widths) => self.beside(&widths, theme),
            None => self.below(columns, theme),
        }
    }

    /// Columns side by side. Long cells are wrapped.
    fn beside(&self, widths: &[usize], theme: Theme) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        for (number, row) in self.rows.iter().enumerate() {
            let style = if number == 0 { theme.heading() } else { Style::new() };
            let cells: Vec<Vec<String>> = widths
                .iter()
                .enumerate()
                .map(|(column, wide)| cut(row.get(column).map_or("", String::as_str), *wide))
                .collect();
            for at in 0..cells.iter().map(Vec::len).max().unwrap_or(0) {
                let pieces = cells.iter().zip(widths).enumerate().map(|(column, (cell, wide))| {
                    let piece = cell.get(at).map_or("", String::as_str);
                    aligned(piece, *wide, self.alignments.get(column).copied())
                });
                let text = pieces.collect::<Vec<_>>().join(&" ".repeat(BETWEEN));
                lines.push(Line::from(Span::styled(text.trim_end().to_owned(), style)));
            }
        }
        lines
    }

    /// Each row as a list of its cells with the names of their columns.
    fn below(&self, columns: usize, theme: Theme) -> Vec<Line<'static>> {
        let Some((head, rows)) = self.rows.split_first() else { return Vec::new() };
        let mut lines = Vec::new();
        for (number, row) in rows.iter().enumerate() {
            if number > 0 {
                lines.push(Line::default());
            }
            for (column, cell) in row.iter().enumerate().filter(|(_, cell)| !cell.is_empty()) {
                let name = head.get(column).filter(|name| !name.is_empty()).map(|name| format!("{name}: "));
                let spans = vec![Span::styled(name.unwrap_or_default(), theme.heading()), Span::raw(cell.clone())];
                lines.extend(wrap(Line::from(spans), columns, 2));
            }
        }
        // A header without rows is shown alone.
        if rows.is_empty() {
            lines.extend(wrap(Line::styled(head.join("  "), theme.heading()), columns, 2));
        }
        lines
    }
}

/// The width of each column, or `None` if there is no room for them.
fn fitted(natural: &[usize], room: usize) -> Option<Vec<usize>> {
    if natural.iter().sum::<usize>() <= room {
        return Some(natural.to_vec());
    }
    let mut widths = vec![0; natural.len()];
    let (mut open, mut room): (Vec<usize>, usize) = ((0..natural.len()).collect(), room);
    // A column that needs less than its share leaves the rest to others.
    loop {
        let share = room / open.len().max(1);
        let (small, large): (Vec<usize>, Vec<usize>) = open.iter().partition(|column| natural[**column] <= share);
        if small.is_empty() {
            let more = room - share * large.len();
            for (number, column) in large.iter().enumerate() {
                widths[*column] = share + usize::from(number < more);
            }
            return (share >= NARROW).then_some(widths);
        }
        for column in small {
            widths[column] = natural[column];
            room -= natural[column];
        }
        open = large;
    }
}

fn cut(cell: &str, wide: usize) -> Vec<String> {
    let lines = wrap(Line::raw(cell.to_owned()), wide, 0);
    lines.iter().map(|line| line.to_string().trim_end().to_owned()).collect()
}

fn aligned(text: &str, wide: usize, alignment: Option<Alignment>) -> String {
    let space = wide.saturating_sub(width(text));
    match alignment {
        Some(Alignment::Right) => format!("{}{text}", " ".repeat(space)),
        Some(Alignment::Center) => format!("{}{text}{}", " ".repeat(space / 2), " ".repeat(space - space / 2)),
        _ => format!("{text}{}", " ".repeat(space)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::shown;

    const TABLE: &str = "| crate | what lives there | lines |\n|---|---|--:|\n| event | the vocabulary: events, commands, questions | 2100 |\n| 日本語 | 幅の広い文字の列 | 7 |\n| x |";

    #[test]
    fn a_table_is_shown_on_any_screen() {
        let shown: Vec<String> = [100, 40, 24].map(|columns| format!("{columns}:\n{}", shown(TABLE, columns))).to_vec();
        insta::assert_snapshot!(shown.join("\n\n"));
    }

    #[test]
    fn nothing_of_it_is_wider_than_the_screen() {
        for columns in 4..90 {
            let lines =
                crate::markdown::lines(TABLE, columns, crate::theme::Theme::new(crate::preferences::Colours::None));
            let wide = lines.iter().find(|line| line.width() > columns);
            assert_eq!(wide, None, "{columns}");
        }
    }
}
