//! The prompt being typed: sent, completed, and found again in the history. Pure.

use multitap_event::{Image, Prompt, Query};
use multitap_hub::Queued;

use super::{Model, command, focus, unsent};
use crate::commands::{self, Offered, Own};
use crate::complete::{self, Completion, Entered, Path, Wanted, What};
use crate::composer::{Composer, Erase, Move};
use crate::effect::Effect;
use crate::history::History;
use crate::host::ClipboardContent;
use crate::keys::Action;
use crate::transcript::Scroll;
use crate::view::Layout;

const PICTURES: [&str; 5] = ["png", "jpg", "jpeg", "gif", "webp"];

#[derive(Debug, Default)]
pub(crate) struct PromptInput {
    pub(crate) composer: Composer,
    /// Text that was put into the composer because it was written for a question that closed.
    pub(super) was_answer: Option<String>,
    pub(crate) history: History,
    pub(crate) completion: Option<Completion>,
    /// Where the word begins for which the user closed the completions.
    dismissed: Option<usize>,
    /// A command that was not sent, because the agent has not listed its commands.
    unlisted: Option<String>,
}

impl PromptInput {
    fn wanted(&self) -> Option<Wanted> {
        complete::wanted(self.composer.text(), self.composer.cursor())
    }

    fn clear(&mut self) {
        self.composer.clear();
        (self.completion, self.dismissed) = (None, None);
    }

    /// Offers files, unless something else is typed by now.
    pub(super) fn files_found(&mut self, wanted: Wanted, paths: Vec<String>) {
        if self.wanted().as_ref() == Some(&wanted) && self.dismissed != Some(wanted.from) {
            let items = complete::files(&wanted.what, paths);
            self.completion = Completion::new(wanted, items);
        }
    }

    /// Handles a key during a search of the history. Returns `false` if the key ends the search and is for the prompt
    /// that was found.
    pub(super) fn pressed_in_search(&mut self, action: Action) -> bool {
        let (history, composer) = (&mut self.history, &mut self.composer);
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
                return false;
            }
        }
        true
    }

    /// Why a line that looks like a command is not sent: there is no such command.
    fn not_a_command(&mut self, text: &str, listed: Option<&[Offered]>) -> Option<String> {
        if text.trim() == "/" {
            return Some("type the name of a command after the /".to_owned());
        }
        let name = commands::name(text)?;
        match listed {
            Some(listed) if listed.iter().any(|offered| offered.name == name) => None,
            Some(_) => Some(format!("unknown command \"/{name}\"; / lists the commands")),
            None if self.unlisted.take().as_deref() == Some(text) => None,
            None => {
                self.unlisted = Some(text.to_owned());
                Some(format!("the agent has not listed its commands: Enter again sends \"/{name}\" as it is"))
            }
        }
    }

    /// Handles `/image PATH [WORDS]`: the words become the text of the prompt, and the picture follows them.
    fn put_picture(&mut self, argument: &str, images: Vec<Image>) -> Effect {
        let Path { path, rest } = complete::first_path(argument);
        self.composer = Composer::of(&Prompt { images, ..Prompt::text(rest.unwrap_or_default()) });
        if !self.composer.is_empty() {
            self.composer.insert(" ");
        }
        Effect::Picture { path, pasted: None }
    }
}

/// Handles a key for the completions. `None` if the key does nothing to them.
pub(super) fn pressed_in_completion(model: &mut Model, layout: &Layout, action: Action) -> Option<Vec<Effect>> {
    let prompt = &mut model.prompt;
    let completion = prompt.completion.as_mut()?;
    match action {
        Action::Go(Move::Up) => completion.choose(false),
        Action::Go(Move::Down) => completion.choose(true),
        Action::Interrupt => {
            prompt.dismissed = Some(completion.wanted.from);
            prompt.completion = None;
        }
        Action::Send | Action::Complete => {
            let item = completion.items.get(completion.chosen).cloned()?;
            let entered = if action == Action::Send { completion.entered() } else { Entered::FillIn(item) };
            let (item, sends) = match entered {
                Entered::Nothing => return Some(Vec::new()),
                Entered::AsTyped => return Some(send(model, layout)),
                Entered::Run(item) => (item.text, item.is_whole),
                Entered::FillIn(item) => (item.text, false),
            };
            prompt.composer.replace_from(completion.wanted.from, &item);
            prompt.completion = None;
            return Some(if sends { send(model, layout) } else { complete(model) });
        }
        _ => return None,
    }
    Some(Vec::new())
}

pub(super) fn complete(model: &mut Model) -> Vec<Effect> {
    let (prompt, agent) = (&mut model.prompt, &mut model.agent);
    let Some(wanted) = prompt.wanted() else {
        (prompt.completion, prompt.dismissed) = (None, None);
        return Vec::new();
    };
    if prompt.dismissed == Some(wanted.from) {
        return Vec::new();
    }
    prompt.dismissed = None;
    if !matches!(wanted.what, What::Command { .. }) {
        return vec![Effect::Find(wanted)];
    }
    let listed = agent.commands.as_deref().unwrap_or_default();
    let items = complete::commands(&wanted, listed, &agent.models, &agent.modes(&model.session));
    prompt.completion = Completion::new(wanted, items);
    if agent.commands.is_none() && !std::mem::replace(&mut agent.has_asked_commands, true) {
        return vec![Effect::Query(Query::Commands)];
    }
    Vec::new()
}

pub(super) fn send(model: &mut Model, layout: &Layout) -> Vec<Effect> {
    let composer = &mut model.prompt.composer;
    // A backslash at the end continues the line.
    if composer.text()[..composer.cursor()].ends_with('\\') {
        composer.erase(Erase::Back);
        composer.insert("\n");
        return Vec::new();
    }
    let mut prompt = composer.prompt();
    // A `!` in a pasted block is not visible, and so not meant as a shell command.
    if prompt.text.starts_with('!') && !composer.text().starts_with('!') {
        prompt.text.insert(0, ' ');
    }
    if prompt.text.trim().is_empty() || unsent::was_meant_as_answer(model) {
        return Vec::new();
    }
    let own = commands::find(&prompt.text).filter(|(own, _)| *own != Own::Clear || !model.agent.can_clear());
    if own.is_none() {
        let why = match &model.session.over {
            Some(over) => Some(format!("not sent: {over}")),
            None => model.prompt.not_a_command(&prompt.text, model.agent.commands.as_deref()),
        };
        if let Some(why) = why {
            model.status.show(why);
            return Vec::new();
        }
    }
    model.prompt.clear();
    let mut effects = model.scrollback.go(Scroll::Latest, layout.shape);
    effects.extend(model.prompt.history.add(&prompt).map(Effect::Remember));
    match own {
        Some((Own::Image, path)) if !path.is_empty() => {
            effects.push(model.prompt.put_picture(path, prompt.images.clone()));
        }
        Some((own, argument)) => effects.extend(command::run(model, own, argument)),
        None => effects.push(Effect::Prompt(prompt)),
    }
    effects
}

/// A prompt was refused: it goes back into the composer, unless something else is typed by now.
pub(super) fn not_sent(model: &mut Model, prompt: &Prompt, why: String) {
    if model.prompt.composer.is_empty() {
        model.prompt.composer = Composer::of(prompt);
        model.status.show(why);
    } else {
        // The prompt may have arrived: then `why` says so.
        model.status.show(format!("Up restores your prompt: {why}"));
    }
}

/// Pastes text. The path of a picture may be meant as the picture.
pub(super) fn paste(model: &mut Model, text: String) -> Vec<Effect> {
    match picture_path(&text) {
        Some(path) => vec![Effect::Picture { path, pasted: Some(text) }],
        None => {
            model.prompt.composer.paste(&text);
            complete(model)
        }
    }
}

pub(super) fn clipped(
    model: &mut Model,
    layout: &Layout,
    clipped: Result<ClipboardContent<Image>, String>,
) -> Vec<Effect> {
    model.status.notice = None;
    match clipped {
        Ok(ClipboardContent::Text(text)) => return focus::pasted(model, layout, text),
        Ok(ClipboardContent::Picture(image)) => insert_picture(model, "clipboard", image),
        Ok(ClipboardContent::Nothing) => model.status.show("the clipboard has no image and no text"),
        Err(why) => model.status.show(why),
    }
    Vec::new()
}

pub(super) fn insert_picture(model: &mut Model, name: &str, image: Image) {
    if model.session.state.capabilities.images == Some(false) {
        model.status.show("this agent accepts no images");
    } else if focus::types_prompt(model) {
        model.prompt.composer.picture(name, image);
    } else {
        model.status.show("images can only be added to a prompt");
    }
}

/// The path of a picture, as terminals paste it: quoted, escaped, or as an address.
fn picture_path(text: &str) -> Option<String> {
    let text = text.trim();
    let bare = text.strip_prefix("file://").unwrap_or(text).trim_matches(['\'', '"']).replace("\\ ", " ");
    let (_, extension) = bare.rsplit_once('.')?;
    let is_picture = PICTURES.iter().any(|known| extension.eq_ignore_ascii_case(known));
    (is_picture && !bare.contains('\n') && !bare.contains("://")).then_some(bare)
}

pub(super) fn interrupt(model: &mut Model, is_repeat: bool) -> Vec<Effect> {
    if model.session.state.is_busy() {
        return vec![Effect::Cancel];
    }
    let (composer, last) = (&mut model.prompt.composer, model.prompt.history.last());
    match (composer.is_empty(), last) {
        (false, _) if is_repeat => composer.clear(),
        (false, _) => model.status.arm(Action::Interrupt, "Esc again clears the input"),
        (true, Some(last)) if is_repeat => *composer = Composer::of(last),
        (true, Some(_)) => model.status.arm(Action::Interrupt, "Esc again recalls the last prompt"),
        (true, None) => {}
    }
    Vec::new()
}

/// Withdraws this user's latest waiting prompt, to change it.
pub(super) fn withdraw_last(model: &mut Model) -> Option<Effect> {
    let queue = model.session.state.queue.iter().rev();
    let Queued { prompt, .. } = queue.into_iter().find(|queued| model.is_mine(queued))?;
    prompt.prompt_id.as_ref()?;
    model.prompt.composer = Composer::of(prompt);
    Some(Effect::Withdraw(prompt.clone()))
}

/// A prompt could not be withdrawn: it must not stand in the composer a second time, unless it was changed by now.
pub(super) fn not_withdrawn(model: &mut Model, prompt: &Prompt, why: Option<String>) {
    if model.prompt.composer.prompt() == Composer::of(prompt).prompt() {
        model.prompt.clear();
    }
    let is_waiting = model.session.state.queue.iter().any(|queued| queued.prompt.prompt_id == prompt.prompt_id);
    model.status.show(match why.filter(|_| is_waiting) {
        Some(why) => format!("not withdrawn: {why}"),
        None => "not withdrawn: it was already sent".to_owned(),
    });
}
