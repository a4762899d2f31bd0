//! The last line: where, with whom, in which mode, and who else is there; or a notice.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use crate::app::Model;
use crate::wrap::width;

pub(super) fn draw(model: &Model, frame: &mut Frame<'_>, area: Rect) {
    let theme = model.theme;
    let line = match (&model.over, &model.notice) {
        (Some(over), _) => Line::styled(format!("{over} · Ctrl+D leaves"), theme.warning()),
        (None, Some(notice)) => Line::styled(notice.clone(), theme.warning()),
        (None, None) => fitting(&parts(model), usize::from(area.width), theme.quiet()),
    };
    frame.render_widget(Paragraph::new(line), area);
}

/// What there is to say, the most important first.
fn parts(model: &Model) -> Vec<String> {
    let state = &model.state;
    let agent = state.start.as_ref().map(|start| start.agent_type.to_string());
    let mode = state.mode.map(|mode| mode.to_string()).or_else(|| state.native_mode.clone());
    let others = state.clients.iter().filter(|client| client.client_id != model.me.client_id).count();
    let branch = model.branch.as_ref().map(|branch| format!(" ({branch})")).unwrap_or_default();
    let mut parts = Vec::new();
    parts.extend(state.is_busy().then(|| "working".to_owned()));
    parts.extend(agent);
    parts.extend(state.model.clone());
    parts.extend(mode);
    parts.extend((!state.queue.is_empty()).then(|| format!("{} queued", state.queue.len())));
    parts.extend((others > 0).then(|| format!("{others} connected")));
    parts.extend(model.door.clone());
    parts.push(format!("{}{branch}", model.folder));
    parts.extend(state.usage.map(|usage| format!("{} tokens", usage.total_tokens)));
    parts.extend(state.cost_usd.map(|cost| format!("${cost:.2}")));
    parts
}

/// As many of them as fit.
fn fitting(parts: &[String], columns: usize, style: ratatui::style::Style) -> Line<'static> {
    let mut text = String::new();
    for part in parts {
        let joined = if text.is_empty() { part.clone() } else { format!(" · {part}") };
        if width(&text) + width(&joined) <= columns {
            text.push_str(&joined);
        }
    }
    Line::from(Span::styled(text, style))
}
