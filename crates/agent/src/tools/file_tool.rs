//! The read-only file tools as one enum: they differ only in what they show.

use tokio_util::sync::CancellationToken;

use super::files::Files;
use super::glob::Glob;
use super::list::List;
use super::read::Read;
use super::read_many::ReadMany;
use super::search::Search;
use crate::tool::Outcome;

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
