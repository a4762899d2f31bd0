//! A client at the other end of a WebSocket: each text frame is one message. How long it may be silent, and how long it may
//! leave messages unread.

use std::future::poll_fn;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::ws::{CloseFrame, Message, WebSocket};
use futures_util::SinkExt as _;
use multitap_hub::STUCK;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_tungstenite::tungstenite;

use super::message::Fault;
use super::transport::{Disconnected, Received};

/// How often the client is pinged.
const PING: Duration = Duration::from_secs(20);
/// How long it may be silent.
const SILENCE: Duration = Duration::from_secs(60);
/// Maximum number of frames that are gathered before they are sent.
const GATHERED: usize = 64;
/// How long a client has to close its side.
const CLOSE_PATIENCE: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Socket {
    inner: WebSocket,
    pulse: Pulse,
    /// Frames that were gathered.
    gathered: usize,
}

/// Why a connection is closed: a code and a word for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CloseReason {
    code: u16,
    reason: &'static str,
}

impl CloseReason {
    pub(crate) const SHUT_DOWN: Self = Self { code: 1001, reason: "this host is shutting down" };
    const PROTOCOL: Self = Self { code: 1002, reason: "invalid WebSocket frame" };
    const NOT_TEXT: Self = Self { code: 1007, reason: "a text frame must be valid UTF-8" };
    const TOO_LARGE: Self = Self { code: 1009, reason: "the frame is too large" };
    pub(crate) const LOG_UNREADABLE: Self = Self { code: 1011, reason: "the session's log cannot be read" };
    pub(crate) const TOO_SLOW: Self = Self { code: 1013, reason: "you did not read: reconnect with your cursor" };
    /// Codes of our own.
    pub(crate) const SESSION_OVER: Self = Self { code: 4000, reason: "the session is over" };
    pub(crate) const REFUSED: Self = Self { code: 4002, reason: "the session refused this connection" };
    pub(crate) const KICKED: Self = Self { code: 4001, reason: "you were kicked from this session" };
}

impl Socket {
    pub(crate) fn new(inner: WebSocket) -> Self {
        Self { inner, pulse: Pulse::new(Instant::now()), gathered: 0 }
    }

    /// The next message; meanwhile pings the client. Cancel safe.
    pub(super) async fn receive(&mut self, limit: usize) -> Result<Received, Disconnected> {
        loop {
            tokio::select! {
                message = self.inner.recv() => {
                    self.pulse.heard(Instant::now());
                    match message {
                        Some(Ok(Message::Text(text))) => return Ok(Received::Text(text)),
                        Some(Ok(Message::Binary(_))) => return Ok(Received::Fault(Fault::binary())),
                        Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                        Some(Ok(Message::Close(_))) => {
                            // Sends the reply that the library has made: without it the connection looks broken.
                            in_time(self.inner.flush()).await?;
                            return Err(Disconnected);
                        }
                        None => return Err(Disconnected),
                        Some(Err(error)) => {
                            let close = close_reason(error).ok_or(Disconnected)?;
                            let fault = (close == CloseReason::TOO_LARGE).then(|| Fault::too_large(limit));
                            return Ok(Received::Broken { fault, close });
                        }
                    }
                }
                () = sleep_until(self.pulse.due()) => {
                    if !self.pulse.beat(Instant::now()) {
                        return Err(Disconnected);
                    }
                    in_time(self.inner.send(Message::Ping(Bytes::new()))).await?;
                }
            }
        }
    }

    /// Comes back when a message can be gathered. Cancel safe.
    pub(super) async fn ready(&mut self) -> Result<(), Disconnected> {
        in_time(poll_fn(|context| self.inner.poll_ready_unpin(context))).await
    }

    /// Gathers a message, once the socket is [`Self::ready`]; it goes out with others.
    pub(super) fn start_send(&mut self, text: String) -> Result<(), Disconnected> {
        self.inner.start_send_unpin(Message::text(text)).map_err(|_| Disconnected)?;
        self.gathered += 1;
        Ok(())
    }

    pub(super) fn is_full(&self) -> bool {
        self.gathered >= GATHERED
    }

    pub(super) async fn flush(&mut self) -> Result<(), Disconnected> {
        if self.gathered > 0 {
            in_time(self.inner.flush()).await?;
            self.gathered = 0;
        }
        Ok(())
    }

    /// Closes the connection, and says why.
    pub(super) async fn close(mut self, why: CloseReason) {
        let frame = CloseFrame { code: why.code, reason: why.reason.into() };
        if in_time(self.inner.send(Message::Close(Some(frame)))).await.is_err() {
            return;
        }
        let closed = async {
            while let Some(received) = self.inner.recv().await {
                if received.is_err() {
                    // Later input cannot be read; the client needs a moment to read the close frame.
                    sleep(CLOSE_PATIENCE).await;
                }
            }
        };
        timeout(CLOSE_PATIENCE, closed).await.ok(); // it closed its side, or it did not
    }
}

async fn in_time<E>(sent: impl Future<Output = Result<(), E>>) -> Result<(), Disconnected> {
    match timeout(STUCK, sent).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) | Err(_) => Err(Disconnected),
    }
}

/// The close reason for an error in the client's input; `None` if the connection broke.
fn close_reason(error: axum::Error) -> Option<CloseReason> {
    let error = error.into_inner();
    let known = error.downcast_ref().or_else(|| error.source()?.downcast_ref());
    match known? {
        tungstenite::Error::Capacity(_) => Some(CloseReason::TOO_LARGE),
        tungstenite::Error::Utf8(_) => Some(CloseReason::NOT_TEXT),
        tungstenite::Error::Protocol(tungstenite::error::ProtocolError::ResetWithoutClosingHandshake) => None,
        tungstenite::Error::Protocol(_) => Some(CloseReason::PROTOCOL),
        _ => None,
    }
}

/// When to ping the client, and when to give it up. Pure.
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

    /// Sends a ping when one is due; `false` if the client was silent for too long.
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
