//! Another process on the same file, and two stores that stand for two.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};
use std::sync::Arc;

use multitap_hub::{Entry, Filter, Journal as _};
use tokio::task::JoinSet;

use crate::scene::{File, all, batch, begin, some};

/// A running `appender`. It is ended with this.
pub(crate) struct Neighbour {
    child: Child,
    pub(crate) lines: BufReader<ChildStdout>,
}

impl Neighbour {
    /// Starts it and waits until it has those sessions.
    #[expect(clippy::disallowed_methods, reason = "our own helper, ended below, also when a test fails")]
    pub(crate) fn start(file: &Path, args: &[&str]) -> Self {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_appender"));
        command.arg(file).args(args);
        Self::spawn(command)
    }

    /// The same, but no file may grow beyond so many blocks of 512 bytes: writing fails then, in the middle of it.
    #[cfg(unix)]
    #[expect(clippy::disallowed_methods, reason = "our own helper, ended below, also when a test fails")]
    pub(crate) fn start_in_little_room(file: &Path, args: &[&str], blocks: u32) -> Self {
        let mut command = std::process::Command::new("sh");
        let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
        command.args(["-c", &script, env!("CARGO_BIN_EXE_appender")]).arg(file).args(args);
        Self::spawn(command)
    }

    fn spawn(mut command: std::process::Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        let mut neighbour = Self { child, lines };
        let mut line = String::new();
        neighbour.lines.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        neighbour
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends it at once, as a crash would, and gives back what it still said.
    pub(crate) fn kill(mut self) -> String {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        let mut said = String::new();
        self.lines.read_to_string(&mut said).unwrap();
        said
    }

    /// Ends it at once, but nobody asks after it: it stays a zombie until this is dropped.
    pub(crate) fn kill_and_leave(&mut self) {
        self.child.kill().unwrap();
        let mut rest = String::new();
        self.lines.read_to_string(&mut rest).unwrap();
        // Its files are closed a moment before it is dead.
        let stat = format!("/proc/{}/stat", self.child.id());
        let end = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while !std::fs::read_to_string(&stat).is_ok_and(|stat| stat.contains(") Z ")) {
            assert!(std::time::Instant::now() < end, "it does not die");
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }

    /// Waits until it gives up by itself: what it said, and why it gave up.
    #[cfg(unix)]
    pub(crate) fn give_up(mut self) -> (String, String) {
        let (mut said, mut why) = (String::new(), String::new());
        self.lines.read_to_string(&mut said).unwrap();
        self.child.stderr.take().unwrap().read_to_string(&mut why).unwrap();
        assert!(!self.child.wait().unwrap().success());
        (said, why)
    }

    /// Lets it end by itself.
    pub(crate) fn end(mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        // It may have ended already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

#[tokio::test]
async fn two_stores_on_one_file_do_not_hurt_each_other() {
    let file = File::new();
    let stores = [Arc::new(file.store()), Arc::new(file.store())];
    let mut writing = JoinSet::new();
    for number in 0..8 {
        let store = Arc::clone(&stores[number % 2]);
        let claim = begin(&*store).await;
        writing.spawn(async move {
            let id = claim.record.id;
            for seq in (1..=120).step_by(3) {
                store.append(batch(&id, &claim.owner, some(&id, seq..seq + 3))).await.unwrap();
            }
            id
        });
    }
    while let Some(id) = writing.join_next().await {
        let id = id.unwrap();
        for store in &stores {
            let seqs: Vec<u64> = all(&**store, &id).await.iter().map(Entry::seq).collect();
            assert_eq!(seqs, (1..=120).collect::<Vec<_>>());
        }
    }
    assert_eq!(stores[0].list(Filter::default()).await.unwrap().len(), 8);
}

#[tokio::test]
async fn stores_that_open_a_new_file_at_once_all_get_it() {
    for _ in 0..10 {
        open_at_once().await;
    }
}

async fn open_at_once() {
    let file = File::new();
    let mut opening = JoinSet::new();
    for _ in 0..8 {
        let path = file.path();
        opening.spawn_blocking(move || multitap_store::Store::open(path));
    }
    let mut stores = Vec::new();
    while let Some(store) = opening.join_next().await {
        stores.push(store.unwrap().unwrap());
    }
    let claim = begin(&stores[0]).await;
    let id = &claim.record.id;
    stores[0].append(batch(id, &claim.owner, some(id, 1..=1))).await.unwrap();
    for store in &stores {
        assert_eq!(all(store, id).await.len(), 1);
    }
}

#[tokio::test]
async fn another_process_is_seen_and_ends_clean() {
    let file = File::new();
    let neighbour = Neighbour::start(&file.path(), &["--hold", "shared"]);
    let store = file.store();
    let live = store.find("shared".to_owned()).await.unwrap().remove(0).live.unwrap();
    assert_eq!(live.pid, neighbour.pid());
    let error = store.claim("shared".into()).await.unwrap_err();
    assert_eq!(error.to_string(), format!("session shared is live in process {}", neighbour.pid()));
    // It can be read, and our own goes on.
    assert_eq!(all(&store, &"shared".into()).await, []);
    begin(&store).await;
    neighbour.end();
    assert_eq!(store.claim("shared".into()).await.unwrap().record.epoch, 1);
}
