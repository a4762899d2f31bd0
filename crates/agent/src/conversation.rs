//! The conversation so far, in a form that fits every model.
//!
//! Always complete: every tool call has its answer before the model is asked again, even after a cancelled turn.
//! `model` translates it for each provider.

use multitap_event::Image;
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "camelCase")]
pub(crate) enum Message {
    User(UserText),
    Assistant {
        parts: Vec<Part>,
    },
    /// The answers to the calls of the previous message, in order.
    Results {
        answers: Vec<Answer>,
    },
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct UserText {
    pub(crate) text: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) images: Vec<Image>,
}

impl Message {
    pub(crate) fn user(text: impl Into<String>) -> Self {
        Self::User(UserText { text: text.into(), images: Vec::new() })
    }

    pub(crate) fn assistant(text: impl Into<String>) -> Self {
        Self::Assistant { parts: vec![Part::Text { text: text.into() }] }
    }

    pub(crate) fn calls(&self) -> impl Iterator<Item = &Call> {
        let parts = if let Self::Assistant { parts } = self { parts.as_slice() } else { &[] };
        parts.iter().filter_map(Part::call)
    }

    /// Approximate size, to estimate how full the context is.
    fn bytes(&self) -> usize {
        match self {
            Self::User(said) => said.text.len() + said.images.iter().map(|image| image.data.len()).sum::<usize>(),
            Self::Assistant { parts } => parts.iter().map(Part::bytes).sum(),
            Self::Results { answers } => answers.iter().map(|answer| answer.text.len()).sum(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub(crate) enum Part {
    Text {
        text: String,
    },
    Thought {
        text: String,
        /// The signature by which the provider recognises its own thought.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    },
    Call(Call),
}

impl Part {
    pub(crate) fn call(&self) -> Option<&Call> {
        if let Self::Call(call) = self { Some(call) } else { None }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Text { text } | Self::Thought { text, .. } => text.len(),
            Self::Call(call) => call.name.len() + call.arguments.to_string().len(),
        }
    }
}

/// The model asks to run a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Call {
    /// The model's id for it; unique within one reply only.
    pub(crate) id: String,
    pub(crate) name: String,
    /// An object; if the model sent anything else, that value.
    pub(crate) arguments: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) signature: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Answer {
    /// [`Call::id`].
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) text: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) images: Vec<Image>,
    #[serde(default)]
    pub(crate) failed: bool,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Conversation {
    messages: Vec<Message>,
}

/// Average bytes of text per token.
const BYTES_PER_TOKEN: usize = 4;

impl Conversation {
    pub(crate) fn new(messages: Vec<Message>) -> Self {
        let mut conversation = Self { messages };
        conversation.repair();
        conversation
    }

    pub(crate) fn messages(&self) -> &[Message] {
        &self.messages
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    pub(crate) fn push(&mut self, message: Message) {
        self.messages.push(message);
    }

    /// Estimated tokens, where no model has counted them.
    pub(crate) fn guessed_tokens(&self) -> u64 {
        let bytes: usize = self.messages.iter().map(Message::bytes).sum();
        u64::try_from(bytes / BYTES_PER_TOKEN).unwrap_or(u64::MAX)
    }

    /// Replaces the conversation by a summary, and repeats the user's last message if it has no answer yet.
    pub(crate) fn sum_up(&mut self, summary: &str) {
        let unanswered = !matches!(self.messages.last(), Some(Message::Assistant { .. }) | None);
        let is_prompt = |message: &&Message| matches!(message, Message::User(_));
        let asked = self.messages.iter().rev().find(is_prompt).filter(|_| unanswered).cloned();
        self.messages.clear();
        self.push(Message::user(format!("This is what was said and done before, summed up:\n\n{summary}")));
        self.push(Message::assistant("I have it in mind and go on from there."));
        self.messages.extend(asked);
    }

    /// Answers every interrupted call that has no answer, and drops answers without a call, so that models accept the
    /// conversation.
    fn repair(&mut self) {
        let mut whole = Vec::with_capacity(self.messages.len());
        let mut messages = std::mem::take(&mut self.messages).into_iter().peekable();
        while let Some(message) = messages.next() {
            if matches!(message, Message::Results { .. }) {
                continue;
            }
            let calls: Vec<Call> = message.calls().cloned().collect();
            whole.push(message);
            if calls.is_empty() {
                continue;
            }
            let mut answers = match messages.next_if(|next| matches!(next, Message::Results { .. })) {
                Some(Message::Results { answers }) => answers,
                _ => Vec::new(),
            };
            for call in calls {
                if !answers.iter().any(|answer| answer.id == call.id) {
                    answers.push(call.unanswered("interrupted before it was done"));
                }
            }
            whole.push(Message::Results { answers });
        }
        self.messages = whole;
    }
}

impl Call {
    /// The answer to a call that did not run.
    pub(crate) fn unanswered(&self, why: &str) -> Answer {
        Answer { id: self.id.clone(), name: self.name.clone(), text: why.to_owned(), images: Vec::new(), failed: true }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(id: &str) -> Call {
        Call { id: id.to_owned(), name: "glob".to_owned(), arguments: Value::Null, signature: None }
    }

    #[test]
    fn an_interrupted_call_gets_an_answer() {
        let parts = vec![Part::Call(call("a")), Part::Call(call("b"))];
        let answer = Answer { failed: false, ..call("a").unanswered("found") };
        let read = Conversation::new(vec![
            Message::user("find"),
            Message::Assistant { parts: parts.clone() },
            Message::Results { answers: vec![answer] },
            Message::Assistant { parts },
        ]);
        let Message::Results { answers } = &read.messages()[2] else { panic!("{read:?}") };
        assert_eq!(answers.iter().map(|answer| answer.failed).collect::<Vec<_>>(), [false, true]);
        let Message::Results { answers } = &read.messages()[4] else { panic!("{read:?}") };
        assert_eq!(answers.len(), 2);
    }

    #[test]
    fn an_answer_to_nothing_is_left_out() {
        let answers = vec![call("a").unanswered("found")];
        let read = Conversation::new(vec![Message::user("find"), Message::Results { answers }, Message::user("on")]);
        assert_eq!(read.messages(), [Message::user("find"), Message::user("on")]);
    }

    #[test]
    fn a_summary_keeps_what_is_still_to_be_done() {
        let mut talk = Conversation::new(vec![Message::user("one"), Message::assistant("done"), Message::user("two")]);
        talk.sum_up("we did one");
        assert_eq!(talk.messages().last(), Some(&Message::user("two")));
        talk.push(Message::assistant("done"));
        talk.sum_up("we did both");
        assert_eq!(talk.messages().len(), 2);
    }
}
