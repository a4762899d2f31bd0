//! Answers for good: what they allow or deny from now on, for people to see and take back.

use multitap_event::{ChoiceKind, ClientRef, OptionId, Question, Ruling, SystemNote, SystemSubtype, Timestamp, option};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What an answer for good made of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rule {
    /// The id of the question it came from.
    pub rule_id: String,
    /// What was asked, for people.
    pub title: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<String>,
    pub option_id: OptionId,
    pub kind: ChoiceKind,
    pub by: ClientRef,
    pub at: Timestamp,
}

impl Rule {
    /// The rule that a ruling makes, if it is one for good.
    pub(crate) fn of(question: &Question, ruling: &Ruling) -> Option<Self> {
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

    /// Whether the agent keeps it in its settings; otherwise it goes with the agent's process.
    pub fn outlives_the_agent(&self) -> bool {
        self.option_id.as_str() == option::PROCEED_ALWAYS_AND_SAVE
    }

    pub(crate) fn added(&self) -> SystemNote {
        let word = if self.kind.allows() { "allowed" } else { "denied" };
        self.note(SystemSubtype::RULE_ADDED, format!("{word} from now on: {}", self.title))
    }

    pub(crate) fn revoked(&self) -> SystemNote {
        self.note(SystemSubtype::RULE_REVOKED, format!("asked again from now on: {}", self.title))
    }

    fn note(&self, subtype: &str, message: String) -> SystemNote {
        let data = match serde_json::to_value(self) {
            Ok(Value::Object(data)) => data,
            _ => Map::new(),
        };
        SystemNote { subtype: subtype.to_owned(), message: Some(message), data }
    }

    pub(crate) fn from_note(note: &SystemNote) -> Option<Self> {
        serde_json::from_value(Value::Object(note.data.clone())).ok()
    }
}
