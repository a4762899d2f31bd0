//! One attempt to deliver a notification: a POST with the headers of its config.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use multitap_hub::TakenDelivery;
use multitap_outbound::{Endpoint, Screen, causes, refused_address, retry_after};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Url};
use tokio::time::timeout;

use super::body::PushForm;
use super::config::Secrets;
use super::lock;
use super::retry::Attempted;

/// The token that the client gave with its config.
const TOKEN: HeaderName = HeaderName::from_static("x-a2a-notification-token");
const VERSION: HeaderName = HeaderName::from_static("a2a-version");
/// The same for each attempt of a delivery, so that a receiver recognises one that it has.
const DELIVERY: HeaderName = HeaderName::from_static("x-multitap-delivery");
/// 1 for the first attempt.
const ATTEMPT: HeaderName = HeaderName::from_static("x-multitap-attempt");
/// How long an unused connection stays open.
const IDLE: Duration = Duration::from_secs(30);
/// Most hosts whose clients are reused: over its life, a door may call any number.
const CLIENTS: usize = 64;

/// Calls webhooks.
#[derive(Debug)]
pub(super) struct Sender {
    screen: Screen,
    answer_time: Duration,
    clients: Mutex<HashMap<Endpoint, Client>>,
}

impl Sender {
    pub(super) fn new(screen: Screen, answer_time: Duration) -> Self {
        Self { screen, answer_time, clients: Mutex::default() }
    }

    /// Attempts a delivery. The address was allowed when its config was set, perhaps by other options.
    pub(super) async fn attempt(&self, delivery: TakenDelivery) -> Attempted {
        let url = match Url::parse(&delivery.url) {
            Ok(url) => url,
            Err(error) => return Attempted::Impossible(error.to_string()),
        };
        match self.screen.check(&url) {
            Ok(()) => self.call(url, delivery).await,
            Err(refused) => Attempted::Impossible(refused.to_string()),
        }
    }

    /// Calls an address that is allowed as written. The body of the answer is not read.
    async fn call(&self, url: Url, delivery: TakenDelivery) -> Attempted {
        let client = match self.client(&url) {
            Ok(client) => client,
            Err(why) => return Attempted::Failed(why),
        };
        let sent = client.post(url).headers(headers(&delivery)).body(delivery.body).send();
        match timeout(self.answer_time, sent).await {
            Ok(Ok(response)) => Attempted::Answered {
                status: response.status().as_u16(),
                retry_after: retry_after(response.headers(), SystemTime::now()),
            },
            Ok(Err(error)) => match refused_address(&error) {
                Some(refused) => Attempted::Impossible(refused.to_string()),
                None => Attempted::Failed(causes(error)),
            },
            Err(_) => Attempted::Failed(format!("no answer within {:?}", self.answer_time)),
        }
    }

    fn client(&self, url: &Url) -> Result<Client, String> {
        let endpoint = Endpoint::of(url);
        if let Some(client) = lock(&self.clients).get(&endpoint) {
            return Ok(client.clone());
        }
        let builder = endpoint.client().map_err(|error| error.to_string())?;
        let builder = builder.pool_idle_timeout(IDLE).pool_max_idle_per_host(1);
        // A proxy would resolve names itself, unscreened.
        let client = self.screen.apply_without_proxy(builder).build().map_err(causes)?;
        let mut clients = lock(&self.clients);
        if clients.len() >= CLIENTS {
            clients.clear(); // Calls under way have theirs.
        }
        clients.insert(endpoint, client.clone());
        Ok(client)
    }
}

fn headers(delivery: &TakenDelivery) -> HeaderMap {
    let form = PushForm::read(&delivery.form);
    let mut headers = HeaderMap::from_iter([
        (CONTENT_TYPE, HeaderValue::from_static(form.content_type())),
        (VERSION, HeaderValue::from_static(form.dialect.version())),
        (ATTEMPT, delivery.attempt.into()),
    ]);
    headers.extend(HeaderValue::from_str(&delivery.id).ok().map(|id| (DELIVERY, id)));
    let secrets = Secrets::read(delivery.secrets.as_deref());
    // They were checked when the config was stored.
    let secret = |text: String| {
        let mut value = HeaderValue::from_str(&text).ok()?;
        value.set_sensitive(true);
        Some(value)
    };
    headers.extend(secrets.authorization().and_then(secret).map(|value| (AUTHORIZATION, value)));
    headers.extend(secrets.token.and_then(secret).map(|value| (TOKEN, value)));
    headers
}

#[cfg(test)]
mod tests {
    use multitap_event::Timestamp;
    use multitap_hub::PushKey;
    use multitap_testkit::webhook::{Reply, Webhook};

    use super::*;

    fn delivery(url: &str) -> TakenDelivery {
        TakenDelivery {
            config: PushKey(1),
            id: "delivery".to_owned(),
            attempt: 1,
            created: Timestamp::now(),
            url: url.to_owned(),
            secrets: None,
            form: "1.0".to_owned(),
            body: "{}".to_owned(),
        }
    }

    /// A public name that leads to this machine by now passes the check of the address as written.
    #[tokio::test]
    async fn a_name_is_judged_by_where_it_leads_when_it_is_called() {
        let webhook = Webhook::start(|_| Reply::Status(200)).unwrap();
        let url = format!("http://localhost:{}/", webhook.port());
        let call = async |screen: Screen| {
            let sender = Sender::new(screen, Duration::from_secs(20));
            sender.call(Url::parse(&url).unwrap(), delivery(&url)).await
        };
        let refused = call(Screen::public()).await;
        assert_eq!(refused, Attempted::Impossible("localhost is this machine, which is not allowed".to_owned()));
        assert!(webhook.received().is_empty());
        let sent = call(Screen::public().allowing_loopback()).await;
        assert_eq!(sent, Attempted::Answered { status: 200, retry_after: None });
    }

    #[tokio::test]
    async fn an_address_is_judged_as_written() {
        let sender = Sender::new(Screen::public(), Duration::from_secs(20));
        for url in ["http://127.0.0.1:9/", "http://[fe80::1]/", "no url"] {
            assert!(matches!(sender.attempt(delivery(url)).await, Attempted::Impossible(_)), "{url}");
        }
    }
}
