//! A private file for an edit that could not be used.

use std::io::{self, Write as _};
use std::path::PathBuf;

/// Writes the text to a new temporary file that stays.
pub(crate) fn save(text: &str) -> io::Result<PathBuf> {
    let mut file = tempfile::Builder::new().prefix("multitap-kept-").suffix(".md").tempfile()?;
    file.write_all(text.as_bytes())?;
    let (_, path) = file.keep().map_err(|error| error.error)?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_there_for_its_user_alone() {
        let path = save("rm -ri build\n").unwrap();
        let (text, about) = (std::fs::read_to_string(&path).unwrap(), std::fs::metadata(&path).unwrap());
        std::fs::remove_file(&path).unwrap();
        assert_eq!(text, "rm -ri build\n");
        #[cfg(unix)]
        assert_eq!(std::os::unix::fs::PermissionsExt::mode(&about.permissions()) & 0o777, 0o600);
        assert!(about.is_file());
    }
}
