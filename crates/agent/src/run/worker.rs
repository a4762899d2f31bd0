//! Long work, each in a task of its own that reports back.
//!
//! Also asks the policy: about each prepared call, and about the call that an edited answer would result in.

use std::time::Duration;

use multitap_event::{EditReview, EditedCall, ModelUsage, OptionId, ToolId, ToolKind};
use serde_json::Value;
use tokio::sync::mpsc;

use super::{OwnerGone, Runner};
use crate::conversation::{Call, Message};
use crate::job::Job;
use crate::model::{Delta, Model, ModelError, Reply, Request};
use crate::policy::{Approved, Consent, Verdict};
use crate::tool::{Outcome, Progress, ToolContext};
use crate::turn::{Edited, Input, PreparedCall, Summary};

/// Most queued pieces of a reply or of a tool's output.
const PIECES: usize = 64;

const SUM_UP: &str = "Sum up our conversation so far for yourself, so that you can go on without it: what I want, what \
was decided and why, which files were read or changed and how, which commands were run and what they gave, what is \
still open, and what you were about to do. Be complete and short. Write nothing else.";

#[derive(Debug)]
pub(super) enum Report {
    /// An input from the n-th model request.
    Model(u64, Input),
    Tool(Input),
    Prepared(ToolId, Call, Result<Job, String>),
    /// The call that an edited answer would run, ready to be judged.
    Edited(EditReview, Call, Result<Job, String>),
}

impl Runner {
    pub(super) async fn report(&mut self, report: Report) -> Result<(), OwnerGone> {
        match report {
            Report::Model(asking, input) if asking == self.asking => {
                self.count(&input);
                self.step(input).await
            }
            Report::Model(..) => Ok(()),
            Report::Tool(input) => self.step(input).await,
            Report::Edited(review, call, job) => {
                let judged = job.and_then(|job| self.judge_edit(&call.name, &job, call.arguments));
                review.reply.send(judged).ok(); // the session is gone: nothing was settled
                Ok(())
            }
            Report::Prepared(id, call, job) => {
                let spec = self.parts.toolbox.spec(&call.name);
                let job = job.map(|job| {
                    let job = if self.by_user { job.by_user() } else { job };
                    let verdict = self.parts.policy.judge(&call.name, &job);
                    // Users are not asked about their own calls.
                    let verdict = if self.by_user && verdict == Verdict::Ask { Verdict::Run } else { verdict };
                    (job, verdict)
                });
                let kind = spec.as_ref().map_or(ToolKind::Other, |spec| spec.kind);
                let server = spec.and_then(|spec| spec.server);
                self.step(Input::Ready(id, PreparedCall { kind, server, job })).await
            }
        }
    }

    fn request(&self) -> Request {
        Request {
            system: self.system_prompt(),
            messages: self.machine.talk.messages().to_vec(),
            tools: self.parts.toolbox.specs(),
            thinking: self.thinking,
            output_schema: self.parts.config.output_schema.clone(),
        }
    }

    pub(super) fn ask_model(&mut self) {
        let request = self.request();
        let (asking, to_us) = (self.new_question(), self.to_us.clone());
        let model = self.asked_model();
        self.asked = Some(self.workers.spawn(async move {
            let (deltas, mut pieces) = mpsc::channel(PIECES);
            let forward = async {
                while let Some(delta) = pieces.recv().await {
                    to_us.send(Report::Model(asking, Input::Delta(delta))).await.ok(); // fails only if the runner is gone
                }
            };
            let (replied, ()) = tokio::join!(model.ask(request, deltas), forward);
            to_us.send(Report::Model(asking, Input::Replied(replied))).await.ok();
        }));
    }

    pub(super) fn wait(&mut self, time: Duration) {
        let (asking, to_us) = (self.new_question(), self.to_us.clone());
        self.asked = Some(self.workers.spawn(async move {
            tokio::time::sleep(time).await;
            to_us.send(Report::Model(asking, Input::Again)).await.ok();
        }));
    }

    pub(super) fn sum_up(&mut self) {
        let mut request = Request { tools: Vec::new(), output_schema: None, ..self.request() };
        request.messages.push(Message::user(SUM_UP));
        let (asking, to_us) = (self.new_question(), self.to_us.clone());
        let model = self.asked_model();
        self.asked = Some(self.workers.spawn(async move {
            let (deltas, mut pieces) = mpsc::channel(PIECES);
            let gather = async {
                let mut summary = String::new();
                while let Some(delta) = pieces.recv().await {
                    if let Delta::Text(text) = delta {
                        summary.push_str(&text);
                    }
                }
                summary
            };
            let (replied, text): (Result<Reply, ModelError>, _) = tokio::join!(model.ask(request, deltas), gather);
            let summary = replied.map(|reply| Summary { text, usage: reply.usage });
            to_us.send(Report::Model(asking, Input::Summed(summary))).await.ok();
        }));
    }

    /// The current model. A later change of the model does not affect the request.
    fn asked_model(&mut self) -> Model {
        self.answering = (self.parts.model.name().to_owned(), self.parts.model.window());
        self.parts.model.clone()
    }

    fn count(&mut self, input: &Input) {
        let usage = match input {
            Input::Replied(Ok(reply)) => reply.usage,
            Input::Summed(Ok(summary)) => summary.usage,
            _ => None,
        };
        let Some(usage) = usage else { return };
        let (name, context_window) = self.answering.clone();
        let spent = self.spent.entry(name).or_insert(ModelUsage { context_window, ..ModelUsage::default() });
        spent.usage = spent.usage.plus(usage);
    }

    fn new_question(&mut self) -> u64 {
        self.stop_asking();
        self.asking
    }

    /// Results of earlier model requests are ignored from now on.
    pub(super) fn stop_asking(&mut self) {
        self.asking += 1;
        if let Some(asked) = self.asked.take() {
            asked.abort();
        }
    }

    pub(super) fn prepare(&mut self, id: ToolId, call: Call) {
        self.ready(call, |call, job| Report::Prepared(id, call, job));
    }

    /// Makes a call ready, and reports it.
    fn ready(&mut self, call: Call, report: impl FnOnce(Call, Result<Job, String>) -> Report + Send + 'static) {
        let (toolbox, to_us) = (self.parts.toolbox.clone(), self.to_us.clone());
        self.workers.spawn(async move {
            let job = toolbox.prepare(&call).await.map_err(|error| error.to_string());
            to_us.send(report(call, job)).await.ok();
        });
    }

    /// Runs a job in its current form, if the current policy approves it.
    pub(super) async fn approve(
        &mut self,
        id: ToolId,
        tool: &str,
        job: Job,
        consent: Consent,
    ) -> Result<(), OwnerGone> {
        // Users are not asked about their own calls.
        let consent = if self.by_user { Consent::Given } else { consent };
        match self.parts.policy.approve(tool, job, consent) {
            Ok(job) => {
                self.run_job(id, job);
                Ok(())
            }
            Err(why) => Box::pin(self.step(Input::Done(id, Outcome::denied(why)))).await,
        }
    }

    fn run_job(&mut self, id: ToolId, job: Approved<Job>) {
        let (toolbox, to_us, stop) = (self.parts.toolbox.clone(), self.to_us.clone(), self.stop.clone());
        self.workers.spawn(async move {
            let (progress, mut reported) = mpsc::channel::<Progress>(PIECES);
            let forward = async {
                while let Some(progress) = reported.recv().await {
                    to_us.send(Report::Tool(Input::Progress(id.clone(), progress))).await.ok();
                }
            };
            let (outcome, ()) = tokio::join!(toolbox.run(job, ToolContext { progress, stop }), forward);
            to_us.send(Report::Tool(Input::Done(id, outcome))).await.ok();
        });
    }

    /// Judges an edited answer by the call it results in. The decision follows later, as a command.
    pub(super) fn review(&mut self, review: EditReview) {
        let judged = match self.machine.edited(&review.decide) {
            Ok((tool, Edited::Job { job, arguments })) => self.judge_edit(&tool, &job, Value::Object(arguments)),
            Ok((_, Edited::Call(call))) => {
                self.ready(call, |call, job| Report::Edited(review, call, job));
                return;
            }
            Err(why) => Err(why),
        };
        review.reply.send(judged).ok(); // the session is gone: nothing was settled
    }

    /// A client that edits a call allows the edited call. A call that is denied to everybody stays denied.
    fn judge_edit(&self, tool: &str, job: &Job, arguments: Value) -> Result<EditedCall, String> {
        if let Verdict::Deny(why) = self.parts.policy.judge(tool, job) {
            return Err(why);
        }
        let Value::Object(arguments) = arguments else { return Err("its arguments are not a JSON object".to_owned()) };
        Ok(EditedCall::new(job.title(), arguments, job.details()))
    }

    /// Turns an "always" answer into a rule.
    pub(super) async fn always(&mut self, option: &OptionId, tool: &str, job: &Job) -> Result<(), OwnerGone> {
        // Do not run what has been denied meanwhile.
        if matches!(self.parts.policy.judge(tool, job), Verdict::Deny(_)) {
            return Ok(());
        }
        let Some(always) = self.parts.policy.answered(option, tool, job) else { return Ok(()) };
        if !always.save {
            return Ok(());
        }
        for rule in always.rules {
            let rule = rule.to_string();
            let saved = match &self.parts.setup.save {
                Some(save) => save(&rule),
                None => Err("there is no settings file to save it in".to_owned()),
            };
            match saved {
                Ok(()) => {
                    let message = Some(format!("saved to your settings: {rule}"));
                    self.note("ruleSaved", message, serde_json::json!({ "rule": rule })).await?;
                }
                Err(why) => self.warn(format!("{rule} holds for this session only: {why}")).await?,
            }
        }
        Ok(())
    }
}
