//! What doors made of logs up to an event: written by the writer, read by the readers.

use multitap_event::SessionId;
use multitap_hub::Checkpoint;
use rusqlite::{Connection, OptionalExtension as _};

use super::record::{number, signed};

/// Stores a checkpoint, if the log has its event: one of an event that was lost would later be taken for another's.
pub(super) fn keep(connection: &Connection, session: &SessionId, checkpoint: &Checkpoint) -> rusqlite::Result<()> {
    let insert = "INSERT OR REPLACE INTO door_checkpoints (session, seq, state) \
                  SELECT sessions.key, ?2, ?3 FROM sessions JOIN logs ON logs.session = sessions.key \
                  WHERE sessions.id = ?1 AND logs.last_seq >= ?2";
    let Checkpoint { seq, state } = checkpoint;
    connection.prepare_cached(insert)?.execute((session.as_str(), signed(*seq), state))?;
    Ok(())
}

pub(super) fn last(connection: &Connection, session: &SessionId, up_to: u64) -> rusqlite::Result<Option<Checkpoint>> {
    let mut select = connection.prepare_cached(
        "SELECT seq, state FROM door_checkpoints WHERE session = (SELECT key FROM sessions WHERE id = ?) AND seq <= ? \
         ORDER BY seq DESC LIMIT 1",
    )?;
    let read = |row: &rusqlite::Row<'_>| Ok(Checkpoint { seq: number(row.get(0)?), state: row.get(1)? });
    select.query_row((session.as_str(), signed(up_to)), read).optional()
}
