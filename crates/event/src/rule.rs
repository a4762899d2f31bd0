//! Rules: permission answers that hold for later calls as well, shown to people and revocable.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::{ChoiceKind, ClientRef, OptionId, Question, Ruling, Timestamp, option};

/// A rule created by an "always" answer.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rule {
    /// The id of the question it came from.
    pub rule_id: String,
    /// The title of the question that made the rule, for people.
    pub title: String,
    pub tool_name: Option<String>,
    pub option_id: OptionId,
    pub kind: ChoiceKind,
    /// The client that gave the answer.
    pub by: ClientRef,
    pub at: Timestamp,
}

impl Rule {
    /// The rule of a ruling, if its answer also holds for later calls.
    pub fn of(question: &Question, ruling: &Ruling) -> Option<Self> {
        if !matches!(ruling.kind, ChoiceKind::AllowAlways | ChoiceKind::RejectAlways) {
            return None;
        }
        Some(Self {
            rule_id: question.question_id.as_str().to_owned(),
            title: question.title.clone(),
            tool_name: question.tool_name.clone(),
            option_id: ruling.selected_option_id.clone(),
            kind: ruling.kind,
            by: ruling.settled_by.clone(),
            at: ruling.at,
        })
    }

    /// Whether the agent stores it in its settings. Other rules end with the agent's process.
    pub fn outlives_the_agent(&self) -> bool {
        self.option_id.as_str() == option::PROCEED_ALWAYS_AND_SAVE
    }

    /// Describes `ruleAdded` in one line.
    pub fn added_summary(&self) -> String {
        let word = if self.kind.allows() { "allowed" } else { "denied" };
        format!("{word} from now on: {}", self.title)
    }

    /// Describes `ruleRevoked` in one line.
    pub fn revoked_summary(&self) -> String {
        format!("asked again from now on: {}", self.title)
    }
}
