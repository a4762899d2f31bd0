//! Opening the file: who may read it, how SQLite is to treat it, and the steps that bring an older form up to date.

use std::fs::{self, OpenOptions};
use std::path::Path;
use std::time::{Duration, Instant};

use multitap_hub::JournalError;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::error::{Trouble, is_full, journal_error};

/// Each step once, in order; `user_version` counts those that were taken.
const MIGRATIONS: &[&str] = &[
    include_str!("../../migrations/sqlite/0001_init.sql"),
    include_str!("../../migrations/sqlite/0002_tasks.sql"),
    include_str!("../../migrations/sqlite/0003_edits.sql"),
];

/// The form this version writes.
const FORM: u32 = MIGRATIONS.len() as u32;

/// Says "MTAP" in the file's header: whose SQLite file this is.
const APPLICATION_ID: i64 = 0x4d54_4150;

/// How long to wait for another program that has the file locked.
const BUSY_TIMEOUT: Duration = Duration::from_secs(2);

/// Statements a connection keeps prepared: more than there are.
const STATEMENTS: usize = 64;

/// The connection that writes, on a file that is there and of today's form afterwards.
pub(super) fn create(path: &Path) -> Result<Connection, JournalError> {
    make_file(path).map_err(|error| match error.kind() {
        kind if is_full(kind) => JournalError::Full,
        _ => JournalError::Other(format!("{}: {error}", path.display())),
    })?;
    prepare(path).map_err(|trouble| trouble.into_journal_error(path))
}

fn prepare(path: &Path) -> Result<Connection, Trouble> {
    let mut connection = connect(path)?;
    // Before anything is changed.
    check_form(&connection, path)?;
    write_ahead(&connection)?;
    // What the steps write is to stay.
    connection.execute_batch("PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON")?;
    migrate(&mut connection, path)?;
    Ok(connection)
}

/// A connection that only reads.
pub(super) fn reader(path: &Path) -> Result<Connection, JournalError> {
    let open = || {
        let connection = connect(path)?;
        connection.execute_batch("PRAGMA query_only = ON")?;
        Ok(connection)
    };
    open().map_err(|error| journal_error(path, &error))
}

/// A connection to a file that exists.
pub(super) fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    // Never in line with somebody who waits: the keeper does it.
    connection.execute_batch("PRAGMA wal_autocheckpoint = 0")?;
    // Where a flush ends in the drive's own memory unless one asks for more (macOS).
    connection.execute_batch("PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON")?;
    Ok(connection)
}

/// Lets the file grow to about so many bytes, or to what it has already.
pub(super) fn limit(connection: &Connection, bytes: u64) -> rusqlite::Result<()> {
    let page: u64 = connection.query_row("PRAGMA page_size", [], |row| row.get::<_, u32>(0).map(u64::from))?;
    connection.execute_batch(&format!("PRAGMA max_page_count = {}", bytes.div_ceil(page).max(1)))
}

/// Makes the folder and the file, for their user alone. What is there stays as it is. SQLite gives the files it puts
/// beside this one the same rights.
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

/// Refuses a file of a newer form, and one that is not ours.
fn check_form(connection: &Connection, path: &Path) -> Result<u32, Trouble> {
    // In this order: another process may be making the tables right now, which come with the name, all at once.
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let application: i64 = connection.query_row("PRAGMA application_id", [], |row| row.get(0))?;
    if application != APPLICATION_ID && (application != 0 || tables != 0) {
        return Err(JournalError::Other(format!("{} is another program's database", path.display())).into());
    }
    let found: u32 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    if found > FORM { Err(JournalError::Newer { found, known: FORM }.into()) } else { Ok(found) }
}

/// Turns write-ahead logging on. That needs the file alone for a moment, and SQLite does not always wait for it: two
/// processes that open a new file at once would trip over each other.
fn write_ahead(connection: &Connection) -> Result<(), Trouble> {
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

/// Takes the steps that are missing, all or none; another process may be about it at the same time.
fn migrate(connection: &mut Connection, path: &Path) -> Result<(), Trouble> {
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
