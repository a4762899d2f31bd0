//! Where the tests run the binary: a place of its own, a fake agent, and a hand on both ends of its pipes.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use multitap_testkit::Scratch;
use multitap_testkit::fake::{Fake, SESSION, assistant, init, result};
use multitap_testkit::wait::{marked, until_blocking};
use serde_json::{Value, json};

pub(crate) const MULTITAP: &str = env!("CARGO_BIN_EXE_multitap");
/// Long enough for a busy machine; nothing waits this long when all is well.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Scene {
    pub(crate) scratch: Scratch,
}

impl Scene {
    /// Nothing installed.
    pub(crate) fn bare() -> Self {
        let mut scratch = Scratch::without_model().unwrap();
        scratch.set("PATH", "/usr/bin:/bin");
        Self { scratch }
    }

    /// That fake in the place of Claude Code.
    pub(crate) fn with(fake: &Fake) -> Self {
        let mut scene = Self::bare();
        scene.scratch.set("MULTITAP_CLAUDE_BIN", fake.program());
        scene
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.scratch.command(MULTITAP);
        command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs to the end, with nothing on stdin.
    pub(crate) fn run(&self, args: &[&str]) -> Run {
        self.run_with(args, "")
    }

    /// Runs to the end, with this on stdin.
    pub(crate) fn run_with(&self, args: &[&str], stdin: &str) -> Run {
        let mut live = self.start(args);
        live.send(stdin);
        live.end()
    }

    /// Starts it and keeps its stdin open.
    pub(crate) fn start(&self, args: &[&str]) -> Live {
        Live::new(self.command(args))
    }

    /// Waits until nothing of this place is left.
    #[track_caller]
    pub(crate) fn nothing_left(&self) {
        let gone = until_blocking("everything to end", PATIENCE, || marked(&self.scratch).is_empty().then_some(()));
        assert!(gone.is_ok(), "still there: {:#?}", marked(&self.scratch));
    }
}

/// What a run came to.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Run {
    /// Stdout as JSON lines, and nothing else.
    #[track_caller]
    pub(crate) fn events(&self) -> Vec<Value> {
        let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|_| panic!("not JSON: {line}\n{self:#?}"));
        self.stdout.lines().map(parse).collect()
    }

    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        self
    }
}

/// The types of events, in order.
pub(crate) fn types(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

/// The events of a type.
pub(crate) fn of<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["type"] == kind).collect()
}

/// The only event of a type.
#[track_caller]
pub(crate) fn the<'a>(events: &'a [Value], kind: &str) -> &'a Value {
    let found = of(events, kind);
    assert_eq!(found.len(), 1, "{kind} in {events:#?}");
    found[0]
}

/// Events are numbered without a gap, all of one session, and `sessionEnded` comes once and last.
#[track_caller]
pub(crate) fn whole(events: &[Value]) {
    let first = events[0]["seq"].as_u64().unwrap();
    for (number, event) in (first..).zip(events) {
        assert_eq!(event["seq"], number, "{event}");
        assert_eq!(event["sessionId"], events[0]["sessionId"], "{event}");
    }
    the(events, "sessionEnded");
    assert_eq!(events.last().unwrap()["type"], "sessionEnded", "{events:#?}");
}

/// A run that goes on.
pub(crate) struct Live {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    seen: String,
    stderr: Option<JoinHandle<String>>,
}

impl Live {
    pub(crate) fn new(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let stdout = child.stdout.take().unwrap();
        let mut stderr = child.stderr.take().unwrap();
        let (tx, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if tx.send(line).is_err() {
                    break;
                }
            }
        });
        let stderr = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            stderr.read_to_end(&mut bytes).ok(); // what came before an error is enough
            String::from_utf8_lossy(&bytes).into_owned()
        });
        Self { stdin: child.stdin.take(), child, lines, seen: String::new(), stderr: Some(stderr) }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn send(&mut self, text: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        // A program that has ended already reads no more; its end is what the test looks at.
        stdin.write_all(text.as_bytes()).and_then(|()| stdin.flush()).ok();
    }

    pub(crate) fn tell(&mut self, line: &Value) {
        self.send(&format!("{line}\n"));
    }

    /// The next event that fits; those before it are only remembered.
    #[track_caller]
    pub(crate) fn until(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let line = match self.lines.recv_timeout(left) {
                Ok(line) => line,
                Err(RecvTimeoutError::Timeout) => panic!("waited in vain; seen so far:\n{}", self.seen),
                Err(RecvTimeoutError::Disconnected) => panic!("stdout ended; seen so far:\n{}", self.seen),
            };
            self.seen.push_str(&line);
            self.seen.push('\n');
            let event: Value = serde_json::from_str(&line).unwrap();
            if fits(&event) {
                return event;
            }
        }
    }

    /// The next line, if one comes by then.
    pub(crate) fn line_by(&mut self, deadline: Instant) -> Option<String> {
        let line = self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())).ok()?;
        self.seen.push_str(&line);
        self.seen.push('\n');
        Some(line)
    }

    #[track_caller]
    pub(crate) fn until_type(&mut self, kind: &str) -> Value {
        self.until(|event| event["type"] == kind)
    }

    pub(crate) fn signal(&self, signal: &str, scratch: &Scratch) {
        let status = scratch.command("/bin/kill").args([signal, &self.pid().to_string()]).status().unwrap();
        assert!(status.success());
    }

    /// Kills it, now.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
    }

    /// Ends its input and waits for its end.
    #[track_caller]
    pub(crate) fn end(mut self) -> Run {
        self.stdin = None;
        self.wait()
    }

    /// Waits for its end, with its input left open.
    #[track_caller]
    pub(crate) fn wait(&mut self) -> Run {
        let exit: ExitStatus = match until_blocking("the end", PATIENCE, || self.child.try_wait().unwrap()) {
            Ok(exit) => exit,
            Err(error) => {
                self.child.kill().ok();
                panic!("{error}; seen so far:\n{}", self.seen);
            }
        };
        while let Ok(line) = self.lines.recv_timeout(PATIENCE) {
            self.seen.push_str(&line);
            self.seen.push('\n');
        }
        let stderr = self.stderr.take().map(|thread| thread.join().unwrap()).unwrap_or_default();
        Run { code: exit.code(), stdout: std::mem::take(&mut self.seen), stderr }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.child.kill().ok(); // most are gone by then
        self.child.wait().ok();
    }
}

/// A fake that reacts: to `ask` in a prompt it asks for permission and does as it is told, to `slow` it works until
/// it is interrupted, to anything else it says `answer`.
pub(crate) fn asker() -> Fake {
    let tool = json!({
        "type": "assistant", "parent_tool_use_id": null, "session_id": SESSION, "uuid": "u-tool",
        "message": {
            "id": "msg_tool", "type": "message", "role": "assistant", "model": "m", "stop_reason": null,
            "content": [{"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "touch x"}}],
            "usage": {"input_tokens": 1, "output_tokens": 1},
        },
    });
    let question = json!({
        "type": "control_request", "request_id": "ask-1",
        "request": {
            "subtype": "can_use_tool", "tool_name": "Bash", "display_name": "Bash", "input": {"command": "touch x"},
            "permission_suggestions": [], "tool_use_id": "toolu_1",
        },
    });
    let tool_result = |content: &str, is_error: bool| {
        json!({
            "type": "user", "parent_tool_use_id": null, "session_id": SESSION, "uuid": "u-result",
            "message": {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": content, "is_error": is_error},
            ]},
        })
    };
    let mut aborted = result("");
    aborted["subtype"] = "error_during_execution".into();
    aborted["is_error"] = true.into();
    aborted["terminal_reason"] = "aborted_streaming".into();
    let withdrawn = json!({"type": "control_cancel_request", "request_id": "ask-1"});
    let initialized = json!({
        "commands": [{"name": "ask", "description": "Asks first"}], "models": [], "account": {}, "claude_code_version": "2.1.325",
        "current_permission_mode": "default",
    });
    let script = format!(
        r#"here=$(dirname "$0")
open=no
printf '%s\n' "$*" >> "$here/heard"
say() {{ printf '%s\n' "$1"; }}
success() {{
  printf '{{"type":"control_response","response":{{"subtype":"success","request_id":"%s","response":%s}}}}\n' "$1" "$2"
}}
while IFS= read -r line; do
  printf '%s\n' "$line" >> "$here/heard"
  id=${{line#*\"request_id\":\"}}
  id=${{id%%\"*}}
  case $line in
    *'"subtype":"initialize"'*) success "$id" {initialized} ;;
    *'"subtype":"interrupt"'*)
      success "$id" '{{}}'
      [ $open = yes ] && say {withdrawn}
      open=no
      say {aborted} ;;
    *'"type":"control_request"'*) success "$id" '{{}}' ;;
    *'"type":"user"'*ask*) say {init}; say {tool}; say {question}; open=yes ;;
    *'"type":"user"'*slow*) say {init}; say {working} ;;
    *'"type":"user"'*) say {init}; say {answer}; say {done} ;;
    *'"behavior":"allow"'*) open=no; say {ok}; say {done} ;;
    *'"behavior":"deny"'*) open=no; say {denied}; say {done} ;;
  esac
done
"#,
        initialized = quote(&initialized),
        withdrawn = quote(&withdrawn),
        aborted = quote(&aborted),
        init = quote(&init()),
        tool = quote(&tool),
        question = quote(&question),
        working = quote(&assistant("working")),
        answer = quote(&assistant("answer")),
        done = quote(&result("answer")),
        ok = quote(&tool_result("made it", false)),
        denied = quote(&tool_result("denied by you", true)),
    );
    Fake::shell("claude", &script).unwrap()
}

fn quote(value: &Value) -> String {
    format!("'{}'", value.to_string().replace('\'', r"'\''"))
}

/// Whether the tools that the scripts use are where the tests expect them.
pub(crate) fn exists(path: &str) -> bool {
    Path::new(path).exists()
}
