//! The loop: what happens goes to `update`, what it wants is carried out, and the screen is drawn when it rests.

mod effects;

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use crossterm::event::{Event as Input, KeyEventKind, MouseEventKind};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use multitap_event::{ClientRef, Timestamp};
use multitap_hub::{Feed, FeedEnd, Join, JoinError, JoinFrom, Reach, Session, Told, WhenBusy};
use ratatui::layout::Size;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::task::TaskTracker;

use crate::app::{Model, update};
use crate::around::{Around, Clipboard};
use crate::effect::{Edited, Effect, Outcome};
use crate::files::Files;
use crate::history::{self, History};
use crate::msg::Msg;
use crate::preferences::Preferences;
use crate::seat::{Seat, Taken};
use crate::terminal;
use crate::theme::Theme;
use crate::view::{Layout, title, view};

/// The shortest time between two frames.
const FRAME: Duration = Duration::from_millis(16);
/// How often the screen shows that a turn is at it.
pub(crate) const BEAT: Duration = Duration::from_millis(100);
/// How long a question is on the screen before a key answers it, and gone before a key does something else.
const READ: Duration = Duration::from_millis(500);
/// How long a key waits to be pressed again.
const AGAIN: Duration = Duration::from_secs(2);
/// How many events of the past are on the screen at first.
const TAIL: u64 = 2000;
/// How long nobody may have touched a key to be called, where the terminal does not tell whether they look.
const AWAY: Duration = Duration::from_secs(30);
/// How long what was asked of the session last may take when somebody leaves.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// How many answers may be under way.
const ANSWERS: usize = 64;

/// What the screen needs to know.
#[derive(Clone)]
pub struct Options {
    /// Who sits here.
    pub me: ClientRef,
    /// Where the session works, as people write it.
    pub folder: String,
    pub branch: Branch,
    /// Where others join, if they can.
    pub door: Option<String>,
    pub preferences: Preferences,
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

/// Looks which branch is checked out where the session works.
pub type Branch = Arc<dyn Fn() -> Option<String> + Send + Sync>;

/// Edits a text. Whatever has the terminal for it ends when this is dropped.
pub type Editor = Arc<dyn Fn(String) -> Editing + Send + Sync>;
/// A text that is being edited.
pub type Editing = Pin<Box<dyn Future<Output = io::Result<String>> + Send>>;

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
    let mut model = Model::new(joined.client, options.folder, Theme::new(options.preferences.colours));
    if let Some(state) = joined.snapshot {
        drop(model.begin(*state));
    }
    (model.session.id, model.session.address) = (Some(session.id().to_string()), options.door);
    (model.session.is_host, model.status.notice) = (options.is_host, options.greeting);
    if let Some(file) = options.history.clone() {
        let past = tokio::task::spawn_blocking(move || history::load(&file)).await;
        model.prompt.history = History::new(past.unwrap_or_default());
    }
    let taken = seat.take(options.preferences)?;
    let layout = Layout::new(&model, taken.screen.size()?);
    let (answers, answered) = mpsc::channel(ANSWERS);
    let mut looping = Loop {
        session,
        model,
        layout,
        taken,
        feed: joined.feed,
        answers,
        answered,
        when_busy: options.when_busy,
        branch: options.branch,
        editor: options.editor,
        around: options.around,
        clipboard: options.clipboard,
        files: options.root.clone().map(|root| Arc::new(Files::new(root))),
        root: options.root,
        history: options.history,
        tasks: TaskTracker::new(),
        asked: FuturesUnordered::new(),
        lent: None,
        pressed: Instant::now(),
        leaving: None,
    };
    let ended = looping.run().await;
    // Whoever sends and leaves at once has sent.
    timeout(LAST_WORDS, async { while looping.asked.next().await.is_some() {} }).await.ok();
    looping.tasks.close();
    ended
}

struct Loop<'a> {
    session: Session,
    model: Model,
    /// Of the last frame.
    layout: Layout,
    /// Who has the terminal meanwhile, and what for.
    lent: Option<(Edited, Editing)>,
    taken: &'a mut Taken,
    feed: Feed,
    answers: mpsc::Sender<Msg>,
    answered: mpsc::Receiver<Msg>,
    when_busy: WhenBusy,
    branch: Branch,
    editor: Editor,
    around: Arc<dyn Around>,
    clipboard: Clipboard,
    files: Option<Arc<Files>>,
    root: Option<PathBuf>,
    history: Option<PathBuf>,
    tasks: TaskTracker,
    /// What was asked of the session, begun in the order in which it was asked.
    asked: FuturesUnordered<Pin<Box<dyn Future<Output = Option<Msg>> + Send>>>,
    /// When somebody last did something.
    pressed: Instant,
    leaving: Option<Outcome>,
}

impl Loop<'_> {
    async fn run(&mut self) -> Result<Outcome, RunError> {
        let mut drawn = Instant::now().checked_sub(FRAME).unwrap_or_else(Instant::now);
        let (mut beat, mut ripe, mut read) = (drawn, None, None);
        let (mut dirty, mut again, mut over, mut has_drawn) = (true, None, false, false);
        let mut reaches = self.session.reaches();
        let mut continued = terminal::Continued::new()?;
        self.carry_out(Effect::Branch);
        loop {
            if let Some(outcome) = self.leaving.take() {
                return Ok(outcome);
            }
            // What was typed before there was this screen.
            if self.lent.is_none()
                && let Some(read) = self.taken.typed.pop_front()
            {
                self.on_input(read);
                dirty = true;
                continue;
            }
            if dirty && self.lent.is_none() && drawn.elapsed() >= FRAME {
                match self.draw() {
                    Err(error) if has_drawn => return Ok(gone(&error)),
                    drawn => drawn?,
                }
                has_drawn = true;
                // Each question has its own time to be read, from when it is seen; and so has that it went.
                if let Some((question, came)) = self.model.unseen()
                    && read.as_ref().is_none_or(|(read, had_come)| read != question || *had_come != came)
                {
                    (read, ripe) = (Some((question.clone(), came)), Some(Instant::now() + READ));
                }
                (drawn, dirty) = (Instant::now(), false);
            }
            tokio::select! {
                read = self.taken.input.next(), if self.lent.is_none() => match read {
                    Some(Ok(read)) => {
                        self.pressed = Instant::now();
                        again = Some(self.pressed + AGAIN);
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
                Some(msg) = self.asked.next() => if let Some(msg) = msg { self.on(msg) },
                text = edited(&mut self.lent) => match self.take_back(text) {
                    Ok(()) => {}
                    Err(error) => return Ok(gone(&error)),
                },
                () = continued.next(), if self.lent.is_none() => match self.taken.screen.again() {
                    Ok(()) => {}
                    Err(error) => return Ok(gone(&error)),
                },
                reach = reaches.changed() => match reach {
                    Reach::Lost(why) => self.on(Msg::ConnectionLost(why.to_string())),
                    Reach::Here => {
                        let me = reaches.client().unwrap_or_else(|| self.model.session.me.clone());
                        self.on(Msg::Reconnected(me));
                    }
                    // The end of the feed says it.
                    Reach::Gone(_) => {}
                },
                () = at(again) => {
                    again = None;
                    self.on(Msg::RepeatExpired);
                }
                () = sleep_until(drawn + FRAME), if dirty && self.lent.is_none() => continue,
                () = at(ripe) => {
                    (read, ripe) = (None, None);
                    self.on(Msg::QuestionSeen);
                }
                () = sleep_until(beat), if !over && self.model.session.state.is_busy() => {
                    beat = Instant::now() + BEAT;
                    self.on(Msg::Clock(Timestamp::now()));
                }
            }
            dirty = true;
        }
    }

    fn draw(&mut self) -> io::Result<()> {
        self.layout = Layout::new(&self.model, self.layout.size);
        let (model, layout) = (&self.model, &self.layout);
        self.taken.screen.draw(&title(model), |frame| view(model, layout, frame))
    }

    fn on_told(&mut self, told: Told) {
        match told {
            Told::Event(entry) => {
                if let Some(event) = entry.event() {
                    self.on(Msg::Event(Box::new(event.clone())));
                }
            }
            Told::Gap { after, next } => self.on(Msg::Gap { after, next }),
        }
    }

    fn on_input(&mut self, input: Input) {
        match input {
            Input::Key(key) if key.kind != KeyEventKind::Release => self.on(Msg::Key(key)),
            Input::Paste(text) => self.on(Msg::Paste(text)),
            Input::Resize(width, height) => {
                let size = Size { width, height };
                self.on(Msg::Resized(size));
                self.layout = Layout::new(&self.model, size);
            }
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
        for effect in update(&mut self.model, &self.layout, msg) {
            self.carry_out(effect);
        }
    }

    /// The editor is closed, and the screen is ours again.
    fn take_back(&mut self, text: io::Result<String>) -> io::Result<()> {
        let Some((what, _)) = self.lent.take() else { return Ok(()) };
        self.taken.screen.again()?;
        self.on(match text {
            Ok(text) => Msg::Edited { what, text },
            Err(error) => Msg::NotEdited(error.to_string()),
        });
        Ok(())
    }

    fn suspend(&mut self) {
        if let Err(error) = self.taken.screen.stop() {
            self.on(Msg::Refused(format!("this program cannot be stopped: {error}")));
        }
    }
}

/// Waits for the text that is being edited; for ever if there is none.
async fn edited(lent: &mut Option<(Edited, Editing)>) -> io::Result<String> {
    match lent {
        Some((_, editing)) => editing.await,
        None => std::future::pending().await,
    }
}

/// A terminal that could be used and cannot any more is gone.
fn gone(error: &io::Error) -> Outcome {
    tracing::warn!(%error, "the terminal is gone");
    Outcome::Gone
}

/// Waits for that moment; for ever if there is none.
async fn at(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
