//! The agents of the table: where their programs are, what they are started with, what they cannot do.

use std::path::PathBuf;

use multitap_testkit::interop;

/// An agent that joins the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Agent {
    Claude,
}

/// How an agent refuses a row: the options that ask for it, and words of the error.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Refusal {
    pub(crate) options: &'static [&'static str],
    pub(crate) says: &'static str,
}

impl Agent {
    pub(crate) const ALL: [Self; 1] = [Self::Claude];

    /// Its word for `--agent`.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Claude => "claude",
        }
    }

    /// The pinned program, if it may be driven here.
    pub(crate) fn program(self) -> Option<PathBuf> {
        match self {
            Self::Claude => interop::claude(),
        }
    }

    /// The variable that names its program.
    pub(crate) fn program_variable(self) -> &'static str {
        match self {
            Self::Claude => "MULTITAP_CLAUDE_BIN",
        }
    }

    /// A model other than its default.
    pub(crate) fn other_model(self) -> &'static str {
        match self {
            Self::Claude => "claude-sonnet-4-5",
        }
    }

    /// A slash command that it answers without the model.
    pub(crate) fn local_command(self) -> &'static str {
        match self {
            Self::Claude => "/context",
        }
    }

    /// Makes it give up on a failing model soon.
    pub(crate) fn few_retries(self) -> &'static [&'static str] {
        match self {
            Self::Claude => &["--env", "CLAUDE_CODE_MAX_RETRIES=2"],
        }
    }

    /// Rows that it cannot do.
    pub(crate) fn exceptions(self) -> &'static [&'static str] {
        match self {
            Self::Claude => &[],
        }
    }

    /// What it says when asked for such a row.
    pub(crate) fn cannot(self, row: &str) -> Option<Refusal> {
        if !self.exceptions().contains(&row) {
            return None;
        }
        match self {
            Self::Claude => None,
        }
    }
}
