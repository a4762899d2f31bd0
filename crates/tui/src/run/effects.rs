//! What the screen wants done, done: what takes time by a task of its own, and what comes of it comes back as a message.

use std::fmt;

use multitap_event::{ClientRef, Query, Refused};
use multitap_hub::{DecideError, Edge, Part, Session, WhenBusy, WithdrawError};

use super::{AWAY, Loop};
use crate::around::{Around, Clip};
use crate::effect::Effect;
use crate::msg::{Clipped, Msg};
use crate::transcript::who;
use crate::{history, keep, picture};

/// How many events are read at once when somebody scrolls up to the first, and how many bytes of them.
const FETCH: usize = 1000;
const FETCH_BYTES: usize = 4 * 1024 * 1024;

impl Loop<'_> {
    /// Reads what came before that event.
    fn fetch(&mut self, before: u64) {
        let (session, answers) = (self.session.clone(), self.answers.clone());
        let part = Part { edge: Edge::Before(before), limit: FETCH, bytes: FETCH_BYTES };
        self.tasks.spawn(async move {
            let page = session.page(part).await;
            let events = page.map(|page| page.entries.iter().filter_map(|entry| entry.event().cloned()).collect());
            let fetched = events.map_err(|error| format!("what came before cannot be read: {error}"));
            answers.send(Msg::Fetched(fetched)).await.ok(); // the screen is gone, and nobody wants to know
        });
    }

    /// Reads the clipboard.
    fn paste(&mut self) {
        let (clipboard, answers) = (self.clipboard.clone(), self.answers.clone());
        self.tasks.spawn(async move {
            let clipped = match clipboard().await {
                Ok(Clip::Picture(bytes)) => {
                    // Megabytes are not encoded where others wait.
                    let read = tokio::task::spawn_blocking(move || picture::of(&bytes).map_err(|why| why.to_string()));
                    let image = read.await.unwrap_or_else(|error| Err(error.to_string()));
                    image.map(Clipped::Picture).map_err(|why| format!("the picture in the clipboard: {why}"))
                }
                Ok(Clip::Text(text)) => Ok(Clipped::Text(text)),
                Ok(Clip::Nothing) => Ok(Clipped::Nothing),
                Err(why) => Err(why),
            };
            answers.send(Msg::Clipped(clipped)).await.ok(); // the screen is gone, and nobody wants to know
        });
    }

    /// What takes time is done by a task of its own, and what comes of it comes back as a message.
    pub(super) fn carry_out(&mut self, effect: Effect) {
        let effect = match effect {
            Effect::Leave(outcome) => {
                self.leaving = Some(outcome);
                return;
            }
            Effect::Edit { what, text } => {
                self.taken.screen.let_others();
                self.lent = Some((what, (self.editor)(text)));
                return;
            }
            Effect::Fetch { before } => return self.fetch(before),
            Effect::Copy(text) => return self.taken.screen.copy(&text),
            Effect::Notify { words, is_sure } => {
                if self.lent.is_none() && (is_sure || self.pressed.elapsed() >= AWAY) {
                    self.taken.screen.notify(&words);
                }
                return;
            }
            Effect::Suspend => return self.suspend(),
            Effect::Paste => return self.paste(),
            Effect::Branch | Effect::Find(_) | Effect::Picture { .. } | Effect::Remember(_) | Effect::Keep { .. } => {
                return self.use_files(effect);
            }
            other => other,
        };
        let (session, me, answers) = (self.session.clone(), self.model.me.clone(), self.answers.clone());
        let (around, when_busy) = (self.around.clone(), self.when_busy);
        let may_take_long = matches!(effect, Effect::Query(_) | Effect::Sessions | Effect::Agents | Effect::Share(_));
        let asking = async move { ask(effect, &session, me, when_busy, around.as_ref()).await };
        if !may_take_long {
            return self.asked.push(Box::pin(asking));
        }
        self.tasks.spawn(async move {
            if let Some(msg) = asking.await {
                answers.send(msg).await.ok(); // the screen is gone, and nobody wants to know
            }
        });
    }

    /// Reading and writing files, where it keeps nobody waiting.
    fn use_files(&mut self, effect: Effect) {
        let (files, root, history) = (self.files.clone(), self.root.clone(), self.history.clone());
        let (branch, answers) = (self.branch.clone(), self.answers.clone());
        self.tasks.spawn_blocking(move || {
            let msg = match effect {
                Effect::Branch => Some(Msg::Branch(branch())),
                Effect::Find(wanted) => files.map(|files| Msg::Found { paths: files.find(&wanted.query), wanted }),
                Effect::Picture { path, pasted } => {
                    let (name, image) = picture::named(root.as_deref(), &path);
                    Some(Msg::Picture { name, image, pasted })
                }
                Effect::Keep { text, why } => {
                    let file = keep::keep(&text).map_err(|error| format!("it cannot be kept in a file: {error}"));
                    Some(Msg::Kept { text, why, file })
                }
                Effect::Remember(text) => {
                    let kept = history.map(|file| history::keep(&file, &text));
                    if let Some(Err(error)) = kept {
                        tracing::warn!(%error, "what was sent is not kept for other sessions");
                    }
                    None
                }
                _ => None,
            };
            if let Some(msg) = msg {
                answers.blocking_send(msg).ok(); // the screen is gone, and nobody wants to know
            }
        });
    }
}

/// Why an answer was not taken, in words for whoever sits here.
fn not_decided(error: &DecideError) -> String {
    match error {
        DecideError::Refused(Refused::AlreadySettled(ruling)) => format!("{} answered first", who(&ruling.settled_by)),
        DecideError::Refused(Refused::Withdrawn { .. }) => "the question needs no answer any more".to_owned(),
        other => other.to_string(),
    }
}

/// Asks the session, or what lies around it. Comes back with what is to be told.
async fn ask(
    effect: Effect,
    session: &Session,
    me: ClientRef,
    when_busy: WhenBusy,
    around: &dyn Around,
) -> Option<Msg> {
    fn refused<T, E: fmt::Display>(done: Result<T, E>) -> Option<Msg> {
        done.err().map(|error| Msg::Refused(error.to_string()))
    }
    match effect {
        Effect::Prompt(prompt) => {
            let done = session.prompt(prompt.clone(), when_busy, me).await;
            done.err().map(|error| Msg::NotSent { prompt, why: error.to_string() })
        }
        Effect::Decide(decide) => {
            let done = session.decide(decide.clone(), me).await;
            done.err().map(|error| Msg::NotDecided { decide, why: not_decided(&error) })
        }
        Effect::Cancel => refused(session.cancel(me).await),
        Effect::Withdraw(prompt) => {
            let why = match session.withdraw(prompt.prompt_id.clone()?, me).await.err()? {
                WithdrawError::NotWaiting(_) => None,
                other => Some(other.to_string()),
            };
            Some(Msg::NotWithdrawn { prompt, why })
        }
        Effect::SetMode(mode) => refused(session.set_mode(mode, me).await),
        Effect::SetModel(model) => refused(session.set_model(model, me).await),
        Effect::Kick(client) => refused(session.kick(client, me).await),
        // Nobody asked for these by name: an agent that does not tell has none.
        Effect::Query(Query::Commands) => {
            session.query(Query::Commands, me).await.ok();
            None
        }
        Effect::Snapshot => session.snapshot().await.map(Msg::Snapshot),
        Effect::Query(what) => refused(session.query(what, me).await),
        Effect::Sessions => Some(around.sessions().await.map_or_else(Msg::Refused, Msg::Sessions)),
        Effect::Agents => Some(around.agents().await.map_or_else(Msg::Refused, Msg::Agents)),
        Effect::Share(share) => Some(around.share(share).await.map_or_else(Msg::Refused, Msg::Shared)),
        // Done by the loop itself.
        Effect::Branch
        | Effect::Suspend
        | Effect::Paste
        | Effect::Find(_)
        | Effect::Picture { .. }
        | Effect::Remember(_)
        | Effect::Keep { .. }
        | Effect::Edit { .. }
        | Effect::Fetch { .. }
        | Effect::Copy(_)
        | Effect::Notify { .. }
        | Effect::Leave(_) => None,
    }
}
