//! A remote agent's question as an MCP elicitation, and the person's answer as an A2A message. `collect` recognises the
//! question, and `call` sends it. Pure.

use multitap_a2a::devtool::{ConfirmationOption, ToolCallConfirmation};
use multitap_a2a::{Message, Part};
use multitap_event::visible_line;
use rmcp::model::{
    ConstTitle, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema, EnumSchema,
    PrimitiveSchemaDefinition, SingleSelectEnumSchema, StringSchema, TitledSingleSelectEnumSchema,
};
use serde_json::Value;

use crate::collect::Question;
use crate::remote::RemoteAgent;

/// The fields of the forms.
const ANSWER: &str = "answer";
const DECISION: &str = "decision";
const FEEDBACK: &str = "feedback";
/// Maximum number of characters of a text that are shown. The subject of a decision is shown whole.
const SHOWN: usize = 8000;

/// The user's decision.
#[derive(Debug, PartialEq)]
pub(crate) enum Reply {
    /// A message to send to the task.
    Answer(Box<Message>),
    /// The person does not want to answer.
    Declined,
}

/// The form that a client shows; `None` if the subject of the question could not be shown.
pub(crate) fn form(name: &str, agent: &RemoteAgent, question: &Question) -> Option<ElicitRequestParams> {
    let (message, schema) = match question {
        Question::Oversized { .. } => return None,
        Question::Text(text) => {
            let text = if text.trim().is_empty() { "It needs input to go on." } else { text };
            let message = format!("The remote agent {name} asks:\n\n{}", shown(agent, text));
            (message, ElicitationSchema::builder().required_string_property(ANSWER, |field| field.title("Answer")))
        }
        Question::Confirmation { about, options, .. } => {
            let message = format!("The remote agent {name} wants to {}", agent.clean(about));
            let choices = options.iter().enumerate();
            let choices =
                choices.map(|(at, option)| ConstTitle::new(choice(agent, at, option), agent.clean(&option.name)));
            let mut choices = TitledSingleSelectEnumSchema::new(choices.collect());
            choices.title = Some("Decision".into());
            let choices = EnumSchema::Single(SingleSelectEnumSchema::Titled(choices));
            let feedback = StringSchema::new().title("Words for the agent");
            let schema = ElicitationSchema::builder()
                .required_property(DECISION, PrimitiveSchemaDefinition::Enum(choices))
                .property(FEEDBACK, PrimitiveSchemaDefinition::String(feedback));
            (message, schema)
        }
    };
    // `build` fails only for a required field that was not added.
    let requested_schema = schema.build().unwrap_or_else(|_| ElicitationSchema::new(Default::default()));
    Some(ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema })
}

/// The answer in a filled form. If it does not fit the question, it counts as declined, so that nothing is approved by
/// mistake.
pub(crate) fn reply(agent: &RemoteAgent, question: &Question, result: &ElicitResult) -> Reply {
    if result.action != ElicitationAction::Accept {
        return Reply::Declined;
    }
    let field = |name: &str| result.content.as_ref()?.get(name)?.as_str().map(str::to_owned);
    let part = match question {
        Question::Text(_) => field(ANSWER).filter(|words| !words.trim().is_empty()).map(Part::text),
        Question::Oversized { .. } => None,
        Question::Confirmation { tool_call_id, correlation_id, options, .. } => {
            let decided = field(DECISION);
            let mut choices = options.iter().enumerate();
            let chosen = choices.find(|(at, option)| decided.as_ref() == Some(&choice(agent, *at, option)));
            chosen.map(|(_, option)| decision(tool_call_id, correlation_id.clone(), option.id.clone(), field(FEEDBACK)))
        }
    };
    match part {
        Some(part) => Reply::Answer(Box::new(Message { parts: vec![part], ..Message::default() })),
        None => Reply::Declined,
    }
}

fn decision(tool_call_id: &str, correlation_id: Option<String>, option: String, feedback: Option<String>) -> Part {
    let decision = ToolCallConfirmation {
        tool_call_id: tool_call_id.to_owned(),
        selected_option_id: option,
        feedback: feedback.filter(|words| !words.trim().is_empty()),
        correlation_id,
        ..ToolCallConfirmation::default()
    };
    Part::data(decision.write())
}

/// The question as data, for clients that cannot ask their user.
pub(crate) fn data(name: &str, agent: &RemoteAgent, question: &Question) -> Value {
    match question {
        Question::Text(text) => serde_json::json!({ "kind": "text", "text": shown(agent, text), "agent": name }),
        Question::Confirmation { tool_call_id, about, options, .. } => serde_json::json!({
            "kind": "confirmation",
            "about": agent.clean(about),
            "toolCallId": agent.plain_id(tool_call_id),
            "options": options.iter().enumerate().map(|(at, option)| serde_json::json!({
                "optionId": choice(agent, at, option), "name": agent.clean(&option.name),
            })).collect::<Vec<_>>(),
            "agent": name,
        }),
        Question::Oversized { bytes, .. } => serde_json::json!({ "kind": "oversized", "bytes": bytes, "agent": name }),
    }
}

/// What is to be decided and the choices, as text. None: the text of the task says what is asked.
pub(crate) fn text(agent: &RemoteAgent, question: &Question) -> Option<String> {
    let Question::Confirmation { about, options, .. } = question else { return None };
    let options = options.iter().enumerate();
    let options = options
        .map(|(at, option)| format!("\n- {}: {}", choice(agent, at, option), visible_line(&agent.clean(&option.name))));
    // The options come first: what is to be decided may have lines that look like options.
    Some(format!("The options, by id:{}\nIt wants to {}", options.collect::<String>(), agent.clean(about)))
}

/// The name of a choice in a form: its id, if that can be passed on.
fn choice(agent: &RemoteAgent, at: usize, option: &ConfirmationOption) -> String {
    agent.plain_id(&option.id).map_or_else(|| format!("#{}", at + 1), str::to_owned)
}

fn shown(agent: &RemoteAgent, text: &str) -> String {
    let text = agent.clean(text);
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}… ({} more characters)", &text[..end], text[end..].chars().count()),
        None => text,
    }
}
