//! Carries out effects. Whatever takes time runs in a task of its own, and its result comes back as a message.

use std::fmt;

use multitap_event::{Image, Query, Refused};
use multitap_hub::{Edge, Part, Refusal, Session};

use super::{AWAY, Loop};
use crate::effect::Effect;
use crate::host::{ClipboardContent, ReadClipboard};
use crate::msg::Msg;
use crate::transcript::who;
use crate::{history, picture, saved_text};

/// How many older events are read at once, and how many bytes of them.
const FETCH: usize = 1000;
const FETCH_BYTES: usize = 4 * 1024 * 1024;

impl Loop<'_> {
    pub(super) fn carry_out(&mut self, effect: Effect) {
        let (session, me, host) = (self.session.clone(), self.model.session.me.clone(), self.options.host.clone());
        match effect {
            Effect::Leave(outcome) => self.leaving = Some(outcome),
            Effect::Suspend => self.suspend(),
            Effect::Copy(text) => self.terminal.screen.copy(&text),
            Effect::Edit { what, text } => {
                self.terminal.screen.suspend();
                self.editing = Some((what, (self.options.editor)(text)));
            }
            Effect::Notify { words, is_sure } => {
                if self.editing.is_none() && (is_sure || self.pressed.elapsed() >= AWAY) {
                    self.terminal.screen.notify(&words);
                }
            }
            Effect::Prompt(prompt) => {
                let when_busy = self.options.when_busy;
                self.in_order(async move {
                    let done = session.prompt(prompt.clone(), when_busy, me).await;
                    done.err().map(|error| Msg::NotSent { prompt, why: error.to_string() })
                });
            }
            Effect::Decide(decide) => self.in_order(async move {
                let done = session.decide(decide.clone(), me).await;
                done.err().map(|error| Msg::NotDecided { decide, why: not_decided(&error) })
            }),
            Effect::Withdraw(prompt) => self.in_order(async move {
                let why = match session.withdraw(prompt.prompt_id.clone()?, me).await.err()? {
                    Refusal::PromptNotQueued { .. } => None,
                    other => Some(other.to_string()),
                };
                Some(Msg::NotWithdrawn { prompt, why })
            }),
            Effect::Cancel => self.in_order(async move { refused(session.cancel(me).await) }),
            Effect::SetMode(mode) => self.in_order(async move { refused(session.set_mode(mode, me).await) }),
            Effect::SetModel(model) => self.in_order(async move { refused(session.set_model(model, me).await) }),
            Effect::Kick(client) => self.in_order(async move { refused(session.kick(client, me).await) }),
            Effect::Snapshot => self.in_order(async move { session.snapshot().await.map(Msg::Snapshot) }),
            Effect::Query(what) => self.in_background(async move {
                let done = refused(session.query(what, me).await);
                // Completion asks for commands by itself: an agent that lists none is no error.
                done.filter(|_| what != Query::Commands)
            }),
            Effect::Fetch { before } => self.in_background(async move { Some(fetch(&session, before).await) }),
            Effect::Paste => {
                let clipboard = self.options.clipboard.clone();
                self.in_background(async move { Some(Msg::Clipped(clipped(&clipboard).await)) });
            }
            Effect::Sessions => self.in_background(async move { told(host.sessions().await, Msg::Sessions) }),
            Effect::Agents => self.in_background(async move { told(host.agents().await, Msg::Agents) }),
            Effect::Share(share) => self.in_background(async move { told(host.share(share).await, Msg::Shared) }),
            Effect::Branch => {
                let branch = self.options.branch.clone();
                self.blocking(move || Some(Msg::Branch(branch())));
            }
            Effect::Find(wanted) => {
                let files = self.files.clone();
                self.blocking(move || Some(Msg::Found { paths: files?.find(&wanted.query), wanted }));
            }
            Effect::Picture { path, pasted } => {
                let root = self.options.root.clone();
                self.blocking(move || {
                    let (name, image) = picture::named(root.as_deref(), &path);
                    Some(Msg::Picture { name, image, pasted })
                });
            }
            Effect::SaveText { text, why } => self.blocking(move || {
                let file = saved_text::save(&text).map_err(|error| format!("cannot save it to a file: {error}"));
                Some(Msg::TextSaved { text, why, file })
            }),
            Effect::Remember(text) => {
                let file = self.options.history.clone();
                self.blocking(move || {
                    if let Err(error) = history::append(&file?, &text) {
                        tracing::warn!(%error, "cannot append to the history");
                    }
                    None
                });
            }
        }
    }

    /// Asks the session. Calls are begun in the order of their effects, and the last ones still finish when the user
    /// leaves.
    fn in_order(&mut self, call: impl Future<Output = Option<Msg>> + Send + 'static) {
        self.calls.push(Box::pin(call));
    }

    /// Does something that may take long. It ends with the screen.
    fn in_background(&self, work: impl Future<Output = Option<Msg>> + Send + 'static) {
        let results = self.results.clone();
        self.tasks.spawn(async move {
            if let Some(msg) = work.await {
                results.send(msg).await.ok(); // fails only if the screen is gone
            }
        });
    }

    fn blocking(&self, work: impl FnOnce() -> Option<Msg> + Send + 'static) {
        let results = self.results.clone();
        self.tasks.spawn_blocking(move || {
            if let Some(msg) = work() {
                results.blocking_send(msg).ok(); // fails only if the screen is gone
            }
        });
    }
}

/// What the host replied.
fn told<T>(reply: Result<T, String>, msg: fn(T) -> Msg) -> Option<Msg> {
    Some(reply.map_or_else(Msg::Refused, msg))
}

fn refused<T, E: fmt::Display>(done: Result<T, E>) -> Option<Msg> {
    done.err().map(|error| Msg::Refused(error.to_string()))
}

fn not_decided(error: &Refusal) -> String {
    match error {
        Refusal::Answer(Refused::AlreadySettled(ruling)) => format!("{} answered first", who(&ruling.settled_by)),
        Refusal::Answer(Refused::Withdrawn { .. }) => "the question was closed".to_owned(),
        other => other.to_string(),
    }
}

async fn fetch(session: &Session, before: u64) -> Msg {
    let part = Part { edge: Edge::Before(before), limit: FETCH, bytes: FETCH_BYTES };
    let page = session.page(part).await;
    let events = page.map(|page| page.entries.iter().filter_map(|entry| entry.event().cloned()).collect());
    Msg::Fetched(events.map_err(|error| format!("cannot load older events: {error}")))
}

async fn clipped(clipboard: &ReadClipboard) -> Result<ClipboardContent<Image>, String> {
    match clipboard().await? {
        ClipboardContent::Picture(bytes) => {
            // Encoding megabytes would block an async thread.
            let read = tokio::task::spawn_blocking(move || picture::of(&bytes).map_err(|why| why.to_string()));
            let image = read.await.unwrap_or_else(|error| Err(error.to_string()));
            image.map(ClipboardContent::Picture).map_err(|why| format!("the picture in the clipboard: {why}"))
        }
        ClipboardContent::Text(text) => Ok(ClipboardContent::Text(text)),
        ClipboardContent::Nothing => Ok(ClipboardContent::Nothing),
    }
}
