//! The similarity of two short lines: the longest common subsequence of their characters, within a budget.

/// The share of characters that two lines have in common and in the same order, from 0 to 1.
///
/// Costs the product of both lengths and subtracts it from `budget`; returns `None` if the budget has less left. One
/// budget bounds the search through a whole file.
#[must_use]
pub fn similarity(left: &str, right: &str, budget: &mut u64) -> Option<f32> {
    let left: Vec<char> = left.chars().collect();
    let (size, right_size) = (left.len(), right.chars().count());
    let cost = (size as u64).saturating_mul(right_size as u64).max(1);
    *budget = budget.checked_sub(cost)?;
    if size + right_size == 0 {
        return Some(1.0);
    }
    // The length for the left line up to each of its characters and the right line so far.
    let mut row = vec![0_u32; size];
    for other in right.chars() {
        let (mut diagonal, mut before) = (0, 0);
        for (this, length) in left.iter().zip(&mut row) {
            let above = *length;
            *length = if *this == other { diagonal + 1 } else { above.max(before) };
            (diagonal, before) = (above, *length);
        }
    }
    let common = row.last().copied().unwrap_or_default();
    Some(2.0 * common as f32 / (size + right_size) as f32)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::lines;

    fn of(left: &str, right: &str) -> f32 {
        similarity(left, right, &mut 1_000_000).unwrap()
    }

    #[test]
    fn common_characters_count_in_their_order() {
        for (left, right, expected) in [
            ("", "", 1.0),
            ("a", "", 0.0),
            ("abc", "abc", 1.0),
            ("ab", "ba", 0.5),
            ("let x = 1", "let y = 1", 8.0 / 9.0),
        ] {
            assert!((of(left, right) - expected).abs() < 1e-6, "{left} {right}: {}", of(left, right));
        }
    }

    #[test]
    fn a_comparison_spends_the_product_of_both_lengths_and_never_more_than_there_is() {
        let mut budget = 3 * 5 + 14;
        assert!(similarity("abc", "ébcde", &mut budget).is_some());
        assert_eq!(budget, 14);
        assert_eq!(similarity("abc", "abcde", &mut budget), None);
        // Even an empty line costs something: a file of empty lines would otherwise be searched forever.
        assert!(similarity("", "", &mut 0).is_none());
    }

    proptest! {
        /// The search for differing lines finds the shortest script by another algorithm.
        #[test]
        fn it_agrees_with_the_comparison_of_lines(left in "[abcé]{0,30}", right in "[abcé]{0,30}") {
            let split = |text: &str| text.chars().map(String::from).collect::<Vec<_>>();
            let (old, new) = (split(&left), split(&right));
            let (old, new): (Vec<&str>, Vec<&str>) =
                (old.iter().map(String::as_str).collect(), new.iter().map(String::as_str).collect());
            let marks = lines::compare(&old, &new, u64::MAX);
            let common = marks.removed.iter().filter(|removed| !**removed).count();
            let size = old.len() + new.len();
            let expected = if size == 0 { 1.0 } else { 2.0 * common as f32 / size as f32 };
            prop_assert!((of(&left, &right) - expected).abs() < 1e-6);
        }
    }
}
