//! What somebody wrote for a question that needs no answer any more: it is not lost. Pure.

use std::path::PathBuf;

use multitap_event::{Decide, Prompt, QuestionId};

use super::{Asking, Model};
use crate::composer::Composer;
use crate::effect::Effect;

pub(super) const NO_ANSWER: &str = "the question needs no answer any more";

/// Somebody else answered these. Words that were to go with an answer are in the composer then, where the next letters
/// go as well; or in the history, if something else is typed there. An edit goes into a file.
pub(super) fn closed(model: &mut Model, mut closed: Vec<Asking>) -> Vec<Effect> {
    let edits: Vec<String> = closed.iter_mut().filter_map(|asking| asking.edited.take()).collect();
    let effects = edits.into_iter().map(|text| Effect::Keep { text, why: NO_ANSWER.to_owned() }).collect();
    let written: Vec<String> = closed.iter().map(Asking::written).filter(|words| !words.trim().is_empty()).collect();
    if written.is_empty() {
        return effects;
    }
    let written = written.join("\n");
    if model.composer.is_empty() {
        model.composer = Composer::with(&written);
        model.was_answer = Some(written);
        model.notice = Some(format!("{NO_ANSWER}: what you wrote for it is here"));
    } else {
        put_by(model, written, NO_ANSWER);
    }
    effects
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

/// An editor was closed on what a question is about. Nothing is allowed by that: what was changed is asked about again.
pub(super) fn edited(model: &mut Model, question: &QuestionId, before: &str, text: String) -> Vec<Effect> {
    // Editors end a file with a line end.
    let text = match text.strip_suffix('\n') {
        Some(bare) if !before.ends_with('\n') => bare.to_owned(),
        _ => text,
    };
    let is_open = model.state.questions.question(question).is_some();
    if text == before || text.trim().is_empty() {
        let why = if text == before { "nothing was changed" } else { "nothing is left of it" };
        let so = if is_open { "and nothing is allowed: answer the question, or edit again" } else { NO_ANSWER };
        model.notice = Some(format!("{why}, {so}"));
        return Vec::new();
    }
    let asking = model.asking.iter_mut().chain(&mut model.aside);
    let mut asking = asking.filter(|asking| asking.question.question_id == *question);
    match asking.next() {
        Some(asking) => {
            asking.edit(text);
            model.notice = Some("your edit is shown: nothing is allowed before you answer".to_owned());
            Vec::new()
        }
        None => vec![Effect::Keep { text, why: NO_ANSWER.to_owned() }],
    }
}

/// An answer was refused. As long as the question is open its edit is too; otherwise it goes into a file: it may be
/// long, and is no prompt.
pub(super) fn not_decided(model: &mut Model, decide: Decide, why: String) -> Vec<Effect> {
    let is_open = model.state.questions.question(&decide.question_id).is_some();
    match decide.new_content.filter(|_| !is_open) {
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
