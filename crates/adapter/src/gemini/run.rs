//! One process per turn: its arguments, and the commands between turns.

use multitap_event::{
    AgentError, AgentErrorKind, AgentType, Command, EventKind, LaunchError, Mode, Prompt, Resume, SessionConfig,
    Setting, StatedConfig, Timestamp, TurnEnd, TurnStatus, Unsupported,
};
use uuid::Uuid;

use super::decode::StreamCodec;
use super::{mode_option, settings, shared_arguments, unsupported};
use crate::codec::{Files, Run, RunArg, Step};
use crate::emit::report_model;
use crate::pump::Lifetime;
use crate::spec::{Plan, add_options};

/// The state that all turns of a session share.
pub(super) struct Runs {
    pub(super) stated: StatedConfig,
    /// All arguments except for those that may change between turns.
    options: Vec<String>,
    agent_args: Vec<String>,
    mode: Option<Mode>,
    model: Option<String>,
    /// Whether there is a conversation to continue.
    pub(super) begun: bool,
}

impl Runs {
    pub(super) fn mode_word(&self) -> Option<String> {
        self.mode.as_ref().and_then(|mode| mode_option(mode).ok()).map(str::to_owned)
    }
}

/// The codec for a session with one process per turn.
pub(crate) fn plan(config: &SessionConfig, files: Box<dyn Files>) -> Result<Plan<StreamCodec>, LaunchError> {
    if let Some(mode) = &config.mode {
        can_run(mode)?;
    }
    if !config.mcp_servers.is_empty() {
        let why = "without ACP it takes them only from its own settings";
        return Err(unsupported("MCP servers in one-shot transport", why).into());
    }
    let mut options = Vec::new();
    let fixed = SessionConfig { mode: None, model: None, ..config.clone() };
    shared_arguments(&fixed, &mut options)?;
    let private = settings::private(config)?;
    options.extend(private.args);
    let resumed = match &config.resume {
        Resume::Session { native_id, .. } => Some(native_id.clone()),
        Resume::New | Resume::Latest => None,
    };
    let runs = Runs {
        stated: config.stated(),
        options,
        agent_args: config.agent_args.clone(),
        mode: config.mode.clone(),
        model: config.model.clone(),
        begun: resumed.is_some(),
    };
    let native_id = resumed.unwrap_or_else(|| Uuid::new_v4().to_string());
    let codec = StreamCodec::live(runs, native_id, files);
    Ok(Plan { env: private.env, files: private.files, lifetime: Lifetime::Turn, ..Plan::new(codec) })
}

/// Whether a mode works without questions.
fn can_run(mode: &Mode) -> Result<(), Unsupported> {
    if mode_option(mode)? == "default" {
        let why =
            "without ACP it cannot ask, and omits every tool that needs permission; use auto-edit, auto-all or plan";
        return Err(unsupported("approval mode ask in one-shot transport", why));
    }
    Ok(())
}

impl StreamCodec {
    pub(super) fn warn(&mut self, out: &mut Step) {
        if self.runs.as_ref().is_some_and(|runs| runs.mode.is_none()) {
            let why = "gemini runs one process per turn and cannot ask: tools that change something are left out, unless its own settings allow them";
            let warning = AgentError::new(AgentErrorKind::PermissionDenied, why).of(AgentType::Gemini);
            out.events.push(EventKind::Error(warning.warning()));
        }
    }

    pub(super) fn command(&mut self, command: Command, now: Timestamp, out: &mut Step) {
        match command {
            Command::Prompt(prompt) => self.prompt(&prompt, now, out),
            Command::Steer(_) => self.emit.refuse_steering(out),
            Command::Cancel if self.emit.turns.is_open() => {
                self.emit.turns.cancel();
                out.stop = true;
            }
            Command::Cancel => self.emit.refuse_cancel(out),
            Command::Decide(decide) => {
                self.emit.refuse(format!("there is no open question {}", decide.question_id), out);
            }
            Command::SetMode { mode } => self.set_mode(&mode, out),
            Command::SetModel { model } => {
                if let Some(runs) = &mut self.runs {
                    runs.model = Some(model.clone());
                }
                report_model(model, out);
            }
            Command::SetThinking { .. } => {
                let why = unsupported("a limit for thinking", "it has no such option").to_string();
                out.events.push(EventKind::Error(self.emit.refused(why).about(Setting::Thinking)));
            }
            Command::SetThinkingLevel { level } => {
                let why = unsupported("a thinking level", "it has no such option").to_string();
                out.events.push(EventKind::Error(self.emit.refused(why).refusing(Setting::Thinking, level)));
            }
            Command::Query { what } => {
                let setting = format!("a question about its {}", what.word());
                self.emit.refuse(unsupported(setting, "without ACP it does not report this").to_string(), out);
            }
        }
    }

    /// Begins a turn by starting its process. The prompt goes to its stdin: it may be longer than an argument can be.
    fn prompt(&mut self, prompt: &Prompt, now: Timestamp, out: &mut Step) {
        self.emit.turns.begin(now, out);
        if !prompt.images.is_empty() {
            let why = unsupported("pictures in a prompt", "without ACP it takes text only").to_string();
            self.emit.refuse(&why, out);
            self.emit.complete_turn(TurnEnd { error: Some(why), ..TurnEnd::of(TurnStatus::Failed) }, now, out);
            return;
        }
        let (Some(runs), Some(id)) = (&self.runs, &self.emit.session.native_id) else { return };
        let mut args: Vec<String> = ["-o", "stream-json"].map(str::to_owned).to_vec();
        args.extend(runs.options.iter().cloned());
        add_options(&mut args, "--approval-mode", runs.mode_word());
        add_options(&mut args, "--model", &runs.model);
        add_options(&mut args, if runs.begun { "--resume" } else { "--session-id" }, [id]);
        args.extend(runs.agent_args.iter().cloned());
        out.run = Some(Run { args: args.into_iter().map(RunArg::word).collect(), stdin: Some(prompt.text.clone()) });
    }

    fn set_mode(&mut self, word: &str, out: &mut Step) {
        let mode = Mode::parse(AgentType::Gemini, word).map_err(|unknown| unknown.to_string());
        let mode = mode.and_then(|mode| can_run(&mode).map(|()| mode).map_err(|why| why.to_string()));
        let (mode, runs) = match (mode, &mut self.runs) {
            (Ok(mode), Some(runs)) => (mode, runs),
            (Ok(_), None) => return,
            (Err(why), _) => {
                out.events.push(EventKind::Error(self.emit.refused(why).refusing(Setting::Mode, word)));
                return;
            }
        };
        runs.mode = Some(mode.clone());
        let unified = match mode {
            Mode::Unified(mode) => Some(mode),
            Mode::Native(_) => None,
        };
        out.events.push(EventKind::ModeChanged { mode: unified, native_mode: runs.mode_word(), by: None });
    }
}
