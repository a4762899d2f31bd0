//! The other end: a server process, and requests that count what comes.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::Outcome;

/// A server in a process of its own, gone with this.
pub(crate) struct Server {
    process: Child,
    address: String,
}

impl Server {
    #[expect(clippy::disallowed_methods, reason = "this program once more, to be measured by itself")]
    pub(crate) async fn start(word: &str) -> Outcome<Self> {
        let mut process = Command::new(std::env::current_exe()?).arg(word).stdout(Stdio::piped()).spawn()?;
        let stdout = tokio::process::ChildStdout::from_std(process.stdout.take().ok_or("no stdout")?)?;
        let mut url = String::new();
        BufReader::new(stdout).read_line(&mut url).await?;
        let address = url.trim().strip_prefix("http://").ok_or("no address")?.to_owned();
        Ok(Self { process, address })
    }

    /// The processor time it has used.
    pub(crate) fn cpu(&self) -> Outcome<Duration> {
        // Of all its threads: the process's own line has only the first.
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.process.id()))?;
        let mut nanos = 0;
        for task in tasks {
            let line = std::fs::read_to_string(task?.path().join("schedstat"))?;
            nanos += line.split_whitespace().next().ok_or("no time")?.parse::<u64>()?;
        }
        Ok(Duration::from_nanos(nanos))
    }

    pub(crate) fn memory(&self) -> Outcome<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
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
    pub(crate) async fn stream(&self, events: usize) -> Outcome<usize> {
        let message = json!({
            "kind": "message", "messageId": "m", "role": "user", "parts": [{"kind": "text", "text": events.to_string()}],
        });
        let mut stream = self.post("message/stream", &json!({ "message": message })).await?;
        let (mut counted, mut buffer, mut rest) = (0, vec![0; 256 * 1024], Vec::new());
        loop {
            let read = stream.read(&mut buffer).await?;
            if read == 0 {
                return Ok(counted);
            }
            rest.extend_from_slice(&buffer[..read]);
            // Each frame of text has it once, and it may come in two pieces.
            counted += count(&rest, b"\"text\":\"0123456789");
            let keep = rest.len().min(17);
            rest.drain(..rest.len() - keep);
        }
    }

    /// A stream that stays open.
    pub(crate) async fn subscribe(&self) -> Outcome<TcpStream> {
        let mut stream = self.post("tasks/resubscribe", &json!({ "id": self.task().await? })).await?;
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

    /// The task of its session.
    async fn task(&self) -> Outcome<String> {
        let list = self.call("ListTasks", &json!({})).await?;
        let id = list.split("\"id\":\"").nth(1).and_then(|rest| rest.split('"').next());
        Ok(id.ok_or("no task")?.to_owned())
    }

    async fn call(&self, method: &str, params: &serde_json::Value) -> Outcome<String> {
        let mut answer = Vec::new();
        self.post(method, params).await?.read_to_end(&mut answer).await?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }

    async fn post(&self, method: &str, params: &serde_json::Value) -> Outcome<TcpStream> {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
        let mut stream = TcpStream::connect(&self.address).await?;
        let head = format!(
            "POST / HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            self.address,
            body.len()
        );
        stream.write_all(format!("{head}{body}").as_bytes()).await?;
        Ok(stream)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.process.kill().ok(); // it may be gone already
        self.process.wait().ok();
    }
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
