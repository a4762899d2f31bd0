//! The pinned peers: their packages, their folders, and how they are installed and started.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

use crate::cli;
use crate::install::{into, npm};
use crate::interop::Place;

/// An A2A or ACP client of another project, or a browser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The JavaScript SDK that speaks 1.0.
    JsV1,
    /// The JavaScript SDK that speaks 0.3, as Gemini CLI has it.
    JsV03,
    /// The Python SDK, which speaks 1.0.
    Python,
    /// The Rust client of the A2A project, which speaks 1.0.
    Rust,
    /// A headless Chromium.
    Browser,
    /// The TypeScript SDK of ACP.
    AcpJs,
    /// The Python SDK of ACP.
    AcpPython,
}

const JS: &str = "@a2a-js/sdk";
const JS_V1: &str = "1.3.0";
const JS_V03: &str = "0.3.14";
/// What its gRPC transport needs.
const GRPC_JS: [(&str, &str); 2] = [("@grpc/grpc-js", "1.14.7"), ("@bufbuild/protobuf", "2.10.2")];
const PYTHON: &str = "a2a-sdk[http-server,grpc]==1.3.0";
/// The HTTP server under the Python SDK's server.
const UVICORN: &str = "uvicorn==0.54.0";
/// A packed Chromium from npm: it needs no other host and no root. For Linux on x86-64 only.
const CHROMIUM: &str = "@sparticuz/chromium";
const CHROMIUM_VERSION: &str = "153.0.0";
const ACP_JS: &str = "@agentclientprotocol/sdk";
const ACP_JS_VERSION: &str = "2.4.0";
/// With what its WebSocket client needs.
const ACP_PYTHON: &str = "agent-client-protocol[http]==0.12.1";

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 7] =
        [Self::JsV1, Self::JsV03, Self::Python, Self::Rust, Self::Browser, Self::AcpJs, Self::AcpPython];
    /// The kinds that are A2A clients.
    pub const CLIENTS: [Self; 4] = [Self::JsV1, Self::JsV03, Self::Python, Self::Rust];

    /// A description for people.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::JsV1 => "@a2a-js/sdk 1.3.0",
            Self::JsV03 => "@a2a-js/sdk 0.3.14",
            Self::Python => "a2a-sdk 1.3.0",
            Self::Rust => "a2a-client-lf 0.2.9",
            Self::Browser => "chromium",
            Self::AcpJs => "@agentclientprotocol/sdk 2.4.0",
            Self::AcpPython => "agent-client-protocol 0.12.1",
        }
    }

    /// The folder of the cache that holds it.
    fn folder(self) -> Option<PathBuf> {
        let name = match self {
            Self::JsV1 => "a2a-js-sdk-grpc-1.3.0".to_owned(),
            Self::JsV03 => "a2a-js-sdk-0.3.14".to_owned(),
            Self::Python => "a2a-sdk-python-1.3.0-server-grpc".to_owned(),
            Self::Rust => format!("a2a-client-lf-0.2.9-{:08x}", sources()),
            Self::Browser => "chromium-153.0.0".to_owned(),
            Self::AcpJs => "acp-sdk-2.4.0".to_owned(),
            Self::AcpPython => "agent-client-protocol-0.12.1".to_owned(),
        };
        Some(cli::cache_folder()?.join(name))
    }

    /// The file that shows that it is installed.
    fn program(self) -> Option<PathBuf> {
        let program = match self {
            Self::JsV1 | Self::JsV03 => "node_modules/@a2a-js/sdk/package.json",
            Self::Python | Self::AcpPython => "bin/python",
            Self::Rust => "multitap-peer-lf",
            Self::Browser => "chromium",
            Self::AcpJs => "node_modules/@agentclientprotocol/sdk/package.json",
        };
        Some(self.folder()?.join(program))
    }

    /// Where the peer is installed on this machine.
    pub(crate) fn place(self) -> Place {
        let Some(program) = self.program() else { return Place::NotInstalled };
        match self {
            // Its WebSocket client needs a Node.js that has one.
            Self::AcpJs if cli::NODE.installed().is_none() => Place::NotInstalled,
            _ if program.is_file() => Place::Here(program),
            Self::Python | Self::AcpPython if !python_will_do() => {
                Place::Cannot("there is no Python 3.10 with venv and pip here")
            }
            Self::Browser => match (system_browser(), packed_browser_runs()) {
                (Some(browser), _) => Place::Here(browser),
                (None, true) => Place::NotInstalled,
                (None, false) => Place::Cannot("there is no Chromium here, and none on npm for this machine"),
            },
            Self::JsV1 | Self::JsV03 | Self::Python | Self::Rust | Self::AcpJs | Self::AcpPython => Place::NotInstalled,
        }
    }

    /// Installs it unless it is there. The error says why it cannot be installed here.
    pub fn install(self) -> Result<Installed> {
        if let Place::Cannot(why) = self.place() {
            return Ok(Installed::Cannot(why));
        }
        let (Some(folder), Some(program)) = (self.folder(), self.program()) else {
            anyhow::bail!("no cache folder: neither HOME nor MULTITAP_TEST_CACHE is set")
        };
        match self {
            Self::JsV1 => {
                let [grpc, protobuf] = GRPC_JS;
                into(&folder, &program, |draft| npm(&[(JS, JS_V1), grpc, protobuf], draft))?;
            }
            Self::JsV03 => into(&folder, &program, |draft| npm(&[(JS, JS_V03)], draft))?,
            Self::Python => into(&folder, &program, |draft| python(&[PYTHON, UVICORN], draft))?,
            Self::Rust => into(&folder, &program, rust)?,
            Self::Browser => match system_browser() {
                Some(browser) => return Ok(Installed::At(browser)),
                None => into(&folder, &program, chromium)?,
            },
            Self::AcpJs => into(&folder, &program, |draft| npm(&[(ACP_JS, ACP_JS_VERSION)], draft))?,
            Self::AcpPython => into(&folder, &program, |draft| python(&[ACP_PYTHON], draft))?,
        }
        Ok(Installed::At(program))
    }

    /// The command that starts it as a peer.
    pub(super) fn start(self) -> Result<Vec<OsString>> {
        let Place::Here(program) = self.place() else {
            anyhow::bail!("{} is not installed: `cargo xtask test` installs it", self.title())
        };
        let folder = || self.folder().context("no cache folder");
        Ok(match self {
            Self::JsV1 => vec!["node".into(), script("js_1_0.mjs"), folder()?.into()],
            Self::JsV03 => vec!["node".into(), script("js_0_3.mjs"), folder()?.into()],
            // Nothing compiled is left beside the scripts.
            Self::Python => vec![program.into(), "-B".into(), script("python.py")],
            Self::Rust => vec![program.into()],
            Self::Browser => vec!["node".into(), script("browser.mjs"), program.into()],
            Self::AcpJs => {
                let node = cli::NODE.installed().context("Node.js is not installed")?;
                vec![node.into(), script("acp_client.mjs"), folder()?.into()]
            }
            Self::AcpPython => vec![program.into(), "-B".into(), script("acp_client.py")],
        })
    }

    /// The command that starts it as a sample agent, which requires this token.
    pub(super) fn serve(self, dialect: &str, binding: Binding, token: &str) -> Result<Vec<OsString>> {
        let Place::Here(program) = self.place() else {
            anyhow::bail!("{} is not installed: `cargo xtask test` installs it", self.title())
        };
        match (self, dialect, binding) {
            (Self::JsV1, "1.0", Binding::JsonRpc) | (Self::JsV03, "0.3", Binding::JsonRpc) => {
                let folder = self.folder().context("no cache folder")?;
                Ok(vec!["node".into(), script("agent.mjs"), folder.into(), dialect.into(), token.into()])
            }
            (Self::Python, "1.0" | "0.3", _) => {
                let words = [token, binding.word(), dialect].map(OsString::from);
                Ok([program.into(), script("agent.py")].into_iter().chain(words).collect())
            }
            _ => anyhow::bail!("there is no sample agent of {dialect} on {} over {}", self.title(), binding.word()),
        }
    }
}

/// The JSON Schema of ACP version 1, which comes with its TypeScript SDK.
#[must_use]
pub fn acp_schema() -> Option<PathBuf> {
    Some(Kind::AcpJs.folder()?.join("node_modules").join(ACP_JS).join("schema/v1/schema.json"))
}

/// The name of a sample agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Binding {
    JsonRpc,
    HttpJson,
}

impl Binding {
    const fn word(self) -> &'static str {
        match self {
            Self::JsonRpc => "JSONRPC",
            Self::HttpJson => "HTTP+JSON",
        }
    }
}

/// The outcome of an installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Installed {
    At(PathBuf),
    /// The program cannot be installed on this machine.
    Cannot(&'static str),
}

/// A file beside this crate's sources.
fn script(name: &str) -> OsString {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("peers").join(name).into()
}

/// Creates a virtual environment whose `bin/python` works wherever the folder is moved.
fn python(packages: &[&str], folder: &Path) -> Result<()> {
    let environment = ["-m", "venv"].map(OsString::from).into_iter().chain([folder.into()]);
    run(crate::command(OsStr::new("python3")).args(environment), "make a virtual environment")?;
    let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    run(crate::command(folder.join("bin/python").as_os_str()).args(install).args(packages), "install the Python SDK")
}

/// Whether there is a Python that the SDK supports, with `venv`, which some systems leave out.
fn python_will_do() -> bool {
    let asks = "import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 10))";
    let mut python = crate::command(OsStr::new("python3"));
    python.args(["-c", asks]).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// A hash of the sources of the Rust client's program: other sources are another program.
fn sources() -> u32 {
    let mut hasher = DefaultHasher::new();
    for name in ["lf/Cargo.toml", "lf/Cargo.lock", "lf/src/main.rs"] {
        fs::read(script(name)).unwrap_or_default().hash(&mut hasher); // none at all is noticed when it is built
    }
    (hasher.finish() >> 32) as u32
}

/// Only the program is kept: the build folder is forty times as large.
fn rust(folder: &Path) -> Result<()> {
    let built = folder.join("target");
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = crate::command(&cargo);
    command.args(["build", "--quiet", "--locked", "--manifest-path"]).arg(script("lf/Cargo.toml"));
    run(command.arg("--target-dir").arg(&built), "build the Rust client")?;
    let name = "multitap-peer-lf";
    fs::rename(built.join("debug").join(name), folder.join(name)).context("keep the Rust client")?;
    fs::remove_dir_all(built).context("remove what the Rust client was built with")
}

fn chromium(folder: &Path) -> Result<()> {
    npm(&[(CHROMIUM, CHROMIUM_VERSION)], folder)?;
    let modules = folder.join("node_modules");
    let packed = modules.join(CHROMIUM).join("bin");
    run(crate::command(OsStr::new("node")).arg(script("inflate.mjs")).arg(packed).arg(folder), "unpack Chromium")?;
    fs::remove_dir_all(modules).context("remove the packed Chromium")
}

fn run(command: &mut Command, what: &str) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot {what}: {}", command.get_program().display()))?;
    ensure!(status.success(), "cannot {what} ({status})");
    Ok(())
}

/// An installed Chrome or Chromium. Not Ubuntu's `chromium-browser`: that starts a package without access to a test's
/// folders.
fn system_browser() -> Option<PathBuf> {
    let application = Path::new("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome");
    let found = on_path(&["google-chrome", "google-chrome-stable", "chromium"]);
    found.or_else(|| application.is_file().then(|| application.to_owned()))
}

fn packed_browser_runs() -> bool {
    (env::consts::OS, env::consts::ARCH) == ("linux", "x86_64")
}

/// The first of these programs on `PATH`.
pub(crate) fn on_path(names: &[&str]) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    let folders: Vec<PathBuf> = env::split_paths(&path).collect();
    names.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name))).find(|program| program.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_and_folders_name_the_pinned_versions() {
        let acp_python = ACP_PYTHON.rsplit('=').next().unwrap();
        for (kind, pinned) in [
            (Kind::JsV1, JS_V1),
            (Kind::JsV03, JS_V03),
            (Kind::Browser, CHROMIUM_VERSION),
            (Kind::AcpJs, ACP_JS_VERSION),
            (Kind::AcpPython, acp_python),
        ] {
            let Some(folder) = kind.folder() else { return };
            assert!(folder.to_string_lossy().ends_with(pinned), "{}", folder.display());
        }
        let manifest = fs::read_to_string(script("lf/Cargo.toml")).unwrap();
        assert!(manifest.contains(r#"package = "a2a-client-lf", version = "=0.2.9""#), "{manifest}");
        assert!(PYTHON.ends_with("1.3.0") && Kind::Python.title().ends_with("1.3.0"));
    }

    #[test]
    fn every_script_is_there() {
        let scripts = [
            "lines.mjs",
            "js_1_0.mjs",
            "js_0_3.mjs",
            "lines.py",
            "python.py",
            "acp_client.mjs",
            "acp_client.py",
            "agent.mjs",
            "agent.py",
            "browser.mjs",
            "inflate.mjs",
            "lf/Cargo.lock",
        ];
        for name in scripts {
            assert!(Path::new(&script(name)).is_file(), "{name}");
        }
    }
}
