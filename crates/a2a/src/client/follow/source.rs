//! One connection of a stream: bytes to updates.

use std::collections::VecDeque;
use std::time::Duration;

use reqwest::Response;

use super::super::Client;
use super::super::error::ClientError;
use super::super::http::{Call, cut};
use super::super::sse::{Event, Parser};
use crate::model::Update;
use crate::request::Request;

/// The source of updates.
pub(in crate::client) enum Source {
    Live(Box<Live>),
    /// A response without a stream.
    Whole(Option<Box<Update>>),
}

pub(in crate::client) struct Live {
    call: Call,
    request: Request,
    response: Response,
    parser: Parser,
    events: VecDeque<Event>,
    /// Number of bytes received.
    received: usize,
}

/// The next item of a connection.
pub(super) enum Next {
    /// An update with its cursor and its JSON.
    Update(Option<String>, String, Box<Update>),
    Failed(ClientError),
    /// The connection was silent for too long.
    Silent,
    /// The agent closed the stream.
    End,
}

impl Source {
    pub(in crate::client) fn live(call: Call, request: Request, response: Response, most: usize) -> Self {
        let (parser, events) = (Parser::new(most), VecDeque::new());
        Self::Live(Box::new(Live { call, request, response, parser, events, received: 0 }))
    }

    pub(in crate::client) fn of(update: Update) -> Self {
        Self::Whole(Some(Box::new(update)))
    }

    pub(super) async fn next(&mut self, client: &Client, limit: Option<Duration>) -> Next {
        match self {
            Self::Whole(update) => update.take().map_or(Next::End, |update| Next::Update(None, String::new(), update)),
            Self::Live(live) => live.next(client, limit).await,
        }
    }
}

impl Live {
    async fn next(&mut self, client: &Client, limit: Option<Duration>) -> Next {
        loop {
            if let Some(event) = self.events.pop_front() {
                return self.read(client, event);
            }
            let chunk = match limit {
                Some(limit) => match tokio::time::timeout(limit, self.response.chunk()).await {
                    Ok(chunk) => chunk,
                    Err(_) => return Next::Silent,
                },
                None => self.response.chunk().await,
            };
            match chunk {
                Ok(Some(bytes)) => {
                    let http = &client.agent.http;
                    self.received = self.received.saturating_add(bytes.len());
                    if self.received > http.longest {
                        return Next::Failed(ClientError::TooLarge { most: http.longest });
                    }
                    if self.parser.push(&bytes, &mut self.events).is_err() {
                        return Next::Failed(ClientError::TooLarge { most: http.largest });
                    }
                }
                Ok(None) => return Next::End,
                Err(error) => return Next::Failed(cut(&self.call.url, error)),
            }
        }
    }

    fn read(&self, client: &Client, event: Event) -> Next {
        let agent = &client.agent;
        let result = agent.binding.event_result(&agent.http, &self.call, &self.request, &event);
        match result.and_then(|result| Ok((client.read_update(&result)?, result))) {
            Ok((update, result)) => Next::Update(event.id, result.to_string(), Box::new(update)),
            Err(error) => Next::Failed(error),
        }
    }
}
