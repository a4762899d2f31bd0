//! Conversations on disk: one file of JSON lines each, so that they can be resumed.
//!
//! A line is a message, the name of the model that answers the following messages, or a mark that all earlier lines no
//! longer count. A truncated line is ignored; the next message begins on a new line.

use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};

use multitap_event::{Prompt, Timestamp};
use serde::{Deserialize, Serialize};
use tokio::io::AsyncWriteExt as _;

use crate::conversation::{Conversation, Message};

/// Folder of the automatically stored chats, below the agent's own folder.
const CHATS: &str = "chats";
/// Folder of the chats saved by name.
const SAVED: &str = "saved";

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
enum ChatLine {
    /// The first line.
    Chat {
        folder: PathBuf,
        began: Timestamp,
    },
    Message {
        message: Message,
    },
    /// Everything before this line is no longer part of the conversation.
    Afresh,
    /// The model that answers the messages after this line.
    Model {
        name: String,
    },
    /// Written by a later version.
    #[serde(other)]
    Unknown,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum ChatError {
    #[error("there is no conversation '{0}' of the built-in agent")]
    NotFound(String),
    #[error("'{0}' is not a valid name: use letters, digits, - and _")]
    BadName(String),
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

#[derive(Debug, Clone)]
pub(crate) struct ChatStore {
    /// The folder of conversations; `None` if nothing is stored.
    home: Option<PathBuf>,
}

/// Owner of named chats. Nobody can list, resume or delete another owner's chats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ChatOwner {
    /// The user whose program this is, or an owner without a name.
    User,
    /// A client whose token has that name.
    Account(String),
    /// Clients that are not owners and have no name.
    Guests,
}

impl ChatOwner {
    pub(crate) fn of(prompt: &Prompt) -> Self {
        match &prompt.account {
            Some(name) => Self::Account(name.clone()),
            None if prompt.within.is_none() => Self::User,
            None => Self::Guests,
        }
    }

    fn folder(&self) -> String {
        match self {
            Self::User => "user".to_owned(),
            Self::Account(name) => format!("account-{}", plain(name)),
            Self::Guests => "guests".to_owned(),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Chat {
    pub(crate) id: String,
    path: Option<PathBuf>,
    folder: PathBuf,
    began: Timestamp,
    begun: bool,
    torn: bool,
    model: Option<String>,
}

impl ChatStore {
    pub(crate) fn new(home: Option<PathBuf>) -> Self {
        Self { home }
    }

    fn path(&self, id: &str) -> Option<PathBuf> {
        Some(self.home.as_ref()?.join(CHATS).join(format!("{id}.jsonl")))
    }

    /// A new conversation; its file is created with the first message.
    pub(crate) fn begin(&self, folder: &Path, began: Timestamp) -> Chat {
        let id = uuid::Uuid::now_v7().to_string();
        Chat { path: self.path(&id), id, folder: folder.to_owned(), began, begun: false, torn: false, model: None }
    }

    pub(crate) async fn open(&self, id: &str) -> Result<(Chat, Conversation), ChatError> {
        let not_found = || ChatError::NotFound(id.to_owned());
        if !is_name(id) {
            return Err(not_found());
        }
        let path = self.path(id).ok_or_else(not_found)?;
        let read = read(&path).await?.ok_or_else(not_found)?;
        let StoredChat { folder, began, messages, torn, model } = read;
        let chat = Chat { id: id.to_owned(), path: Some(path), folder, began, begun: true, torn, model };
        Ok((chat, Conversation::new(messages)))
    }

    pub(crate) async fn latest(&self, folder: &Path) -> Result<Option<String>, ChatError> {
        let Some(home) = &self.home else { return Ok(None) };
        let mut names = names(&home.join(CHATS)).await?;
        // Files are named by the time the conversation began.
        names.sort_unstable_by(|one, other| other.cmp(one));
        for name in names {
            let Some(path) = self.path(&name) else { continue };
            if read(&path).await?.is_some_and(|read| read.folder == folder) {
                return Ok(Some(name));
            }
        }
        Ok(None)
    }

    /// Stores a copy under a name that its owner chose.
    pub(crate) async fn save(
        &self,
        name: &str,
        (owner, root): (&ChatOwner, &Path),
        chat: &Chat,
        talk: &Conversation,
    ) -> Result<(), ChatError> {
        let path = self.saved(name, owner, root)?;
        let (id, folder, model) = (name.to_owned(), chat.folder.clone(), chat.model.clone());
        let copy = Chat { id, path: Some(path), folder, began: chat.began, begun: false, torn: false, model };
        copy.put(lines(talk.messages())).await
    }

    pub(crate) async fn load(&self, name: &str, owner: &ChatOwner, root: &Path) -> Result<Conversation, ChatError> {
        let read = read(&self.saved(name, owner, root)?).await?.ok_or_else(|| ChatError::NotFound(name.to_owned()))?;
        Ok(Conversation::new(read.messages))
    }

    pub(crate) async fn delete(&self, name: &str, owner: &ChatOwner, root: &Path) -> Result<(), ChatError> {
        let path = self.saved(name, owner, root)?;
        match tokio::fs::remove_file(&path).await {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(ChatError::NotFound(name.to_owned())),
            Err(source) => Err(ChatError::Io { path, source }),
        }
    }

    pub(crate) async fn list(&self, owner: &ChatOwner, root: &Path) -> Result<Vec<String>, ChatError> {
        let Some(home) = &self.home else { return Ok(Vec::new()) };
        let mut names = names(&drawer(home, owner, root)).await?;
        // Sub-folders have names that begin with `+`; chat names never do.
        names.retain(|name| is_name(name));
        names.sort_unstable();
        Ok(names)
    }

    fn saved(&self, name: &str, owner: &ChatOwner, root: &Path) -> Result<PathBuf, ChatError> {
        let home = self.home.as_ref().filter(|_| is_name(name)).ok_or_else(|| ChatError::BadName(name.to_owned()))?;
        Ok(drawer(home, owner, root).join(format!("{name}.jsonl")))
    }
}

/// The folder of the named chats of one owner and one workspace root: `saved/OWNER/+home/+user/+project`.
fn drawer(home: &Path, owner: &ChatOwner, root: &Path) -> PathBuf {
    let mut path = home.join(SAVED).join(owner.folder());
    for part in root.components() {
        match part {
            Component::Normal(name) => {
                let mut marked = OsString::from("+");
                marked.push(name);
                path.push(marked);
            }
            Component::Prefix(prefix) => path.push(format!("+{}", plain(&prefix.as_os_str().to_string_lossy()))),
            Component::RootDir | Component::CurDir | Component::ParentDir => {}
        }
    }
    path
}

/// A text as part of a file name: other characters than letters, digits, `-` and `_` by their codes.
fn plain(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => char::from(byte).to_string(),
        other => format!("%{other:02x}"),
    };
    text.bytes().map(byte).collect()
}

impl Chat {
    /// Makes sure that the conversation can be resumed, even if the model was never asked.
    pub(crate) async fn ensure(&mut self) -> Result<(), ChatError> {
        if self.begun { Ok(()) } else { self.write(String::new()).await }
    }

    pub(crate) fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    /// Records the model that answers from now on.
    pub(crate) async fn answered_by(&mut self, model: &str) -> Result<(), ChatError> {
        if self.model() == Some(model) {
            return Ok(());
        }
        self.model = Some(model.to_owned());
        // A new file begins with it.
        if self.begun { self.write(line(&ChatLine::Model { name: model.to_owned() })).await } else { Ok(()) }
    }

    pub(crate) async fn add(&mut self, message: &Message) -> Result<(), ChatError> {
        self.write(lines(std::slice::from_ref(message))).await
    }

    pub(crate) async fn replace(&mut self, talk: &Conversation) -> Result<(), ChatError> {
        self.write(line(&ChatLine::Afresh) + &lines(talk.messages())).await
    }

    async fn write(&mut self, lines: String) -> Result<(), ChatError> {
        let written = self.put(lines).await;
        // A failed write may leave half a line: the next write begins on a new one.
        self.torn = written.is_err();
        self.begun |= written.is_ok();
        written
    }

    async fn put(&self, mut lines: String) -> Result<(), ChatError> {
        let Some(path) = &self.path else { return Ok(()) };
        if !self.begun {
            let model = self.model.clone().map(|name| line(&ChatLine::Model { name })).unwrap_or_default();
            lines.insert_str(0, &(line(&ChatLine::Chat { folder: self.folder.clone(), began: self.began }) + &model));
        }
        if self.torn && self.begun {
            lines.insert(0, '\n');
        }
        let written = async {
            if let Some(parent) = path.parent() {
                let mut folders = tokio::fs::DirBuilder::new();
                folders.recursive(true);
                // Only the user may read conversations, or see when they took place.
                #[cfg(unix)]
                folders.mode(0o700);
                folders.create(parent).await?;
            }
            let mut options = tokio::fs::OpenOptions::new();
            options.create(true);
            #[cfg(unix)]
            options.mode(0o600);
            // A new file has nothing to preserve, and a truncated first line would make it unreadable: overwrite it.
            if self.begun {
                options.append(true);
            } else {
                options.write(true).truncate(true);
            }
            let mut file = options.open(path).await?;
            file.write_all(lines.as_bytes()).await?;
            file.flush().await
        };
        written.await.map_err(|source| ChatError::Io { path: path.clone(), source })
    }
}

fn line(line: &ChatLine) -> String {
    let mut text = serde_json::to_string(line).unwrap_or_default();
    text.push('\n');
    text
}

fn lines(messages: &[Message]) -> String {
    messages.iter().map(|message| line(&ChatLine::Message { message: message.clone() })).collect()
}

struct StoredChat {
    folder: PathBuf,
    began: Timestamp,
    messages: Vec<Message>,
    torn: bool,
    model: Option<String>,
}

/// Reads a conversation; `None` if there is no such file.
async fn read(path: &Path) -> Result<Option<StoredChat>, ChatError> {
    // Bytes, not text: a truncated line may end inside a character.
    let bytes = match tokio::fs::read(path).await {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(ChatError::Io { path: path.to_owned(), source }),
    };
    let mut lines = bytes.split(|byte| *byte == b'\n').map(serde_json::from_slice::<ChatLine>);
    let Some(Ok(ChatLine::Chat { folder, began })) = lines.next() else { return Ok(None) };
    let (mut messages, mut model) = (Vec::new(), None);
    for line in lines.flatten() {
        match line {
            ChatLine::Message { message } => messages.push(message),
            ChatLine::Afresh => messages.clear(),
            ChatLine::Model { name } => model = Some(name),
            ChatLine::Chat { .. } | ChatLine::Unknown => {}
        }
    }
    Ok(Some(StoredChat { folder, began, messages, torn: !bytes.ends_with(b"\n"), model }))
}

async fn names(folder: &Path) -> Result<Vec<String>, ChatError> {
    let wrong = |source| ChatError::Io { path: folder.to_owned(), source };
    let mut entries = match tokio::fs::read_dir(folder).await {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(wrong(error)),
    };
    let mut names = Vec::new();
    while let Some(entry) = entries.next_entry().await.map_err(wrong)? {
        names.extend(entry.file_name().to_str().and_then(|name| name.strip_suffix(".jsonl")).map(str::to_owned));
    }
    Ok(names)
}

/// Whether the name stays inside the folder.
fn is_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= 64 && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_conversation_is_resumed_where_it_was() {
        let home = tempfile::tempdir().unwrap();
        let chat_store = ChatStore::new(Some(home.path().to_owned()));
        let folder = Path::new("/workspace");
        let mut chat = chat_store.begin(folder, Timestamp::from_millis(1));
        assert!(matches!(chat_store.open(&chat.id).await, Err(ChatError::NotFound(_))), "nothing was said");
        chat.ensure().await.unwrap();
        chat.ensure().await.unwrap();
        assert!(chat_store.open(&chat.id).await.unwrap().1.is_empty());
        chat.add(&Message::user("one")).await.unwrap();
        chat.add(&Message::assistant("two")).await.unwrap();
        let (mut again, talk) = chat_store.open(&chat.id).await.unwrap();
        assert_eq!(talk.messages(), [Message::user("one"), Message::assistant("two")]);
        again.replace(&Conversation::new(vec![Message::user("sum")])).await.unwrap();
        again.add(&Message::assistant("three")).await.unwrap();
        let (_, talk) = chat_store.open(&chat.id).await.unwrap();
        assert_eq!(talk.messages(), [Message::user("sum"), Message::assistant("three")]);
        assert_eq!(chat_store.latest(folder).await.unwrap().as_ref(), Some(&chat.id));
        assert_eq!(chat_store.latest(Path::new("/elsewhere")).await.unwrap(), None);
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn nobody_else_looks_into_it() {
        use std::os::unix::fs::PermissionsExt as _;
        let place = tempfile::tempdir().unwrap();
        let home = place.path().join("builtin");
        let chat_store = ChatStore::new(Some(home.clone()));
        let mut chat = chat_store.begin(Path::new("/w"), Timestamp::from_millis(1));
        chat.add(&Message::user("one")).await.unwrap();
        let place = (&ChatOwner::User, Path::new("/w"));
        chat_store.save("kept", place, &chat, &Conversation::default()).await.unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        for folder in [&home, &home.join(CHATS), &home.join(SAVED)] {
            assert_eq!(mode(folder), 0o700, "{}", folder.display());
        }
        assert_eq!(mode(&chat_store.path(&chat.id).unwrap()), 0o600);
    }

    #[tokio::test]
    async fn a_truncated_line_costs_no_other() {
        let home = tempfile::tempdir().unwrap();
        let chat_store = ChatStore::new(Some(home.path().to_owned()));
        for broken in [&b"{\"type\":\"mess"[..], b"{\"type\":\"message\",\"message\":{\"text\":\"\xe6\xbc"] {
            let mut chat = chat_store.begin(Path::new("/w"), Timestamp::from_millis(1));
            chat.add(&Message::user("one")).await.unwrap();
            let path = chat_store.path(&chat.id).unwrap();
            let whole = std::fs::read(&path).unwrap();
            std::fs::write(&path, [&whole[..], broken].concat()).unwrap();
            assert_eq!(chat_store.latest(Path::new("/w")).await.unwrap().as_ref(), Some(&chat.id));
            let (mut again, talk) = chat_store.open(&chat.id).await.unwrap();
            assert_eq!(talk.messages(), [Message::user("one")]);
            again.add(&Message::assistant("two")).await.unwrap();
            let (_, talk) = chat_store.open(&chat.id).await.unwrap();
            assert_eq!(talk.messages(), [Message::user("one"), Message::assistant("two")]);
        }
    }

    #[tokio::test]
    async fn the_model_that_answered_last_is_known_again() {
        let home = tempfile::tempdir().unwrap();
        let chat_store = ChatStore::new(Some(home.path().to_owned()));
        let mut chat = chat_store.begin(Path::new("/w"), Timestamp::from_millis(1));
        chat.answered_by("anthropic/one").await.unwrap();
        assert!(matches!(chat_store.open(&chat.id).await, Err(ChatError::NotFound(_))), "nothing was said");
        chat.add(&Message::user("hello")).await.unwrap();
        assert_eq!(chat_store.open(&chat.id).await.unwrap().0.model(), Some("anthropic/one"));
        chat.answered_by("openai/two").await.unwrap();
        let (again, talk) = chat_store.open(&chat.id).await.unwrap();
        assert_eq!((again.model(), talk.messages().len()), (Some("openai/two"), 1));
    }

    #[tokio::test]
    async fn saved_ones_have_names_that_lead_nowhere_else() {
        let home = tempfile::tempdir().unwrap();
        let chat_store = ChatStore::new(Some(home.path().to_owned()));
        let chat = chat_store.begin(Path::new("/w"), Timestamp::from_millis(1));
        let talk = Conversation::new(vec![Message::user("one")]);
        let (own, root) = (ChatOwner::User, Path::new("/w"));
        chat_store.save("before-lunch", (&own, root), &chat, &talk).await.unwrap();
        assert_eq!(chat_store.list(&own, root).await.unwrap(), ["before-lunch"]);
        assert_eq!(chat_store.load("before-lunch", &own, root).await.unwrap(), talk);
        // Neither a parent or child root, nor another owner, sees it, whatever name they use.
        chat_store.save("deeper", (&own, Path::new("/w/x.jsonl")), &chat, &talk).await.unwrap();
        assert_eq!(chat_store.list(&own, root).await.unwrap(), ["before-lunch"]);
        assert!(chat_store.list(&own, Path::new("/")).await.unwrap().is_empty());
        for name in ["ann", "../user", "user", ""] {
            let other = ChatOwner::Account(name.to_owned());
            assert!(chat_store.list(&other, root).await.unwrap().is_empty(), "{name}");
            assert!(
                matches!(chat_store.load("before-lunch", &other, root).await, Err(ChatError::NotFound(_))),
                "{name}"
            );
            assert!(
                matches!(chat_store.delete("before-lunch", &other, root).await, Err(ChatError::NotFound(_))),
                "{name}"
            );
        }
        assert!(chat_store.list(&ChatOwner::Guests, root).await.unwrap().is_empty());
        chat_store.delete("before-lunch", &own, root).await.unwrap();
        assert!(matches!(chat_store.load("before-lunch", &own, root).await, Err(ChatError::NotFound(_))));
        for bad in ["../x", "", "a/b", "a.b"] {
            assert!(
                matches!(chat_store.save(bad, (&own, root), &chat, &talk).await, Err(ChatError::BadName(_))),
                "{bad}"
            );
        }
    }
}
