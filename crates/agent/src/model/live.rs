//! A provider's model over the network: one request out, its reply back piece by piece.
//!
//! `encode` and `options` build the request, `decode` reads the reply, `error` explains failures, each in one place
//! for all providers. Dropping the future closes the connection. Must not come in: retries, which `turn` decides.

mod decode;
mod encode;
mod error;
mod options;
mod tap;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::StreamExt as _;
use genai::adapter::AdapterKind;
use genai::chat::{ChatStream, ChatStreamEvent};
use genai::resolver::{AuthData, Endpoint};
use genai::{Client, Headers, ModelIden, ServiceTarget};
use multitap_outbound::Endpoint as HttpEndpoint;
use serde_json::{Value, json};

use self::decode::Decoder;
use self::tap::Tap;
use super::choice::Target;
use super::vendor::Api;
use super::{Deltas, ModelError, ModelErrorKind, Reply, Request, catalog};
use crate::conversation::{Message, Part};

const CONNECT: Duration = Duration::from_secs(20);

/// One model, ready to be asked.
#[derive(Debug)]
pub(crate) struct Live {
    target: Target,
    name: String,
    /// Created on first use: reading the system's certificates takes a moment.
    client: OnceLock<Result<Client, String>>,
    /// Keeps the requests of one conversation together in the provider's cache.
    cache_key: String,
    /// Whether the provider refuses to show its model's thoughts to this account.
    no_summaries: AtomicBool,
}

/// The earlier thoughts that are sent to the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ThoughtReplay {
    Thoughts,
    /// The provider did not recognise its own thoughts.
    Nothing,
}

/// Prefix of the signatures of one model: only that model recognises its thought.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mark(String);

impl Mark {
    fn of(target: &Target) -> Self {
        Self(format!("{} ", target.name()))
    }

    /// A signature with its owner, for the conversation.
    fn put(&self, signature: &str) -> String {
        format!("{}{signature}", self.0)
    }

    /// The signature, if it belongs to this model.
    fn own<'a>(&self, kept: &'a str) -> Option<&'a str> {
        kept.strip_prefix(&self.0)
    }
}

/// Whether a model that hides its thoughts is asked to summarise them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Summaries {
    Wanted,
    Unwanted,
}

impl Live {
    pub(crate) fn new(target: Target) -> Self {
        Self {
            name: target.name(),
            target,
            client: OnceLock::new(),
            cache_key: uuid::Uuid::new_v4().to_string(),
            no_summaries: AtomicBool::new(false),
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The provider, its host, and the variable that the key comes from; never the key.
    pub(crate) fn account(&self) -> Value {
        let Target { vendor, key, .. } = &self.target;
        let mut account = json!({ "provider": vendor.word(), "host": self.target.host() });
        if key.is_some() {
            account["keyFrom"] = vendor.key_vars().into();
        }
        account
    }

    pub(crate) fn window(&self) -> Option<u64> {
        catalog::window(self.target.vendor, &self.target.model)
    }

    /// Asks, and sends the pieces of the reply as they arrive.
    pub(crate) async fn ask(&self, request: Request, deltas: Deltas) -> Result<Reply, ModelError> {
        let mut recall = ThoughtReplay::Thoughts;
        loop {
            let error = match self.attempt(&request, recall, &deltas).await {
                Err(error) if matches!(error.status, Some(400 | 422)) => error,
                other => return other,
            };
            // Two options may be rejected by a provider: the request is repeated without them.
            let says = |word: &str| error.message.to_lowercase().contains(word);
            if says("summar") && !self.no_summaries.swap(true, Ordering::Relaxed) {
                continue;
            }
            let thoughts = ["thinking", "reasoning", "signature", "encrypted"].into_iter().any(says);
            if thoughts && recall == ThoughtReplay::Thoughts && has_thoughts(&request.messages) {
                recall = ThoughtReplay::Nothing;
                continue;
            }
            return Err(error);
        }
    }

    async fn attempt(&self, request: &Request, recall: ThoughtReplay, deltas: &Deltas) -> Result<Reply, ModelError> {
        let target = &self.target;
        let summaries = if self.no_summaries.load(Ordering::Relaxed) { Summaries::Unwanted } else { Summaries::Wanted };
        let tap = Tap::default();
        let options = options::options(target, request, summaries, &self.cache_key).with_raw_frame_sink(tap.clone());
        let asked = encode::request(target, request, recall);
        let streamed = self.client()?.exec_chat_stream(self.service(), asked, Some(&options)).await;
        let stream = streamed.map_err(|error| error::of(target, &error, None))?.stream;
        read(target, stream, Decoder::new(target, tap), deltas).await
    }

    fn client(&self) -> Result<&Client, ModelError> {
        let client = self.client.get_or_init(|| client(&self.target));
        client.as_ref().map_err(|why| error::unready(&self.target, why))
    }

    fn service(&self) -> ServiceTarget {
        let Target { api, model, base_url, key, .. } = &self.target;
        let (adapter, path) = match api {
            Api::Messages => (AdapterKind::Anthropic, "messages"),
            Api::Responses => (AdapterKind::OpenAIResp, "responses"),
            Api::Chat => (AdapterKind::OpenAI, "chat/completions"),
            Api::GenerateContent => (AdapterKind::Gemini, ""),
        };
        let auth = match key {
            Some(key) => AuthData::from_single(key.expose()),
            // A server without a key is sent none.
            None => AuthData::RequestOverride { url: format!("{base_url}{path}"), headers: Headers::default() },
        };
        let endpoint = Endpoint::from_owned(base_url.as_str());
        ServiceTarget { endpoint, auth, model: ModelIden::new(adapter, model.as_str()) }
    }
}

fn has_thoughts(messages: &[Message]) -> bool {
    let thinks = |part: &Part| match part {
        Part::Thought { signature, .. } => signature.is_some(),
        Part::Call(call) => call.signature.is_some(),
        Part::Text { .. } => false,
    };
    messages.iter().any(|message| matches!(message, Message::Assistant { parts } if parts.iter().any(thinks)))
}

fn client(target: &Target) -> Result<Client, String> {
    let url = reqwest::Url::parse(&target.base_url).map_err(|error| error.to_string())?;
    let http = HttpEndpoint::of(&url).client().map_err(|error| error.to_string())?;
    let http = http.connect_timeout(CONNECT).gzip(true).build().map_err(|error| error.to_string())?;
    Client::builder().with_reqwest(http).build().map_err(|error| error.to_string())
}

async fn read(
    target: &Target,
    mut stream: ChatStream,
    mut decoder: Decoder,
    deltas: &Deltas,
) -> Result<Reply, ModelError> {
    while let Some(event) = stream.next().await {
        let (pieces, end) = match event {
            Ok(ChatStreamEvent::End(end)) => {
                let (pieces, reply) = decoder.end(end);
                (pieces, Some(reply))
            }
            Ok(event) => (decoder.take(event), None),
            Err(error) => {
                return match decoder.refused() {
                    Some(refused) => Ok(refused),
                    None => Err(error::of(target, &error, decoder.failed())),
                };
            }
        };
        for piece in pieces {
            if deltas.send(piece).await.is_err() {
                let gone = "the reply has no receiver any more";
                return Err(ModelError::new(ModelErrorKind::Refused, gone.to_owned()));
            }
        }
        if let Some(reply) = end {
            return reply.ok_or_else(|| error::broken_off(target));
        }
    }
    Err(error::broken_off(target))
}

#[cfg(test)]
mod tests;
