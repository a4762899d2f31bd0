//! Opens the file: permissions, SQLite's settings, and migrations.

use std::fs::{self, OpenOptions};
use std::path::Path;
use std::time::{Duration, Instant};

use multitap_hub::JournalError;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::error::{StoreError, is_full, journal_error};

/// The migrations in order; `user_version` counts those that were applied.
const MIGRATIONS: &[&str] = &[
    include_str!("../../migrations/sqlite/0001_init.sql"),
    include_str!("../../migrations/sqlite/0002_tasks.sql"),
    include_str!("../../migrations/sqlite/0003_edits.sql"),
    include_str!("../../migrations/sqlite/0004_push.sql"),
    include_str!("../../migrations/sqlite/0005_door_checkpoints.sql"),
];

/// The schema version that this version writes.
const FORM: u32 = MIGRATIONS.len() as u32;

/// "MTAP" in the file's header: marks the file as ours.
const APPLICATION_ID: i64 = 0x4d54_4150;

/// How long to wait for another program that has the file locked.
const BUSY_TIMEOUT: Duration = Duration::from_secs(2);

/// Prepared statements cached per connection: more than there are.
const STATEMENTS: usize = 64;

/// The writer's connection; afterwards the file exists and has the current schema.
pub(super) fn create(path: &Path) -> Result<Connection, JournalError> {
    make_file(path).map_err(|error| match error.kind() {
        kind if is_full(kind) => JournalError::Full,
        _ => JournalError::Other(format!("{}: {error}", path.display())),
    })?;
    prepare(path).map_err(|trouble| trouble.into_journal_error(path))
}

fn prepare(path: &Path) -> Result<Connection, StoreError> {
    let mut connection = connect(path)?;
    // Before anything is changed.
    check_form(&connection, path)?;
    write_ahead(&connection)?;
    // Migrations must be durable.
    connection.execute_batch("PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON")?;
    migrate(&mut connection, path)?;
    Ok(connection)
}

pub(super) fn reader(path: &Path) -> Result<Connection, JournalError> {
    let open = || {
        let connection = connect(path)?;
        connection.execute_batch("PRAGMA query_only = ON")?;
        Ok(connection)
    };
    open().map_err(|error| journal_error(path, &error))
}

/// A connection to an existing file.
pub(super) fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    // Checkpoints would delay commits: the housekeeping thread runs them.
    connection.execute_batch("PRAGMA wal_autocheckpoint = 0")?;
    // On macOS a plain flush ends in the drive's cache.
    connection.execute_batch("PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON")?;
    Ok(connection)
}

/// Limits the file to about this many bytes, or to its current size.
pub(super) fn limit(connection: &Connection, bytes: u64) -> rusqlite::Result<()> {
    let page: u64 = connection.query_row("PRAGMA page_size", [], |row| row.get::<_, u32>(0).map(u64::from))?;
    connection.execute_batch(&format!("PRAGMA max_page_count = {}", bytes.div_ceil(page).max(1)))
}

/// Creates the folder and the file, for their user alone. Existing ones are unchanged. SQLite gives its side files
/// the same permissions.
fn make_file(path: &Path) -> std::io::Result<()> {
    let mut folder = fs::DirBuilder::new();
    folder.recursive(true);
    let mut file = OpenOptions::new();
    file.write(true).create(true).truncate(false);
    #[cfg(unix)]
    {
        std::os::unix::fs::DirBuilderExt::mode(&mut folder, 0o700);
        std::os::unix::fs::OpenOptionsExt::mode(&mut file, 0o600);
    }
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        folder.create(parent)?;
    }
    file.open(path).map(drop)
}

/// Refuses a file of a newer schema version, and one that is not ours.
fn check_form(connection: &Connection, path: &Path) -> Result<u32, StoreError> {
    // In this order: another process may be creating the tables right now; they appear at once, together with the id.
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let application: i64 = connection.query_row("PRAGMA application_id", [], |row| row.get(0))?;
    if application != APPLICATION_ID && (application != 0 || tables != 0) {
        return Err(JournalError::Other(format!("{} is another program's database", path.display())).into());
    }
    let found: u32 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    if found > FORM { Err(JournalError::Newer { found, known: FORM }.into()) } else { Ok(found) }
}

/// Enables write-ahead logging. That needs exclusive access for a moment, for which SQLite does not always wait: two
/// processes that open a new file at once would conflict.
fn write_ahead(connection: &Connection) -> Result<(), StoreError> {
    let end = Instant::now() + BUSY_TIMEOUT;
    loop {
        let mode = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get::<_, String>(0));
        match mode {
            Ok(mode) if mode == "wal" => return Ok(()),
            Ok(mode) => {
                let why = format!("no write-ahead log is possible on this file system (only '{mode}')");
                return Err(JournalError::Other(why).into());
            }
            Err(error) if is_busy(&error) && Instant::now() < end => std::thread::sleep(Duration::from_millis(10)),
            Err(error) => return Err(error.into()),
        }
    }
}

fn is_busy(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{DatabaseBusy, DatabaseLocked};
    matches!(error.sqlite_error_code(), Some(DatabaseBusy | DatabaseLocked))
}

/// Applies the missing migrations, all or none; another process may be doing the same.
fn migrate(connection: &mut Connection, path: &Path) -> Result<(), StoreError> {
    if check_form(connection, path)? == FORM {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found = check_form(&transaction, path)?;
    for step in MIGRATIONS.iter().skip(found as usize) {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", FORM)?;
    transaction.commit()?;
    Ok(())
}
