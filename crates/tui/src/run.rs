//! The loop of the screen: passes messages to `update`, carries out effects, and draws frames.

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
use multitap_hub::{Feed, FeedEnd, Join, JoinFrom, Reach, Refusal, Session, Told, WhenBusy};
use ratatui::layout::Size;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::task::TaskTracker;

use crate::app::{Model, update};
use crate::effect::{Edited, Effect, ScreenExit};
use crate::files::FileIndex;
use crate::history::{self, History};
use crate::host::{ReadClipboard, TerminalHost};
use crate::lease::{LeasedTerminal, TerminalLease};
use crate::msg::Msg;
use crate::preferences::TerminalPreferences;
use crate::terminal;
use crate::theme::Theme;
use crate::view::{Layout, title, view};

const FRAME: Duration = Duration::from_millis(16);
/// How often the spinner turns while a turn runs.
pub(crate) const SPIN: Duration = Duration::from_millis(100);
/// How long keys are ignored after a question opens, and keys for it after it closes.
const UNSEEN: Duration = Duration::from_millis(500);
/// How soon a key must be pressed again to count as a repeat.
const REPEAT: Duration = Duration::from_secs(2);
/// How many past events are shown at first.
const TAIL: u64 = 2000;
/// Without a key for this long, users of terminals that report no focus are notified.
const AWAY: Duration = Duration::from_secs(30);
/// How long the last calls to the session may take after the user leaves.
const LAST_CALLS: Duration = Duration::from_secs(1);
const RESULTS: usize = 64;

#[derive(Clone)]
pub struct ScreenOptions {
    /// The client at this screen.
    pub me: ClientRef,
    /// The folder of the session, as it is shown.
    pub folder: String,
    pub branch: ReadBranch,
    /// The address at which others join.
    pub address: Option<String>,
    pub preferences: TerminalPreferences,
    /// What to do with a prompt sent while the agent is busy.
    pub when_busy: WhenBusy,
    /// Opens a text in the user's editor, on this terminal.
    pub editor: OpenEditor,
    /// Where `@` finds files, if they are on this machine.
    pub root: Option<PathBuf>,
    /// The file of earlier prompts, shared by all sessions.
    pub history: Option<PathBuf>,
    pub host: Arc<dyn TerminalHost>,
    pub clipboard: ReadClipboard,
    /// Whether the session ends with this screen. If others are connected, the user is asked before leaving.
    pub is_host: bool,
    /// The first notice.
    pub greeting: Option<String>,
}

/// Reads which branch is checked out in the folder of the session.
pub type ReadBranch = Arc<dyn Fn() -> Option<String> + Send + Sync>;

/// Opens a text in the user's editor.
pub type OpenEditor = Arc<dyn Fn(String) -> EditFuture + Send + Sync>;

/// The edited text. Dropping it ends the editor.
pub type EditFuture = Pin<Box<dyn Future<Output = io::Result<String>> + Send>>;

impl fmt::Debug for ScreenOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScreenOptions").field("me", &self.me).field("folder", &self.folder).finish_non_exhaustive()
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ScreenError {
    #[error("the terminal cannot be used")]
    Terminal(#[from] io::Error),
    #[error(transparent)]
    Join(#[from] Refusal),
}

/// Shows a session until the user leaves or it is over. The lease still holds the screen then, for the next session.
pub async fn run(
    lease: &mut TerminalLease,
    session: Session,
    options: ScreenOptions,
) -> Result<ScreenExit, ScreenError> {
    let from = if session.last() > TAIL { JoinFrom::Tail(TAIL) } else { JoinFrom::Start };
    let joined = session.join(Join::new(options.me.clone()).from(from)).await?;
    let mut model = Model::new(joined.client, options.folder.clone(), Theme::new(options.preferences.colours));
    model.has_links = options.preferences.links && options.root.is_some();
    if let Some(state) = joined.snapshot {
        drop(model.begin(*state));
    }
    (model.session.id, model.session.address) = (Some(session.id().to_string()), options.address.clone());
    (model.session.is_host, model.status.notice) = (options.is_host, options.greeting.clone());
    if let Some(file) = options.history.clone() {
        let past = tokio::task::spawn_blocking(move || history::load(&file)).await;
        model.prompt.history = History::new(past.unwrap_or_default());
    }
    let terminal = lease.acquire(options.preferences)?;
    let layout = Layout::new(&model, terminal.screen.size()?);
    let (results, arrived) = mpsc::channel(RESULTS);
    let mut looping = Loop {
        session,
        model,
        layout,
        terminal,
        feed: joined.feed,
        results,
        arrived,
        files: options.root.clone().map(|root| Arc::new(FileIndex::new(root))),
        options,
        tasks: TaskTracker::new(),
        calls: FuturesUnordered::new(),
        editing: None,
        pressed: Instant::now(),
        leaving: None,
    };
    let ended = looping.run().await;
    // A prompt that was sent just before leaving still reaches the session.
    timeout(LAST_CALLS, async { while looping.calls.next().await.is_some() {} }).await.ok();
    looping.tasks.close();
    ended
}

struct Loop<'a> {
    session: Session,
    model: Model,
    /// Of the last frame.
    layout: Layout,
    /// The editor that has the terminal, and what it edits.
    editing: Option<(Edited, EditFuture)>,
    terminal: &'a mut LeasedTerminal,
    feed: Feed,
    results: mpsc::Sender<Msg>,
    arrived: mpsc::Receiver<Msg>,
    options: ScreenOptions,
    files: Option<Arc<FileIndex>>,
    tasks: TaskTracker,
    /// Calls to the session, begun in the order of their effects.
    calls: FuturesUnordered<Pin<Box<dyn Future<Output = Option<Msg>> + Send>>>,
    pressed: Instant,
    leaving: Option<ScreenExit>,
}

impl Loop<'_> {
    async fn run(&mut self) -> Result<ScreenExit, ScreenError> {
        let mut drawn = Instant::now().checked_sub(FRAME).unwrap_or_else(Instant::now);
        let (mut spin_at, mut seen_at, mut unseen) = (drawn, None, None);
        let (mut dirty, mut repeat_until, mut over, mut has_drawn) = (true, None, false, false);
        let mut reaches = self.session.reaches();
        let mut continued = terminal::Continued::new()?;
        self.carry_out(Effect::Branch);
        loop {
            if let Some(outcome) = self.leaving.take() {
                return Ok(outcome);
            }
            // Input from before this session.
            if self.editing.is_none()
                && let Some(read) = self.terminal.typed.pop_front()
            {
                self.on_input(read);
                dirty = true;
                continue;
            }
            if dirty && self.editing.is_none() && drawn.elapsed() >= FRAME {
                match self.draw() {
                    Err(error) if has_drawn => return Ok(gone(&error)),
                    drawn => drawn?,
                }
                has_drawn = true;
                // The user has had no time to see a question that opened or closed with this frame.
                let now = self.model.unseen().map(|(question, opened)| (question.clone(), opened));
                if now.is_some() && now != unseen {
                    (unseen, seen_at) = (now, Some(Instant::now() + UNSEEN));
                }
                (drawn, dirty) = (Instant::now(), false);
            }
            tokio::select! {
                read = self.terminal.input.next(), if self.editing.is_none() => match read {
                    Some(Ok(read)) => {
                        self.pressed = Instant::now();
                        repeat_until = Some(self.pressed + REPEAT);
                        self.on_input(read);
                    }
                    Some(Err(error)) => return Ok(gone(&error)),
                    // The terminal is gone.
                    None => return Ok(ScreenExit::TerminalGone),
                },
                item = self.feed.next(), if !over => match item {
                    Some(item) => {
                        self.on_feed(item);
                        // Events that arrived together are drawn together.
                        while let Some(item) = self.feed.try_next() {
                            self.on_feed(item);
                        }
                    }
                    None => {
                        over = true;
                        let why = match (self.session.reach(), self.feed.end()) {
                            (Reach::Gone(why), _) => why.to_string(),
                            (_, FeedEnd::SessionOver) => "the session is over".to_owned(),
                            (_, FeedEnd::CutOff { .. }) => "this client was kicked".to_owned(),
                        };
                        self.on(Msg::Over(why));
                    }
                },
                Some(msg) = self.arrived.recv() => self.on(msg),
                Some(msg) = self.calls.next() => if let Some(msg) = msg { self.on(msg) },
                text = edited(&mut self.editing) => if let Err(error) = self.edited(text) {
                    return Ok(gone(&error));
                },
                () = continued.next(), if self.editing.is_none() => if let Err(error) = self.terminal.screen.resume() {
                    return Ok(gone(&error));
                },
                reach = reaches.changed() => match reach {
                    Reach::Lost(why) => self.on(Msg::ConnectionLost(why.to_string())),
                    Reach::Here => {
                        let me = reaches.client().unwrap_or_else(|| self.model.session.me.clone());
                        self.on(Msg::Reconnected(me));
                    }
                    // The feed ends, too.
                    Reach::Gone(_) => {}
                },
                () = at(repeat_until) => {
                    repeat_until = None;
                    self.on(Msg::RepeatExpired);
                }
                () = sleep_until(drawn + FRAME), if dirty && self.editing.is_none() => continue,
                () = at(seen_at) => {
                    (unseen, seen_at) = (None, None);
                    self.on(Msg::QuestionSeen);
                }
                () = sleep_until(spin_at), if !over && self.model.session.state.is_busy() => {
                    spin_at = Instant::now() + SPIN;
                    self.on(Msg::Clock(Timestamp::now()));
                }
            }
            dirty = true;
        }
    }

    fn draw(&mut self) -> io::Result<()> {
        self.layout = Layout::new(&self.model, self.layout.size);
        let (model, layout) = (&self.model, &self.layout);
        self.terminal.screen.draw(&title(model), |frame| view(model, layout, frame))
    }

    fn on_feed(&mut self, item: Told) {
        match item {
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

    fn edited(&mut self, text: io::Result<String>) -> io::Result<()> {
        let Some((what, _)) = self.editing.take() else { return Ok(()) };
        self.terminal.screen.resume()?;
        self.on(match text {
            Ok(text) => Msg::Edited { what, text },
            Err(error) => Msg::NotEdited(error.to_string()),
        });
        Ok(())
    }

    fn suspend(&mut self) {
        if let Err(error) = self.terminal.screen.stop() {
            self.on(Msg::Refused(format!("cannot suspend: {error}")));
        }
    }
}

/// Waits for the editor; forever if there is none.
async fn edited(editing: &mut Option<(Edited, EditFuture)>) -> io::Result<String> {
    match editing {
        Some((_, editing)) => editing.await,
        None => std::future::pending().await,
    }
}

/// The terminal worked before: it is gone.
fn gone(error: &io::Error) -> ScreenExit {
    tracing::warn!(%error, "the terminal is gone");
    ScreenExit::TerminalGone
}

/// Waits until then; forever if there is no time.
async fn at(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
