//! The title of the window: the subject of the session, and its state. It must not change with time, because every
//! change is written to the terminal.

use crate::app::Model;
use crate::clean::clean_line;
use crate::view::above::fit;

/// Maximum width of the subject.
const ABOUT: usize = 40;

pub(crate) fn title(model: &Model) -> String {
    let state = if model.session.over.is_some() {
        "■ "
    } else if !model.session.state.questions.open().is_empty() {
        "? "
    } else if model.session.state.is_busy() {
        "● "
    } else {
        ""
    };
    let folder = clean_line(model.session.folder.rsplit('/').next().unwrap_or_default());
    let about = model.session.state.title.as_deref().map(|about| fit(&clean_line(about), ABOUT));
    let parts = [about, Some(folder), Some("multitap".to_owned())];
    let parts: Vec<String> = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
    format!("{state}{}", parts.join(" · "))
}
