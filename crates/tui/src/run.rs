//! The loop: what happens goes to `update`, what it wants is carried out, and the screen is drawn when it rests.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use crossterm::event::{Event as Input, EventStream, KeyEventKind, MouseEventKind};
use futures_util::StreamExt as _;
use multitap_event::ClientRef;
use multitap_hub::{Edge, Feed, FeedEnd, Join, JoinError, JoinFrom, Part, Reach, Session, Told, WhenBusy};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use tokio_util::task::TaskTracker;

use crate::app::{Model, update};
use crate::effect::{Edited, Effect};
use crate::msg::Msg;
use crate::terminal::Screen;
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

/// Shows a session until somebody leaves or it is over.
pub async fn run(session: Session, options: Options) -> Result<(), RunError> {
    let from = if session.last() > TAIL { JoinFrom::Tail(TAIL) } else { JoinFrom::Start };
    let joined = session.join(Join::new(options.me.clone()).from(from)).await?;
    let mut model = Model::new(joined.client, options.folder, Theme::new(options.colours));
    if let Some(state) = joined.snapshot {
        model.begin(*state);
    }
    (model.branch, model.door) = (options.branch, options.door);
    let screen = Screen::take()?;
    let size = screen.terminal.size()?;
    (model.columns, model.rows) = (size.width, size.height);
    let (answers, answered) = mpsc::channel(ANSWERS);
    let mut looping = Loop {
        session,
        model,
        screen,
        feed: joined.feed,
        answers,
        answered,
        when_busy: options.when_busy,
        editor: options.editor,
        tasks: TaskTracker::new(),
        leaving: false,
    };
    let ended = looping.run().await;
    looping.tasks.close();
    ended
}

struct Loop {
    session: Session,
    model: Model,
    screen: Screen,
    feed: Feed,
    answers: mpsc::Sender<Msg>,
    answered: mpsc::Receiver<Msg>,
    when_busy: WhenBusy,
    editor: Editor,
    tasks: TaskTracker,
    leaving: bool,
}

impl Loop {
    async fn run(&mut self) -> Result<(), RunError> {
        let mut input = EventStream::new();
        let mut drawn = Instant::now().checked_sub(FRAME).unwrap_or_else(Instant::now);
        let (mut dirty, mut again, mut over) = (true, None, false);
        let mut reaches = self.session.reaches();
        while !self.leaving {
            if dirty && drawn.elapsed() >= FRAME {
                self.draw()?;
                (drawn, dirty) = (Instant::now(), false);
            }
            tokio::select! {
                read = input.next() => match read {
                    Some(read) => {
                        again = Some(Instant::now() + AGAIN);
                        self.on_input(read?);
                    }
                    // Nobody sits here any more.
                    None => return Ok(()),
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
                    Reach::Lost(why) => self.on(Msg::Refused(format!("the connection is lost ({why}); trying again"))),
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
        Ok(())
    }

    fn draw(&mut self) -> io::Result<()> {
        let model = &self.model;
        self.screen.terminal.draw(|frame| view(model, frame)).map(drop)
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
        let msg = match self.screen.lend(|| editor(text)) {
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

    /// What takes time is done by a task of its own, and what goes wrong comes back as a message.
    fn carry_out(&mut self, effect: Effect) {
        let effect = match effect {
            Effect::Quit => {
                self.leaving = true;
                return;
            }
            Effect::Edit { what, text } => return self.edit(what, &text),
            Effect::Fetch { before } => return self.fetch(before),
            Effect::Copy(text) => return self.screen.copy(&text),
            Effect::Notify(words) => return self.screen.notify(&words),
            other => other,
        };
        let (session, me, answers) = (self.session.clone(), self.model.me.clone(), self.answers.clone());
        let when_busy = self.when_busy;
        let doing = async move {
            let refused = match effect {
                Effect::Prompt(prompt) => {
                    session.prompt(prompt, when_busy, me).await.err().map(|error| error.to_string())
                }
                Effect::Decide(decide) => session.decide(decide, me).await.err().map(|error| error.to_string()),
                Effect::Cancel => session.cancel(me).await.err().map(|error| error.to_string()),
                Effect::Withdraw(prompt) => session.withdraw(prompt, me).await.err().map(|error| error.to_string()),
                Effect::SetMode(mode) => session.set_mode(mode, me).await.err().map(|error| error.to_string()),
                Effect::SetModel(model) => session.set_model(model, me).await.err().map(|error| error.to_string()),
                Effect::Edit { .. } | Effect::Fetch { .. } | Effect::Copy(_) | Effect::Notify(_) | Effect::Quit => None,
            };
            if let Some(why) = refused {
                answers.send(Msg::Refused(why)).await.ok(); // the screen is gone, and nobody wants to know
            }
        };
        self.tasks.spawn(doing);
    }
}

/// Waits for that moment; for ever if there is none.
async fn at(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
