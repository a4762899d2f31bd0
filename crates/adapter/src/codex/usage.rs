//! Usage: Codex reports that of the whole conversation; a turn's usage is the increase.

use multitap_event::TokenUsage;
use serde_json::{Map, Value, json};

use super::wire::Fields;
use crate::json::JsonFields as _;

#[derive(Debug, Default)]
pub(super) struct Usage {
    /// The conversation's usage when the turn began, if known.
    before: Option<TokenUsage>,
    /// The conversation's usage now.
    total: Option<TokenUsage>,
    /// The usage of the last request: how full the context is.
    last: Option<TokenUsage>,
    window: Option<u64>,
}

impl Usage {
    /// A report of `{total, last, modelContextWindow}`, in any of its spellings.
    pub(super) fn reported(&mut self, report: &Fields, in_turn: bool) {
        let total = report.get("total").or_else(|| report.get("totalTokenUsage")).and_then(tokens);
        let last = report.get("last").or_else(|| report.get("lastTokenUsage")).and_then(tokens);
        self.window = report.number("modelContextWindow").or(self.window);
        self.last = last.or(self.last);
        let Some(total) = total else { return };
        if !in_turn {
            self.before = Some(total);
        } else if self.before.is_none() {
            self.before = Some(last.map_or_else(TokenUsage::default, |last| minus(total, last)));
        }
        self.total = Some(total);
    }

    /// The conversation is new, so its usage is zero.
    pub(super) fn starts_at_nothing(&mut self) {
        self.before.get_or_insert_default();
    }

    /// The turn is over. Returns its usage, if it was reported in pieces.
    pub(super) fn turn(&mut self) -> Option<TokenUsage> {
        let (before, total) = (self.before.unwrap_or_default(), self.total.take()?);
        self.before = Some(total);
        let used = minus(total, before);
        (used.total_tokens > 0).then_some(used)
    }

    /// The turn is over, and its end reports the usage of the whole conversation.
    pub(super) fn turn_of(&mut self, so_far: TokenUsage, is_sum: bool) -> Option<TokenUsage> {
        let used = match (is_sum, self.before) {
            (false, _) => so_far,
            (true, Some(before)) => minus(so_far, before),
            // A resumed conversation: its earlier usage is not known.
            (true, None) => {
                self.before = Some(so_far);
                return None;
            }
        };
        self.before = Some(so_far);
        Some(used)
    }

    /// How full the context is.
    pub(super) fn context(&self) -> Map<String, Value> {
        // The usage of a new conversation is known to be zero; that of a resumed one is not known.
        let new = || self.before.filter(|before| before.total_tokens == 0);
        let used = self.last.or_else(new).map(|used| ("usedTokens".to_owned(), json!(used.total_tokens)));
        let mut data = Map::from_iter(used);
        data.extend(self.window.map(|window| ("contextWindow".to_owned(), json!(window))));
        let last = self.last.and_then(|last| serde_json::to_value(last).ok());
        data.extend(last.map(|last| ("lastRequest".to_owned(), last)));
        data
    }
}

/// Token counts in any of their spellings.
pub(super) fn tokens(value: &Value) -> Option<TokenUsage> {
    let fields = Fields::of(Some(value));
    let (input, output) = (fields.number("inputTokens")?, fields.number("outputTokens").unwrap_or(0));
    let reasoning = fields.number("reasoningOutputTokens").or_else(|| fields.number("reasoningTokens"));
    let plain = TokenUsage::of(input, output);
    Some(TokenUsage {
        cached_tokens: fields.number("cachedInputTokens"),
        cache_creation_tokens: fields.number("cacheWriteInputTokens").filter(|count| *count > 0),
        reasoning_tokens: reasoning.filter(|count| *count > 0),
        total_tokens: fields.number("totalTokens").unwrap_or(plain.total_tokens),
        ..plain
    })
}

fn minus(total: TokenUsage, before: TokenUsage) -> TokenUsage {
    let less = |a: Option<u64>, b: Option<u64>| a.map(|a| a.saturating_sub(b.unwrap_or(0)));
    TokenUsage {
        input_tokens: total.input_tokens.saturating_sub(before.input_tokens),
        output_tokens: total.output_tokens.saturating_sub(before.output_tokens),
        cached_tokens: less(total.cached_tokens, before.cached_tokens),
        cache_creation_tokens: less(total.cache_creation_tokens, before.cache_creation_tokens).filter(|n| *n > 0),
        reasoning_tokens: less(total.reasoning_tokens, before.reasoning_tokens).filter(|n| *n > 0),
        total_tokens: total.total_tokens.saturating_sub(before.total_tokens),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(total: u64, last: u64) -> Fields {
        let count = |n: u64| json!({"inputTokens": n, "outputTokens": 0, "totalTokens": n});
        Fields::of(Some(&json!({"total": count(total), "last": count(last), "modelContextWindow": 1000})))
    }

    #[test]
    fn a_turn_is_what_was_added_in_it() {
        let mut usage = Usage::default();
        usage.reported(&report(500, 100), false);
        usage.reported(&report(600, 100), true);
        usage.reported(&report(700, 100), true);
        assert_eq!(usage.turn().unwrap().total_tokens, 200);
        assert_eq!(usage.turn(), None);
        usage.reported(&report(750, 50), true);
        assert_eq!(usage.turn().unwrap().total_tokens, 50);
        assert_eq!(usage.context()["usedTokens"], 50);
    }

    #[test]
    fn an_unknown_context_is_not_an_empty_one() {
        let mut usage = Usage::default();
        assert!(usage.context().is_empty());
        usage.starts_at_nothing();
        assert_eq!(usage.context()["usedTokens"], 0);
    }

    #[test]
    fn a_resumed_conversation_without_a_report_counts_from_its_first_request() {
        let mut usage = Usage::default();
        usage.reported(&report(900, 100), true);
        assert_eq!(usage.turn().unwrap().total_tokens, 100);
    }
}
