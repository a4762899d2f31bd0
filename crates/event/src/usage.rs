//! Tokens and cost, as the agents report them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// Tokens used by one turn or session.
#[skip_serializing_none]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenUsage {
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// Input tokens read from a cache, if the agent reports them.
    pub cached_tokens: Option<u64>,
    /// Input tokens written to a cache, if the agent reports them.
    pub cache_creation_tokens: Option<u64>,
    /// Output tokens spent on thinking, if the agent reports them.
    pub reasoning_tokens: Option<u64>,
    /// The agent's own total, or input plus output.
    pub total_tokens: u64,
}

impl TokenUsage {
    /// Usage of an agent that gives no total.
    pub fn of(input_tokens: u64, output_tokens: u64) -> Self {
        Self {
            input_tokens,
            output_tokens,
            total_tokens: input_tokens.saturating_add(output_tokens),
            ..Self::default()
        }
    }

    /// The sum of two usages, as far as they are known.
    #[must_use]
    pub fn sum(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        one.into_iter().chain(other).reduce(Self::plus)
    }

    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let sum = |a: Option<u64>, b: Option<u64>| match (a, b) {
            (None, None) => None,
            (a, b) => Some(a.unwrap_or(0).saturating_add(b.unwrap_or(0))),
        };
        Self {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            cached_tokens: sum(self.cached_tokens, other.cached_tokens),
            cache_creation_tokens: sum(self.cache_creation_tokens, other.cache_creation_tokens),
            reasoning_tokens: sum(self.reasoning_tokens, other.reasoning_tokens),
            total_tokens: self.total_tokens.saturating_add(other.total_tokens),
        }
    }
}

/// Usage of one model, for agents that report it per model.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelUsage {
    #[serde(flatten)]
    pub usage: TokenUsage,
    pub cost_usd: Option<f64>,
    pub context_window: Option<u64>,
}
