//! Chooses the model: from what was asked for, the available keys, and the providers' addresses.
//!
//! Pure: the environment is a lookup function. `catalog` says what models can do, `live` asks them.

use std::collections::BTreeSet;
use std::fmt;

use super::catalog;
use super::rehearsal::NAME as REHEARSAL;
use super::vendor::{Api, Vendor};

/// A value that must not be shown.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(String);

impl Secret {
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<hidden>")
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Provider {
    pub(crate) key: Option<Secret>,
    pub(crate) base_url: Option<String>,
    /// OpenAI only: which of its two APIs; absent lets the address decide.
    pub(crate) api: Option<Api>,
}

/// Settings of all providers. Settings files may fill in what the environment leaves open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Providers([Provider; Vendor::ALL.len()]);

/// A model cannot be chosen; says what helps.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct ChoiceError(String);

impl Providers {
    /// Reads the environment; `lookup` returns a variable's value. An empty value counts as unset.
    pub(crate) fn from_env(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, ChoiceError> {
        let value = |name: &str| lookup(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        let api = match value("OPENAI_API").as_deref() {
            None => None,
            Some("responses") => Some(Api::Responses),
            Some("chat") => Some(Api::Chat),
            Some(other) => {
                let why = format!("OPENAI_API is '{other}', but can only be 'responses' or 'chat'");
                return Err(ChoiceError(why));
            }
        };
        let provider = |vendor: Vendor| Provider {
            key: vendor.key_vars().split(" or ").find_map(value).map(Secret),
            base_url: value(vendor.url_var()),
            api: api.filter(|_| vendor == Vendor::OpenAi),
        };
        Ok(Self(Vendor::ALL.map(provider)))
    }

    pub(crate) fn of(&self, vendor: Vendor) -> &Provider {
        &self.0[vendor as usize]
    }

    /// Whether it is usable: there is a key, or it is the user's own server.
    pub(crate) fn can_ask(&self, vendor: Vendor) -> bool {
        let provider = self.of(vendor);
        provider.key.is_some() || (vendor == Vendor::OpenAi && provider.base_url.is_some())
    }

    /// Finds the requested model; without a request, the default of the first provider with a key.
    pub(crate) fn choose(&self, asked: Option<&str>) -> Result<Choice, ChoiceError> {
        let asked = asked.map(str::trim).filter(|asked| !asked.is_empty());
        let Some(asked) = asked else {
            let with_key = Vendor::ALL.into_iter().find(|vendor| self.of(*vendor).key.is_some());
            return match with_key {
                Some(vendor) => self.target(vendor, catalog::default(vendor)).map(Choice::Live),
                None => Ok(Choice::Rehearsal),
            };
        };
        if asked.eq_ignore_ascii_case(REHEARSAL) {
            return Ok(Choice::Rehearsal);
        }
        let (vendor, name) = self.whose(asked)?;
        if name.is_empty() {
            let (vendor, model) = (vendor.word(), catalog::default(vendor));
            return Err(ChoiceError(format!("'{vendor}/' names a provider but no model, such as {vendor}/{model}")));
        }
        self.target(vendor, name).map(Choice::Live)
    }

    /// The models that can be named here, with their providers; the chosen one first.
    pub(crate) fn offered(&self, chosen: &str) -> Vec<String> {
        let mut names = vec![chosen.to_owned()];
        for vendor in Vendor::ALL.into_iter().filter(|vendor| self.can_ask(*vendor)) {
            // The models of another server are unknown.
            if self.of(vendor).base_url.is_none() {
                names.extend(catalog::listed(vendor).iter().map(|model| format!("{}/{model}", vendor.word())));
            }
        }
        names.push(REHEARSAL.to_owned());
        let mut seen = BTreeSet::new();
        names.retain(|name| seen.insert(name.clone()));
        names
    }

    fn whose<'a>(&self, asked: &'a str) -> Result<(Vendor, &'a str), ChoiceError> {
        if let Some((word, rest)) = asked.split_once('/')
            && let Some(vendor) = Vendor::of_word(word)
        {
            return Ok((vendor, rest));
        }
        if let Some(vendor) = catalog::vendor_of(asked) {
            return Ok((vendor, asked));
        }
        // A server of the user's own may have models with any name, even with slashes.
        if self.of(Vendor::OpenAi).base_url.is_some() {
            return Ok((Vendor::OpenAi, asked));
        }
        if let Some((word, rest)) = asked.split_once('/') {
            let known = format!("use anthropic/{rest}, openai/{rest}, gemini/{rest} or rehearsal");
            return Err(ChoiceError(format!("unknown provider '{word}': {known}")));
        }
        let mut with_key = Vendor::ALL.into_iter().filter(|vendor| self.of(*vendor).key.is_some());
        match (with_key.next(), with_key.next()) {
            (Some(only), None) => Ok((only, asked)),
            _ => Err(ChoiceError(format!(
                "unknown provider of the model '{asked}': use anthropic/{asked}, openai/{asked} or gemini/{asked}, a name that begins with claude, gpt or gemini, or 'rehearsal', which needs no network"
            ))),
        }
    }

    fn target(&self, vendor: Vendor, model: &str) -> Result<Target, ChoiceError> {
        let provider = self.of(vendor);
        if !self.can_ask(vendor) {
            let instead = match vendor {
                Vendor::OpenAi => " (or OPENAI_BASE_URL, for a server of your own that needs none)",
                Vendor::Anthropic | Vendor::Gemini => "",
            };
            let (vendor, key_vars) = (vendor.word(), vendor.key_vars());
            return Err(ChoiceError(format!("{vendor}/{model} needs a key: set {key_vars}{instead}")));
        }
        let base_url = base_url(vendor, provider.base_url.as_deref())?;
        let api = match vendor {
            Vendor::Anthropic => Api::Messages,
            Vendor::Gemini => Api::GenerateContent,
            Vendor::OpenAi if base_url.starts_with("https://api.openai.com/") => provider.api.unwrap_or(Api::Responses),
            Vendor::OpenAi => provider.api.unwrap_or(Api::Chat),
        };
        Ok(Target { vendor, api, model: model.to_owned(), base_url, key: provider.key.clone() })
    }
}

/// The address with its API version, ending in a slash.
fn base_url(vendor: Vendor, given: Option<&str>) -> Result<String, ChoiceError> {
    let (home, version) = vendor.home();
    let Some(given) = given else { return Ok(format!("{home}/")) };
    let bad = || ChoiceError(format!("{} is '{given}', which is not an http or https address", vendor.url_var()));
    let url = reqwest::Url::parse(given).map_err(|_| bad())?;
    let plain = url.host().is_some() && url.query().is_none() && url.fragment().is_none();
    if !plain || !matches!(url.scheme(), "http" | "https") {
        return Err(bad());
    }
    let bare = given.trim_end_matches('/');
    // OpenAI's address is usually written with its version, the others without.
    let last = bare.rsplit('/').next().unwrap_or_default();
    let versioned = last.strip_prefix('v').is_some_and(|rest| rest.starts_with(|next: char| next.is_ascii_digit()));
    Ok(if versioned { format!("{bare}/") } else { format!("{bare}{version}/") })
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Choice {
    Rehearsal,
    Live(Target),
}

/// One model of one provider, and how to reach it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) vendor: Vendor,
    pub(crate) api: Api,
    pub(crate) model: String,
    /// With the API's version, ending in a slash.
    pub(crate) base_url: String,
    pub(crate) key: Option<Secret>,
}

impl Target {
    /// Whether this is the provider's own address, and not some other server.
    pub(crate) fn is_at_home(&self) -> bool {
        self.base_url.strip_suffix('/') == Some(self.vendor.home().0)
    }

    /// Host and port, for people; without a password in the address.
    pub(crate) fn host(&self) -> String {
        let url = reqwest::Url::parse(&self.base_url).ok();
        let host = url.as_ref().and_then(|url| {
            let host = url.host_str()?;
            Some(url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")))
        });
        host.unwrap_or_else(|| "an unknown address".to_owned())
    }

    /// The model with its provider, as `--model` takes it.
    pub(crate) fn name(&self) -> String {
        format!("{}/{}", self.vendor.word(), self.model)
    }
}

#[cfg(test)]
mod tests;
