//! Words by the dozen, the same for the same seed.

/// What a coding agent says: words, names, punctuation, now and then what JSON has to escape.
const WORDS: [&str; 48] = [
    "the",
    "a",
    "of",
    "to",
    "and",
    "in",
    "is",
    "that",
    "for",
    "it",
    "this",
    "with",
    "be",
    "on",
    "now",
    "not",
    "file",
    "test",
    "error",
    "function",
    "returns",
    "because",
    "session",
    "queue",
    "reads",
    "writes",
    "line",
    "first",
    "then",
    "`parse()`",
    "src/main.rs",
    "crates/adapter",
    "Result<(), Error>",
    "let value = 1;",
    "if x > 0 {",
    "}",
    "//",
    "\"quoted\"",
    "don't",
    "naïve",
    "—",
    "C:\\temp",
    "fn",
    "0.25",
    "42",
    "All",
    "passed.",
    "\n",
];

/// `SplitMix64`: small, and the same everywhere.
pub(crate) struct Words {
    state: u64,
}

impl Words {
    pub(crate) fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 up to, but not, `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap_or_default()
    }

    fn word(&mut self) -> &'static str {
        WORDS[self.below(WORDS.len())]
    }

    /// As much as a model says at once.
    pub(crate) fn piece(&mut self) -> String {
        let count = 1 + self.below(5);
        (0..count).flat_map(|_| [self.word(), " "]).collect()
    }

    /// Text of at least so many bytes.
    pub(crate) fn text(&mut self, bytes: usize) -> String {
        let mut text = String::with_capacity(bytes + 16);
        while text.len() < bytes {
            text.push_str(self.word());
            text.push(if self.below(12) == 0 { '\n' } else { ' ' });
        }
        text
    }

    /// How much a tool writes: most often little, seldom a lot.
    pub(crate) fn output_length(&mut self) -> usize {
        match self.below(10) {
            0 => 40_000,
            1..=3 => 8_000,
            _ => 600,
        }
    }
}
