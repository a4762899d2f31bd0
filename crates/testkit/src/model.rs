//! A model without a vendor: a server on loopback that speaks the streaming model APIs and says what
//! the test scripted, so that the real CLIs run without an account.
//!
//! Paths: Anthropic `POST /v1/messages` (and `count_tokens`), OpenAI `POST /v1/responses` and
//! `POST /v1/chat/completions`, Gemini `POST /v1beta/models/M:streamGenerateContent` (and `generateContent`,
//! `countTokens`). Anything else is answered with an empty object, so that probes do no harm.

mod anthropic;
mod chat;
mod directive;
mod gemini;
mod openai;
mod play;
mod request;
mod script;
mod tool;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use axum::extract::{Request as HttpRequest, State as Extract};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use self::directive::Situation;
use self::play::Dialect;
pub use self::request::{Image, Request, Role, ToolResult};
use self::script::Refusal;
pub use self::script::{Reply, Stop, Usage};
pub use self::tool::Tool;

/// Largest request body; a conversation with images fits.
const MAX_BODY: usize = 64 * 1024 * 1024;
/// Maximum length of a tool's result that the model repeats.
const REPEATED: usize = 200;
/// The answer to requests outside the conversation, unless the script says otherwise.
const SIDE_TEXT: &str = "Scripted session";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Api {
    Anthropic,
    /// OpenAI's responses.
    OpenAi,
    /// OpenAI's chat completions.
    OpenAiChat,
    Gemini,
}

/// The server. It has its own thread, so that it answers while a test blocks; dropping it stops
/// everything, open streams too.
#[derive(Debug)]
pub struct ModelServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// State that the connections and the test share.
#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    released: Notify,
    stop: CancellationToken,
    progress: watch::Sender<Progress>,
}

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<Reply>,
    side_text: Option<String>,
    requests: Vec<Request>,
    /// How often each message was answered by its own directives, per reply.
    attempts: HashMap<(String, usize), usize>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Progress {
    requests: usize,
    hanging: usize,
}

impl ModelServer {
    /// Starts on a free port of 127.0.0.1. The script has the replies to the main conversation, in order. When they are
    /// used up, the directives in the user's own message say what happens.
    pub fn start(script: impl IntoIterator<Item = Reply>) -> Result<Self> {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("bind the model server")?;
        listener.set_nonblocking(true).context("prepare the model server's socket")?;
        let address = listener.local_addr().context("find the model server's port")?;
        let shared = Arc::new(Shared {
            state: Mutex::new(State { queue: script.into_iter().collect(), ..State::default() }),
            released: Notify::new(),
            stop: CancellationToken::new(),
            progress: watch::Sender::default(),
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let thread = std::thread::Builder::new().name("model-server".to_owned()).spawn({
            let shared = Arc::clone(&shared);
            move || runtime.block_on(serve(listener, shared))
        })?;
        Ok(Self { address, shared, thread: Some(thread) })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `http://127.0.0.1:PORT`, without a path.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Adds a reply to the end of the queue.
    pub fn push(&self, reply: Reply) {
        self.shared.state().queue.push_back(reply);
    }

    /// What requests beside the conversation (titles, summaries, probes) are answered with.
    pub fn set_side_text(&self, text: &str) {
        self.shared.state().side_text = Some(text.to_owned());
    }

    /// Number of scripted replies that were not requested yet.
    pub fn queued(&self) -> usize {
        self.shared.state().queue.len()
    }

    /// All requests so far, in order.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.state().requests.clone()
    }

    pub fn conversation(&self) -> Vec<Request> {
        self.requests().into_iter().filter(|request| request.role == Role::Conversation).collect()
    }

    /// Lets every reply go on that hangs now. See [`ModelServer::until_hanging`].
    pub fn release(&self) {
        self.shared.released.notify_waiters();
    }

    /// Whether a reply hangs now.
    pub fn hangs(&self) -> bool {
        self.shared.progress.borrow().hanging > 0
    }

    pub async fn until_hanging(&self, patience: Duration) -> Result<()> {
        self.until(patience, "no reply hangs", |progress| progress.hanging > 0).await
    }

    /// Waits until nothing hangs: the client gave up, or was released.
    pub async fn until_idle(&self, patience: Duration) -> Result<()> {
        self.until(patience, "a reply still hangs", |progress| progress.hanging == 0).await
    }

    /// Waits until this many requests of any kind have come.
    pub async fn until_requests(&self, count: usize, patience: Duration) -> Result<()> {
        self.until(patience, "not enough requests came", |progress| progress.requests >= count).await
    }

    async fn until(&self, patience: Duration, otherwise: &str, is: impl Fn(&Progress) -> bool) -> Result<()> {
        let mut progress = self.shared.progress.subscribe();
        match tokio::time::timeout(patience, progress.wait_for(is)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) | Err(_) => bail!("{otherwise} after {patience:?}"),
        }
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.shared.stop.cancel();
        if let Some(thread) = self.thread.take() {
            thread.join().ok(); // a panic in there has failed the test by its own message
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for [`ModelServer::release`].
    async fn hang(&self) {
        let released = self.released.notified();
        tokio::pin!(released);
        released.as_mut().enable(); // from here on a release counts, and only then do we say that we hang
        let _hanging = Hanging::new(&self.progress);
        released.await;
    }
}

/// Counts one reply as hanging while it exists.
struct Hanging<'a>(&'a watch::Sender<Progress>);

impl<'a> Hanging<'a> {
    fn new(progress: &'a watch::Sender<Progress>) -> Self {
        progress.send_modify(|progress| progress.hanging += 1);
        Self(progress)
    }
}

impl Drop for Hanging<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|progress| progress.hanging -= 1);
    }
}

async fn serve(listener: std::net::TcpListener, shared: Arc<Shared>) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    let router = Router::new().fallback(handle).with_state(Arc::clone(&shared));
    tokio::select! {
        () = shared.stop.cancelled() => {}
        served = axum::serve(listener, router).into_future() => served.unwrap_or(()),
    }
}

async fn handle(Extract(shared): Extract<Arc<Shared>>, http: HttpRequest) -> Response {
    let (head, body) = http.into_parts();
    let Ok(bytes) = axum::body::to_bytes(body, MAX_BODY).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
    let request = Request::new(head.method.as_str(), head.uri.path(), plain(&head.headers), body);
    let reply = {
        let mut state = shared.state();
        state.requests.push(request.clone());
        state.answer(&request)
    };
    shared.progress.send_modify(|progress| progress.requests += 1);
    match (request.api, reply) {
        (Some(api), Some(reply)) => respond(api, &request, &reply, shared),
        (Some(_), None) => Json(json!({"input_tokens": 100, "totalTokens": 100})).into_response(),
        (None, _) => Json(json!({})).into_response(),
    }
}

fn plain(headers: &HeaderMap) -> BTreeMap<String, String> {
    let text = |value: &axum::http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect()
}

impl State {
    /// The model's reply to a request; `None` if it is no model call.
    fn answer(&mut self, request: &Request) -> Option<Reply> {
        match request.role {
            Role::Other => None,
            Role::Side => Some(self.aside(request)),
            Role::Conversation | Role::SubAgent => {
                Some(self.queued(request).unwrap_or_else(|| self.improvise(request)))
            }
        }
    }

    fn aside(&self, request: &Request) -> Reply {
        match &request.seen.schema {
            Some(schema) => Reply::chunks([script::instance_of(schema).to_string()]),
            None => Reply::text(self.side_text.as_deref().unwrap_or(SIDE_TEXT)),
        }
    }

    /// The first scripted reply for this request.
    fn queued(&mut self, request: &Request) -> Option<Reply> {
        let text = request.last_user_text();
        let fits = |reply: &Reply| match &reply.asked {
            Some(needle) => text.contains(needle),
            None => request.role == Role::Conversation,
        };
        self.queue.iter().position(fits).and_then(|index| self.queue.remove(index))
    }

    /// Follows the directives of the message, repeats what tools said, or what the user said.
    fn improvise(&mut self, request: &Request) -> Reply {
        let mut earlier = request.user_texts();
        let text = earlier.pop().unwrap_or_default();
        let turn = request.seen.model_turns_since_user();
        let attempt = self.attempts.get(&(text.clone(), turn)).copied().unwrap_or_default();
        let replies = directive::parse(&text, &Situation { earlier: &earlier, attempt });
        if let Some(reply) = replies.and_then(|replies| replies.into_iter().nth(turn)) {
            self.attempts.insert((text, turn), attempt + 1);
            let silent = reply.steps.is_empty() && reply.refusal.is_none();
            return if silent { reply.then_text("ok") } else { reply };
        }
        match request.tool_results().last() {
            Some(result) => Reply::text(&format!("tool said: {}", cut(&result.text))),
            None if turn == 0 => Reply::text(&format!("you said: {}", cut(&text))),
            // The CLI itself sent a message to the model.
            None => Reply::text("noted"),
        }
    }
}

fn cut(text: &str) -> String {
    text.chars().take(REPEATED).collect()
}

fn respond(api: Api, request: &Request, reply: &Reply, shared: Arc<Shared>) -> Response {
    if let Some(refusal) = &reply.refusal {
        return refuse(api, refusal);
    }
    let seen = &request.seen;
    let whole = match api {
        Api::Anthropic if request.body["stream"] != true => Some(anthropic::whole(reply, seen)),
        Api::Gemini if request.path.ends_with(":generateContent") => Some(gemini::whole(reply, seen)),
        // Everybody has these streamed.
        Api::Anthropic | Api::OpenAi | Api::OpenAiChat | Api::Gemini => None,
    };
    if whole.is_some() && reply.fails() {
        return refuse(api, &Refusal::new(500));
    }
    let (kind, beats) = match (whole, api) {
        (Some(whole), _) => ("application/json", play::at_once(reply, whole.to_string())),
        (None, api) => {
            let mut dialect: Box<dyn Dialect + '_> = match api {
                Api::Anthropic => Box::new(anthropic::Stream::new(seen, reply.usage)),
                Api::OpenAi => Box::new(openai::Stream::new(seen, reply.usage)),
                Api::OpenAiChat => Box::new(chat::Stream::new(seen, reply.usage)),
                Api::Gemini => Box::new(gemini::Stream::new(seen, reply.usage)),
            };
            ("text/event-stream", play::beats(reply, &mut *dialect))
        }
    };
    let headers = [(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, "no-cache")];
    (headers, request_id(), play::body(beats, shared)).into_response()
}

fn refuse(api: Api, refusal: &Refusal) -> Response {
    let body = match api {
        Api::Anthropic => anthropic::error(refusal),
        Api::OpenAi | Api::OpenAiChat => openai::error(refusal),
        Api::Gemini => gemini::error(refusal),
    };
    let status = StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = (status, request_id(), Json(body)).into_response();
    if let Some(seconds) = refusal.retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    response
}

/// The header with which vendors identify a request.
fn request_id() -> [(&'static str, String); 1] {
    [("request-id", fresh_id("req"))]
}

/// An id that no other answer has, even from an earlier server.
fn fresh_id(prefix: &str) -> String {
    let mut id = uuid::Uuid::new_v4().simple().to_string();
    id.truncate(24);
    format!("{prefix}_{id}")
}
