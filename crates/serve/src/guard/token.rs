//! Tokens, their roles and names, and the file that lists them. Only hashes stay in memory.

use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use multitap_event::ClientRole;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::client_name;

/// Maximum size of the file.
const LARGEST: u64 = 1024 * 1024;

/// The tokens of a door, with their roles.
#[derive(Clone, Default)]
pub struct Tokens {
    all: Vec<Token>,
}

#[derive(Clone)]
struct Token {
    hash: [u8; 32],
    role: ClientRole,
    name: Option<String>,
}

/// The token file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    #[error("{}: cannot be read", file.display())]
    Unreadable { file: PathBuf, source: io::Error },
    /// Other users could read or change the tokens.
    #[error("{name}: other users may read or write it (mode {mode:03o}): run `chmod 600 {name}`", name = file.display())]
    Exposed { file: PathBuf, mode: u32 },
    #[error("{}: is larger than {LARGEST} bytes, or not text", file.display())]
    NotText { file: PathBuf },
    /// The line is a secret and not repeated.
    #[error("{}: line {line}: {why}", file.display())]
    Line { file: PathBuf, line: usize, why: String },
    #[error("{}: it contains no token", file.display())]
    Empty { file: PathBuf },
}

impl Tokens {
    /// Reads lines `TOKEN ROLE [NAME]`; ignores empty lines and lines that begin with `#`.
    pub fn read(file: &Path) -> Result<Self, TokenError> {
        let unreadable = |source| TokenError::Unreadable { file: file.to_owned(), source };
        let opened = File::open(file).map_err(unreadable)?;
        check_mode(file, &opened)?;
        let mut bytes = Vec::new();
        opened.take(LARGEST + 1).read_to_end(&mut bytes).map_err(unreadable)?;
        let text = String::from_utf8(bytes).ok().filter(|text| text.len() as u64 <= LARGEST);
        let text = text.ok_or_else(|| TokenError::NotText { file: file.to_owned() })?;
        let tokens = Self::parse(&text).map_err(|(line, why)| TokenError::Line { file: file.to_owned(), line, why })?;
        if tokens.is_empty() { Err(TokenError::Empty { file: file.to_owned() }) } else { Ok(tokens) }
    }

    fn parse(text: &str) -> Result<Self, (usize, String)> {
        let mut tokens = Self::default();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (token, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
            let (role, name) = rest.trim_start().split_once(char::is_whitespace).unwrap_or((rest.trim_start(), ""));
            let role = role_of(role).ok_or_else(|| {
                (number, "a line is TOKEN ROLE [NAME], and a role is owner, controller or observer".to_owned())
            })?;
            tokens.add(token, role, client_name(name)).map_err(|why| (number, why.to_string()))?;
        }
        Ok(tokens)
    }

    /// Adds a token.
    pub fn add(&mut self, token: &str, role: ClientRole, name: Option<String>) -> Result<(), BadToken> {
        if token.is_empty() || !token.chars().all(|c| c.is_ascii_graphic()) {
            return Err(BadToken::Characters);
        }
        let hash = hash(token);
        if self.all.iter().any(|known| known.hash == hash) {
            return Err(BadToken::Twice);
        }
        self.all.push(Token { hash, role, name });
        Ok(())
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Finds a token. Compares with every token in constant time, so that the duration reveals nothing.
    pub(super) fn find(&self, token: &str) -> Option<(ClientRole, Option<&str>)> {
        let hash = hash(token);
        let mut found = None;
        for known in &self.all {
            if known.hash.ct_eq(&hash).into() {
                found = Some((known.role, known.name.as_deref()));
            }
        }
        found
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.all.iter().map(|token| (token.role, &token.name))).finish()
    }
}

/// The text cannot be a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadToken {
    #[error("a token is made of visible ASCII characters")]
    Characters,
    #[error("duplicate token")]
    Twice,
}

/// Parses a role.
pub(super) fn role_of(word: &str) -> Option<ClientRole> {
    serde_json::from_value(word.into()).ok()
}

fn hash(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

#[cfg(unix)]
fn check_mode(name: &Path, file: &File) -> Result<(), TokenError> {
    use std::os::unix::fs::MetadataExt as _;
    let data = file.metadata().map_err(|source| TokenError::Unreadable { file: name.to_owned(), source })?;
    let mode = data.mode() & 0o777;
    if mode & 0o077 == 0 { Ok(()) } else { Err(TokenError::Exposed { file: name.to_owned(), mode }) }
}

#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "the same call as on Unix, where it can refuse")]
fn check_mode(_name: &Path, _file: &File) -> Result<(), TokenError> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_give_tokens_with_roles_and_names() {
        let text = "# ours\n\nabc owner\n  def\tcontroller  Ada L. \r\nghi observer\u{1b}[2J\n";
        let error = Tokens::parse(text).unwrap_err();
        assert_eq!(error.0, 5, "a role with something in it is no role");
        let tokens = Tokens::parse("# ours\n\nabc owner\n  def\tcontroller  Ada L. \r\nghi observer\n").unwrap();
        assert_eq!(tokens.find("abc"), Some((ClientRole::Owner, None)));
        assert_eq!(tokens.find("def"), Some((ClientRole::Controller, Some("Ada L."))));
        assert_eq!(tokens.find("ghi"), Some((ClientRole::Observer, None)));
        for wrong in ["", "ab", "abcd", "ABC", "#", "ours"] {
            assert_eq!(tokens.find(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_bad_line_is_named_by_its_number_and_never_repeated() {
        for (text, line, why) in [
            ("a owner\nsecret", 2, "TOKEN ROLE"),
            ("secret admin", 1, "owner, controller or observer"),
            ("# x\nsecret Owner Ada", 2, "a role is"),
            ("secret owner\nother observer\nsecret observer", 3, "duplicate token"),
            ("s\u{e9}cret owner", 1, "ASCII"),
        ] {
            let (number, told) = Tokens::parse(text).unwrap_err();
            assert_eq!(number, line, "{text}");
            assert!(told.contains(why) && !told.contains("secret") && !told.contains("admin"), "{told}");
        }
    }

    #[test]
    fn nothing_of_a_token_is_shown() {
        let tokens = Tokens::parse("secret owner Ada").unwrap();
        assert_eq!(format!("{tokens:?}"), r#"[(Owner, Some("Ada"))]"#);
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_others_can_read_is_refused() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tokens");
        std::fs::write(&file, "secret owner\n").unwrap();
        for (mode, fits) in [(0o600, true), (0o400, true), (0o640, false), (0o604, false), (0o660, false)] {
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
            match Tokens::read(&file) {
                Ok(_) => assert!(fits, "{mode:o}"),
                Err(error) => {
                    assert!(!fits, "{mode:o}: {error}");
                    assert!(error.to_string().contains("chmod 600"), "{error}");
                }
            }
        }
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        std::fs::write(&file, "# nobody yet\n").unwrap();
        assert!(matches!(Tokens::read(&file), Err(TokenError::Empty { .. })));
        assert!(matches!(Tokens::read(&folder.path().join("none")), Err(TokenError::Unreadable { .. })));
    }
}
