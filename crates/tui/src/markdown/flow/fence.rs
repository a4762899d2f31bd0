//! Code fences. Pure.

#[derive(Debug, Clone)]
pub(super) struct Fence {
    /// Where its line begins, and where the code begins.
    pub(super) from: usize,
    pub(super) code: usize,
    sign: char,
    length: usize,
    pub(super) indent: usize,
    pub(super) language: String,
}

impl Fence {
    pub(super) fn open(line: &str, from: usize) -> Option<Self> {
        let trimmed = line.trim_start_matches(' ');
        let sign = trimmed.chars().next().filter(|sign| matches!(sign, '`' | '~'))?;
        let info = trimmed.trim_start_matches(sign);
        let (length, indent) = (trimmed.len() - info.len(), line.len() - trimmed.len());
        // Inline code may begin like this, and ends in the same line.
        let is_fence = length >= 3 && (sign == '~' || !info.contains('`'));
        let language = info.trim().to_owned();
        is_fence.then(|| Self { from, code: from + line.len() + 1, sign, length, indent, language })
    }

    pub(super) fn is_closed_by(&self, line: &str) -> bool {
        let trimmed = line.trim();
        trimmed.len() >= self.length && trimmed.chars().all(|sign| sign == self.sign)
    }
}
