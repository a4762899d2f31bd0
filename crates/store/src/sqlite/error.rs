//! What SQLite's errors mean to the hub.

use std::path::Path;

use multitap_hub::JournalError;
use rusqlite::{Error, ErrorCode};

/// The hub's word for it.
pub(super) fn journal_error(path: &Path, error: &Error) -> JournalError {
    let told = || format!("{}: {error}", path.display());
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => JournalError::Full,
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => JournalError::Locked,
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => JournalError::Damaged(told()),
        _ => JournalError::Other(told()),
    }
}

/// Why a piece of work was not done.
#[derive(Debug)]
pub(super) enum Trouble {
    /// It may not be done; found out before anything of it was written.
    Refused(JournalError),
    /// SQLite could not; anything of it may have been written in the open transaction.
    Sql(Error),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self::Sql(error)
    }
}

impl From<JournalError> for Trouble {
    fn from(error: JournalError) -> Self {
        Self::Refused(error)
    }
}

impl Trouble {
    pub(super) fn into_journal_error(self, path: &Path) -> JournalError {
        match self {
            Self::Refused(error) => error,
            Self::Sql(error) => journal_error(path, &error),
        }
    }
}
