//! The surroundings of the session on the screen: earlier sessions, the agents of this machine, and the door, which
//! can be opened and closed while the session runs.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use multitap_event::Timestamp;
use multitap_hub::{Filter, Journal, Session, SessionRecord};
use multitap_serve::{Host as _, OpenDoor};
use multitap_tui::{HostFuture, JoinAddress, ResumableSession, ShareRequest, TerminalHost};
use tokio::sync::watch;

use crate::args::DoorArgs;
use crate::cmd::{agents, sessions};
use crate::door::{self, Shared};
use crate::exit::Problem;
use crate::host::{self, about_log};
use crate::live;
use crate::settings::{self, Settings, Trust};

/// Most earlier sessions offered.
const EARLIER: usize = 100;
/// Length of an id prefix that identifies a session.
const BEGINNING: usize = 13;

/// The surroundings of the sessions on this screen.
#[derive(Debug)]
pub(crate) struct Surroundings {
    journal: Arc<dyn Journal>,
    folder: PathBuf,
    args: DoorArgs,
    shared: Arc<Shared>,
    door: Mutex<Option<OpenDoor>>,
    /// Current address of the door.
    address: watch::Sender<Option<String>>,
}

impl Surroundings {
    /// Opens a door, if one was requested. Clients are refused until there is a session.
    pub(crate) async fn open(
        args: &DoorArgs,
        settings: &Settings,
        journal: Arc<dyn Journal>,
        folder: PathBuf,
    ) -> Result<Self, Problem> {
        let shared = Arc::new(Shared::new(journal.clone()));
        let door = match args.a2a_port {
            Some(port) => Some(shared.open_at(port, args, settings).await?),
            // The door may be opened later. Report a bad option now, where it can be read.
            None => {
                if args.about_it().is_some() {
                    door::config(args.host(), 0, args.options(), settings)?;
                }
                None
            }
        };
        let address = watch::Sender::new(door.as_ref().map(door::address));
        Ok(Self { journal, folder, args: args.clone(), shared, door: Mutex::new(door), address })
    }

    /// Shares this session from now on.
    pub(crate) fn share(&self, session: Session) {
        self.shared.share(session);
    }

    /// Where other clients join, if they can.
    pub(crate) fn address(&self) -> watch::Receiver<Option<String>> {
        self.address.subscribe()
    }

    /// Closes the door.
    pub(crate) async fn close(&self) {
        self.put_up(None).await;
    }

    /// Replaces the door; the previous one is closed.
    async fn put_up(&self, door: Option<OpenDoor>) {
        let before = {
            let mut now = self.door();
            self.address.send_replace(door.as_ref().map(door::address));
            std::mem::replace(&mut *now, door)
        };
        if let Some(door) = before {
            door.stop().await;
        }
    }

    fn door(&self) -> MutexGuard<'_, Option<OpenDoor>> {
        // A panic leaves no partial state here.
        self.door.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn open_door(&self, port: Option<u16>) -> Result<JoinAddress, String> {
        if self.door().is_none() {
            let settings = settings::of(&self.folder, Trust::AsSet).map_err(|problem| problem.to_string())?;
            let port = port.or(self.args.a2a_port).unwrap_or_default();
            let opened = self.shared.open_at(port, &self.args, &settings).await;
            // Another caller may have opened one meanwhile: the latest wins.
            self.put_up(Some(opened.map_err(|problem| problem.to_string())?)).await;
        }
        let (url, at, is_local) = match self.door().as_ref() {
            Some(door) => {
                let all = door.addresses();
                let is_local = all.iter().all(|address| address.ip().is_loopback());
                (door::address(door), all.first().map(SocketAddr::port), is_local)
            }
            None => return Err("sharing was stopped meanwhile".to_owned()),
        };
        if port.is_some_and(|port| port != 0 && Some(port) != at) {
            return Err(format!("already shared at {url}: stop that first with /share off"));
        }
        let who = if is_local { "Programs on this machine can join" } else { "Other machines can join" };
        let token = crate::token::usable();
        let with = match (&token, &self.args.access.token_file) {
            (Some(_), _) => ", with this token.",
            (None, Some(_)) => ", with a token of your --token-file.",
            (None, None) => ". No token is needed.",
        };
        Ok(JoinAddress { url, token, note: format!("{who}{with}") })
    }
}

impl TerminalHost for Surroundings {
    fn sessions(&self) -> HostFuture<'_, Vec<ResumableSession>> {
        Box::pin(async {
            let current = self.shared.shared().map(|session| session.id().clone());
            let filter = Filter { folder: Some(self.folder.clone()), ..Filter::default() };
            let found = self.journal.list(filter).await.map_err(|error| about_log(&error))?;
            let others = found.into_iter().filter(|record| Some(&record.id) != current.as_ref());
            // Sessions of another process can be viewed, but not resumed here.
            let (live, rest): (Vec<_>, Vec<_>) = others.partition(|record| record.live.is_some());
            let now = Timestamp::now();
            // Without a conversation there is nothing to resume.
            let can = rest.into_iter().filter(|record| record.about.native_id.is_some()).take(EARLIER);
            let earlier: Vec<ResumableSession> = can.map(|record| earlier(record, now)).collect();
            match live.first().filter(|_| earlier.is_empty()) {
                Some(live) => Err(running(live)),
                None => Ok(earlier),
            }
        })
    }

    fn agents(&self) -> HostFuture<'_, Vec<String>> {
        Box::pin(async {
            let found = agents::lines(&self.folder).await.map_err(|problem| problem.to_string())?;
            let more = ["", "Another agent: leave, and start with --agent NAME. `multitap doctor` checks them all."];
            Ok(found.lines().chain(more).map(str::to_owned).collect())
        })
    }

    fn share(&self, share: ShareRequest) -> HostFuture<'_, Option<JoinAddress>> {
        Box::pin(async move {
            match share {
                ShareRequest::On { port } => self.open_door(port).await.map(Some),
                ShareRequest::Off => {
                    self.close().await;
                    Ok(None)
                }
            }
        })
    }
}

/// Where that session runs, instead of omitting it from the list. Fits on one line.
fn running(record: &SessionRecord) -> String {
    let pid = record.live.as_ref().map_or(0, |holder| holder.pid);
    let takes_others = host::data().is_some_and(|data| live::takes_others(&data, &record.id, pid));
    let place = if takes_others {
        // The prefix contains the start time in milliseconds, so it is unique.
        format!("`multitap attach {}`", record.id.as_str().get(..BEGINNING).unwrap_or(record.id.as_str()))
    } else {
        format!("in process {pid}")
    };
    format!("no other session of this folder can be resumed; one is running: {place}")
}

fn earlier(record: SessionRecord, now: Timestamp) -> ResumableSession {
    let age = sessions::age(now.millis_since(record.updated));
    ResumableSession {
        title: record.about.title.unwrap_or_else(|| "(nothing was said)".to_owned()),
        about: format!("{} · {age}", record.agent),
        id: record.id.to_string(),
    }
}
