//! Questions for which an agent waits, and their answers.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use serde_with::skip_serializing_none;

use crate::form::{self, FormField};
use crate::{ClientId, OptionId, QuestionId, Timestamp, ToolId};

/// The option ids that the questions of every agent use, where they apply.
pub mod option {
    /// Allow this call.
    pub const PROCEED_ONCE: &str = "proceed_once";
    /// Allow this call and similar ones for the rest of the session.
    pub const PROCEED_ALWAYS: &str = "proceed_always";
    /// Allow this tool for the rest of the session.
    pub const PROCEED_ALWAYS_TOOL: &str = "proceed_always_tool";
    /// Allow all tools of this MCP server for the rest of the session.
    pub const PROCEED_ALWAYS_SERVER: &str = "proceed_always_server";
    /// Allow this call and similar ones from now on; saved in the agent's settings.
    pub const PROCEED_ALWAYS_AND_SAVE: &str = "proceed_always_and_save";
    /// Deny.
    pub const CANCEL: &str = "cancel";
    /// Decline the request of an MCP server; `CANCEL` dismisses it without a choice.
    pub const DECLINE: &str = "decline";
}

/// The agent waits for an answer.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Question {
    pub question_id: QuestionId,
    /// The tool call it is about.
    pub tool_id: Option<ToolId>,
    pub tool_name: Option<String>,
    /// One line for people.
    pub title: String,
    /// The offered options; an answer must name one of them.
    pub options: Vec<Choice>,
    pub details: Details,
    /// The edits that an answer may make if it allows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edits: Vec<Edit>,
    /// The reason, if the agent gives one.
    pub reason: Option<String>,
}

impl Question {
    pub fn choice(&self, id: &OptionId) -> Option<&Choice> {
        self.options.iter().find(|choice| choice.id == *id)
    }

    pub fn option_ids(&self) -> Vec<OptionId> {
        self.options.iter().map(|choice| choice.id.clone()).collect()
    }

    /// The choice of an answer, if the answer is valid: it names an offered option, contains only content that this
    /// question accepts, and answers everything that was asked.
    pub fn check(&self, decide: &Decide) -> Result<&Choice, Refused> {
        let choice = self.choice(&decide.option_id).ok_or_else(|| Refused::NotOffered {
            question: self.question_id.clone(),
            option: decide.option_id.clone(),
            offered: self.option_ids(),
        })?;
        match self.misfit(choice, decide).filter(|_| choice.kind.allows()) {
            Some(why) => Err(Refused::DoesNotFit { question: self.question_id.clone(), why }),
            None => Ok(choice),
        }
    }

    fn misfit(&self, choice: &Choice, decide: &Decide) -> Option<String> {
        if decide.new_content.is_some() && decide.new_input.is_some() {
            return Some("it has newContent and newInput: send one of them".to_owned());
        }
        if decide.is_edited() && choice.kind == ChoiceKind::AllowAlways {
            // A rule would be about the original call, not the edited one.
            return Some(format!("an edited answer can only allow once, but {} makes a rule", choice.id));
        }
        if decide.new_content.is_some() && !self.edits.contains(&Edit::NewContent) {
            return Some("it does not accept newContent".to_owned());
        }
        if decide.new_input.is_some() && !self.edits.contains(&Edit::NewInput) {
            return Some("it does not accept newInput".to_owned());
        }
        let Details::Input { questions } = &self.details else { return None };
        if questions.iter().any(|asked| asked.field.is_some()) {
            return form::content(questions, decide).err();
        }
        // A single question is answered by its option; any number of questions by `feedback`, in the user's own words.
        let in_own_words = decide.feedback.as_deref().is_some_and(|words| !words.is_empty());
        let by_option = questions.len() == 1 && decide.option_id.as_str() != option::PROCEED_ONCE;
        let answered =
            |asked: &AskedQuestion| decide.answers.as_ref().is_some_and(|all| all.contains_key(&asked.question));
        let open = questions.iter().find(|asked| !answered(asked)).filter(|_| !in_own_words && !by_option)?;
        Some(format!("it has no answer to \"{}\"", open.question))
    }

    /// The offered option that denies, if there is one.
    pub fn refusal(&self) -> Option<&Choice> {
        self.options.iter().find(|choice| choice.kind.rejects())
    }
}

/// A part of the call that an answer may replace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Edit {
    /// The file's new text, or the command.
    NewContent,
    /// All of the tool's arguments.
    NewInput,
}

/// One option of a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Choice {
    pub id: OptionId,
    /// The label of a button.
    pub name: String,
    pub kind: ChoiceKind,
    /// Whether only an owner of the session may choose it: it saves a rule, or lets more run without asking than an
    /// owner allowed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub owner_only: bool,
}

impl Choice {
    /// A choice. If it saves a rule in the agent's settings, only owners may choose it.
    pub fn new(id: &str, name: impl Into<String>, kind: ChoiceKind) -> Self {
        let owner_only = id == option::PROCEED_ALWAYS_AND_SAVE;
        Self { id: id.into(), name: name.into(), kind, owner_only }
    }

    /// The choice, restricted to owners.
    #[must_use]
    pub fn for_owners(mut self) -> Self {
        self.owner_only = true;
        self
    }

    /// Whether that client may choose this option.
    pub fn is_open_to(&self, client: &ClientRef) -> bool {
        !self.owner_only || client.is_owner()
    }
}

/// The effect of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ChoiceKind {
    AllowOnce,
    AllowAlways,
    RejectOnce,
    RejectAlways,
}

impl ChoiceKind {
    pub fn allows(self) -> bool {
        matches!(self, Self::AllowOnce | Self::AllowAlways)
    }

    pub fn rejects(self) -> bool {
        !self.allows()
    }
}

/// The subject of a question.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Details {
    /// A shell command. `newContent` of an answer is another command.
    Command { command: String, directory: Option<String>, description: Option<String> },
    /// A change to a file. `newContent` of an answer is the whole text to write instead.
    FileEdit {
        file_path: String,
        /// Absent if the file does not exist yet, or could not be read as text.
        before: Option<String>,
        after: Option<String>,
        diff: Option<String>,
    },
    /// A tool of an MCP server.
    Mcp {
        server: String,
        tool: String,
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        arguments: Map<String, Value>,
    },
    /// A plan to approve before work begins.
    Plan { plan: String },
    /// The agent asks for information. Answered by an option, by `answers`, or by `feedback` in the user's own words.
    Input { questions: Vec<AskedQuestion> },
    /// Anything else.
    Text {
        text: String,
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        arguments: Map<String, Value>,
    },
}

/// One question of an agent that asks for information.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AskedQuestion {
    pub question: String,
    pub header: Option<String>,
    #[serde(default)]
    pub labels: Vec<String>,
    /// What the agent says about each label, in the same order; empty if it says nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub descriptions: Vec<String>,
    #[serde(default)]
    pub multi_select: bool,
    /// The form field that it fills. An answer of another type is refused.
    pub field: Option<FormField>,
}

/// An answer of a client, before it is judged.
#[skip_serializing_none]
#[derive(Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Decide {
    pub question_id: QuestionId,
    pub option_id: OptionId,
    /// Replaces the file's text, or the command.
    pub new_content: Option<String>,
    /// Replaces all arguments of the tool.
    pub new_input: Option<Map<String, Value>>,
    /// For an `input` question: the text of each question, with the chosen label, labels or the user's own words.
    pub answers: Option<BTreeMap<String, Value>>,
    /// A comment for the agent, such as the reason for a denial.
    pub feedback: Option<String>,
}

impl Decide {
    pub fn new(question: &QuestionId, option: impl Into<OptionId>) -> Self {
        Self {
            question_id: question.clone(),
            option_id: option.into(),
            new_content: None,
            new_input: None,
            answers: None,
            feedback: None,
        }
    }

    #[must_use]
    pub fn with_feedback(mut self, text: impl Into<String>) -> Self {
        self.feedback = Some(text.into());
        self
    }

    /// Whether the answer replaces the content or the arguments.
    pub fn is_edited(&self) -> bool {
        self.new_content.is_some() || self.new_input.is_some()
    }
}

impl fmt::Debug for Decide {
    /// File contents are not for logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decide")
            .field("question_id", &self.question_id)
            .field("option_id", &self.option_id)
            .finish_non_exhaustive()
    }
}

/// A client and its door, as the author of an action.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClientRef {
    /// The name that the client chose, or one made up for it.
    pub client: String,
    pub door: Door,
    pub client_id: Option<ClientId>,
    pub role: Option<ClientRole>,
    /// The name of the client's token. Unlike `client`, it cannot be chosen by the client. It is in no log: everything
    /// that depends on it is decided while the client is connected.
    #[serde(skip)]
    pub account: Option<String>,
}

impl ClientRef {
    pub fn new(client: impl Into<String>, door: Door) -> Self {
        Self { client: client.into(), door, client_id: None, role: None, account: None }
    }

    /// Whether the client is an owner of the session: owners may loosen its mode, and run commands in it.
    pub fn is_owner(&self) -> bool {
        matches!(self.role, None | Some(ClientRole::Owner))
    }
}

/// A way in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Door {
    Terminal,
    A2a,
    Acp,
    Web,
    /// `multitap -p`.
    Headless,
    /// A Rust program.
    Library,
    /// Multitap itself: a rule or a time limit.
    Host,
}

impl fmt::Display for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// What a client may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ClientRole {
    Owner,
    Controller,
    /// Sees everything, decides nothing.
    Observer,
}

/// The answer that won.
#[skip_serializing_none]
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Ruling {
    pub question_id: QuestionId,
    pub selected_option_id: OptionId,
    pub kind: ChoiceKind,
    pub settled_by: ClientRef,
    pub at: Timestamp,
    pub feedback: Option<String>,
    /// Whether the answer replaced the content or the arguments.
    #[serde(default)]
    pub edited: bool,
    /// The new content of an edited answer.
    pub new_content: Option<String>,
    /// The new arguments of an edited answer.
    pub new_input: Option<Map<String, Value>>,
    /// The call that runs after an edited answer, in place of the one in the question.
    pub runs: Option<Box<EditedCall>>,
}

impl Ruling {
    /// The ruling without the content of an edit, to be held in memory for long.
    #[must_use]
    pub fn without_edit(self) -> Self {
        Self { new_content: None, new_input: None, runs: None, ..self }
    }
}

/// The call that results from an edited answer.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EditedCall {
    /// One line for people.
    pub title: String,
    /// The tool's arguments.
    pub arguments: Map<String, Value>,
    /// The details that a question about this call would show. For a file only the path and the diff: the question has
    /// the text before, and the answer the text after.
    pub details: Details,
}

impl EditedCall {
    pub fn new(title: impl Into<String>, arguments: Map<String, Value>, mut details: Details) -> Self {
        if let Details::FileEdit { before, after, .. } = &mut details {
            (*before, *after) = (None, None);
        }
        Self { title: title.into(), arguments, details }
    }
}

impl fmt::Debug for EditedCall {
    /// Commands and file contents are not for logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EditedCall").finish_non_exhaustive()
    }
}

impl fmt::Debug for Ruling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ruling")
            .field("question_id", &self.question_id)
            .field("selected_option_id", &self.selected_option_id)
            .field("settled_by", &self.settled_by)
            .field("at", &self.at)
            .finish_non_exhaustive()
    }
}

/// A question that needs no answer any more.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Withdrawal {
    pub question_id: QuestionId,
    pub reason: Option<String>,
}

/// Why an answer does not count. Its JSON is tagged by `code`, which is stable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "code", rename_all = "camelCase")]
pub enum Refused {
    #[error("there is no question {question}{}", or_open(.open))]
    UnknownQuestion {
        #[serde(rename = "questionId")]
        question: QuestionId,
        /// The open questions, or the first ones of many. Hosts of version 0.1 name none.
        #[serde(rename = "openQuestions", default, skip_serializing_if = "Vec::is_empty")]
        open: Vec<QuestionId>,
    },
    #[error("question {question} does not offer {option}: it offers {}", list(.offered))]
    NotOffered {
        #[serde(rename = "questionId")]
        question: QuestionId,
        #[serde(rename = "optionId")]
        option: OptionId,
        offered: Vec<OptionId>,
    },
    #[error("this answer is not valid for question {question}: {why}")]
    #[serde(rename = "invalidAnswer")]
    DoesNotFit {
        #[serde(rename = "questionId")]
        question: QuestionId,
        #[serde(rename = "reason")]
        why: String,
    },
    /// The edit was refused, and the question stays open.
    #[error("the edit of this answer to question {question} is refused: {why}")]
    EditRefused {
        #[serde(rename = "questionId")]
        question: QuestionId,
        #[serde(rename = "editRefused")]
        why: String,
        offered: Vec<OptionId>,
    },
    #[error("an observer may not answer")]
    Observer,
    /// Only owners may save rules, or exceed the mode that an owner chose.
    #[error("option {option} of question {question} is for an owner of this session: choose one of {}", list(.offered))]
    OwnerOnly {
        #[serde(rename = "questionId")]
        question: QuestionId,
        #[serde(rename = "optionId")]
        option: OptionId,
        offered: Vec<OptionId>,
    },
    #[error(
        "question {} was settled by {} ({}) with {} at {}",
        .0.question_id, .0.settled_by.client, .0.settled_by.door, .0.selected_option_id, .0.at
    )]
    #[serde(rename = "questionSettled")]
    AlreadySettled(#[serde(serialize_with = "who_settled")] Box<Ruling>),
    #[error("question {question} was withdrawn at {at}")]
    #[serde(rename = "questionWithdrawn")]
    Withdrawn {
        #[serde(rename = "questionId")]
        question: QuestionId,
        at: Timestamp,
    },
}

/// The facts about the ruling for a late answer: who answered, through which door, with which option, when.
fn who_settled<S: serde::Serializer>(ruling: &Ruling, serializer: S) -> Result<S::Ok, S::Error> {
    let Ruling { question_id, selected_option_id, kind, settled_by: ClientRef { client, door, .. }, at, .. } = ruling;
    let told = json!({
        "questionId": question_id,
        "settledBy": { "client": client, "door": door },
        "selectedOptionId": selected_option_id,
        "kind": kind,
        "at": at,
    });
    told.serialize(serializer)
}

fn or_open(open: &[QuestionId]) -> String {
    let ids: Vec<&str> = open.iter().map(QuestionId::as_str).collect();
    if ids.is_empty() { String::new() } else { format!("; open: {}", ids.join(", ")) }
}

fn list(ids: &[OptionId]) -> String {
    ids.iter().map(OptionId::as_str).collect::<Vec<_>>().join(", ")
}
