//! Saves what the user wrote for a question that closed before it was answered. Pure.

use std::path::PathBuf;

use multitap_event::{Decide, Prompt, QuestionId};

use super::{Dialog, Model};
use crate::composer::Composer;
use crate::effect::Effect;

pub(super) const NO_ANSWER: &str = "the question was closed";

/// Saves what was written for questions that somebody else answered. A comment goes into the composer, where the next
/// letters go as well; or into the history, if something else is typed there. An edit goes into a file.
pub(super) fn closed(model: &mut Model, mut closed: Vec<Dialog>) -> Vec<Effect> {
    let edits: Vec<String> = closed.iter_mut().filter_map(|dialog| dialog.edited.take()).collect();
    let effects = edits.into_iter().map(|text| Effect::SaveText { text, why: NO_ANSWER.to_owned() }).collect();
    let written: Vec<String> = closed.iter().map(Dialog::written).filter(|words| !words.trim().is_empty()).collect();
    if written.is_empty() {
        return effects;
    }
    let written = written.join("\n");
    if model.prompt.composer.is_empty() {
        model.prompt.composer = Composer::with(&written);
        model.prompt.was_answer = Some(written);
        model.status.show(format!("{NO_ANSWER}: your comment is here"));
    } else {
        store_in_history(model, written, NO_ANSWER);
    }
    effects
}

/// Whether the text in the composer was written for a question. If so, the key that was to answer the question must not
/// send the text as a prompt.
pub(super) fn was_meant_as_answer(model: &mut Model) -> bool {
    let typed = model.prompt.composer.text();
    let was_answer = model.prompt.was_answer.take_if(|answer| begins_alike(typed, answer)).is_some();
    if was_answer {
        model.status.show(format!("{NO_ANSWER}: Enter again sends this to the agent"));
    }
    was_answer
}

/// Whether a text still begins like that answer.
fn begins_alike(text: &str, answer: &str) -> bool {
    let alike = text.bytes().zip(answer.bytes()).take_while(|(one, other)| one == other).count();
    2 * alike >= answer.len()
}

/// The user edited what a question is about. That allows nothing: the question is asked again with the change.
pub(super) fn edited(model: &mut Model, question: &QuestionId, before: &str, text: String) -> Vec<Effect> {
    // Editors end a file with a line end.
    let text = match text.strip_suffix('\n') {
        Some(bare) if !before.ends_with('\n') => bare.to_owned(),
        _ => text,
    };
    let is_open = model.session.state.questions.question(question).is_some();
    if text == before || text.trim().is_empty() {
        let why = if text == before { "nothing was changed" } else { "nothing is left" };
        let so = if is_open { "and nothing is approved: answer the question, or edit again" } else { NO_ANSWER };
        model.status.show(format!("{why}, {so}"));
        return Vec::new();
    }
    match model.questions.dialogs(question).next() {
        Some(dialog) => {
            dialog.edit(text);
            model.status.show("review your edit: nothing is approved before you answer");
            Vec::new()
        }
        None => vec![Effect::SaveText { text, why: NO_ANSWER.to_owned() }],
    }
}

/// An answer was refused. The edit stays with the question while that is open; otherwise it goes into a file: it may be
/// long, and is no prompt.
pub(super) fn not_decided(model: &mut Model, decide: Decide, why: String) -> Vec<Effect> {
    let is_open = model.session.state.questions.question(&decide.question_id).is_some();
    match decide.new_content.filter(|_| !is_open) {
        Some(text) => vec![Effect::SaveText { text, why }],
        None => {
            model.status.show(why);
            Vec::new()
        }
    }
}

/// An edit was written to a file, or could not be.
pub(super) fn kept(model: &mut Model, text: String, why: &str, file: Result<PathBuf, String>) {
    match file {
        Ok(path) => report(model, why, &format!("what you wrote is saved in {}", path.display())),
        Err(error) => store_in_history(model, text, &format!("{why} ({error})")),
    }
}

fn store_in_history(model: &mut Model, text: String, why: &str) {
    model.prompt.history.add_unsent(Prompt::text(text));
    report(model, why, "Up restores what you wrote");
}

/// Shows a notice, and adds it to the transcript: the notice disappears with the next key.
pub(super) fn report(model: &mut Model, why: &str, words: &str) {
    model.scrollback.transcript.note(words.to_owned());
    model.status.show(format!("{why}: {words}"));
}
