//! Writes one batch: events, and the rows derived from them. Runs inside a transaction of the writer.

use std::sync::LazyLock;

use multitap_event::{Event, EventKind, Question, Ruling, SessionId};
use multitap_hub::{About, Batch, Checkpoint, Entry, JournalError};
use rusqlite::{Connection, OptionalExtension as _, named_params, params};

use super::error::StoreError;
use super::record::{json, number, signed, word};

/// Entries per statement: SQLite searches the ends of the table and its index anew for each statement.
const ROWS: usize = 16;

static ONE: LazyLock<String> = LazyLock::new(|| statement(1));
static MANY: LazyLock<String> = LazyLock::new(|| statement(ROWS));

/// A statement that inserts this many entries.
fn statement(rows: usize) -> String {
    let rows: Vec<String> = (1..=rows).map(|row| format!("(?1, ?{}, ?{})", 2 * row, 2 * row + 1)).collect();
    format!("INSERT INTO events (session, seq, json) VALUES {}", rows.join(", "))
}

/// Appends a batch to the log with that key, except entries that are already there. Refuses before it writes
/// anything.
pub(super) fn append(connection: &Connection, key: i64, batch: &Batch, now: i64) -> Result<(), StoreError> {
    check_order(batch)?;
    let missing = move_on(connection, key, batch, now)?;
    let (many, rest) = missing.as_chunks::<ROWS>();
    for entries in many {
        insert(connection, &MANY, key, entries)?;
    }
    for entry in rest {
        insert(connection, &ONE, key, std::slice::from_ref(entry))?;
    }
    // Copied entries were audited where they were decided.
    for event in missing.iter().filter(|entry| !entry.is_copy()).filter_map(Entry::event) {
        note_ruling(connection, &batch.session, event)?;
    }
    if let Some(about) = &batch.about {
        tell(connection, key, about)?;
    }
    if let Some(Checkpoint { seq, state }) = &batch.checkpoint {
        let replace = "INSERT OR REPLACE INTO checkpoints (session, seq, state) VALUES (?, ?, ?)";
        connection.prepare_cached(replace)?.execute(params![key, signed(*seq), state])?;
    }
    Ok(())
}

/// Inserts as many entries as the statement takes.
fn insert(connection: &Connection, statement: &str, key: i64, entries: &[Entry]) -> rusqlite::Result<()> {
    let mut insert = connection.prepare_cached(statement)?;
    insert.raw_bind_parameter(1, key)?;
    for (row, entry) in (1..).zip(entries) {
        insert.raw_bind_parameter(2 * row, signed(entry.seq()))?;
        insert.raw_bind_parameter(2 * row + 1, entry.json())?;
    }
    insert.raw_execute().map(drop)
}

fn check_order(batch: &Batch) -> Result<(), JournalError> {
    let pairs = batch.entries.iter().zip(batch.entries.iter().skip(1));
    match pairs.into_iter().find(|(one, next)| one.seq() + 1 != next.seq()) {
        Some((one, next)) => Err(gap(&batch.session, next.seq(), one.seq())),
        None => Ok(()),
    }
}

fn gap(session: &SessionId, first: u64, last: u64) -> JournalError {
    JournalError::Other(format!("entry {first} of session {session} does not follow its last one, {last}"))
}

/// Advances the end of the log to that of the batch, and returns the entries to write.
fn move_on<'a>(connection: &Connection, key: i64, batch: &'a Batch, now: i64) -> Result<&'a [Entry], StoreError> {
    if step(connection, key, batch, &batch.entries, now)? {
        return Ok(&batch.entries);
    }
    let missing = missing(connection, key, batch)?;
    if step(connection, key, batch, missing, now)? { Ok(missing) } else { Err(StoreError::Refused(lost(batch))) }
}

/// Advances the end of the log, if we own it and it ends just before these entries: one statement checks and updates.
fn step(connection: &Connection, key: i64, batch: &Batch, entries: &[Entry], now: i64) -> rusqlite::Result<bool> {
    let last = entries.last().map(|entry| signed(entry.seq()));
    let before = entries.first().map(|entry| signed(entry.seq()) - 1);
    let update = "UPDATE logs SET last_seq = coalesce(:last, last_seq), updated = :now, open = coalesce(:open, open) \
                  WHERE session = :session AND owner = :owner AND last_seq = coalesce(:before, last_seq)";
    let moved = connection.prepare_cached(update)?.execute(named_params! {
        ":last": last,
        ":now": now,
        ":open": batch.about.as_ref().map(|about| about.open),
        ":session": key,
        ":owner": batch.owner.0,
        ":before": before,
    })?;
    Ok(moved == 1)
}

/// The rest of a batch whose beginning was written before, without an acknowledgement; else why it cannot be
/// appended.
fn missing<'a>(connection: &Connection, key: i64, batch: &'a Batch) -> Result<&'a [Entry], StoreError> {
    let mut select = connection.prepare_cached("SELECT owner, last_seq FROM logs WHERE session = ?")?;
    let found = select.query_row([key], |row| Ok((row.get::<_, Option<String>>(0)?, row.get::<_, i64>(1)?)));
    let last = match found.optional()? {
        None => return Err(JournalError::NoSuchSession(batch.session.clone()).into()),
        Some((owner, _)) if owner.as_ref() != Some(&batch.owner.0) => return Err(lost(batch).into()),
        Some((_, last)) => number(last),
    };
    let (kept, missing) = batch.entries.split_at(batch.entries.partition_point(|entry| entry.seq() <= last));
    if kept.is_empty() {
        return Err(gap(&batch.session, batch.entries.first().map_or(0, Entry::seq), last).into());
    }
    let mut select = connection.prepare_cached("SELECT json = ? FROM events WHERE session = ? AND seq = ?")?;
    for entry in kept {
        let same = select.query_row(params![entry.json(), key, signed(entry.seq())], |row| row.get(0)).optional()?;
        if same != Some(true) {
            let (seq, session) = (entry.seq(), &batch.session);
            let why = format!("entry {seq} of session {session} is already stored, with other content");
            return Err(JournalError::Other(why).into());
        }
    }
    Ok(missing)
}

fn lost(batch: &Batch) -> JournalError {
    JournalError::Lost(batch.session.clone())
}

/// Unknown values do not overwrite known ones.
fn tell(connection: &Connection, key: i64, about: &About) -> rusqlite::Result<()> {
    let update = "UPDATE sessions SET title = coalesce(?, title), native_id = coalesce(?, native_id), \
                  model = coalesce(?, model) WHERE key = ?";
    connection.prepare_cached(update)?.execute(params![about.title, about.native_id, about.model, key])?;
    Ok(())
}

/// Writes the audit trail.
fn note_ruling(connection: &Connection, session: &SessionId, event: &Event) -> rusqlite::Result<()> {
    match &event.kind {
        EventKind::PermissionAsked(question) => asked(connection, session, question, event.timestamp.as_millis()),
        EventKind::PermissionSettled(ruling) => settled(connection, session, ruling),
        _ => Ok(()),
    }
}

fn asked(connection: &Connection, session: &SessionId, question: &Question, at: i64) -> rusqlite::Result<()> {
    let insert = "INSERT INTO rulings (session_id, question_id, tool, title, asked) VALUES (?, ?, ?, ?, ?)";
    let question_id = question.question_id.as_str();
    let about = params![session.as_str(), question_id, question.tool_name, question.title, at];
    connection.prepare_cached(insert)?.execute(about)?;
    Ok(())
}

/// Completes the question's row. A question that was not asked in this log gets a row of its own.
fn settled(connection: &Connection, session: &SessionId, ruling: &Ruling) -> rusqlite::Result<()> {
    let (session, question) = (session.as_str(), ruling.question_id.as_str());
    let select = "SELECT max(id) FROM rulings WHERE session_id = ? AND question_id = ? AND option_id IS NULL";
    let open: Option<i64> = connection.prepare_cached(select)?.query_row([session, question], |row| row.get(0))?;
    let id = match open {
        Some(id) => id,
        None => {
            let insert = "INSERT INTO rulings (session_id, question_id) VALUES (?, ?)";
            connection.prepare_cached(insert)?.insert([session, question])?
        }
    };
    let by = &ruling.settled_by;
    let update = "UPDATE rulings SET option_id = ?, kind = ?, client = ?, door = ?, client_id = ?, role = ?, \
                  settled = ?, feedback = ?, edited = ?, new_content = ?, new_input = ?, runs = ? WHERE id = ?";
    connection.prepare_cached(update)?.execute(params![
        ruling.selected_option_id.as_str(),
        word(&ruling.kind),
        by.client,
        word(&by.door),
        by.client_id.as_ref().map(|id| id.as_str()),
        by.role.as_ref().and_then(word),
        ruling.at.as_millis(),
        ruling.feedback,
        ruling.edited,
        ruling.new_content,
        ruling.new_input.as_ref().and_then(json),
        ruling.runs.as_ref().and_then(json),
        id,
    ])?;
    Ok(())
}
