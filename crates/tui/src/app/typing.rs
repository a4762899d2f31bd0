//! What is typed: sent, completed, found again; and what the keys beside it do. Pure.

use multitap_event::{Image, Prompt, Query};
use multitap_hub::Queued;

use super::{Model, command, look, written};
use crate::commands::{self, Own};
use crate::complete::{self, Completion, Entered, Path, Wanted, What};
use crate::composer::{Composer, Erase, Move};
use crate::effect::Effect;
use crate::keys::Action;
use crate::msg::{Clipped, Msg};
use crate::transcript::Scroll;

/// The endings of files that are pictures.
const PICTURES: [&str; 5] = ["png", "jpg", "jpeg", "gif", "webp"];

/// What a key does to what is offered; nothing if it is not for it.
pub(super) fn pressed_in_completion(model: &mut Model, action: Action) -> Option<Vec<Effect>> {
    let completion = model.completion.as_mut()?;
    match action {
        Action::Go(Move::Up) => completion.choose(false),
        Action::Go(Move::Down) => completion.choose(true),
        Action::Interrupt => {
            model.dismissed = Some(completion.wanted.from);
            model.completion = None;
        }
        Action::Send | Action::Complete => {
            let item = completion.items.get(completion.chosen).cloned()?;
            let entered = if action == Action::Send { completion.entered() } else { Entered::FillIn(item) };
            let from = completion.wanted.from;
            let (item, sends) = match entered {
                Entered::Nothing => return Some(Vec::new()),
                Entered::AsTyped => return Some(send(model)),
                Entered::Run(item) => {
                    let is_whole = item.is_whole;
                    (item, is_whole)
                }
                Entered::FillIn(item) => (item, false),
            };
            model.composer.replace_from(from, &item.text);
            model.completion = None;
            return Some(if sends { send(model) } else { offer(model) });
        }
        _ => return None,
    }
    Some(Vec::new())
}

/// What a key does to a search; nothing if it ends the search and is for what was found.
pub(super) fn pressed_in_search(model: &mut Model, action: Action) -> Option<Vec<Effect>> {
    model.history.search.as_ref()?;
    let (history, composer) = (&mut model.history, &mut model.composer);
    match action {
        Action::Recall => history.search(composer),
        Action::Insert(letter) => history.search_for(composer, |words| words.push(letter)),
        Action::Erase(Erase::Back) => history.search_for(composer, |words| {
            words.pop();
        }),
        Action::Interrupt | Action::Leave => history.end_search(composer, false),
        Action::Send | Action::Complete => history.end_search(composer, true),
        _ => {
            history.end_search(composer, true);
            return None;
        }
    }
    Some(Vec::new())
}

/// Offers what could be meant by what is typed now.
pub(super) fn offer(model: &mut Model) -> Vec<Effect> {
    let wanted = complete::wanted(model.composer.text(), model.composer.cursor());
    let Some(wanted) = wanted else {
        (model.completion, model.dismissed) = (None, None);
        return Vec::new();
    };
    if model.dismissed == Some(wanted.from) {
        return Vec::new();
    }
    model.dismissed = None;
    if !matches!(wanted.what, What::Command { .. }) {
        return vec![Effect::Find(wanted)];
    }
    let agents = model.commands.as_deref().unwrap_or_default();
    let items = complete::commands(&wanted, agents, &model.models, &model.modes());
    model.completion = Completion::new(wanted, items);
    if model.commands.is_none() && !std::mem::replace(&mut model.asked_commands, true) {
        return vec![Effect::Query(Query::Commands)];
    }
    Vec::new()
}

/// Files were found. By now something else may be typed.
pub(super) fn found(model: &mut Model, wanted: Wanted, paths: Vec<String>) {
    let now = complete::wanted(model.composer.text(), model.composer.cursor());
    if now.as_ref() == Some(&wanted) && model.dismissed != Some(wanted.from) {
        let items = complete::files(&wanted.what, paths);
        model.completion = Completion::new(wanted, items);
    }
}

pub(super) fn send(model: &mut Model) -> Vec<Effect> {
    // A line that ends with a backslash goes on.
    if model.composer.text()[..model.composer.cursor()].ends_with('\\') {
        model.composer.erase(Erase::Back);
        model.composer.insert("\n");
        return Vec::new();
    }
    let mut prompt = model.composer.prompt();
    if prompt.text.trim().is_empty() || written::was_meant_as_answer(model) {
        return Vec::new();
    }
    if prompt.text.starts_with('!') && !model.composer.text().starts_with('!') {
        // It stands in a block that was pasted and is not shown: nobody meant it as a command.
        prompt.text.insert(0, ' ');
    }
    let own = commands::find(&prompt.text).filter(|(own, _)| *own != Own::Clear || !agent_clears(model));
    if let (None, Some(over)) = (own, &model.over) {
        model.notice = Some(format!("not sent: {over}"));
        return Vec::new();
    }
    if own.is_none()
        && let Some(why) = not_a_command(model, &prompt.text)
    {
        model.notice = Some(why);
        return Vec::new();
    }
    model.composer.clear();
    (model.completion, model.dismissed) = (None, None);
    let mut effects = look::go(model, Scroll::Latest);
    effects.extend(model.history.add(&prompt).map(Effect::Remember));
    effects.extend(match own {
        Some((Own::Image, argument)) if !argument.is_empty() => put_picture(model, argument, prompt.images.clone()),
        Some((own, argument)) => command::run(model, own, argument),
        None => vec![Effect::Prompt(prompt)],
    });
    effects
}

/// Why a line that begins like a command is not sent: nobody has such a command, and it is not meant as words.
fn not_a_command(model: &mut Model, text: &str) -> Option<String> {
    if text.trim() == "/" {
        return Some("type the name of a command behind the /".to_owned());
    }
    let name = commands::name(text)?;
    match &model.commands {
        Some(listed) if listed.iter().any(|offered| offered.name == name) => None,
        Some(_) => Some(format!("unknown command \"/{name}\"; / lists the commands")),
        None if model.unlisted.take().as_deref() == Some(text) => None,
        None => {
            model.unlisted = Some(text.to_owned());
            Some(format!("the agent has not listed its commands: Enter again sends \"/{name}\" as it is"))
        }
    }
}

/// Puts a picture into the prompt, behind the words that follow its path.
fn put_picture(model: &mut Model, argument: &str, images: Vec<Image>) -> Vec<Effect> {
    let Path { path, rest } = complete::first_path(argument);
    model.composer = Composer::of(&Prompt { images, ..Prompt::text(rest.unwrap_or_default()) });
    if !model.composer.is_empty() {
        model.composer.insert(" ");
    }
    vec![Effect::Picture { path, pasted: None }]
}

/// A prompt was refused: whoever typed it has it again, unless something else is typed by now.
pub(super) fn not_sent(model: &mut Model, prompt: &Prompt, why: String) {
    if model.composer.is_empty() {
        model.composer = Composer::of(prompt);
        model.notice = Some(why);
    } else {
        // It may have arrived: why says so then.
        model.notice = Some(format!("Up brings your prompt back: {why}"));
    }
}

/// Whether the agent can forget the conversation by itself.
fn agent_clears(model: &Model) -> bool {
    model.commands.iter().flatten().any(|offered| offered.name == "clear")
}

/// Something that came at once: the path of a picture may be meant as the picture.
pub(super) fn paste(model: &mut Model, text: String) -> Vec<Effect> {
    match picture_path(&text) {
        Some(path) => vec![Effect::Picture { path, pasted: Some(text) }],
        None => {
            model.composer.paste(&text);
            offer(model)
        }
    }
}

/// What the clipboard had. Text is pasted as if the terminal had handed it over.
pub(super) fn clipped(model: &mut Model, clipped: Result<Clipped, String>) -> Vec<Effect> {
    model.notice = None;
    match clipped {
        Ok(Clipped::Text(text)) => return super::update(model, Msg::Paste(text)),
        Ok(Clipped::Picture(image)) => picture(model, "clipboard", image),
        Ok(Clipped::Nothing) => model.notice = Some("there is neither a picture nor text in the clipboard".to_owned()),
        Err(why) => model.notice = Some(why),
    }
    Vec::new()
}

/// Puts a picture into what is typed, if it can be sent.
pub(super) fn picture(model: &mut Model, name: &str, image: Image) {
    if model.state.takes_images == Some(false) {
        model.notice = Some("this agent takes no pictures".to_owned());
    } else if model.asking.is_some() || model.search.is_some() || model.overlay.is_some() {
        model.notice = Some("a picture can only go with a prompt".to_owned());
    } else {
        model.composer.picture(name, image);
    }
}

/// The path of a picture, as terminals paste it: quoted, escaped, or as an address.
fn picture_path(text: &str) -> Option<String> {
    let text = text.trim();
    let bare = text.strip_prefix("file://").unwrap_or(text).trim_matches(['\'', '"']).replace("\\ ", " ");
    let (_, ending) = bare.rsplit_once('.')?;
    let is_picture = PICTURES.iter().any(|known| ending.eq_ignore_ascii_case(known));
    (is_picture && !bare.contains('\n') && !bare.contains("://")).then_some(bare)
}

pub(super) fn interrupt(model: &mut Model, twice: bool) -> Vec<Effect> {
    if model.state.is_busy() {
        return vec![Effect::Cancel];
    }
    match (twice, model.composer.is_empty()) {
        (true, false) => model.composer.clear(),
        (true, true) => {
            if let Some(last) = model.history.last() {
                model.composer = Composer::of(last);
            }
        }
        (false, is_empty) => {
            let after = if is_empty { "brings back what was sent last" } else { "clears what is typed" };
            if !is_empty || model.history.last().is_some() {
                model.again = Some(Action::Interrupt);
                model.notice = Some(format!("Esc again {after}"));
            }
        }
    }
    Vec::new()
}

/// The latest prompt of this screen that waits is taken back, to be changed.
pub(super) fn take_back(model: &mut Model) -> Option<Vec<Effect>> {
    let Queued { prompt, .. } = model.state.queue.iter().rev().find(|queued| model.is_mine(queued))?;
    prompt.prompt_id.as_ref()?;
    model.composer = Composer::of(prompt);
    Some(vec![Effect::Withdraw(prompt.clone())])
}

/// It could not be taken back: what is typed is not the same prompt once more, unless it was changed by now.
pub(super) fn not_withdrawn(model: &mut Model, prompt: &Prompt, why: Option<String>) {
    if model.composer.prompt() == Composer::of(prompt).prompt() {
        model.composer.clear();
        (model.completion, model.dismissed) = (None, None);
    }
    let waits = model.state.queue.iter().any(|queued| queued.prompt.prompt_id == prompt.prompt_id);
    model.notice = Some(match why.filter(|_| waits) {
        Some(why) => format!("not taken back, it still waits: {why}"),
        None => "not taken back: it was already sent".to_owned(),
    });
}
