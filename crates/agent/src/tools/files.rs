//! Shared by the tools that read and change files: the workspace, what the model has seen of it, and threads for
//! blocking disk access.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

use super::glob::Glob;
use super::list::List;
use super::read::Read;
use super::read_many::ReadMany;
use super::search::Search;
use super::{BadCall, arguments};
use crate::conversation::Call;
use crate::seen::Seen;
use crate::tool::{Outcome, ToolContext};
use crate::workspace::{Inside, Workspace};

#[derive(Debug, Clone)]
pub(crate) struct Files {
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) seen: Seen,
}

impl Files {
    pub(crate) fn new(workspace: Workspace) -> Self {
        Self { workspace: Arc::new(workspace), seen: Seen::default() }
    }

    /// Resolves a path, if the tools may touch it.
    pub(super) fn place(&self, path: &str) -> Result<Inside, BadCall> {
        self.workspace.resolve(path).map_err(|outside| BadCall(outside.to_string()))
    }

    /// Resolves a path, or returns all folders of the workspace.
    pub(super) fn places(&self, path: Option<&str>) -> Result<Vec<Inside>, BadCall> {
        match path {
            Some(path) => Ok(vec![self.place(path)?]),
            None => Ok(self.workspace.places()),
        }
    }

    pub(super) fn shown(&self, place: &Inside) -> String {
        self.workspace.shown(place.path())
    }

    /// Prepares a call on a thread that may block.
    pub(super) async fn prepare<A, T>(
        &self,
        call: &Call,
        prepare: fn(&Self, A) -> Result<T, BadCall>,
    ) -> Result<T, BadCall>
    where
        A: DeserializeOwned + Send + 'static,
        T: Send + 'static,
    {
        let (files, arguments) = (self.clone(), arguments(call)?);
        let prepared = tokio::task::spawn_blocking(move || prepare(&files, arguments)).await;
        prepared.unwrap_or_else(|broke| Err(BadCall(format!("the tool broke off: {broke}"))))
    }

    /// Runs a job on such a thread. Dropping the future stops the job.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        job: T,
        context: &ToolContext,
        run: fn(T, &Self, &CancellationToken) -> Outcome,
    ) -> Outcome {
        let files = self.clone();
        let stop = context.stop.child_token();
        let _dropped = stop.clone().drop_guard();
        let done = tokio::task::spawn_blocking(move || run(job, &files, &stop)).await;
        done.unwrap_or_else(|broke| Outcome::failed(format!("the tool broke off: {broke}")))
    }
}

/// The read-only file tools: they differ only in what they show.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum FileTool {
    Read(Read),
    ReadMany(ReadMany),
    List(List),
    Glob(Glob),
    Search(Search),
}

impl FileTool {
    pub(crate) fn title(&self) -> String {
        match self {
            Self::Read(read) => read.title(),
            Self::ReadMany(read) => read.title(),
            Self::List(list) => list.title(),
            Self::Glob(glob) => glob.title(),
            Self::Search(search) => search.title(),
        }
    }

    pub(super) fn run(self, files: &Files, stop: &CancellationToken) -> Outcome {
        match self {
            Self::Read(read) => read.run(files, stop),
            Self::ReadMany(read) => read.run(files, stop),
            Self::List(list) => list.run(stop),
            Self::Glob(glob) => glob.run(files, stop),
            Self::Search(search) => search.run(files, stop),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::path::PathBuf;

    use multitap_outbound::Screen;
    use multitap_process::Keeper;
    use serde_json::Value;
    use tempfile::TempDir;
    use tokio::sync::mpsc;

    use super::*;
    use crate::conversation::Call;
    use crate::job::Job;
    use crate::mcp::Servers;
    use crate::tool::ToolContext;
    use crate::tools::Toolbox;
    use crate::tools::shell::{Shell, Surroundings};

    impl Toolbox {
        /// Tools for these files and nothing else.
        pub(crate) fn new(files: Files) -> Self {
            let shell = Shell::new(Surroundings {
                folders: Vec::new(),
                keeper: Keeper::Group,
                environment: Vec::new(),
                hidden_env: Vec::new(),
                private: PathBuf::new(),
                sandbox: None,
            });
            Self { files, shell, web: Screen::public(), memory: None, mcp: Servers::default() }
        }
    }

    /// A workspace in a folder of its own, and the tools over it.
    pub(crate) struct Scene {
        dir: TempDir,
        pub(crate) tools: Toolbox,
    }

    /// The most memory this process has had at once, in MiB; nothing where the system does not say.
    pub(crate) fn peak_memory() -> usize {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        peak.map_or(0, |peak| peak.trim().trim_end_matches(" kB").parse::<usize>().unwrap() / 1024)
    }

    impl Scene {
        pub(crate) fn new(files: &[(&str, &str)]) -> Self {
            let dir = tempfile::tempdir().unwrap();
            let root = dir.path().join("in");
            std::fs::create_dir(&root).unwrap();
            let tools = Toolbox::new(Files::new(Workspace::new(&root, &[], None).unwrap()));
            let scene = Self { dir, tools };
            for (path, text) in files {
                scene.write(path, text);
            }
            scene
        }

        pub(crate) fn path(&self, below: &str) -> PathBuf {
            self.dir.path().canonicalize().unwrap().join("in").join(below)
        }

        pub(crate) fn write(&self, path: &str, text: impl AsRef<[u8]>) {
            let path = self.path(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }

        pub(crate) fn text(&self, path: &str) -> String {
            std::fs::read_to_string(self.path(path)).unwrap()
        }

        pub(crate) async fn prepare(&self, tool: &str, arguments: Value) -> Result<Job, BadCall> {
            let call = Call { id: "1".to_owned(), name: tool.to_owned(), arguments, signature: None };
            self.tools.prepare(&call).await
        }

        pub(crate) async fn run(&self, job: Job) -> Outcome {
            let (progress, _told) = mpsc::channel(8);
            self.tools
                .run(crate::policy::Approved::in_a_test(job), ToolContext { progress, stop: CancellationToken::new() })
                .await
        }

        /// Runs a call without anybody being asked.
        pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Outcome {
            match self.prepare(tool, arguments).await {
                Ok(job) => self.run(job).await,
                Err(BadCall(why)) => Outcome::failed(why),
            }
        }
    }
}
