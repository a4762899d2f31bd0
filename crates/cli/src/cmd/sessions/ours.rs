//! Our own sessions: lists, shows, exports and deletes them.

use std::io::Write as _;
use std::path::Path;

use multitap_event::{Event, EventKind, TextChunk, Timestamp, visible, visible_line};
use multitap_hub::{
    DeliveriesOf, DeliveryRecord, DeliveryStatus, Edge, Entry, Filter, Journal, JournalError, Part, PushQueue,
    SessionRecord,
};
use serde_json::{Value, json};

use super::transcript::Transcript;
use super::{age, head, row, written};
use crate::cmd::print;
use crate::exit::{Exit, Problem};
use crate::host;
use crate::live;
use crate::out;
use crate::words::{plain_json, pretty_json};

/// How many events are read at a time.
const PAGE: usize = 512;
const PAGE_BYTES: usize = 4 * 1024 * 1024;
/// Most push notifications that are shown.
const DELIVERIES: usize = 1000;

/// The user's session store.
pub(super) struct OwnSessions {
    log: multitap_store::Store,
    /// Only sessions of this agent.
    agent: Option<String>,
}

impl OwnSessions {
    pub(super) fn open(agent: Option<&str>) -> Result<Self, Problem> {
        let log = host::open_store().map_err(failed)?;
        Ok(Self { log, agent: agent.map(str::to_owned) })
    }

    fn is_wanted(&self, record: &SessionRecord) -> bool {
        self.agent.as_ref().is_none_or(|agent| *agent == record.agent.to_string())
    }

    pub(super) async fn list(&self, folder: Option<&Path>, as_json: bool) -> Result<Exit, Problem> {
        let filter = Filter { folder: folder.map(Path::to_owned), ..Filter::default() };
        let mut records = self.log.list(filter).await.map_err(failed)?;
        records.retain(|record| self.is_wanted(record));
        live::clear_away(&self.log).await;
        if as_json {
            let all: Vec<Value> = records.iter().map(stated).collect();
            print(&pretty_json(&all)?)?;
        } else if records.is_empty() {
            let place = folder.map_or_else(
                || "no sessions are stored".to_owned(),
                |folder| format!("no sessions in {} (--all lists every folder)", folder.display()),
            );
            out::say(&format!("{place}; with --agent NAME the agent's own conversations are listed"));
        } else {
            let lines = records.iter().map(|record| line(record, folder.is_none(), Timestamp::now()));
            print(&lines.collect::<String>())?;
        }
        Ok(Exit::Completed)
    }

    /// Finds a session; `None` if it is not one of ours.
    pub(super) async fn find(&self, wanted: &str, folder: &Path) -> Result<Option<SessionRecord>, Problem> {
        if wanted == "latest" {
            let limit = if self.agent.is_none() { Some(1) } else { None };
            let filter = Filter { folder: Some(folder.to_owned()), limit, ..Filter::default() };
            let records = self.log.list(filter).await.map_err(failed)?;
            return Ok(records.into_iter().find(|record| self.is_wanted(record)));
        }
        let mut found = self.log.find(wanted.to_owned()).await.map_err(failed)?;
        found.retain(|record| self.is_wanted(record));
        if let [one, other, ..] = found.as_slice() {
            let message = format!("{wanted} matches more than one session, such as {} and {}", one.id, other.id);
            return Err(Problem::new(Exit::Failed, message));
        }
        Ok(found.pop())
    }

    /// Prints the events, one per line.
    pub(super) async fn export(&self, record: &SessionRecord) -> Result<Exit, Problem> {
        let mut stdout = out::buffered();
        let mut after = 0;
        loop {
            let entries = self.page(record, after).await?;
            let Some(last) = entries.last() else { return written(stdout.flush()) };
            after = last.seq();
            let mut write = || entries.iter().try_for_each(|entry| writeln!(stdout, "{}", plain_json(entry.json())));
            if let Err(error) = write() {
                return written(Err(error));
            }
        }
    }

    /// Prints the events, and after them the deliveries of push notifications, one per line.
    pub(super) async fn show_json(&self, record: &SessionRecord) -> Result<Exit, Problem> {
        let exit = self.export(record).await?;
        let deliveries = self.deliveries(record).await?;
        let lines = deliveries.iter().map(|delivery| format!("{}\n", json!({ "pushDelivery": delivery.to_json() })));
        print(&lines.collect::<String>())?;
        Ok(exit)
    }

    /// The log of push notifications, the oldest first.
    async fn deliveries(&self, record: &SessionRecord) -> Result<Vec<DeliveryRecord>, Problem> {
        let of = DeliveriesOf::Session(record.id.clone());
        let mut deliveries = self.log.deliveries(of, DELIVERIES).await.map_err(failed)?;
        deliveries.reverse();
        Ok(deliveries)
    }

    /// Prints the conversation for people.
    pub(super) async fn show(&self, record: &SessionRecord) -> Result<Exit, Problem> {
        let mut stdout = out::buffered();
        let (mut transcript, mut pieces) = (Transcript::default(), TextJoiner::default());
        let SessionRecord { agent, id, about, folder, created, .. } = record;
        let mut text = head(agent.to_string(), id.as_str(), about.model.as_ref(), folder.as_ref(), Some(*created));
        let mut after = 0;
        loop {
            let entries = self.page(record, after).await?;
            for event in entries.iter().filter_map(Entry::event) {
                for kind in pieces.join(event) {
                    text.push_str(&transcript.tell(&kind));
                }
            }
            let Some(last) = entries.last() else { break };
            after = last.seq();
            if let Err(error) = stdout.write_all(visible(&text).as_bytes()) {
                return written(Err(error));
            }
            text.clear();
        }
        text.extend(pieces.rest().map(|kind| transcript.tell(&kind)));
        text.push_str(&delivery_table(&self.deliveries(record).await?));
        written(stdout.write_all(visible(&text).as_bytes()).and_then(|()| stdout.flush()))
    }

    /// Deletes it; the agent's own store is unchanged.
    pub(super) async fn forget(&self, record: &SessionRecord) -> Result<Exit, Problem> {
        // Done before the deletion: without the session, the note's process would be unknown.
        live::clear_away(&self.log).await;
        self.log.remove(record.id.clone()).await.map_err(failed)?;
        out::say(&format!("deleted {}; {}'s own files stay", record.id, record.agent));
        Ok(Exit::Completed)
    }

    async fn page(&self, record: &SessionRecord, after: u64) -> Result<Vec<Entry>, Problem> {
        let part = Part { edge: Edge::After(after), limit: PAGE, bytes: PAGE_BYTES };
        Ok(self.log.page(record.id.clone(), part).await.map_err(failed)?.entries)
    }
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn failed(error: JournalError) -> Problem {
    Problem::new(Exit::Failed, host::about_log(&error))
}

/// The state in a word; `None` if it ended normally.
fn state(record: &SessionRecord) -> Option<&'static str> {
    match (&record.live, record.about.open) {
        (Some(_), _) => Some("live"),
        (None, true) => Some("interrupted"),
        (None, false) => None,
    }
}

/// The log of push notifications for people; empty without any.
fn delivery_table(deliveries: &[DeliveryRecord]) -> String {
    if deliveries.is_empty() {
        return String::new();
    }
    let line = |delivery: &DeliveryRecord| {
        let DeliveryRecord { created, state, origin, attempts, http_status, error, due, .. } = delivery;
        let status = match delivery.status {
            DeliveryStatus::Pending => "pending",
            DeliveryStatus::Delivered => "delivered",
            DeliveryStatus::GivenUp => "given up",
        };
        let attempts = if *attempts == 1 { "1 attempt".to_owned() } else { format!("{attempts} attempts") };
        let more = [
            http_status.map(|status| format!("HTTP {status}")),
            error.clone(),
            due.filter(|_| delivery.attempts > 0).map(|due| format!("next attempt {due}")),
        ];
        let more: String = more.into_iter().flatten().map(|more| format!(", {more}")).collect();
        visible_line(&format!("  {created}  {state:<14}  {status:<9}  {origin}  {attempts}{more}")).into_owned() + "\n"
    };
    let lines: String = deliveries.iter().map(line).collect();
    format!("\nPush notifications:\n{lines}")
}

fn stated(record: &SessionRecord) -> Value {
    let mut stated = json!({
        "id": record.id,
        "agent": record.agent.to_string(),
        "created": record.created,
        "updated": record.updated,
        "lastSeq": record.last_seq,
        "epoch": record.epoch,
    });
    let more = [
        ("folder", record.folder.as_ref().map(|folder| folder.display().to_string().into())),
        ("title", record.about.title.clone().map(Value::from)),
        ("model", record.about.model.clone().map(Value::from)),
        ("nativeSessionId", record.about.native_id.clone().map(Value::from)),
        ("forkedFrom", record.forked_from.as_ref().map(|id| id.as_str().into())),
        ("state", state(record).map(Value::from)),
        ("pid", record.live.as_ref().map(|holder| holder.pid.into())),
    ];
    if let Some(stated) = stated.as_object_mut() {
        stated.extend(more.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))));
    }
    stated
}

fn line(record: &SessionRecord, folders: bool, now: Timestamp) -> String {
    let state = state(record).map_or_else(String::new, |state| format!("[{state}] "));
    let age = age(now.millis_since(record.updated));
    let folder = record.folder.as_deref().filter(|_| folders);
    row(&record.agent.to_string(), record.id.as_str(), &age, &state, record.about.title.as_deref(), folder)
}

/// Joins streamed pieces of text.
#[derive(Debug, Default)]
struct TextJoiner {
    text: Option<TextChunk>,
}

impl TextJoiner {
    /// The events to show, now that this one has arrived.
    fn join(&mut self, event: &Event) -> Vec<EventKind> {
        match (&event.kind, &mut self.text) {
            (EventKind::TextChunk(chunk), Some(text)) if chunk.is_partial && chunk.message_id == text.message_id => {
                text.content.push_str(&chunk.content);
                Vec::new()
            }
            (EventKind::TextChunk(chunk), _) if chunk.is_partial => {
                let before = self.text.replace(chunk.clone());
                before.map(EventKind::TextChunk).into_iter().collect()
            }
            // The beginning of a thought is enough.
            (EventKind::Reasoning(thought), _) if thought.is_partial => Vec::new(),
            (kind, _) => self.rest().chain([kind.clone()]).collect(),
        }
    }

    fn rest(&mut self) -> impl Iterator<Item = EventKind> + use<> {
        self.text.take().map(EventKind::TextChunk).into_iter()
    }
}
