//! Translates SQLite's errors for the hub.

use std::io;
use std::path::Path;

use multitap_hub::JournalError;
use rusqlite::{Error, ErrorCode, ffi};

/// The hub's error. Must be called where the error occurred: the system's error code is overwritten by later calls.
pub(super) fn journal_error(path: &Path, error: &Error) -> JournalError {
    translate(path, error, io::Error::last_os_error().kind())
}

fn translate(path: &Path, error: &Error, system: io::ErrorKind) -> JournalError {
    let text = || format!("{}: {error}", path.display());
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => JournalError::Full,
        // SQLite only reports a full disk; quotas and limits are treated the same.
        Some(_) if wanted_room(error) && is_full(system) => JournalError::Full,
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => JournalError::Locked,
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => JournalError::Damaged(text()),
        _ => JournalError::Other(text()),
    }
}

/// Whether the error can come from a file that could not grow.
fn wanted_room(error: &Error) -> bool {
    let Error::SqliteFailure(failure, _) = error else { return false };
    match failure.extended_code {
        ffi::SQLITE_IOERR_WRITE
        | ffi::SQLITE_IOERR_FSYNC
        | ffi::SQLITE_IOERR_TRUNCATE
        | ffi::SQLITE_IOERR_SHMOPEN
        | ffi::SQLITE_IOERR_SHMSIZE
        | ffi::SQLITE_IOERR_SHMMAP => true,
        _ => failure.code == ErrorCode::CannotOpen,
    }
}

pub(super) fn is_full(system: io::ErrorKind) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(system, StorageFull | QuotaExceeded | FileTooLarge)
}

/// Why a piece of work was not done.
#[derive(Debug)]
pub(super) enum StoreError {
    /// Refused before anything was written.
    Refused(JournalError),
    /// SQLite failed; the open transaction may contain part of it.
    Sql(Error),
}

impl From<Error> for StoreError {
    fn from(error: Error) -> Self {
        Self::Sql(error)
    }
}

impl From<JournalError> for StoreError {
    fn from(error: JournalError) -> Self {
        Self::Refused(error)
    }
}

impl StoreError {
    pub(super) fn into_journal_error(self, path: &Path) -> JournalError {
        match self {
            Self::Refused(error) => error,
            Self::Sql(error) => journal_error(path, &error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn a_quota_and_a_limit_are_as_full_as_a_disk() {
        let (no_space, quota, too_large, io_error) = (28, 122, 27, 5);
        let translated = |code, errno| {
            let error = Error::SqliteFailure(ffi::Error::new(code), None);
            translate(Path::new("log.db"), &error, io::Error::from_raw_os_error(errno).kind())
        };
        for errno in [no_space, quota, too_large] {
            for code in [ffi::SQLITE_FULL, ffi::SQLITE_IOERR_WRITE, ffi::SQLITE_IOERR_SHMSIZE, ffi::SQLITE_CANTOPEN] {
                assert_eq!(translated(code, errno), JournalError::Full, "{code} {errno}");
            }
            // Whatever the system said last, this is none of it.
            assert!(matches!(translated(ffi::SQLITE_CORRUPT, errno), JournalError::Damaged(_)));
            assert!(matches!(translated(ffi::SQLITE_IOERR_READ, errno), JournalError::Other(_)));
        }
        assert!(matches!(translated(ffi::SQLITE_IOERR_WRITE, io_error), JournalError::Other(_)));
    }
}
