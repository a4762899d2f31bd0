//! The loop: what happens goes to `update`, what it wants is carried out, and the screen is drawn when it rests.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crossterm::event::{Event as Input, KeyEventKind, MouseEventKind};
use futures_util::StreamExt as _;
use multitap_event::{ClientRef, Query};
use multitap_hub::{Edge, Feed, FeedEnd, Join, JoinError, JoinFrom, Part, Reach, Session, Told, WhenBusy};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use tokio_util::task::TaskTracker;

use crate::app::{Model, update};
use crate::around::{Around, Clip, Clipboard};
use crate::effect::{Edited, Effect, Outcome};
use crate::files::Files;
use crate::history::{self, History};
use crate::msg::{Clipped, Msg};
use crate::picture;
use crate::seat::{Seat, Taken};
use crate::theme::Theme;
use crate::view::view;

/// The shortest time between two frames.
const FRAME: Duration = Duration::from_millis(16);
/// How long a key waits to be pressed again.
const AGAIN: Duration = Duration::from_secs(2);
/// How many events of the past are on the screen at first.
const TAIL: u64 = 2000;
/// How many events are read at once when somebody scrolls up to the first, and how many bytes of them.
const FETCH: usize = 1000;
const FETCH_BYTES: usize = 4 * 1024 * 1024;
/// How many answers may be under way.
const ANSWERS: usize = 64;
/// How many prompts may be on their way to the session: more than it would let wait.
const IN_ORDER: usize = 128;

/// What the screen needs to know.
#[derive(Clone)]
pub struct Options {
    /// Who sits here.
    pub me: ClientRef,
    /// Where the session works, as people write it.
    pub folder: String,
    pub branch: Option<String>,
    /// Where others join, if they can.
    pub door: Option<String>,
    pub colours: bool,
    /// What a prompt does that comes while a turn runs.
    pub when_busy: WhenBusy,
    /// Lets the user edit a text, in a program of their own on this terminal.
    pub editor: Editor,
    /// Where the files are that can be mentioned, if they are on this machine.
    pub root: Option<PathBuf>,
    /// Where what was sent is kept for other sessions.
    pub history: Option<PathBuf>,
    /// What lies around the session.
    pub around: Arc<dyn Around>,
    /// What is pasted with Ctrl+V.
    pub clipboard: Clipboard,
    /// Whether the session ends when this screen is left: then others who are connected are thought of.
    pub is_host: bool,
    /// A first line for whoever sits here.
    pub greeting: Option<String>,
}

/// Edits a text.
pub type Editor = Arc<dyn Fn(&str) -> io::Result<String> + Send + Sync>;

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options").field("me", &self.me).field("folder", &self.folder).finish_non_exhaustive()
    }
}

/// The screen could not be shown.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("the terminal cannot be used")]
    Terminal(#[from] io::Error),
    #[error(transparent)]
    Join(#[from] JoinError),
}

/// Shows a session until somebody leaves or it is over. The screen stays taken: another session may come next.
pub async fn run(seat: &mut Seat, session: Session, options: Options) -> Result<Outcome, RunError> {
    let from = if session.last() > TAIL { JoinFrom::Tail(TAIL) } else { JoinFrom::Start };
    let joined = session.join(Join::new(options.me.clone()).from(from)).await?;
    let mut model = Model::new(joined.client, options.folder, Theme::new(options.colours));
    if let Some(state) = joined.snapshot {
        model.begin(*state);
    }
    (model.branch, model.door) = (options.branch, options.door);
    (model.is_host, model.notice) = (options.is_host, options.greeting);
    model.session = Some(session.id().to_string());
    if let Some(file) = options.history.clone() {
        let past = tokio::task::spawn_blocking(move || history::load(&file)).await;
        model.history = History::new(past.unwrap_or_default());
    }
    let taken = seat.take()?;
    let size = taken.screen.terminal.size()?;
    (model.columns, model.rows) = (size.width, size.height);
    let (answers, answered) = mpsc::channel(ANSWERS);
    let (in_order, mut next) = mpsc::channel(IN_ORDER);
    let tasks = TaskTracker::new();
    let (to, told, around) = (session.clone(), answers.clone(), options.around.clone());
    // Each is with the session before the next: prompts that were typed fast are not mixed up.
    tasks.spawn(async move {
        while let Some((effect, me)) = next.recv().await {
            if let Some(msg) = ask(effect, &to, me, options.when_busy, around.as_ref()).await {
                told.send(msg).await.ok(); // the screen is gone, and nobody wants to know
            }
        }
    });
    let mut looping = Loop {
        session,
        model,
        taken,
        feed: joined.feed,
        answers,
        answered,
        in_order,
        when_busy: options.when_busy,
        editor: options.editor,
        around: options.around,
        clipboard: options.clipboard,
        files: options.root.clone().map(|root| Arc::new(Files::new(root))),
        root: options.root,
        history: options.history,
        tasks,
        leaving: None,
    };
    let ended = looping.run().await;
    looping.tasks.close();
    ended
}

struct Loop<'a> {
    session: Session,
    model: Model,
    taken: &'a mut Taken,
    feed: Feed,
    answers: mpsc::Sender<Msg>,
    answered: mpsc::Receiver<Msg>,
    /// What is to reach the session as it was typed, one after the other.
    in_order: mpsc::Sender<(Effect, ClientRef)>,
    when_busy: WhenBusy,
    editor: Editor,
    around: Arc<dyn Around>,
    clipboard: Clipboard,
    files: Option<Arc<Files>>,
    root: Option<PathBuf>,
    history: Option<PathBuf>,
    tasks: TaskTracker,
    leaving: Option<Outcome>,
}

impl Loop<'_> {
    async fn run(&mut self) -> Result<Outcome, RunError> {
        let mut drawn = Instant::now().checked_sub(FRAME).unwrap_or_else(Instant::now);
        let (mut dirty, mut again, mut over, mut has_drawn) = (true, None, false, false);
        let mut reaches = self.session.reaches();
        loop {
            if let Some(outcome) = self.leaving.take() {
                return Ok(outcome);
            }
            // What was typed before there was this screen.
            if let Some(read) = self.taken.typed.pop_front() {
                self.on_input(read);
                dirty = true;
                continue;
            }
            if dirty && drawn.elapsed() >= FRAME {
                match self.draw() {
                    Err(error) if has_drawn => return Ok(gone(&error)),
                    drawn => drawn?,
                }
                has_drawn = true;
                (drawn, dirty) = (Instant::now(), false);
            }
            tokio::select! {
                read = self.taken.input.next() => match read {
                    Some(Ok(read)) => {
                        again = Some(Instant::now() + AGAIN);
                        self.on_input(read);
                    }
                    Some(Err(error)) => return Ok(gone(&error)),
                    // Nobody sits here any more.
                    None => return Ok(Outcome::Gone),
                },
                told = self.feed.next(), if !over => match told {
                    Some(told) => {
                        self.on_told(told);
                        // What came together is drawn together.
                        while let Some(told) = self.feed.try_next() {
                            self.on_told(told);
                        }
                    }
                    None => {
                        over = true;
                        let why = match (self.session.reach(), self.feed.end()) {
                            (Reach::Gone(why), _) => why.to_string(),
                            (_, FeedEnd::SessionOver) => "the session is over".to_owned(),
                            (_, FeedEnd::CutOff { .. }) => "this screen was sent away".to_owned(),
                        };
                        self.on(Msg::Over(why));
                    }
                },
                Some(msg) = self.answered.recv() => self.on(msg),
                reach = reaches.changed() => match reach {
                    Reach::Lost(why) => self.on(Msg::Refused(format!("connection lost, trying again ({why})"))),
                    Reach::Here => {
                        self.model.me = reaches.client().unwrap_or_else(|| self.model.me.clone());
                        self.on(Msg::Refused("connected again; nothing was missed".to_owned()));
                    }
                    // The end of the feed says it.
                    Reach::Gone(_) => {}
                },
                () = at(again) => {
                    again = None;
                    self.on(Msg::Tick);
                }
                () = sleep_until(drawn + FRAME), if dirty => continue,
            }
            dirty = true;
        }
    }

    fn draw(&mut self) -> io::Result<()> {
        let model = &self.model;
        self.taken.screen.terminal.draw(|frame| view(model, frame)).map(drop)
    }

    fn on_told(&mut self, told: Told) {
        match told {
            Told::Event(entry) => {
                if let Some(event) = entry.event() {
                    self.on(Msg::Told(Box::new(event.clone())));
                }
            }
            Told::Gap { after, next } => self.on(Msg::Gap { after, next }),
        }
    }

    fn on_input(&mut self, input: Input) {
        match input {
            Input::Key(key) if key.kind != KeyEventKind::Release => self.on(Msg::Key(key)),
            Input::Paste(text) => self.on(Msg::Paste(text)),
            Input::Resize(columns, rows) => self.on(Msg::Resized { columns, rows }),
            Input::FocusGained => self.on(Msg::Focused(true)),
            Input::FocusLost => self.on(Msg::Focused(false)),
            Input::Mouse(mouse) => match mouse.kind {
                MouseEventKind::ScrollUp => self.on(Msg::Wheel(-3)),
                MouseEventKind::ScrollDown => self.on(Msg::Wheel(3)),
                _ => {}
            },
            Input::Key(_) => {}
        }
    }

    fn on(&mut self, msg: Msg) {
        for effect in update(&mut self.model, msg) {
            self.carry_out(effect);
        }
    }

    /// Lets the user's editor have the screen.
    fn edit(&mut self, what: Edited, text: &str) {
        let editor = self.editor.clone();
        let msg = match self.taken.screen.lend(|| editor(text)) {
            Ok(Ok(text)) => Msg::Edited { what, text },
            Ok(Err(error)) | Err(error) => Msg::Refused(format!("the editor cannot be used: {error}")),
        };
        self.on(msg);
    }

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
                    let read = tokio::task::spawn_blocking(move || picture::of(&bytes)).await;
                    let image = read.unwrap_or_else(|error| Err(error.to_string()));
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
    fn carry_out(&mut self, effect: Effect) {
        let effect = match effect {
            Effect::Leave(outcome) => {
                self.leaving = Some(outcome);
                return;
            }
            Effect::Edit { what, text } => return self.edit(what, &text),
            Effect::Fetch { before } => return self.fetch(before),
            Effect::Copy(text) => return self.taken.screen.copy(&text),
            Effect::Notify(words) => return self.taken.screen.notify(&words),
            Effect::Paste => return self.paste(),
            Effect::Prompt(_) | Effect::Withdraw(_) | Effect::Cancel => {
                if self.in_order.try_send((effect, self.model.me.clone())).is_err() {
                    self.on(Msg::Refused("that was not sent: too much waits for the session".to_owned()));
                }
                return;
            }
            Effect::Find(_) | Effect::Picture { .. } | Effect::Remember(_) => return self.use_files(effect),
            other => other,
        };
        let (session, me, answers) = (self.session.clone(), self.model.me.clone(), self.answers.clone());
        let (around, when_busy) = (self.around.clone(), self.when_busy);
        self.tasks.spawn(async move {
            if let Some(msg) = ask(effect, &session, me, when_busy, around.as_ref()).await {
                answers.send(msg).await.ok(); // the screen is gone, and nobody wants to know
            }
        });
    }

    /// Reading and writing files, where it keeps nobody waiting.
    fn use_files(&mut self, effect: Effect) {
        let (files, root, history) = (self.files.clone(), self.root.clone(), self.history.clone());
        let answers = self.answers.clone();
        self.tasks.spawn_blocking(move || {
            let msg = match effect {
                Effect::Find(wanted) => files.map(|files| Msg::Found { paths: files.find(&wanted.query), wanted }),
                Effect::Picture { path, pasted } => {
                    let (name, image) = picture::read(root.as_deref(), &path);
                    Some(Msg::Picture { name, image, pasted })
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

/// A terminal that could be used and cannot any more is gone.
fn gone(error: &io::Error) -> Outcome {
    tracing::warn!(%error, "the terminal is gone");
    Outcome::Gone
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
        Effect::Prompt(prompt) => refused(session.prompt(prompt, when_busy, me).await),
        Effect::Decide(decide) => refused(session.decide(decide, me).await),
        Effect::Cancel => refused(session.cancel(me).await),
        Effect::Withdraw(prompt) => refused(session.withdraw(prompt, me).await),
        Effect::SetMode(mode) => refused(session.set_mode(mode, me).await),
        Effect::SetModel(model) => refused(session.set_model(model, me).await),
        Effect::Kick(client) => refused(session.kick(client, me).await),
        // Nobody asked for these by name: an agent that does not tell has none.
        Effect::Query(Query::Commands) => {
            session.query(Query::Commands, me).await.ok();
            None
        }
        Effect::Query(what) => refused(session.query(what, me).await),
        Effect::Sessions => Some(around.sessions().await.map_or_else(Msg::Refused, Msg::Sessions)),
        Effect::Agents => Some(around.agents().await.map_or_else(Msg::Refused, Msg::Agents)),
        Effect::Share(share) => Some(around.share(share).await.map_or_else(Msg::Refused, Msg::Shared)),
        // Done by the loop itself.
        Effect::Paste
        | Effect::Find(_)
        | Effect::Picture { .. }
        | Effect::Remember(_)
        | Effect::Edit { .. }
        | Effect::Fetch { .. }
        | Effect::Copy(_)
        | Effect::Notify(_)
        | Effect::Leave(_) => None,
    }
}

/// Waits for that moment; for ever if there is none.
async fn at(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
