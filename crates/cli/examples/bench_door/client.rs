//! The other end: a server process, and requests that count what comes.

use std::ffi::OsStr;
use std::io::Read as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use futures_util::{SinkExt as _, StreamExt as _};
use multitap_testkit::peer::{Binding, Kind, SampleAgent};
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::Outcome;

/// A server in a process of its own, gone with this.
pub(crate) struct Server {
    process: Process,
    address: String,
    /// What a request has besides its length.
    headers: String,
    /// The method of streams, and its dialect.
    method: &'static str,
}

enum Process {
    Own(Child),
    Sample(SampleAgent),
}

/// What came of a stream.
pub(crate) struct Streamed {
    pub(crate) events: usize,
    /// The time to the first of them.
    pub(crate) first: Duration,
}

impl Server {
    /// This program once more, as the server of that name.
    pub(crate) async fn start(word: &str) -> Outcome<Self> {
        Self::run(std::env::current_exe()?.as_os_str(), &[OsStr::new(word)], Stdio::inherit()).await
    }

    /// The same, over the log in that folder.
    pub(crate) async fn over(word: &str, folder: &str) -> Outcome<Self> {
        let args = [word, folder].map(OsStr::new);
        Self::run(std::env::current_exe()?.as_os_str(), &args, Stdio::inherit()).await
    }

    /// The same, whose instructions are counted.
    pub(crate) async fn counted(word: &str) -> Outcome<Self> {
        let this = std::env::current_exe()?;
        let count = ["--tool=callgrind", "--callgrind-out-file=/dev/null"].map(OsStr::new);
        let args = [count[0], count[1], this.as_os_str(), OsStr::new(word)];
        Self::run(OsStr::new("valgrind"), &args, Stdio::piped()).await
    }

    /// Whether instructions can be counted here.
    #[expect(clippy::disallowed_methods, reason = "a tool of whoever measures")]
    pub(crate) fn can_count() -> bool {
        let mut valgrind = Command::new("valgrind");
        valgrind.arg("--version").stdout(Stdio::null()).status().is_ok_and(|status| status.success())
    }

    #[expect(clippy::disallowed_methods, reason = "this program once more, to be measured by itself")]
    async fn run(program: &OsStr, args: &[&OsStr], stderr: Stdio) -> Outcome<Self> {
        let mut command = Command::new(program);
        let mut process = command.args(args).stdout(Stdio::piped()).stderr(stderr).spawn()?;
        let stdout = tokio::process::ChildStdout::from_std(process.stdout.take().ok_or("no stdout")?)?;
        let mut url = String::new();
        BufReader::new(stdout).read_line(&mut url).await?;
        let address = url.trim().strip_prefix("http://").ok_or("no address")?.to_owned();
        Ok(Self { process: Process::Own(process), address, headers: String::new(), method: "message/stream" })
    }

    /// The sample agent on an SDK; an error if that is not installed.
    pub(crate) fn sample(kind: Kind, binding: Binding) -> Outcome<Self> {
        let agent = SampleAgent::start(kind, binding, "bench")?;
        let address = agent.url.trim_end_matches('/').strip_prefix("http://").ok_or("no address")?.to_owned();
        let headers = "Authorization: Bearer bench\r\nA2A-Version: 1.0\r\n".to_owned();
        Ok(Self { process: Process::Sample(agent), address, headers, method: "SendStreamingMessage" })
    }

    fn pid(&self) -> u32 {
        match &self.process {
            Process::Own(child) => child.id(),
            Process::Sample(agent) => agent.pid(),
        }
    }

    /// Ends it, and says how many instructions it executed.
    #[expect(clippy::disallowed_methods, reason = "a process of our own")]
    pub(crate) fn instructions(mut self) -> Outcome<u64> {
        let Process::Own(child) = &mut self.process else { return Err("not counted".into()) };
        Command::new("kill").args(["-TERM", &child.id().to_string()]).status()?;
        let mut said = String::new();
        child.stderr.take().ok_or("no stderr")?.read_to_string(&mut said)?;
        let counted = said.lines().find_map(|line| line.split_once("Collected : ")?.1.trim().parse().ok());
        counted.ok_or_else(|| format!("callgrind counted nothing: {said}").into())
    }

    /// The processor time it has used.
    pub(crate) fn cpu(&self) -> Outcome<Duration> {
        // Of all its threads: the process's own line has only the first.
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.pid()))?;
        let mut nanos = 0;
        for task in tasks {
            let line = std::fs::read_to_string(task?.path().join("schedstat"))?;
            nanos += line.split_whitespace().next().ok_or("no time")?.parse::<u64>()?;
        }
        Ok(Duration::from_nanos(nanos))
    }

    pub(crate) fn memory(&self) -> Outcome<u64> {
        self.status("VmRSS:")
    }

    /// The most memory it had.
    pub(crate) fn most_memory(&self) -> Outcome<u64> {
        self.status("VmHWM:")
    }

    fn status(&self, field: &str) -> Outcome<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid()))?;
        let line = status.lines().find_map(|line| line.strip_prefix(field)).ok_or("no such field")?;
        Ok(line.trim_end_matches("kB").trim().parse::<u64>()? * 1024)
    }

    pub(crate) async fn card(&self) -> Outcome<()> {
        let mut stream = TcpStream::connect(&self.address).await?;
        let request =
            format!("GET /.well-known/agent-card.json HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.address);
        stream.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        if answer.starts_with(b"HTTP/1.1 200") { Ok(()) } else { Err("no card".into()) }
    }

    /// Asks for so many events, and counts those that come.
    pub(crate) async fn stream(&self, events: usize) -> Outcome<Streamed> {
        let text = events.to_string();
        let message = match self.method {
            "message/stream" => json!({
                "kind": "message", "messageId": "m", "role": "user", "parts": [{"kind": "text", "text": text}],
            }),
            _ => json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": text }] }),
        };
        let began = Instant::now();
        let stream = self.post(self.method, &json!({ "message": message }), "").await?;
        read_events(stream, began, usize::MAX).await
    }

    /// Comes back after that event, and waits for the first frame.
    pub(crate) async fn subscribe_after(&self, event: usize) -> Outcome<()> {
        self.rest_after(event, 1).await.map(drop)
    }

    /// Comes back after that event, and reads so many of the following ones.
    pub(crate) async fn rest_after(&self, event: usize, events: usize) -> Outcome<usize> {
        let id = self.task().await?;
        let after = format!("Last-Event-ID: {event}\r\n");
        let stream = self.post("tasks/resubscribe", &json!({ "id": id }), &after).await?;
        let read = read_events(stream, Instant::now(), events).await?.events;
        if read < events { Err(format!("{read} of {events} events came").into()) } else { Ok(read) }
    }

    /// A stream that stays open.
    pub(crate) async fn subscribe(&self) -> Outcome<TcpStream> {
        let id = self.task().await?;
        let mut stream = self.post("tasks/resubscribe", &json!({ "id": id }), "").await?;
        // It is open once its head has come.
        stream.read_exact(&mut [0; 64]).await?;
        Ok(stream)
    }

    /// Has that address notified of the session's task.
    pub(crate) async fn hook(&self, url: &str) -> Outcome<()> {
        let config = json!({ "taskId": self.task().await?, "url": url });
        let answer = self.call("CreateTaskPushNotificationConfig", &config).await?;
        if answer.contains("\"result\"") { Ok(()) } else { Err(answer.into()) }
    }

    /// The id of the session's task.
    async fn task(&self) -> Outcome<String> {
        let list = self.call("ListTasks", &json!({})).await?;
        let id = list.split("\"id\":\"").nth(1).and_then(|rest| rest.split('"').next());
        Ok(id.ok_or("no task")?.to_owned())
    }

    async fn call(&self, method: &str, params: &serde_json::Value) -> Outcome<String> {
        let mut answer = Vec::new();
        self.post(method, params, "").await?.read_to_end(&mut answer).await?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }

    async fn post(&self, method: &str, params: &serde_json::Value, headers: &str) -> Outcome<TcpStream> {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
        let mut stream = TcpStream::connect(&self.address).await?;
        let head = format!(
            "POST / HTTP/1.1\r\nHost: {}\r\n{}{headers}Accept: text/event-stream\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n",
            self.address,
            self.headers,
            body.len()
        );
        stream.write_all(format!("{head}{body}").as_bytes()).await?;
        Ok(stream)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let Process::Own(child) = &mut self.process else { return };
        child.kill().ok(); // it may be gone already
        child.wait().ok();
    }
}

/// Counts the events of a stream, to its end or to that many.
async fn read_events(mut stream: TcpStream, began: Instant, most: usize) -> Outcome<Streamed> {
    let (mut events, mut first, mut buffer, mut rest) = (0, None, vec![0; 256 * 1024], Vec::new());
    while events < most {
        let read = stream.read(&mut buffer).await?;
        if read == 0 {
            break;
        }
        rest.extend_from_slice(&buffer[..read]);
        // Each frame of text has it once, and it may come in two pieces.
        events += count(&rest, b"\"0123456789");
        if events > 0 {
            first.get_or_insert_with(|| began.elapsed());
        }
        let keep = rest.len().min(10);
        rest.drain(..rest.len() - keep);
    }
    Ok(Streamed { events, first: first.unwrap_or_default() })
}

fn count(text: &[u8], word: &[u8]) -> usize {
    text.windows(word.len()).filter(|window| *window == word).count()
}

/// A WebSocket that only listens.
pub(crate) struct Socket {
    stream: WebSocketStream<MaybeTlsStream<TcpStream>>,
}

impl Socket {
    pub(crate) async fn open(server: &Server) -> Outcome<Self> {
        let (stream, _) = connect_async(format!("ws://{}/ws", server.address)).await?;
        Ok(Self { stream })
    }

    /// Reads until so many events came.
    pub(crate) async fn read(mut self, events: usize) -> Outcome<()> {
        let mut counted = 0;
        while counted < events {
            match self.stream.next().await.ok_or("the socket was closed")?? {
                Message::Text(text) if text.contains("\"text\":\"0123456789") => counted += 1,
                _ => {}
            }
        }
        Ok(())
    }
}

/// An ACP client that has joined the session.
pub(crate) struct AcpClient {
    stream: WebSocketStream<MaybeTlsStream<TcpStream>>,
    session: String,
}

impl AcpClient {
    pub(crate) async fn open(server: &Server) -> Outcome<Self> {
        let (stream, _) = connect_async(format!("ws://{}/acp", server.address)).await?;
        let mut client = Self { stream, session: String::new() };
        client.ask("initialize", &json!({ "protocolVersion": 1 })).await?;
        client.answer().await?;
        client.ask("session/new", &json!({ "cwd": "/", "mcpServers": [] })).await?;
        let (joined, _) = client.answer().await?;
        let session = joined.split("\"sessionId\":\"").nth(1).and_then(|rest| rest.split('"').next());
        client.session = session.ok_or("no session")?.to_owned();
        Ok(client)
    }

    /// Asks for so many events, and counts those that come.
    pub(crate) async fn prompt(&mut self, events: usize) -> Outcome<usize> {
        let blocks = json!([{ "type": "text", "text": events.to_string() }]);
        let params = json!({ "sessionId": self.session, "prompt": blocks });
        self.ask("session/prompt", &params).await?;
        Ok(self.answer().await?.1)
    }

    async fn ask(&mut self, method: &str, params: &serde_json::Value) -> Outcome<()> {
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        Ok(self.stream.send(Message::text(request.to_string())).await?)
    }

    /// The answer, and the number of events before it.
    async fn answer(&mut self) -> Outcome<(String, usize)> {
        let mut counted = 0;
        loop {
            match self.stream.next().await.ok_or("the socket was closed")?? {
                Message::Text(text) if text.contains("\"text\":\"0123456789") => counted += 1,
                Message::Text(text) if text.contains("\"id\":1") => return Ok((text.to_string(), counted)),
                _ => {}
            }
        }
    }
}
