//! Memory files of the user and of the session's folder, which the model gets at the start.
//!
//! The user's own files come first, then those from the repository's root down to the session's folder, so that the
//! nearest comes last. Bounded; a link out of the repository is not followed. Must not come in: how a model uses them,
//! who writes them.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use crate::tool::cut_before;

/// The names of memory files, in the order they are read.
pub(crate) const NAMES: [&str; 3] = ["MULTITAP.md", "AGENTS.md", "GEMINI.md"];

/// Most bytes read of one file.
const MOST: u64 = 64 * 1024;
const MOST_OF_ALL: usize = 256 * 1024;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Memory {
    pub(crate) files: Vec<Remembered>,
    /// The files that were not read, with reasons; for people.
    pub(crate) left_out: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Remembered {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
    /// Only its beginning was read.
    pub(crate) cut: bool,
}

impl Memory {
    /// Reads the memory files. `config` is the user's settings folder, `home` the home folder.
    pub(crate) fn load(config: Option<&Path>, home: Option<&Path>, folder: &Path) -> Self {
        let mut memory = Self::default();
        if let Some(config) = config {
            memory.read(config, None);
        }
        let folders = folders(folder, home);
        let outermost = folders.first().cloned().unwrap_or_else(|| folder.to_owned());
        for folder in &folders {
            memory.read(folder, Some(&outermost));
        }
        memory
    }

    /// The memory as it is sent to the model: each file under its name.
    pub(crate) fn text(&self) -> String {
        let file = |file: &Remembered| {
            let cut = if file.cut { "\n[… the rest is left out: the file is too long …]" } else { "" };
            format!("--- {} ---\n{}{cut}", file.path.display(), file.text.trim())
        };
        self.files.iter().map(file).collect::<Vec<_>>().join("\n\n")
    }

    fn read(&mut self, folder: &Path, within: Option<&Path>) {
        for path in NAMES.map(|name| folder.join(name)) {
            match read(&path, within) {
                Ok(Some(file)) => self.take(file),
                Ok(None) => {}
                Err(why) => self.left_out.push(format!("{}: {why}", path.display())),
            }
        }
    }

    fn take(&mut self, mut file: Remembered) {
        // One file often has several names.
        if file.text.trim().is_empty() || self.files.iter().any(|known| known.text == file.text) {
            return;
        }
        let used: usize = self.files.iter().map(|file| file.text.len()).sum();
        let room = MOST_OF_ALL.saturating_sub(used);
        if room == 0 {
            self.left_out.push(format!("{}: there is too much to remember", file.path.display()));
            return;
        }
        if file.text.len() > room {
            file.text.truncate(cut_before(&file.text, room));
            file.cut = true;
        }
        self.files.push(file);
    }
}

/// The folders whose memory counts, outermost first: from the repository's root, or else from the home folder, down.
fn folders(folder: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    let repository = folder.ancestors().find(|folder| folder.join(".git").exists());
    let top = repository.or_else(|| home.filter(|home| folder.starts_with(home))).unwrap_or(folder);
    let mut folders: Vec<_> =
        folder.ancestors().take_while(|folder| folder.starts_with(top)).map(Path::to_owned).collect();
    folders.reverse();
    folders
}

fn read(path: &Path, within: Option<&Path>) -> Result<Option<Remembered>, String> {
    let real = match path.canonicalize() {
        Ok(real) => real,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    if !real.is_file() {
        return Err("it is not a file".to_owned());
    }
    let within = within.map(|within| within.canonicalize().unwrap_or_else(|_| within.to_owned()));
    if within.is_some_and(|within| !real.starts_with(within)) {
        return Err("it is a link to a place outside the repository".to_owned());
    }
    let mut bytes = Vec::new();
    let file = File::open(&real).map_err(|error| error.to_string())?;
    file.take(MOST + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    let cut = bytes.len() as u64 > MOST;
    if cut {
        bytes.pop();
    }
    // The limit may split a character.
    let text = String::from_utf8_lossy(&bytes).trim_end_matches(char::REPLACEMENT_CHARACTER).to_owned();
    Ok(Some(Remembered { path: path.to_owned(), text, cut }))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn names(memory: &Memory, root: &Path) -> Vec<String> {
        let name = |file: &Remembered| file.path.strip_prefix(root).unwrap().display().to_string();
        memory.files.iter().map(name).collect()
    }

    #[test]
    fn what_is_nearest_is_read_last() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        fs::create_dir_all(at("home/repo/.git")).unwrap();
        fs::create_dir_all(at("home/repo/a/b")).unwrap();
        fs::create_dir_all(at("config")).unwrap();
        for (path, text) in [
            ("config/MULTITAP.md", "user"),
            ("home/AGENTS.md", "beyond the repository"),
            ("home/repo/GEMINI.md", "gemini"),
            ("home/repo/AGENTS.md", "agents"),
            ("home/repo/a/AGENTS.md", "agents"),
            ("home/repo/a/b/MULTITAP.md", "here\n"),
        ] {
            fs::write(at(path), text).unwrap();
        }
        let memory = Memory::load(Some(&at("config")), Some(&at("home")), &at("home/repo/a/b"));
        let expected =
            ["config/MULTITAP.md", "home/repo/AGENTS.md", "home/repo/GEMINI.md", "home/repo/a/b/MULTITAP.md"];
        assert_eq!(names(&memory, root.path()), expected);
        let text = memory.text();
        assert!(text.starts_with("--- ") && text.ends_with("MULTITAP.md ---\nhere"), "{text}");
    }

    #[test]
    fn without_a_repository_it_goes_up_to_the_home_folder_and_no_further() {
        let paths = |texts: &[&str]| texts.iter().map(PathBuf::from).collect::<Vec<_>>();
        let (home, folder) = (Path::new("/no/home"), Path::new("/no/home/a/b"));
        assert_eq!(folders(folder, Some(home)), paths(&["/no/home", "/no/home/a", "/no/home/a/b"]));
        assert_eq!(folders(Path::new("/no/where"), Some(home)), paths(&["/no/where"]));
        assert_eq!(folders(folder, None), paths(&["/no/home/a/b"]));
    }

    #[test]
    fn it_is_bounded_and_says_so() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join(".git")).unwrap();
        let mut folder = root.path().to_owned();
        for number in 0..6 {
            fs::write(folder.join("AGENTS.md"), format!("{number}{}", "漢".repeat(40_000))).unwrap();
            folder = folder.join("x");
            fs::create_dir(&folder).unwrap();
        }
        let memory = Memory::load(None, None, &folder);
        assert!(memory.files.iter().all(|file| file.cut && !file.text.contains('\u{fffd}')));
        assert!(memory.text().len() < MOST_OF_ALL + 1000);
        assert!(!memory.left_out.is_empty());
    }

    /// Nothing in a file makes another one be read, so the folders above alone decide how many there are.
    #[test]
    fn many_files_of_many_sizes_stay_within_the_bound() {
        let mut memory = Memory::default();
        for number in 0..2_000 {
            let text = format!("{number} @AGENTS.md @./x.md\n").repeat(number % 200);
            memory.take(Remembered { path: "AGENTS.md".into(), text, cut: false });
        }
        let read: usize = memory.files.iter().map(|file| file.text.len()).sum();
        assert_eq!(read, MOST_OF_ALL);
        assert!(memory.left_out.len() < 2_000);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_out_of_the_repository_is_not_followed() {
        let root = tempfile::tempdir().unwrap();
        let repo = root.path().join("repo");
        fs::create_dir_all(repo.join(".git")).unwrap();
        fs::write(root.path().join("secret"), "secret").unwrap();
        std::os::unix::fs::symlink(root.path().join("secret"), repo.join("AGENTS.md")).unwrap();
        fs::create_dir(repo.join("GEMINI.md")).unwrap();
        let memory = Memory::load(None, None, &repo);
        assert_eq!(memory.files, []);
        assert_eq!(memory.left_out.len(), 2, "{:?}", memory.left_out);
    }
}
