//! `web_fetch`: reads web pages as text.
//!
//! Only http and https, only GET, bounded in size and time. A host name is resolved once, screened, and that address
//! is connected to: never this machine or its network, unless allowed. Each redirect is screened likewise; one to
//! another host is reported and not followed, since it needs a call of its own.

mod html;

use std::time::Duration;

use multitap_event::{Details, ToolKind};
use multitap_outbound::{Endpoint, Screen, causes};
use reqwest::header::{ACCEPT, CONTENT_TYPE, LOCATION};
use reqwest::{Client, Response, Url};
use serde::Deserialize;
use serde_json::json;

use super::BadCall;
use crate::tool::{Outcome, Progress, Spec, ToolContext, cut_before};

pub(crate) const NAME: &str = "web_fetch";

const MOST_URLS: usize = 10;
/// Most bytes read of one answer.
const MOST_BYTES: usize = 2 * 1024 * 1024;
/// Most text of all pages together that the model gets.
const MOST_TEXT: usize = 60_000;
/// Time limit of a page, redirects included.
const TIME: Duration = Duration::from_secs(30);
const MOST_REDIRECTS: usize = 5;

#[derive(Debug, Deserialize)]
pub(super) struct Arguments {
    prompt: Option<String>,
    url: Option<String>,
    #[serde(default)]
    urls: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fetch {
    pub(crate) urls: Vec<String>,
    prompt: Option<String>,
}

pub(super) fn spec() -> Spec {
    super::spec(
        NAME,
        ToolKind::Fetch,
        "Reads pages from the web and gives back their text. Name the addresses (http or https) in the prompt, with \
         what you want to know of them, or one address as url. Addresses of this machine and its network are refused.",
        &json!({
            "prompt": { "type": "string", "description": "The addresses, and what is wanted from them." },
            "url": { "type": "string", "description": "One address." }
        }),
        &[],
    )
}

pub(super) fn prepare(arguments: Arguments, screen: &Screen) -> Result<Fetch, BadCall> {
    let Arguments { prompt, url, urls } = arguments;
    let named = url.into_iter().chain(urls);
    let in_prompt = prompt.iter().flat_map(|prompt| addresses(prompt)).map(str::to_owned);
    let mut found: Vec<String> = Vec::new();
    for text in named.chain(in_prompt) {
        let url = Url::parse(&text).map_err(|error| BadCall(format!("'{text}' is not an address: {error}")))?;
        screen.check(&url).map_err(|why| BadCall(format!("cannot fetch {url}: {why}")))?;
        let url = String::from(url);
        if found.contains(&url) {
            continue;
        }
        if found.len() == MOST_URLS {
            return Err(BadCall(format!("too many addresses: at most {MOST_URLS} at once")));
        }
        found.push(url);
    }
    if found.is_empty() {
        return Err(BadCall("no address was named: give one that begins with http:// or https://".to_owned()));
    }
    Ok(Fetch { urls: found, prompt })
}

fn addresses(text: &str) -> impl Iterator<Item = &str> {
    let ends = |char: char| char.is_whitespace() || matches!(char, '<' | '>' | '"' | '`');
    let words = text.split(ends).map(|word| word.trim_start_matches(['(', '[', '\'']));
    let words = words.filter(|word| word.starts_with("http://") || word.starts_with("https://"));
    words.map(|word| word.trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']', '\'']))
}

impl Fetch {
    #[cfg(test)]
    pub(crate) fn of(urls: &[&str]) -> Self {
        Self { urls: urls.iter().map(|url| (*url).to_owned()).collect(), prompt: None }
    }

    pub(crate) fn title(&self) -> String {
        match self.urls.as_slice() {
            [one] => format!("Fetch {one}"),
            [first, more @ ..] => format!("Fetch {first} and {} more", more.len()),
            [] => "Fetch nothing".to_owned(),
        }
    }

    pub(crate) fn details(&self) -> Details {
        let mut arguments = serde_json::Map::new();
        arguments.insert("urls".to_owned(), json!(self.urls));
        if let Some(prompt) = &self.prompt {
            arguments.insert("prompt".to_owned(), json!(prompt));
        }
        Details::Text { text: format!("Fetch {}", self.urls.join(", ")), arguments }
    }

    pub(super) async fn run(self, screen: &Screen, context: ToolContext) -> Outcome {
        tokio::select! {
            () = context.stop.cancelled() => Outcome::cancelled("the user stopped it"),
            outcome = self.all(screen, &context) => outcome,
        }
    }

    async fn all(self, screen: &Screen, context: &ToolContext) -> Outcome {
        let share = MOST_TEXT / self.urls.len().max(1);
        let (mut text, mut read) = (String::new(), 0);
        for url in &self.urls {
            let message = Some(format!("reading {url}"));
            // Nobody may receive progress any more: read on.
            context.progress.send(Progress { message, ..Progress::default() }).await.ok();
            let page = tokio::time::timeout(TIME, page(screen, url)).await;
            let page = page.unwrap_or_else(|_| Err(format!("it took longer than {} s", TIME.as_secs())));
            let reported = match page {
                Ok(page) => {
                    read += 1;
                    page.reported(url, share)
                }
                Err(why) => format!("{url} could not be read: {why}"),
            };
            text.push_str(&reported);
            text.push_str("\n\n");
        }
        let text = text.trim_end();
        if read > 0 { Outcome::done(text) } else { Outcome::failed(text) }
    }
}

/// A client that connects only to addresses the screen allows.
fn client(screen: &Screen, url: &Url) -> Result<Client, String> {
    let builder = Endpoint::of(url).client().map_err(|error| error.to_string())?;
    // A proxy would resolve names itself, unscreened.
    screen.apply_without_proxy(builder).build().map_err(causes)
}

struct Page {
    /// Where it was found after redirects.
    url: Url,
    text: String,
    /// Only its beginning was read.
    cut: bool,
}

impl Page {
    fn reported(&self, asked: &str, most: usize) -> String {
        let moved = if self.url.as_str() == asked { String::new() } else { format!(" (moved to {})", self.url) };
        let end = cut_before(&self.text, most);
        let cut = if self.cut || end < self.text.len() { "\n[… the rest is left out …]" } else { "" };
        format!("{asked}{moved}:\n\n{}{cut}", self.text[..end].trim())
    }
}

/// Reads one page, following redirects within the site.
async fn page(screen: &Screen, url: &str) -> Result<Page, String> {
    let mut url = Url::parse(url).map_err(|error| error.to_string())?;
    let asked = url.clone();
    for _ in 0..=MOST_REDIRECTS {
        screen.check(&url).map_err(|why| why.to_string())?;
        // Permission for one host is not permission for another, not even to resolve its name.
        if site(&url) != site(&asked) {
            return Err(format!("it redirects to another host: fetch {url} if that is wanted"));
        }
        let accept = "text/html, text/plain, application/json, text/*;q=0.9, */*;q=0.1";
        let sent = client(screen, &url)?.get(url.clone()).header(ACCEPT, accept).send().await;
        let response = sent.map_err(causes)?;
        let status = response.status();
        if status.is_redirection()
            && let Some(location) = response.headers().get(LOCATION)
        {
            let location = location.to_str().map_err(|_| "it redirects to an invalid address".to_owned())?;
            url = url.join(location).map_err(|error| format!("it redirects to '{location}': {error}"))?;
            continue;
        }
        if !status.is_success() {
            return Err(format!("the server says {status}"));
        }
        return read(response, url).await;
    }
    Err(format!("it redirects more than {MOST_REDIRECTS} times"))
}

fn site(url: &Url) -> Option<&str> {
    url.host_str().map(|host| host.strip_prefix("www.").unwrap_or(host))
}

async fn read(mut response: Response, url: Url) -> Result<Page, String> {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or("text/plain");
    let kind = kind.to_ascii_lowercase();
    if !readable(&kind) {
        return Err(format!("it is not text, but {kind}"));
    }
    let mut bytes = Vec::new();
    let mut cut = false;
    while let Some(chunk) = response.chunk().await.map_err(causes)? {
        let room = MOST_BYTES - bytes.len();
        bytes.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if chunk.len() > room {
            cut = true;
            break;
        }
    }
    let charset = kind.split_once("charset=").map(|(_, name)| name.trim_matches(['"', ' ', '\'']));
    let charset = charset.map(|name| name.split(';').next().unwrap_or(name));
    let encoding = charset.and_then(|name| encoding_rs::Encoding::for_label(name.as_bytes()));
    let (text, _, _) = encoding.unwrap_or(encoding_rs::UTF_8).decode(&bytes);
    let text = if kind.contains("html") { html::text(&text) } else { text.into_owned() };
    Ok(Page { url, text, cut })
}

fn readable(kind: &str) -> bool {
    let name = kind.split(';').next().unwrap_or_default().trim();
    let known = ["json", "xml", "html", "javascript", "yaml", "toml", "x-sh", "graphql", "sql"];
    name.starts_with("text/") || known.iter().any(|known| name.ends_with(known))
}

#[cfg(test)]
mod tests;
