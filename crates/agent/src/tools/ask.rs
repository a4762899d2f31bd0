//! `ask_user`: the model asks the user a question.

use multitap_event::ToolKind;
use serde::Deserialize;
use serde_json::json;

use super::BadCall;
use crate::tool::Spec;

pub(crate) const NAME: &str = "ask_user";

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Ask {
    pub(crate) question: String,
    #[serde(default)]
    pub(crate) choices: Vec<String>,
}

pub(super) fn spec() -> Spec {
    super::spec(
        NAME,
        ToolKind::Other,
        "Asks the user a question and waits for the answer. Only for what you cannot find out yourself and what \
         changes what you do next.",
        &json!({
            "question": { "type": "string", "description": "One question." },
            "choices": { "type": "array", "items": { "type": "string" }, "description": "Answers to choose from; the user may also answer in own words." }
        }),
        &["question"],
    )
}

pub(super) fn prepare(ask: Ask) -> Result<Ask, BadCall> {
    if ask.question.trim().is_empty() {
        return Err(BadCall("the question is empty".to_owned()));
    }
    Ok(ask)
}
