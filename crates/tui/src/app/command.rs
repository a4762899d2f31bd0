//! Runs the commands of the terminal, and leaves the screen. Pure.

use multitap_event::{ClientRole, Query};
use qrcode::{EcLevel, QrCode};

use super::overlay::{Overlay, Page, Pick, Picker, row};
use super::{Model, key};
use crate::commands::{self, Own};
use crate::complete::{self, Item};
use crate::effect::{Effect, ScreenExit};
use crate::host::{JoinAddress, ResumableSession, ShareRequest};
use crate::keys::Copied;

pub(super) fn run(model: &mut Model, own: Own, argument: &str) -> Vec<Effect> {
    match (own, argument) {
        (Own::Model, "") => {
            model.agent.wants_models = true;
            return vec![Effect::Query(Query::Models)];
        }
        (Own::Model, name) => return vec![Effect::SetModel(name.to_owned())],
        (Own::Mode, "") => model.overlay = Some(Overlay::Picker(modes(model))),
        (Own::Mode, mode) => return vec![Effect::SetMode(mode.to_owned())],
        (Own::Agents, _) => return vec![Effect::Agents],
        (Own::Sessions, _) => return vec![Effect::Sessions],
        (Own::New | Own::Clear, _) if !model.session.is_host => {
            model.status.show("this session runs elsewhere: quit, and start another with `multitap`");
        }
        (Own::New | Own::Clear, _) => return leave(model, ScreenExit::NewSession),
        (Own::Share, words) => match share(words) {
            Ok(share) => return vec![Effect::Share(share)],
            Err(why) => model.status.show(why),
        },
        (Own::Clients, _) => model.overlay = Some(Overlay::Picker(clients(model))),
        (Own::Stats, _) => model.overlay = Some(Overlay::Page(stats(model))),
        // With a path, the prompt handles it.
        (Own::Image, _) => model.status.show("/image needs the path of a picture"),
        (Own::Copy, _) => return key::copy(model, Copied::Answer),
        (Own::Help, _) => model.overlay = Some(Overlay::Page(help(model))),
        (Own::Quit, _) => return leave(model, ScreenExit::Quit),
    }
    Vec::new()
}

/// Leaves. If that ends the session for others, the user is asked first.
pub(super) fn leave(model: &mut Model, outcome: ScreenExit) -> Vec<Effect> {
    let others = model.session.others().count();
    if !model.session.is_host || others == 0 || model.session.over.is_some() {
        return vec![Effect::Leave(outcome)];
    }
    let mut rows = Vec::new();
    let is_leaving = outcome == ScreenExit::Quit;
    if is_leaving {
        let keep = Pick::Do(Effect::Leave(ScreenExit::KeepServing));
        rows.push(row("1. keep serving", "the session continues without a terminal", keep));
    }
    let end = format!("{}. end the session for all", rows.len() + 1);
    rows.push(row(end, "other clients are disconnected", Pick::Do(Effect::Leave(outcome))));
    rows.push(row(format!("{}. stay", rows.len() + 1), "", Pick::Nothing));
    let title =
        if others == 1 { "another client is connected".to_owned() } else { format!("{others} others are connected") };
    let last = rows.len() - 1;
    let mut picker = Picker::new(title, rows).numbered();
    // The harmless choice: keep serving, or stay.
    picker.chosen = if is_leaving { 0 } else { last };
    model.overlay = Some(Overlay::Picker(picker));
    Vec::new()
}

fn share(words: &str) -> Result<ShareRequest, String> {
    let words: Vec<&str> = words.split_whitespace().collect();
    match words.as_slice() {
        [] | ["on"] => Ok(ShareRequest::On { port: None }),
        ["off"] => Ok(ShareRequest::Off),
        ["on", port] | [port] => match port.parse() {
            Ok(port) => Ok(ShareRequest::On { port: Some(port) }),
            Err(_) => Err(format!("/share takes on, off or a port, not \"{port}\"")),
        },
        _ => Err("/share takes on, off or a port".to_owned()),
    }
}

fn modes(model: &Model) -> Picker {
    let modes = model.agent.modes(&model.session);
    let rows = modes.iter().map(|mode| (complete::mode(*mode), Pick::Do(Effect::SetMode(mode.to_string()))));
    let mut picker = Picker::new("approval mode", rows.collect());
    picker.chosen = modes.iter().position(|mode| Some(*mode) == model.session.state.mode).unwrap_or_default();
    picker
}

/// Shows the list of models, if the user waits for it.
pub(super) fn choose_model(model: &mut Model) {
    if !std::mem::take(&mut model.agent.wants_models) {
        return;
    }
    if model.agent.models.is_empty() {
        model.status.show("this agent lists no models: use /model NAME");
        return;
    }
    let models = &model.agent.models;
    let rows = models.iter().map(|item| (item.clone(), Pick::Do(Effect::SetModel(item.text.clone()))));
    let mut picker = Picker::new("model", rows.collect());
    let now = model.session.state.model.as_ref();
    picker.chosen = models.iter().position(|item| Some(&item.text) == now).unwrap_or(0);
    model.overlay = Some(Overlay::Picker(picker));
}

pub(super) fn show_sessions(model: &mut Model, sessions: Vec<ResumableSession>) {
    if sessions.is_empty() {
        model.status.show("there is no other session of this folder");
        return;
    }
    let rows = sessions.into_iter().map(|session| {
        let item = Item::new(session.title, session.about);
        // The filter matches the title and the id.
        (Item { text: format!("{} {}", item.shown, session.id), ..item }, Pick::Resume(session.id))
    });
    model.overlay = Some(Overlay::Picker(Picker::new("resume a session", rows.collect())));
}

pub(super) fn show_address(model: &mut Model, address: Option<JoinAddress>) {
    model.session.address = address.as_ref().map(|address| address.url.clone());
    let Some(address) = address else {
        model.status.show("sharing is off");
        return;
    };
    let mut lines = vec![address.url.clone()];
    lines.extend(address.token.as_ref().map(|token| format!("token  {token}")));
    lines.extend([address.note, "/share off stops sharing".to_owned()]);
    // Browsers do not send the fragment to the server.
    let link = address.token.map_or_else(|| address.url.clone(), |token| format!("{}/#token={token}", address.url));
    let code = QrCode::with_error_correction_level(link, EcLevel::L).map(|code| half_blocks(&code)).unwrap_or_default();
    model.overlay = Some(Overlay::Page(Page { code, ..Page::new("Join this session", lines) }));
}

/// Draws two modules per character, with a narrow margin: a code with a long token fits on a screen of 24 rows.
fn half_blocks(code: &QrCode) -> Vec<String> {
    const RIM: usize = 2;
    let (width, modules) = (code.width(), code.to_colors());
    let is_dark = |x: usize, y: usize| {
        let inside = |at: usize| at.checked_sub(RIM).filter(|at| *at < width);
        inside(x).zip(inside(y)).is_some_and(|(x, y)| modules[y * width + x] == qrcode::Color::Dark)
    };
    let letter = |x: usize, y: usize| match (is_dark(x, y), is_dark(x, y + 1)) {
        (true, true) => '█',
        (true, false) => '▀',
        (false, true) => '▄',
        (false, false) => ' ',
    };
    let all = width + 2 * RIM;
    (0..all).step_by(2).map(|y| (0..all).map(|x| letter(x, y)).collect()).collect()
}

fn clients(model: &Model) -> Picker {
    let rows = model.session.state.clients.iter().map(|client| {
        let mine = client.client_id == model.session.me.client_id;
        let role = match client.role {
            Some(ClientRole::Observer) => "observer",
            Some(ClientRole::Controller) => "controller",
            Some(ClientRole::Owner) | None => "owner",
        };
        let does = format!("{} · {role}{}", client.door, if mine { " · this screen" } else { "" });
        let pick = match &client.client_id {
            Some(id) if !mine => Pick::Client { id: id.clone(), name: client.client.clone() },
            _ => Pick::Nothing,
        };
        row(client.client.clone(), does, pick)
    });
    Picker::new("connected clients; Enter kicks one", rows.collect())
}

fn stats(model: &Model) -> Page {
    let state = &model.session.state;
    let mut lines = Vec::new();
    let mut add = |name: &str, value: Option<String>| lines.extend(value.map(|value| format!("{name:16} {value}")));
    add("agent", state.start.as_ref().map(|start| start.agent_type.to_string()));
    add("model", state.model.clone());
    add("mode", state.mode.map(|mode| mode.option_word().to_owned()).or_else(|| state.native_mode.clone()));
    add("session", model.session.id.clone());
    add("native session", state.native_id.clone());
    add("turns", Some(state.turns.to_string()));
    add("events", Some(state.seq.to_string()));
    if let Some(usage) = state.usage {
        add("tokens in", Some(usage.input_tokens.to_string()));
        add("tokens out", Some(usage.output_tokens.to_string()));
        add("tokens total", Some(usage.total_tokens.to_string()));
    }
    add("cost", state.cost_usd.map(|cost| format!("${cost:.4}")));
    add("clients", Some(state.clients.len().to_string()));
    add("queued prompts", Some(state.queue.len().to_string()));
    add("rules", Some(state.rules.len().to_string()));
    Page::new("This session", lines)
}

fn help(model: &Model) -> Page {
    let line = |name: &str, argument: &str, does: &str| format!("{:28} {does}", format!("/{name} {argument}"));
    let mut lines = vec!["Commands of the terminal (? shows the keys):".to_owned()];
    lines.extend(commands::COMMANDS.iter().map(|command| line(command.name, command.argument, command.does)));
    let agents = model.agent.commands.iter().flatten();
    let agents: Vec<_> = agents.filter(|offered| commands::find(&format!("/{}", offered.name)).is_none()).collect();
    if !agents.is_empty() {
        lines.extend([String::new(), "Commands of the agent:".to_owned()]);
        lines.extend(agents.into_iter().map(|offered| line(&offered.name, &offered.argument, &offered.does)));
    }
    lines.extend([String::new(), "@ mentions a file. A line that begins with ! is a shell command.".to_owned()]);
    Page::new("Commands", lines)
}
