//! What somebody wrote for a question that needs no answer any more: it is not lost. Pure.

use std::path::PathBuf;

use multitap_event::{Decide, Prompt};

use super::{Asking, Model};
use crate::composer::Composer;
use crate::effect::Effect;

pub(super) const NO_ANSWER: &str = "the question needs no answer any more";

/// Somebody else answered these. Words that were to go with an answer are in the composer then, where the next letters
/// go as well; or in the history, if something else is typed there.
pub(super) fn closed(model: &mut Model, closed: &[Asking]) {
    let written: Vec<String> = closed.iter().map(Asking::written).filter(|words| !words.trim().is_empty()).collect();
    if written.is_empty() {
        return;
    }
    let written = written.join("\n");
    if model.composer.is_empty() {
        model.composer = Composer::with(&written);
        model.was_answer = Some(written);
        model.notice = Some(format!("{NO_ANSWER}: what you wrote for it is here"));
    } else {
        put_by(model, written, NO_ANSWER);
    }
}

/// What is typed was meant for a question: it is not sent to the agent by a key that was to answer.
pub(super) fn was_meant_as_answer(model: &mut Model) -> bool {
    let typed = model.composer.text();
    let was_answer = model.was_answer.take_if(|answer| begins_alike(typed, answer)).is_some();
    if was_answer {
        model.notice = Some(format!("{NO_ANSWER}: Enter again sends this to the agent"));
    }
    was_answer
}

/// Whether a text is still that one, perhaps with another end, and not one that took its place.
fn begins_alike(text: &str, answer: &str) -> bool {
    let alike = text.bytes().zip(answer.bytes()).take_while(|(one, other)| one == other).count();
    2 * alike >= answer.len()
}

/// An editor was closed with what is to be allowed instead.
pub(super) fn edited(model: &mut Model, decide: Decide, before: &str, text: String) -> Vec<Effect> {
    if model.state.questions.question(&decide.question_id).is_none() && text == before {
        model.notice = Some(NO_ANSWER.to_owned());
        return Vec::new();
    }
    vec![Effect::Decide(Decide { new_content: Some(text), ..decide })]
}

/// An answer was not taken. What was written in an editor for it goes into a file: it may be long, and is no prompt.
pub(super) fn not_decided(model: &mut Model, decide: Decide, why: String) -> Vec<Effect> {
    match decide.new_content {
        Some(text) => vec![Effect::Keep { text, why }],
        None => {
            model.notice = Some(why);
            Vec::new()
        }
    }
}

/// It is in a file, or could not be written there.
pub(super) fn kept(model: &mut Model, text: String, why: &str, file: Result<PathBuf, String>) {
    match file {
        Ok(path) => tell(model, why, &format!("what you wrote is kept in {}", path.display())),
        Err(error) => put_by(model, text, &format!("{why} ({error})")),
    }
}

fn put_by(model: &mut Model, text: String, why: &str) {
    model.history.put_by(Prompt::text(text));
    tell(model, why, "Up brings back what you wrote");
}

/// Says it now, and where it is found later: a notice goes with the next key.
pub(super) fn tell(model: &mut Model, why: &str, words: &str) {
    model.transcript.note(words.to_owned());
    model.notice = Some(format!("{why}: {words}"));
}
