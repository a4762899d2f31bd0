//! The last line, or lines: where, with whom, in which mode, how much of it is used, and who else is there. Or a notice, or what
//! is searched for.

use multitap_event::{ClientRole, Timestamp};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::composer::field;
use crate::app::{Context, Model, Search};
use crate::clean::clean_line;
use crate::figures;
use crate::run::BEAT;
use crate::wrap::{width, wrap};

const BETWEEN: &str = " · ";
/// What turns while a turn runs.
const WHEEL: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

/// The rows it takes up: what is said to whoever sits here is said whole, as far as there is room.
pub(super) fn rows(model: &Model) -> usize {
    if model.search.is_some() { 1 } else { told(model).map_or(1, |lines| lines.len()) }
}

/// A word for whoever sits here, in the place of the rest.
fn told(model: &Model) -> Option<Vec<Line<'static>>> {
    const MOST: usize = 4;
    let words = match (&model.over, &model.notice) {
        (Some(over), _) => format!("{over} · Ctrl+D leaves"),
        (None, Some(notice)) => notice.clone(),
        (None, None) => return None,
    };
    let line = Line::styled(clean_line(&words), model.theme.warning());
    let mut lines = wrap(line, usize::from(model.columns).max(1), 0);
    lines.truncate(MOST.min(usize::from(model.rows)).max(1));
    Some(lines)
}

pub(super) fn draw(model: &Model, frame: &mut Frame<'_>, area: Rect) {
    if let Some(search) = &model.search {
        return searching(model, search, frame, area);
    }
    let lines =
        told(model).unwrap_or_else(|| vec![fitting(parts(model), usize::from(area.width), model.theme.quiet())]);
    frame.render_widget(Paragraph::new(lines), area);
}

fn searching(model: &Model, search: &Search, frame: &mut Frame<'_>, area: Rect) {
    let hint = match (search.words.is_empty(), search.has_found(), search.is_last) {
        (true, ..) => " Esc: done",
        (_, _, false) if search.seeks() => " reading what came before",
        (_, false, _) => " not found",
        (_, true, true) => " no more that way",
        (_, true, false) => " ↑ earlier · ↓ later",
    };
    let [words, told] =
        Layout::horizontal([Constraint::Min(16), Constraint::Length(u16::try_from(width(hint)).unwrap_or(0))])
            .areas(area);
    field(&search.words, "search", model.theme, frame, words);
    let style = if search.is_last && !search.words.is_empty() { model.theme.warning() } else { model.theme.quiet() };
    frame.render_widget(Paragraph::new(Line::styled(hint, style)), told);
}

/// What there is to say, in order; each with how much it matters when there is not room for all.
fn parts(model: &Model) -> Vec<(u8, String)> {
    let state = &model.state;
    let agent = state.start.as_ref().map(|start| start.agent_type.to_string());
    let mode = state.mode.map(|mode| mode.to_string()).or_else(|| state.native_mode.clone());
    let others = state.clients.iter().filter(|client| client.client_id != model.me.client_id).count();
    let branch = model.branch.as_ref().map(|branch| format!(" ({branch})")).unwrap_or_default();
    let tokens = || state.usage.map(|usage| format!("{} tokens", figures::tokens(usage.total_tokens)));
    let mut parts = Vec::new();
    let mut say = |matters: u8, words: Option<String>| parts.extend(words.map(|words| (matters, words)));
    if model.is_lost {
        say(0, Some("not connected, trying again".to_owned()));
    } else {
        say(0, waiting(model).or_else(|| state.is_busy().then(|| working(model))));
    }
    say(8, Some(format!("{}{branch}", model.folder)));
    say(2, agent);
    say(3, state.model.clone());
    say(1, mode);
    say(6, model.context.map(context).or_else(tokens));
    say(7, state.cost_usd.filter(|cost| *cost > 0.0).map(figures::cost));
    say(0, (!state.queue.is_empty()).then(|| format!("{} queued", state.queue.len())));
    say(4, (others > 0 && !model.is_lost).then(|| format!("{others} connected")));
    say(5, model.door.clone());
    parts
}

/// That nothing goes on before somebody answers.
fn waiting(model: &Model) -> Option<String> {
    let whose = if model.me.role == Some(ClientRole::Observer) { "an" } else { "your" };
    match model.state.questions.open().len() {
        0 => None,
        1 => Some(format!("waiting for {whose} answer")),
        several => Some(format!("waiting for {whose} answer ({several} questions)")),
    }
}

/// That it is at work, for how long, and that this screen is alive.
fn working(model: &Model) -> String {
    let Some((now, taken)) = model.beat() else { return "working".to_owned() };
    let turned = now.millis_since(Timestamp::from_millis(0)) / BEAT.as_millis() as u64;
    let wheel = WHEEL[turned as usize % WHEEL.len()];
    let seconds = taken.map(|taken| taken / 1000).filter(|seconds| *seconds > 0);
    let taken = seconds.map(|seconds| format!(" {}", figures::seconds(seconds))).unwrap_or_default();
    format!("{wheel} working{taken}")
}

fn context(context: Context) -> String {
    match context.window {
        Some(window) => format!("{}% context", context.used.saturating_mul(100) / window.max(1)),
        None => format!("{} context", figures::tokens(context.used)),
    }
}

/// As many of them as fit, those that matter most first, in their order.
fn fitting(parts: Vec<(u8, String)>, columns: usize, style: Style) -> Line<'static> {
    let parts: Vec<_> = parts.into_iter().map(|(matters, words)| (matters, clean_line(&words))).collect();
    let mut order: Vec<usize> = (0..parts.len()).collect();
    order.sort_by_key(|at| parts[*at].0);
    let (mut used, mut fits) = (0, vec![false; parts.len()]);
    for at in order {
        let wide = width(&parts[at].1) + if used == 0 { 0 } else { width(BETWEEN) };
        if used + wide <= columns {
            used += wide;
            fits[at] = true;
        }
    }
    let shown = parts.into_iter().zip(fits).filter(|(_, fits)| *fits).map(|((_, words), _)| words);
    Line::from(Span::styled(shown.collect::<Vec<_>>().join(BETWEEN), style))
}
