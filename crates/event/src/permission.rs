//! Questions an agent waits on, and the answers to them.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use serde_with::skip_serializing_none;

use crate::form::{self, FormField};
use crate::{ClientId, OptionId, QuestionId, Timestamp, ToolId};

/// The option ids that every agent's questions use, where they make sense.
pub mod option {
    /// Allow this call.
    pub const PROCEED_ONCE: &str = "proceed_once";
    /// Allow this and its like for the rest of the session.
    pub const PROCEED_ALWAYS: &str = "proceed_always";
    /// Allow this tool for the rest of the session.
    pub const PROCEED_ALWAYS_TOOL: &str = "proceed_always_tool";
    /// Allow all tools of this MCP server for the rest of the session.
    pub const PROCEED_ALWAYS_SERVER: &str = "proceed_always_server";
    /// Allow this and its like from now on, kept in the agent's settings.
    pub const PROCEED_ALWAYS_AND_SAVE: &str = "proceed_always_and_save";
    /// Do not do it.
    pub const CANCEL: &str = "cancel";
    /// Say no to what an MCP server asks; `CANCEL` dismisses its question without a choice.
    pub const DECLINE: &str = "decline";
}

/// The agent waits until somebody answers.
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
    /// The only answers that count.
    pub options: Vec<Choice>,
    pub details: Details,
    /// What an answer that allows may bring along.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edits: Vec<Edit>,
    /// Why the agent asks, when it says so.
    pub reason: Option<String>,
}

impl Question {
    pub fn choice(&self, id: &OptionId) -> Option<&Choice> {
        self.options.iter().find(|choice| choice.id == *id)
    }

    pub fn option_ids(&self) -> Vec<OptionId> {
        self.options.iter().map(|choice| choice.id.clone()).collect()
    }

    /// The choice an answer makes, if the answer fits: an offered option, only content that this question takes, and
    /// an answer to everything that was asked.
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
            // The option names a rule about the call as it was asked, and the edit makes it another call.
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
        // One question is answered by its option, any number in own words.
        let in_own_words = decide.feedback.as_deref().is_some_and(|words| !words.is_empty());
        let by_option = questions.len() == 1 && decide.option_id.as_str() != option::PROCEED_ONCE;
        let answered =
            |asked: &AskedQuestion| decide.answers.as_ref().is_some_and(|all| all.contains_key(&asked.question));
        let open = questions.iter().find(|asked| !answered(asked)).filter(|_| !in_own_words && !by_option)?;
        Some(format!("it has no answer to \"{}\"", open.question))
    }

    /// The offered answer that refuses, if there is one.
    pub fn refusal(&self) -> Option<&Choice> {
        self.options.iter().find(|choice| choice.kind.rejects())
    }
}

/// Something an answer may bring that is done instead of what the agent meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Edit {
    /// The file's new text, or the command.
    NewContent,
    /// All of the tool's arguments.
    NewInput,
}

/// One answer a question offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Choice {
    pub id: OptionId,
    /// What a button would say.
    pub name: String,
    pub kind: ChoiceKind,
    /// Only an owner of the session may choose it: it saves a rule, or lets more run unasked than an owner did.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub owner_only: bool,
}

impl Choice {
    /// A choice that saves a rule in the agent's settings is the owner's.
    pub fn new(id: &str, name: impl Into<String>, kind: ChoiceKind) -> Self {
        let owner_only = id == option::PROCEED_ALWAYS_AND_SAVE;
        Self { id: id.into(), name: name.into(), kind, owner_only }
    }

    /// The same, for owners only.
    #[must_use]
    pub fn for_owners(mut self) -> Self {
        self.owner_only = true;
        self
    }

    /// Whether that client may choose it.
    pub fn is_open_to(&self, client: &ClientRef) -> bool {
        !self.owner_only || client.is_owner()
    }
}

/// What an answer does.
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

/// What a question is about.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Details {
    /// A shell command. An answer's `newContent` is another command.
    Command { command: String, directory: Option<String>, description: Option<String> },
    /// A change to a file. An answer's `newContent` is the whole text to write instead.
    FileEdit {
        file_path: String,
        /// Absent: the file does not exist yet, or could not be read as text.
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
    /// The agent wants to know something. Answered by an option, by `answers`, or in own words by `feedback`.
    Input { questions: Vec<AskedQuestion> },
    /// Anything else.
    Text {
        text: String,
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        arguments: Map<String, Value>,
    },
}

/// One thing the agent wants to know.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AskedQuestion {
    pub question: String,
    pub header: Option<String>,
    #[serde(default)]
    pub labels: Vec<String>,
    #[serde(default)]
    pub multi_select: bool,
    /// The field of a form that it fills. An answer of another type is refused.
    pub field: Option<FormField>,
}

/// An answer on its way in.
#[skip_serializing_none]
#[derive(Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Decide {
    pub question_id: QuestionId,
    pub option_id: OptionId,
    /// Instead of what the agent meant: the file's new text, or the command.
    pub new_content: Option<String>,
    /// Instead of what the agent meant: all of the tool's arguments.
    pub new_input: Option<Map<String, Value>>,
    /// To an `input` question: question text to chosen label, labels or own words.
    pub answers: Option<BTreeMap<String, Value>>,
    /// Words for the agent, such as why not.
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

    /// Whether it brings its own content or arguments.
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

/// Who did something, and through which door.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClientRef {
    /// The name the client gave, or one made up for it.
    pub client: String,
    pub door: Door,
    pub client_id: Option<ClientId>,
    pub role: Option<ClientRole>,
    /// The name of the token it came with. Unlike `client`, nobody chooses it for themselves. It is in no log: what
    /// depends on it is decided while the client is there.
    #[serde(skip)]
    pub account: Option<String>,
}

impl ClientRef {
    pub fn new(client: impl Into<String>, door: Door) -> Self {
        Self { client: client.into(), door, client_id: None, role: None, account: None }
    }

    /// Whether a session is theirs: they may loosen it, and run commands in it.
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
    /// The answer brought its own content or arguments.
    #[serde(default)]
    pub edited: bool,
    /// The content that an edited answer brought.
    pub new_content: Option<String>,
    /// The arguments that an edited answer brought.
    pub new_input: Option<Map<String, Value>>,
    /// What runs by an edited answer, in place of what the question asked about.
    pub runs: Option<Box<EditedCall>>,
}

impl Ruling {
    /// Who ruled and how, without the content of an edit: for what is held in memory for long.
    #[must_use]
    pub fn without_edit(self) -> Self {
        Self { new_content: None, new_input: None, runs: None, ..self }
    }
}

/// A call as an edited answer made it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EditedCall {
    /// One line for people.
    pub title: String,
    /// The tool's arguments.
    pub arguments: Map<String, Value>,
    /// What a question about it would show. Of a file only the path and the diff: the question has the text before,
    /// and the answer the text after.
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

/// A question nobody needs to answer any more.
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
    #[error("there is no question {question}")]
    UnknownQuestion {
        #[serde(rename = "questionId")]
        question: QuestionId,
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
    /// The question stays open.
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
    /// Others save no rules, and go no further than the mode that an owner chose.
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

/// What a late answer learns about the ruling: who, through which door, with which option, when.
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

fn list(ids: &[OptionId]) -> String {
    ids.iter().map(OptionId::as_str).collect::<Vec<_>>().join(", ")
}
