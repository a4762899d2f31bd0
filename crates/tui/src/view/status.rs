//! The title of the window, and the status line: state, folder, agent, mode, usage, other clients. A notice or the search takes its place.

use multitap_event::{ClientRole, Timestamp};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect, Size};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::above::fit;
use super::composer::Field;
use crate::app::{Context, Model, Search, SessionView};
use crate::clean::clean_line;
use crate::number;
use crate::run::SPIN;
use crate::wrap::{cells, width, wrap};

const BETWEEN: &str = " · ";
const SPINNER: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

/// The lines: a notice takes the place of the rest, and is shown whole as far as there is room.
pub(super) fn lines(model: &Model, size: Size) -> Vec<Line<'static>> {
    let columns = usize::from(size.width);
    let status = || vec![fitting(parts(model), columns, model.theme.quiet())];
    notice(model, columns, usize::from(size.height)).unwrap_or_else(status)
}

fn notice(model: &Model, columns: usize, rows: usize) -> Option<Vec<Line<'static>>> {
    const MOST: usize = 4;
    if model.scrollback.search.is_some() {
        return None;
    }
    let words = match (&model.session.over, &model.status.notice) {
        (Some(over), _) => format!("{over} · Ctrl+D quits"),
        (None, Some(notice)) => notice.clone(),
        (None, None) => return None,
    };
    let line = Line::styled(clean_line(&words), model.theme.warning());
    let mut lines = wrap(line, columns.max(1), 0);
    lines.truncate(MOST.min(rows).max(1));
    Some(lines)
}

pub(super) fn draw(model: &Model, lines: &[Line<'static>], frame: &mut Frame<'_>, area: Rect) {
    match &model.scrollback.search {
        Some(search) => draw_search(model, search, frame, area),
        None => frame.render_widget(Paragraph::new(lines.to_vec()), area),
    }
}

fn draw_search(model: &Model, search: &Search, frame: &mut Frame<'_>, area: Rect) {
    let hint = match (search.words.is_empty(), search.has_found(), search.is_last) {
        (true, ..) => " Esc: done",
        (_, _, false) if search.is_waiting => " loading older events",
        (_, false, _) => " not found",
        (_, true, true) => " no more matches",
        (_, true, false) => " ↑ earlier · ↓ later",
    };
    let widths = [Constraint::Min(16), Constraint::Length(cells(width(hint)))];
    let [words, result] = Layout::horizontal(widths).areas(area);
    Field::new(&search.words, usize::from(words.width)).draw("search", model.theme, frame, words);
    let style = if search.is_last && !search.words.is_empty() { model.theme.warning() } else { model.theme.quiet() };
    frame.render_widget(Paragraph::new(Line::styled(hint, style)), result);
}

/// The parts of the line in their order, each with its rank: 0 is the last to be left out.
fn parts(model: &Model) -> Vec<(u8, Span<'static>)> {
    let (session, state) = (&model.session, &model.session.state);
    let agent = state.start.as_ref().map(|start| start.agent_type.to_string());
    let mode = state.mode.map(|mode| mode.option_word().to_owned()).or_else(|| state.native_mode.clone());
    let mode_style = mode.as_deref().map_or(model.theme.quiet(), |mode| model.theme.mode(mode));
    let others = session.others().count();
    let branch = session.branch.as_ref().map(|branch| format!(" ({branch})")).unwrap_or_default();
    let tokens = || state.usage.map(|usage| format!("{} tokens", number::tokens(usage.total_tokens)));
    let mut parts = Vec::new();
    let mut styled = |rank: u8, words: Option<String>, style| {
        parts.extend(words.map(|words| (rank, Span::styled(clean_line(&words), style))));
    };
    let quiet = model.theme.quiet();
    if session.is_lost {
        styled(0, Some("disconnected, reconnecting".to_owned()), quiet);
    } else {
        styled(0, waiting(session).or_else(|| state.is_busy().then(|| working(session))), quiet);
    }
    styled(8, Some(format!("{}{branch}", session.folder)), quiet);
    styled(2, agent, quiet);
    styled(3, state.model.clone(), quiet);
    styled(1, mode, mode_style);
    styled(6, session.context.map(context).or_else(tokens), quiet);
    styled(7, state.cost_usd.filter(|cost| *cost > 0.0).map(number::cost), quiet);
    styled(0, (!state.queue.is_empty()).then(|| format!("{} queued", state.queue.len())), quiet);
    styled(4, (others > 0 && !session.is_lost).then(|| format!("{others} connected")), quiet);
    styled(5, session.address.clone(), quiet);
    parts
}

/// Says that the agent waits for an answer.
fn waiting(session: &SessionView) -> Option<String> {
    let whose = if session.me.role == Some(ClientRole::Observer) { "an" } else { "your" };
    match session.state.questions.open().len() {
        0 => None,
        1 => Some(format!("waiting for {whose} answer")),
        several => Some(format!("waiting for {whose} answer ({several} questions)")),
    }
}

/// Says that the agent works, and for how long. The spinner shows that the screen is alive.
fn working(session: &SessionView) -> String {
    let Some((now, taken)) = session.working() else { return "working".to_owned() };
    let turned = now.millis_since(Timestamp::from_millis(0)) / SPIN.as_millis() as u64;
    let spinner = SPINNER[turned as usize % SPINNER.len()];
    let seconds = taken.map(|taken| taken / 1000).filter(|seconds| *seconds > 0);
    let taken = seconds.map(|seconds| format!(" {}", number::seconds(seconds))).unwrap_or_default();
    format!("{spinner} working{taken}")
}

fn context(context: Context) -> String {
    match context.window {
        Some(window) => format!("{}% context", context.used.saturating_mul(100) / window.max(1)),
        None => format!("{} context", number::tokens(context.used)),
    }
}

/// As many parts as fit, by rank, in their order.
fn fitting(parts: Vec<(u8, Span<'static>)>, columns: usize, style: Style) -> Line<'static> {
    let mut order: Vec<usize> = (0..parts.len()).collect();
    order.sort_by_key(|at| parts[*at].0);
    let (mut used, mut fits) = (0, vec![false; parts.len()]);
    for at in order {
        let wide = parts[at].1.width() + if used == 0 { 0 } else { width(BETWEEN) };
        if used + wide <= columns {
            used += wide;
            fits[at] = true;
        }
    }
    let mut spans = Vec::new();
    for (_, part) in parts.into_iter().zip(fits).filter(|(_, fits)| *fits).map(|(part, _)| part) {
        if !spans.is_empty() {
            spans.push(Span::styled(BETWEEN, style));
        }
        spans.push(part);
    }
    Line::from(spans)
}

/// Maximum width of what the session is about.
const ABOUT: usize = 40;

/// The title of the window: what the session is about, and its state. It must not change with time: every change is
/// written to the terminal.
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
