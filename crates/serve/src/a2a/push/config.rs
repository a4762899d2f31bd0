//! Push configs of clients: checked, stored, and shown again.

use std::time::Duration;

use multitap_a2a::{Authentication, Dialect, Error, PushConfig, TaskState};
use multitap_event::{SessionId, Timestamp};
use multitap_hub::{NewPushConfig, PushConfigRecord, PushPosition};
use multitap_outbound::{RefusedAddress, Screen};
use reqwest::Url;
use reqwest::header::HeaderValue;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::super::card::hex;
use super::super::history::TaskView;
use super::body::PushForm;
use crate::guard::Caller;

/// Most bytes of a URL, a config's id, and a token or credentials.
const URL: usize = 2048;
const ID: usize = 256;
const SECRET: usize = 8 * 1024;
/// How long resolving a name may take while a client waits.
const RESOLVE_PATIENCE: Duration = Duration::from_secs(3);

/// The secrets of a config, as they are stored.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(super) struct Secrets {
    pub(super) token: Option<String>,
    schemes: Option<Vec<String>>,
    credentials: Option<String>,
}

impl Secrets {
    fn of(config: &PushConfig) -> Self {
        let authentication = config.authentication.clone();
        let (schemes, credentials) = authentication.map(|auth| (auth.schemes, auth.credentials)).unzip();
        Self { token: config.token.clone(), schemes, credentials: credentials.flatten() }
    }

    pub(super) fn read(stored: Option<&str>) -> Self {
        stored.and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default()
    }

    /// `SCHEME CREDENTIALS`. A client of 0.3 may offer several schemes: bearer tokens come first, else its first one.
    pub(super) fn authorization(&self) -> Option<String> {
        let schemes = self.schemes.as_ref()?;
        let bearer = schemes.iter().find(|scheme| scheme.eq_ignore_ascii_case("Bearer"));
        let scheme = bearer.or(schemes.first())?;
        self.credentials.as_ref().map(|credentials| format!("{scheme} {credentials}"))
    }
}

/// A config that may be stored.
#[derive(Clone)]
pub(crate) struct CheckedConfig {
    id: String,
    config: PushConfig,
    origin: String,
    client: String,
    dialect: Dialect,
}

impl std::fmt::Debug for CheckedConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CheckedConfig").field("id", &self.config.id).finish_non_exhaustive()
    }
}

impl CheckedConfig {
    /// Checks the address as far as it can be known now, and everything that will be a header.
    pub(crate) async fn check(
        mut config: PushConfig,
        screen: &Screen,
        caller: &Caller,
        dialect: Dialect,
    ) -> Result<Self, Error> {
        check_texts(&config)?;
        let mut url = Url::parse(&config.url).map_err(|error| wrong("url", error))?;
        url.set_fragment(None);
        let checked = tokio::time::timeout(RESOLVE_PATIENCE, screen.check_resolved(&url)).await;
        match checked {
            Ok(Err(refused @ RefusedAddress::Private(..))) => {
                let hint = "the host's user can allow such addresses by --allow-private-webhooks";
                return Err(wrong("url", format_args!("{refused}; {hint}")));
            }
            Ok(Err(refused)) => return Err(wrong("url", refused)),
            // A name that cannot be resolved now is judged when it is called.
            Ok(Ok(())) | Err(_) => {}
        }
        config.url = url.to_string();
        let client = client_key(caller);
        let id = config.id.clone().filter(|id| !id.is_empty()).unwrap_or_else(|| default_id(&client, &config.url));
        Ok(Self { id, origin: origin(&url), client, config, dialect })
    }

    pub(crate) fn client(&self) -> &str {
        &self.client
    }

    /// Its id. If the client gave none, it is made of the client and its address: set again, the config is replaced, and
    /// that of another client is not.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// As it is shown to its client.
    pub(crate) fn shown(&self) -> PushConfig {
        PushConfig { id: Some(self.id.clone()), ..self.config.clone() }
    }

    /// As it is stored for a task, which its client sees like that.
    pub(crate) fn stored(
        &self,
        (task, view): (&str, TaskView),
        session: &SessionId,
        after: PushPosition,
        state: Option<TaskState>,
        finished: bool,
    ) -> NewPushConfig {
        NewPushConfig {
            task: task.to_owned(),
            id: self.id.clone(),
            session: session.clone(),
            client: self.client.clone(),
            url: self.config.url.clone(),
            origin: self.origin.clone(),
            secrets: serde_json::to_string(&Secrets::of(&self.config)).ok(),
            form: PushForm { dialect: self.dialect, spelling: view.spelling, artifacts: view.artifacts }.write(),
            created: Timestamp::now(),
            after,
            state: state.map(|state| state.word().to_owned()),
            finished,
        }
    }
}

fn check_texts(config: &PushConfig) -> Result<(), Error> {
    let too_long = |name: &str, most: usize| wrong(name, format_args!("has at most {most} bytes"));
    if config.url.len() > URL {
        return Err(too_long("url", URL));
    }
    if config.id.as_ref().is_some_and(|id| id.len() > ID || id.chars().any(char::is_control)) {
        return Err(too_long("id", ID));
    }
    let authentication = config.authentication.as_ref();
    let schemes = authentication.map_or(&[][..], |auth| &auth.schemes);
    let is_scheme = |text: &String| {
        !text.is_empty()
            && text.len() <= 64
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
    };
    if schemes.len() > 8 || !schemes.iter().all(is_scheme) {
        return Err(wrong("authentication", "the scheme must be a word such as Bearer"));
    }
    let credentials = authentication.and_then(|auth| auth.credentials.as_ref());
    for (name, secret) in [("token", config.token.as_ref()), ("authentication.credentials", credentials)] {
        let Some(secret) = secret else { continue };
        if secret.len() > SECRET {
            return Err(too_long(name, SECRET));
        }
        // The message must not contain it.
        if HeaderValue::from_str(secret).is_err() {
            return Err(wrong(name, "has characters that a header cannot have"));
        }
    }
    Ok(())
}

/// The stored config for a client: complete for the client that set it, without anything secret for others.
pub(crate) fn shown(record: &PushConfigRecord, caller: &Caller) -> PushConfig {
    let id = Some(record.id.clone());
    if record.client != client_key(caller) {
        let url = Url::parse(&record.url).map(|url| format!("{}/", origin(&url))).unwrap_or_default();
        return PushConfig { id, url, token: None, authentication: None };
    }
    let Secrets { token, schemes, credentials } = Secrets::read(record.secrets.as_deref());
    let authentication = schemes.map(|schemes| Authentication { schemes, credentials });
    PushConfig { id, url: record.url.clone(), token, authentication }
}

/// The account of a token. Clients without one are told apart by their roles alone.
fn client_key(caller: &Caller) -> String {
    match &caller.account {
        Some(account) => format!("account:{account}"),
        None => format!("role:{:?}", caller.role).to_lowercase(),
    }
}

fn default_id(client: &str, url: &str) -> String {
    let digest = Sha256::new().chain_update(client).chain_update([0]).chain_update(url).finalize();
    hex(&digest[..8])
}

/// A URL without its path and query, which may be secret.
fn origin(url: &Url) -> String {
    url.origin().ascii_serialization()
}

fn wrong(field: &str, why: impl std::fmt::Display) -> Error {
    Error::invalid_params(format!("push config: {field}: {why}")).with("field", field)
}

#[cfg(test)]
mod tests {
    use multitap_a2a::devtool::Spelling;
    use multitap_event::ClientRole;

    use super::*;

    const VIEW: TaskView = TaskView { spelling: Spelling::Specified, history: None, artifacts: false };

    fn caller(account: Option<&str>) -> Caller {
        Caller { name: None, role: ClientRole::Controller, account: account.map(str::to_owned) }
    }

    fn config(url: &str) -> PushConfig {
        PushConfig {
            url: url.to_owned(),
            token: Some("s3cret".to_owned()),
            authentication: Some(Authentication {
                schemes: vec!["Basic".to_owned(), "Bearer".to_owned()],
                credentials: Some("cr3dentials".to_owned()),
            }),
            ..PushConfig::default()
        }
    }

    async fn check(config: PushConfig, screen: Screen) -> Result<CheckedConfig, Error> {
        CheckedConfig::check(config, &screen, &caller(None), Dialect::V1_0).await
    }

    #[tokio::test]
    async fn addresses_are_refused_with_the_way_out() {
        let local = || Screen::public().allowing_loopback();
        for (url, screen, why) in [
            ("http://127.0.0.1:1/", Screen::public(), "--allow-private-webhooks"),
            ("http://localhost:1/", Screen::public(), "--allow-private-webhooks"),
            ("http://10.0.0.1/", local(), "--allow-private-webhooks"),
            ("http://169.254.169.254/latest", local(), "link-local"),
            ("ftp://example.org/", local(), "http and https"),
            ("http://me:word@example.org/", local(), "user name"),
            ("no url", local(), "relative"),
        ] {
            let error = check(config(url), screen).await.unwrap_err();
            assert!(error.message.contains(why) && error.message.starts_with("push config: url: "), "{url}: {error}");
        }
        check(config("http://127.0.0.1:1/"), local()).await.unwrap();
        check(config("http://10.0.0.1/"), Screen::allowing_private(true)).await.unwrap();
    }

    #[tokio::test]
    async fn what_cannot_be_a_header_is_refused_and_not_repeated() {
        let good = config("https://hooks.invalid/");
        let auth = |scheme: &str, credentials: &str| {
            let (schemes, credentials) = (vec![scheme.to_owned()], Some(credentials.to_owned()));
            Some(Authentication { schemes, credentials })
        };
        for bad in [
            PushConfig { token: Some("hidden\r\nX: y".to_owned()), ..good.clone() },
            PushConfig { token: Some("hidden".repeat(SECRET)), ..good.clone() },
            PushConfig { authentication: auth("Bearer\r\n", "hidden"), ..good.clone() },
            PushConfig { authentication: auth("", "hidden"), ..good.clone() },
            PushConfig { authentication: auth("Bearer", "hidden\n"), ..good.clone() },
            PushConfig { id: Some("i".repeat(ID + 1)), ..good.clone() },
            PushConfig { url: format!("https://hooks.invalid/{}", "u".repeat(URL)), ..good.clone() },
        ] {
            let error = check(bad, Screen::public()).await.unwrap_err();
            assert!(!error.message.contains("hidden"), "{error}");
        }
        assert!(check(good, Screen::public()).await.is_ok());
    }

    /// What a client set is its own: others learn that there is a webhook, and on which host.
    #[tokio::test]
    async fn only_the_client_that_set_it_sees_its_secrets() {
        let given = config("https://hooks.invalid/T000/secret-path?key=k3y#fragment");
        let ann = caller(Some("ann"));
        let checked = CheckedConfig::check(given, &Screen::public(), &ann, Dialect::V1_0).await.unwrap();
        let NewPushConfig { task, id, session, client, url, secrets, form, after, .. } =
            checked.stored(("turn-1", VIEW), &"session".into(), PushPosition::default(), None, false);
        assert_eq!(id.len(), 16, "a config without an id gets one");
        let record = PushConfigRecord {
            key: multitap_hub::PushKey(1),
            task,
            id,
            session,
            client,
            url,
            secrets,
            form,
            after,
            state: None,
            finished: false,
        };
        let own = shown(&record, &ann);
        assert_eq!(own, checked.shown());
        assert_eq!((own.token.as_deref(), own.url.ends_with("?key=k3y")), (Some("s3cret"), true));
        for other in [caller(Some("bob")), caller(None)] {
            let seen = shown(&record, &other);
            assert_eq!(seen.url, "https://hooks.invalid/");
            assert_eq!((seen.token, seen.authentication), (None, None));
        }
        let debug = format!("{checked:?} {record:?}");
        assert!(["s3cret", "cr3dentials", "k3y", "T000"].iter().all(|secret| !debug.contains(secret)), "{debug}");
    }

    #[test]
    fn bearer_tokens_come_first() {
        let secrets = Secrets::of(&config("https://hooks.invalid/"));
        assert_eq!(secrets.authorization().as_deref(), Some("Bearer cr3dentials"));
        let none = Secrets { credentials: None, ..secrets };
        assert_eq!(none.authorization(), None);
    }
}
