//! Fake agents: small shell programs that fail in every way a real one can, and one that speaks enough of Claude Code's
//! dialect to run a turn.
//!
//! POSIX sh only, so that they run wherever the tests do.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::cli::CLAUDE;
use crate::shell::{executable, quote, write_with_mode};

/// A fake agent on disk. Removed on drop.
#[derive(Debug)]
pub struct Fake {
    folder: TempDir,
    name: String,
}

impl Fake {
    /// A path without a program.
    pub fn missing() -> Result<Self> {
        Self::folder("missing")
    }

    /// A file that may not be run (mode 0644).
    pub fn not_executable() -> Result<Self> {
        let fake = Self::folder("not-executable")?;
        write_with_mode(&fake.program(), "#!/bin/sh\nexit 0\n", "644")?;
        Ok(fake)
    }

    /// Ends at once with this code, after printing this on stderr.
    pub fn exits(code: u8, stderr: &str) -> Result<Self> {
        Self::shell("exits", &format!("printf '%s\\n' {} >&2\nexit {code}\n", quote(stderr)))
    }

    /// Starts, reads nothing, prints nothing, and ignores SIGINT and SIGTERM.
    pub fn hangs() -> Result<Self> {
        Self::shell("hangs", "trap '' INT TERM\nwhile :; do sleep 1; done\n")
    }

    /// Starts, prints nothing, and runs until its input ends.
    pub fn silent() -> Result<Self> {
        Self::shell("silent", "while IFS= read -r line; do :; done\n")
    }

    /// Closes its stdout at once and continues to run.
    pub fn closes_stdout() -> Result<Self> {
        Self::shell("closes-stdout", "exec >&-\nwhile :; do sleep 1; done\n")
    }

    /// A program with this shell text, which needs no `#!` line.
    pub fn shell(name: &str, text: &str) -> Result<Self> {
        let fake = Self::folder(name)?;
        executable(&fake.program(), &format!("#!/bin/sh\n{text}"))?;
        Ok(fake)
    }

    /// An MCP server on stdio with the tools `echo` (returns its `message`), `fail` and `pic` (an image).
    pub fn mcp() -> Result<Self> {
        Self::shell("mcp", MCP)
    }

    /// A fake that speaks Claude Code's dialect.
    pub fn claude() -> FakeClaude {
        FakeClaude::default()
    }

    pub fn program(&self) -> PathBuf {
        self.path().join(&self.name)
    }

    /// The folder it lives in, to be put on PATH.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The input of a [`FakeClaude`], line by line, after its arguments. Empty before it was started.
    pub fn heard(&self) -> Result<Vec<String>> {
        let path = self.path().join("heard");
        if !path.exists() {
            return Ok(Vec::new());
        }
        let text = fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
        Ok(text.lines().map(str::to_owned).collect())
    }

    fn folder(name: &str) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("multitap-fake-").tempdir().context("make a folder")?;
        Ok(Self { folder, name: name.to_owned() })
    }
}

/// One thing a fake does in a turn.
#[derive(Debug, Clone)]
pub enum Act {
    Line(String),
    /// Prints a line that is not JSON.
    Garbage,
    LongLine {
        mebibytes: usize,
    },
    InvalidUtf8,
    Stderr(String),
    Exit(u8),
    Kill(u8),
    /// Does nothing more, ever.
    Hang,
}

impl Act {
    fn shell(&self, number: usize) -> String {
        match self {
            Self::Line(_) => format!("cat \"$here/line-{number}\"\n"),
            Self::Garbage => "echo 'this is no JSON {'\n".to_owned(),
            Self::LongLine { mebibytes } => {
                format!("dd if=/dev/zero bs=1048576 count={mebibytes} 2>/dev/null | tr '\\0' x\necho\n")
            }
            Self::InvalidUtf8 => "printf '\\377\\376 not text \\300\\n'\n".to_owned(),
            Self::Stderr(text) => format!("printf '%s\\n' {} >&2\n", quote(text)),
            Self::Exit(code) => format!("exit {code}\n"),
            Self::Kill(signal) => format!("kill -{signal} $$\n"),
            Self::Hang => "while :; do sleep 1; done\n".to_owned(),
        }
    }
}

impl From<Value> for Act {
    fn from(line: Value) -> Self {
        Self::Line(line.to_string())
    }
}

impl From<&str> for Act {
    fn from(line: &str) -> Self {
        Self::Line(line.to_owned())
    }
}

/// Builds a fake that answers `initialize` and every other control request with success, and each user message
/// with the next turn of its script; the last turn repeats.
#[derive(Debug, Clone, Default)]
pub struct FakeClaude {
    before: Vec<Act>,
    turns: Vec<Vec<Act>>,
    version: Option<String>,
}

impl FakeClaude {
    /// Steps to run at the start, before anything is read.
    #[must_use]
    pub fn first(mut self, acts: impl IntoIterator<Item = Act>) -> Self {
        self.before = acts.into_iter().collect();
        self
    }

    /// The answer to the next user message.
    #[must_use]
    pub fn turn(mut self, acts: impl IntoIterator<Item = Act>) -> Self {
        self.turns.push(acts.into_iter().collect());
        self
    }

    /// A whole turn that answers with this text.
    #[must_use]
    pub fn says(self, text: &str) -> Self {
        self.turn([init().into(), assistant(text).into(), result(text).into()])
    }

    /// The output of `--version`; by default the pinned version.
    #[must_use]
    pub fn version(mut self, version: &str) -> Self {
        self.version = Some(version.to_owned());
        self
    }

    /// Writes it to disk as a program named `claude`.
    pub fn build(self) -> Result<Fake> {
        let fake = Fake::folder("claude")?;
        let mut number = 0;
        let mut acts = |acts: &[Act]| -> Result<String> {
            let mut text = String::new();
            for act in acts {
                number += 1;
                if let Act::Line(line) = act {
                    let path = fake.path().join(format!("line-{number}"));
                    fs::write(&path, format!("{line}\n")).with_context(|| format!("write {}", path.display()))?;
                }
                text += &act.shell(number);
            }
            Ok(text)
        };
        let before = acts(&self.before)?;
        let last = self.turns.len();
        let mut turns = String::new();
        for (index, turn) in self.turns.iter().enumerate() {
            let pattern = if index + 1 == last { "*".to_owned() } else { (index + 1).to_string() };
            turns += &format!("{pattern})\n{};;\n", acts(turn)?);
        }
        let version = self.version.unwrap_or_else(|| format!("{} (Claude Code)", CLAUDE.version));
        let text = PROGRAM
            .replace("@HERE@", &quote(&fake.path().to_string_lossy()))
            .replace("@VERSION@", &quote(&version))
            .replace("@INITIALIZED@", &quote(&initialized().to_string()))
            .replace("@BEFORE@", &before)
            .replace("@TURNS@", &turns);
        executable(&fake.program(), &text)?;
        Ok(fake)
    }
}

/// The id in a control request is echoed; nothing else of it is read.
const PROGRAM: &str = r#"#!/bin/sh
here=@HERE@
turn=0
printf '%s\n' "$*" >> "$here/heard"
for argument in "$@"; do
  case $argument in --version|-v) printf '%s\n' @VERSION@; exit 0 ;; esac
done
success() {
  printf '{"type":"control_response","response":{"subtype":"success","request_id":"%s","response":%s}}\n' "$1" "$2"
}
@BEFORE@
while IFS= read -r line; do
  printf '%s\n' "$line" >> "$here/heard"
  id=${line#*\"request_id\":\"}
  id=${id%%\"*}
  case $line in
    *'"type":"control_request"'*'"subtype":"initialize"'*) success "$id" @INITIALIZED@ ;;
    *'"type":"control_request"'*) success "$id" '{}' ;;
    *'"type":"user"'*)
      turn=$((turn + 1))
      case $turn in
        @TURNS@
      esac ;;
  esac
done
"#;

/// A minimal MCP server. It takes the last id in a line, since the parameters may contain another one.
const MCP: &str = r#"
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
while IFS= read -r line; do
  id=${line##*\"id\":}
  id=${id%%[,\}]*}
  case $line in
    *'"method":"initialize"'*)
      version=${line#*\"protocolVersion\":\"}
      version=${version%%\"*}
      answer '{"protocolVersion":"'"$version"'","capabilities":{"tools":{}},"serverInfo":{"name":"tiny","version":"1"}}' ;;
    *'"method":"tools/list"'*)
      echo='{"name":"echo","description":"Says it again","inputSchema":{"type":"object","properties":{"message":{"type":"string"}}}}'
      fail='{"name":"fail","description":"Fails","inputSchema":{"type":"object","properties":{}}}'
      pic='{"name":"pic","description":"Shows a pixel","inputSchema":{"type":"object","properties":{}}}'
      answer '{"tools":['"$echo,$fail,$pic"']}' ;;
    *'"method":"tools/call"'*'"name":"pic"'*)
      answer '{"content":[{"type":"image","data":"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==","mimeType":"image/png"}]}' ;;
    *'"method":"tools/call"'*'"name":"fail"'*)
      answer '{"content":[{"type":"text","text":"failed on purpose"}],"isError":true}' ;;
    *'"method":"tools/call"'*)
      message=${line#*\"message\":\"}
      message=${message%%\"*}
      answer '{"content":[{"type":"text","text":"echo: '"$message"'"}]}' ;;
    *'"id":'*'"method"'*|*'"method"'*'"id":'*) answer '{}' ;;
  esac
done
"#;

/// The session id in the lines below.
pub const SESSION: &str = "6df1cbe0-ffc2-44f2-a7a3-cdc9ab09997b";

/// The answer to `initialize`, reduced to what a driver reads.
fn initialized() -> Value {
    json!({
        "commands": [{"name": "compact", "description": "Compact the conversation", "argumentHint": "", "builtin": true}],
        "agents": [],
        "output_style": "default",
        "models": [{"value": "default", "resolvedModel": "claude-opus-5-5", "displayName": "Default (recommended)",
                    "description": "The default model"}],
        "account": {"apiKeySource": "ANTHROPIC_API_KEY"},
        "claude_code_version": CLAUDE.version,
        "current_permission_mode": "default",
        "capabilities": ["interrupt_receipt_v1"],
    })
}

pub fn init() -> Value {
    json!({
        "type": "system", "subtype": "init", "cwd": "/workspace", "session_id": SESSION, "tools": ["Bash", "Read"],
        "mcp_servers": [], "model": "claude-opus-5-5", "permissionMode": "default", "slash_commands": ["compact"],
        "apiKeySource": "ANTHROPIC_API_KEY", "claude_code_version": CLAUDE.version,
        "uuid": "7961d4fe-31f0-4353-9fd2-a0cb255b99b2",
    })
}

/// A line with text of the agent.
pub fn assistant(text: &str) -> Value {
    let message = json!({
        "id": "msg_01", "type": "message", "role": "assistant", "model": "claude-opus-5-5",
        "content": [{"type": "text", "text": text}], "stop_reason": null, "stop_sequence": null,
        "usage": {"input_tokens": 100, "output_tokens": 1},
    });
    json!({
        "type": "assistant", "message": message, "parent_tool_use_id": null, "session_id": SESSION,
        "uuid": "6edd31d2-be8f-4a57-81b2-2af56dc15328",
    })
}

/// The line that completes a turn.
pub fn result(text: &str) -> Value {
    json!({
        "type": "result", "subtype": "success", "is_error": false, "result": text, "num_turns": 1,
        "duration_ms": 10, "duration_api_ms": 5, "stop_reason": "end_turn", "terminal_reason": "completed",
        "total_cost_usd": 0.0008, "usage": {"input_tokens": 100, "output_tokens": 20}, "modelUsage": {},
        "permission_denials": [], "session_id": SESSION, "uuid": "0f7d9f2e-8f0d-4f53-a2f0-1c3b9d7a4e11",
    })
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::io::Write as _;
    use std::process::{Output, Stdio};

    use super::*;
    use crate::Scratch;

    fn run(fake: &Fake, input: &[Value]) -> Output {
        let scratch = Scratch::without_model().unwrap();
        let mut command = scratch.command(fake.program());
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("start the fake");
        let mut stdin = child.stdin.take().unwrap();
        let lines: String = input.iter().map(|line| format!("{line}\n")).collect();
        stdin.write_all(lines.as_bytes()).ok(); // a fake that ends at once does not read
        drop(stdin);
        child.wait_with_output().unwrap()
    }

    fn lines(output: &Output) -> Vec<Value> {
        let lines = output.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines.map(|line| serde_json::from_slice(line).unwrap_or(Value::Null)).collect()
    }

    fn prompt() -> Value {
        json!({"type": "user", "message": {"role": "user", "content": "hi"}})
    }

    #[test]
    fn it_answers_initialize_by_its_id_and_every_prompt_by_its_turn() {
        let fake = Fake::claude().says("it's one").says("two").build().unwrap();
        let initialize =
            json!({"type": "control_request", "request_id": "our-7", "request": {"subtype": "initialize"}});
        let output = run(&fake, &[initialize, prompt(), prompt(), prompt()]);
        let lines = lines(&output);
        assert_eq!(lines[0]["response"]["request_id"], "our-7");
        assert_eq!(lines[0]["response"]["response"]["models"][0]["value"], "default");
        let said: Vec<&str> = lines.iter().filter_map(|line| line["result"].as_str()).collect();
        assert_eq!(said, ["it's one", "two", "two"]);
        assert_eq!(fake.heard().unwrap().len(), 5);
    }

    #[test]
    fn it_prints_what_is_no_line_of_ours_between_lines_that_are() {
        let bad = [Act::Garbage, Act::InvalidUtf8, Act::LongLine { mebibytes: 2 }, result("ok").into(), Act::Exit(3)];
        let output = run(&Fake::claude().turn(bad).build().unwrap(), &[prompt()]);
        let lengths: Vec<usize> = output.stdout.split(|byte| *byte == b'\n').map(<[u8]>::len).collect();
        assert_eq!((lengths.len(), lengths[1], lengths[2]), (5, 13, 2 * 1024 * 1024));
        assert_eq!(output.status.code(), Some(3));
    }

    #[test]
    fn the_mcp_server_echoes_and_fails() {
        let call = |id: u32, name: &str| {
            let params = json!({"name": name, "arguments": {"message": "hi there"}, "_meta": {"progressToken": id}});
            json!({"method": "tools/call", "params": params, "jsonrpc": "2.0", "id": id})
        };
        let hello =
            json!({"method": "initialize", "params": {"protocolVersion": "2025-06-18"}, "jsonrpc": "2.0", "id": 0});
        let ready = json!({"method": "notifications/initialized", "jsonrpc": "2.0"});
        let lines = lines(&run(&Fake::mcp().unwrap(), &[hello, ready, call(1, "echo"), call(2, "fail")]));
        assert_eq!(lines[0]["result"]["protocolVersion"], "2025-06-18");
        assert_eq!((&lines[1]["id"], &lines[1]["result"]["content"][0]["text"]), (&json!(1), &json!("echo: hi there")));
        assert_eq!((lines.len(), &lines[2]["result"]["isError"]), (3, &json!(true)));
    }

    #[test]
    fn the_others_fail_each_in_its_own_way() {
        assert!(!Fake::missing().unwrap().program().exists());
        let output = run(&Fake::exits(9, "it's broken").unwrap(), &[]);
        assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(9), b"it's broken\n".as_slice()));
        let error = Scratch::without_model().unwrap().command(Fake::not_executable().unwrap().program()).spawn();
        assert_eq!(error.unwrap_err().kind(), std::io::ErrorKind::PermissionDenied);
    }
}
