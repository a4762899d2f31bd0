//! The title of the terminal's window: what the session is about, and whether it needs somebody. It changes with the state
//! of the session, never with time, so that a terminal is not asked for another title again and again.

use crate::app::Model;
use crate::clean::clean_line;
use crate::view::above::fit;

/// How many columns of what the session is about are in it.
const ABOUT: usize = 40;

pub(super) fn title(model: &Model) -> String {
    let state = if model.over.is_some() {
        "■ "
    } else if !model.state.questions.open().is_empty() {
        "? "
    } else if model.state.is_busy() {
        "● "
    } else {
        ""
    };
    let folder = clean_line(model.folder.rsplit('/').next().unwrap_or_default());
    let about = model.state.title.as_deref().map(|about| fit(&clean_line(about), ABOUT));
    let parts = [about, Some(folder), Some("multitap".to_owned())];
    let parts: Vec<String> = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
    format!("{state}{}", parts.join(" · "))
}
