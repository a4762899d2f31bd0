//! Explains why a text to replace was not found, so that the model can correct it. Pure.

use multitap_diff::similarity;

use super::ending::Ending;

/// Most lines of the file that are shown.
const MOST_SHOWN: usize = 12;
/// Most occurrences that are listed.
const MOST_PLACES: usize = 10;
/// Longer lines are not compared.
const LONGEST_COMPARED: usize = 400;
/// Lines at least this similar count as alike.
const ALIKE: f32 = 0.6;
/// Character pairs that the search for the nearest line may compare: about a tenth of a second.
const NEAREST_BUDGET: u64 = 50_000_000;

/// The text occurs, but not as often as expected.
pub(super) fn other_count(text: &str, old: &str, count: usize, wanted: usize) -> String {
    let places = text.match_indices(old).take(MOST_PLACES);
    let lines: Vec<_> = places.map(|(at, _)| (text[..at].matches('\n').count() + 1).to_string()).collect();
    let more = if count > MOST_PLACES { ", …" } else { "" };
    let (times, lines) = match count {
        1 => ("once".to_owned(), format!("line {}", lines.join(""))),
        _ => (format!("{count} times"), format!("lines {}{more}", lines.join(", "))),
    };
    let hint = if count > wanted {
        format!("give more of the text around the one that is meant, or set expected_replacements to {count}")
    } else {
        format!("set expected_replacements to {count} if that is all")
    };
    format!("old_string is there {times} ({lines}), not {wanted}: {hint}")
}

/// The text does not occur.
pub(super) fn not_found(text: &str, old: &str) -> String {
    const NOT_THERE: &str = "old_string is not in the file";
    if text.is_empty() {
        return format!("{NOT_THERE}, which is empty");
    }
    let unescaped = old.replace("\\n", "\n").replace("\\t", "\t").replace("\\\"", "\"");
    if unescaped != old && text.contains(&unescaped) {
        return format!(
            "{NOT_THERE}; it would be with line breaks, tabs and quotes as they are, not as \\n, \\t, \\\""
        );
    }
    let ends = Ending::of("\r\n");
    if text.contains('\r') && ends.plain(text).contains(&*ends.plain(old)) {
        return format!("{NOT_THERE} with these line ends: some of its lines end in \\r\\n and some in \\n");
    }
    if let Some((first, lines)) = but_for_white_space(text, old) {
        return format!("{NOT_THERE}; only its white space differs. {}", shown(first, &lines));
    }
    match nearest(text, old) {
        Some((first, lines)) => format!("{NOT_THERE}. The nearest to it: {}", shown(first, &lines)),
        None => format!("{NOT_THERE}, nor anything like it: read the file again"),
    }
}

fn shown(first: usize, lines: &[&str]) -> String {
    let cut = if lines.len() > MOST_SHOWN { "\n…" } else { "" };
    let text = lines.iter().take(MOST_SHOWN).copied().collect::<Vec<_>>().join("\n");
    match lines.len() {
        1 => format!("Line {first} of the file is:\n{text}"),
        count => format!("Lines {first} to {} of the file are:\n{text}{cut}", first + count - 1),
    }
}

/// The lines that differ only in white space, and the number of the first.
fn but_for_white_space<'a>(text: &'a str, old: &str) -> Option<(usize, Vec<&'a str>)> {
    let squeezed = |line: &str| line.split_whitespace().collect::<String>();
    let wanted: Vec<String> = old.trim_matches(['\r', '\n']).lines().map(squeezed).collect();
    if wanted.iter().all(String::is_empty) {
        return None;
    }
    let lines: Vec<&str> = text.lines().collect();
    // Searched as one text: comparing all lines at each position is quadratic where lines repeat.
    let there: String = lines.iter().map(|line| format!("\n{}", squeezed(line))).chain(["\n".to_owned()]).collect();
    let found = there.find(&format!("\n{}\n", wanted.join("\n")))?;
    let at = there[..found].matches('\n').count();
    Some((at + 1, lines[at..at + wanted.len()].to_vec()))
}

/// The lines most similar to the text that was not found.
fn nearest<'a>(text: &'a str, old: &str) -> Option<(usize, Vec<&'a str>)> {
    let first = old.lines().map(str::trim).find(|line| !line.is_empty())?;
    if first.len() > LONGEST_COMPARED {
        return None;
    }
    let mut budget = NEAREST_BUDGET;
    let lines: Vec<&str> = text.lines().collect();
    let mut best: Option<(f32, usize)> = None;
    for (at, line) in lines.iter().enumerate() {
        let line = line.trim();
        // Lines of too different lengths cannot be alike.
        if line.is_empty()
            || line.len() > LONGEST_COMPARED
            || line.len() > first.len() * 3
            || first.len() > line.len() * 3
        {
            continue;
        }
        let Some(alike) = similarity(first, line, &mut budget) else { break };
        if alike >= ALIKE && best.is_none_or(|(most, _)| alike > most) {
            best = Some((alike, at));
        }
    }
    let (_, at) = best?;
    let until = (at + old.lines().count().clamp(1, MOST_SHOWN)).min(lines.len());
    Some((at + 1, lines[at..until].to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines that repeat, looked for as many times: this ends only if the search is linear.
    #[test]
    fn repeating_lines_are_searched_in_linear_time() {
        let text = " a\n".repeat(400_000);
        let old = format!("{}b", "a\n".repeat(200_000));
        assert_eq!(but_for_white_space(&text, &old), None);
        let text = format!("{text} b\n");
        let (first, lines) = but_for_white_space(&text, &old).unwrap();
        assert_eq!((first, lines.len()), (200_001, 200_001));
    }

    #[test]
    fn what_is_not_there_is_explained() {
        let text = "fn main() {\n    let x = 1;\n    println!(\"{x}\");\n}\n";
        for (old, words) in [
            (
                "let x = 1;\nprintln!(\"{x}\");",
                "only its white space differs. Lines 2 to 3 of the file are:\n    let x",
            ),
            ("\tlet x  =  1;", "only its white space differs. Line 2 of the file is:\n    let x = 1;"),
            ("1;\\n    println", "not as \\n, \\t"),
            ("    let x = 2;", "The nearest to it: Line 2 of the file is:\n    let x = 1;"),
            ("struct Nothing;", "nor anything like it"),
            (" \n \n", "nor anything like it"),
        ] {
            let why = not_found(text, old);
            assert!(why.contains(words), "{old:?}: {why}");
        }
        assert!(not_found("a\r\nb\nc", "a\nb").contains("line ends"));
        assert!(not_found("", "a").contains("which is empty"));
    }

    #[test]
    fn how_often_and_where_it_is_is_told() {
        let why = other_count("a\nb a\n\na", "a", 3, 1);
        assert_eq!(
            why,
            "old_string is there 3 times (lines 1, 2, 4), not 1: give more of the text around the one that is meant, \
             or set expected_replacements to 3"
        );
        let why = other_count("a", "a", 1, 2);
        assert_eq!(why, "old_string is there once (line 1), not 2: set expected_replacements to 1 if that is all");
        assert!(other_count(&"a\n".repeat(20), "a", 20, 1).contains("9, 10, …)"));
    }

    /// The budget decides how far the search goes, so the same file gives the same answer on any machine.
    #[test]
    fn the_nearest_line_is_searched_within_a_budget() {
        let line = "x".repeat(LONGEST_COMPARED);
        let affordable = usize::try_from(NEAREST_BUDGET).unwrap() / (LONGEST_COMPARED * LONGEST_COMPARED);
        let other = "y".repeat(LONGEST_COMPARED);
        let text = |before: usize| format!("{}{line}\n", format!("{other}\n").repeat(before));
        assert_eq!(nearest(&text(affordable - 1), &line).unwrap().0, affordable);
        assert_eq!(nearest(&text(affordable + 1), &line), None);
    }
}
