//! One client's end of a WebSocket: what it says, what it is told, and how long it may be silent or leave things unread.

use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket};
use futures_util::SinkExt as _;
use multitap_hub::STUCK;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_tungstenite::tungstenite;

/// How often the client is asked whether it is there.
const PING: Duration = Duration::from_secs(20);
/// How long it may be silent.
const SILENCE: Duration = Duration::from_secs(60);
/// How many frames are gathered before they are sent.
const TOGETHER: usize = 64;
/// How long a client that is sent away has to say goodbye.
const GOODBYE: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Socket {
    inner: WebSocket,
    pulse: Pulse,
    /// How many frames were gathered.
    gathered: usize,
}

/// What came from the client.
#[derive(Debug)]
pub(crate) enum Heard {
    Text(Utf8Bytes),
    Binary,
    /// The connection cannot go on.
    Wrong(Close),
    Gone,
}

/// The client is not there any more, or does not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gone;

/// Why a connection is closed: a code and a word for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Close {
    pub(crate) code: u16,
    pub(crate) reason: &'static str,
}

impl Close {
    pub(crate) const SHUT_DOWN: Self = Self { code: 1001, reason: "this host is shutting down" };
    pub(crate) const SESSION_OVER: Self = Self { code: 1001, reason: "the session is over" };
    const PROTOCOL: Self = Self { code: 1002, reason: "this is no valid WebSocket frame" };
    const NOT_TEXT: Self = Self { code: 1007, reason: "a text frame must be valid UTF-8" };
    pub(crate) const TOO_LARGE: Self = Self { code: 1009, reason: "the frame is too large" };
    pub(crate) const LOG_UNREADABLE: Self = Self { code: 1011, reason: "the session's log cannot be read" };
    pub(crate) const TOO_SLOW: Self = Self { code: 1013, reason: "you did not read: come back with your cursor" };
    /// Ours: somebody sent the client away.
    pub(crate) const KICKED: Self = Self { code: 4001, reason: "you were sent away from this session" };
}

impl Socket {
    pub(crate) fn new(inner: WebSocket) -> Self {
        Self { inner, pulse: Pulse::new(Instant::now()), gathered: 0 }
    }

    /// What the client says next. Asks it meanwhile whether it is there. Cancel safe.
    pub(crate) async fn hear(&mut self) -> Heard {
        loop {
            tokio::select! {
                message = self.inner.recv() => {
                    self.pulse.heard(Instant::now());
                    match message {
                        Some(Ok(Message::Text(text))) => return Heard::Text(text),
                        Some(Ok(Message::Binary(_))) => return Heard::Binary,
                        Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                        Some(Ok(Message::Close(_))) | None => return Heard::Gone,
                        Some(Err(error)) => return why_not(error).map_or(Heard::Gone, Heard::Wrong),
                    }
                }
                () = sleep_until(self.pulse.due()) => {
                    if !self.pulse.beat(Instant::now()) || self.ping().await.is_err() {
                        return Heard::Gone;
                    }
                }
            }
        }
    }

    /// Tells the client something; it goes out with what else is at hand when [`Self::flush`] is called.
    pub(crate) async fn say(&mut self, text: String) -> Result<(), Gone> {
        in_time(self.inner.feed(Message::text(text))).await?;
        self.gathered += 1;
        Ok(())
    }

    /// Whether more should wait until this is sent.
    pub(crate) fn is_full(&self) -> bool {
        self.gathered >= TOGETHER
    }

    /// Sends what was gathered. A client that leaves it unread for too long is gone.
    pub(crate) async fn flush(&mut self) -> Result<(), Gone> {
        if self.gathered > 0 {
            in_time(self.inner.flush()).await?;
            self.gathered = 0;
        }
        Ok(())
    }

    /// Sends the client away, and says why.
    pub(crate) async fn close(mut self, why: Close) {
        let frame = CloseFrame { code: why.code, reason: why.reason.into() };
        if in_time(self.inner.send(Message::Close(Some(frame)))).await.is_err() {
            return;
        }
        let goodbye = async {
            while let Some(heard) = self.inner.recv().await {
                if heard.is_err() {
                    // What it still sends cannot be read; it needs a moment to find out why.
                    sleep(GOODBYE).await;
                }
            }
        };
        timeout(GOODBYE, goodbye).await.ok(); // it said goodbye, or it did not
    }

    async fn ping(&mut self) -> Result<(), Gone> {
        in_time(self.inner.send(Message::Ping(axum::body::Bytes::new()))).await
    }
}

async fn in_time<E>(sent: impl Future<Output = Result<(), E>>) -> Result<(), Gone> {
    match timeout(STUCK, sent).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) | Err(_) => Err(Gone),
    }
}

/// What is wrong with what the client sent; nothing, if the connection broke off.
fn why_not(error: axum::Error) -> Option<Close> {
    let error = error.into_inner();
    let known = error.downcast_ref().or_else(|| error.source()?.downcast_ref());
    match known? {
        tungstenite::Error::Capacity(_) => Some(Close::TOO_LARGE),
        tungstenite::Error::Utf8(_) => Some(Close::NOT_TEXT),
        tungstenite::Error::Protocol(tungstenite::error::ProtocolError::ResetWithoutClosingHandshake) => None,
        tungstenite::Error::Protocol(_) => Some(Close::PROTOCOL),
        _ => None,
    }
}

/// When to ask whether the client is there, and when to give it up. Pure.
#[derive(Debug)]
struct Pulse {
    heard: Instant,
    asked: Instant,
}

impl Pulse {
    fn new(now: Instant) -> Self {
        Self { heard: now, asked: now }
    }

    fn heard(&mut self, now: Instant) {
        self.heard = now;
    }

    fn due(&self) -> Instant {
        self.asked + PING
    }

    /// It is time to ask. No, if the client was silent for too long.
    fn beat(&mut self, now: Instant) -> bool {
        self.asked = now;
        now.duration_since(self.heard) < SILENCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_client_is_asked_twice_and_given_up() {
        let start = Instant::now();
        let mut pulse = Pulse::new(start);
        let second = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(pulse.due(), second(20));
        assert!(pulse.beat(second(20)));
        pulse.heard(second(21));
        assert!(pulse.beat(second(40)) && pulse.beat(second(60)) && pulse.beat(second(80)));
        assert!(!pulse.beat(second(81)));
    }
}
