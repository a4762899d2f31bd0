//! Changes of a session's settings, which count once the agent has confirmed them.

use std::time::Duration;

use multitap_event::{ClientRef, Door, Event, EventKind, Setting as RefusedSetting};
use multitap_hub::{Feed, Join, JoinFrom, Refusal, Session, Told};
use tokio::time::timeout;

use super::config::{MODE, MODEL, THINKING};
use super::error::invalid_params;

/// How long an agent may take to confirm.
const PATIENCE: Duration = Duration::from_secs(20);

/// A new value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Setting {
    Mode(String),
    Model(String),
    Thinking(String),
}

impl Setting {
    /// The value of a config option.
    pub(super) fn of(option: &str, value: String) -> Result<Self, Refusal> {
        match option {
            MODE => Ok(Self::Mode(value)),
            MODEL => Ok(Self::Model(value)),
            THINKING => Ok(Self::Thinking(value)),
            _ => Err(invalid_params(format!("configId: there is no option \"{option}\""))),
        }
    }

    /// Whether an event confirms or refuses the change.
    fn outcome(&self, event: &Event) -> Option<Result<(), Refusal>> {
        match (self, &event.kind) {
            (Self::Mode(_), EventKind::ModeChanged { .. }) | (Self::Model(_), EventKind::ModelChanged { .. }) => {
                Some(Ok(()))
            }
            (Self::Thinking(level), EventKind::Capabilities(now)) => {
                (now.thinking_level.as_ref() == Some(level)).then_some(Ok(()))
            }
            (_, EventKind::Error(error)) => {
                let own = match self {
                    Self::Mode(_) => RefusedSetting::Mode,
                    Self::Model(_) => RefusedSetting::Model,
                    Self::Thinking(_) => RefusedSetting::Thinking,
                };
                let is_own = error.refused_setting == Some(own);
                is_own.then(|| Err(Refusal::InvalidParams { message: error.message.clone() }))
            }
            _ => None,
        }
    }
}

/// Changes a setting and waits until the agent has taken or refused it.
pub(super) async fn change(session: &Session, setting: Setting, by: ClientRef) -> Result<(), Refusal> {
    let watcher = ClientRef::new("multitap", Door::Host);
    let join = Join { client: watcher, from: JoinFrom::Now, patience: None, announce: false };
    let mut feed = session.join(join).await?.feed;
    match &setting {
        Setting::Mode(mode) => session.set_mode(mode.clone(), by).await?,
        Setting::Model(model) => session.set_model(model.clone(), by).await?,
        Setting::Thinking(level) => session.set_thinking_level(level.clone(), by).await?,
    }
    match timeout(PATIENCE, outcome(&mut feed, &setting)).await {
        Ok(outcome) => outcome,
        Err(_) => Err(Refusal::AgentFailed { message: "the agent did not confirm the change in time".to_owned() }),
    }
}

async fn outcome(feed: &mut Feed, setting: &Setting) -> Result<(), Refusal> {
    while let Some(told) = feed.next().await {
        if let Told::Event(entry) = told
            && let Some(outcome) = entry.event().and_then(|event| setting.outcome(event))
        {
            return outcome;
        }
    }
    Err(Refusal::SessionEnded)
}
