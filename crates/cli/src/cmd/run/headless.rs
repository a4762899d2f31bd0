//! A running session without a screen: events out, lines in, unanswered questions denied, signals handled.
//!
//! `run` starts it, and decides how the process ends.

use std::future::pending;
use std::pin::pin;
use std::time::Duration;

use multitap_client::{AgentSession, Refusal, SessionCall, WhenBusy};
use multitap_event::{
    AgentErrorKind, ClientRef, Decide, Door, Draft, Event, EventKind, Question, QuestionId, Refused, SessionEndReason,
    Timestamp,
};
use multitap_process::Line;
use tokio::time::{Instant, sleep_until, timeout};

use super::input::Input;
use super::request::{self, BadLine};
use super::show::Show;
use super::tally::Tally;
use super::{HURRY, lost, session_end};
use crate::args::RunArgs;
use crate::exit::Exit;
use crate::out::{self, Out, Unwritten};
use crate::signals::Signals;

/// After an interrupt: time limit for the agent to end its turn.
const CANCEL_PATIENCE: Duration = Duration::from_secs(3);
/// Then: time limit for the agent to end.
const END_PATIENCE: Duration = Duration::from_secs(5);
/// After an interrupt: time limit for the reader of stdout to take a last line.
const WRITE_PATIENCE: Duration = Duration::from_secs(1);

const NOBODY: &str = "nobody can approve in -p mode. Use --approval-mode or --allow-tool";
const INPUT_ENDED: &str = "nobody can approve, because the input has ended";

pub(super) struct Headless<'a> {
    /// The number of the last event.
    seq: u64,
    /// The last line of the output was handed over.
    is_closed: bool,
    session: AgentSession,
    input: Input,
    signals: &'a mut Signals,
    show: &'a mut Show,
    out: &'a mut Out,
    question_timeout: Option<Duration>,
    when_busy: WhenBusy,
    open: Vec<Open>,
    tally: Tally,
    leave: Option<Leave>,
    /// Others may answer questions.
    has_door: bool,
    /// The user interrupted twice.
    in_a_hurry: bool,
}

/// The state of a session after it was followed.
pub(super) struct Left {
    pub(super) exit: Exit,
    /// The user interrupted twice: nothing may wait.
    pub(super) in_a_hurry: bool,
}

/// An open question, and when it is denied.
struct Open {
    question: Question,
    until: Option<Instant>,
}

/// The next step after an interrupt, and its time.
enum Leave {
    EndAt(Instant),
    GoAt(Instant),
}

/// Why a session is not followed to its end.
enum Cut {
    /// The output is lost.
    Unwritten(Unwritten),
    Interrupted,
    /// The user interrupted, and stdout is blocked because nobody reads it.
    Stuck,
}

impl<'a> Headless<'a> {
    pub(super) fn new(
        session: AgentSession,
        args: &RunArgs,
        input: Input,
        signals: &'a mut Signals,
        show: &'a mut Show,
        out: &'a mut Out,
    ) -> Self {
        Self {
            seq: 0,
            is_closed: false,
            session,
            input,
            signals,
            show,
            out,
            question_timeout: args.question_timeout,
            when_busy: args.session.when_busy,
            open: Vec::new(),
            tally: Tally::default(),
            leave: None,
            has_door: args.door.a2a_port.is_some(),
            in_a_hurry: false,
        }
    }

    /// Follows the session to its end, or until the user interrupts twice, and then releases it.
    pub(super) async fn run(mut self) -> Left {
        let exit = self.until_over().await;
        Left { exit, in_a_hurry: self.in_a_hurry }
    }

    async fn until_over(&mut self) -> Exit {
        if !self.input.is_open() {
            self.session.finish().await.ok(); // a session that is gone already has ended
        }
        let ended = match self.follow().await {
            Ok(()) => {
                self.is_closed = true;
                let last = self.show.end();
                self.write(&last).await
            }
            cut => cut,
        };
        match ended {
            Ok(()) => self.tally.exit(),
            Err(Cut::Interrupted) => {
                self.in_a_hurry = true;
                self.last_words().await;
                Exit::Interrupted
            }
            Err(Cut::Stuck) => {
                self.in_a_hurry = true;
                Exit::Interrupted
            }
            // The reader has seen enough.
            Err(Cut::Unwritten(Unwritten::ReaderGone)) => Exit::Completed,
            Err(Cut::Unwritten(error)) => lost(&error),
        }
    }

    /// Writes the last line for a session that is not followed to its end, if the reader takes it at once.
    async fn last_words(&mut self) {
        let mut text = String::new();
        if !self.tally.has_ended() {
            let end = session_end(SessionEndReason::Cancelled, "interrupted twice".to_owned());
            let event = Draft::new(Timestamp::now(), end).stamp(self.session.id().clone(), self.seq + 1);
            let shown = self.show.event(&event);
            text.push_str(&shown.stdout);
            shown.stderr.iter().for_each(|line| out::say(line));
        }
        if !self.is_closed {
            text.push_str(&self.show.end());
        }
        // After a second interrupt, lost output is not reported.
        timeout(HURRY, self.out.write(&text)).await.map(Result::ok).ok();
    }

    /// Follows the session to its end.
    async fn follow(&mut self) -> Result<(), Cut> {
        loop {
            let due = self.open.iter().filter_map(|open| open.until).min();
            tokio::select! {
                event = self.session.events().next() => match event {
                    Some(event) => self.on_event(&event).await?,
                    None => return Ok(()),
                },
                line = self.input.next(), if self.input.is_open() => self.on_input(line).await,
                () = self.signals.next() => self.on_signal().await?,
                () = at(due) => self.deny_due().await,
                () = at(self.leave.as_ref().map(Leave::at)) => self.on_leave()?,
            }
        }
    }

    async fn on_event(&mut self, event: &Event) -> Result<(), Cut> {
        self.tally.apply(event);
        self.seq = event.seq;
        let shown = self.show.event(event);
        self.write(&shown.stdout).await?;
        shown.stderr.iter().for_each(|line| out::say(line));
        match &event.kind {
            EventKind::PermissionAsked(question) => self.on_question(question.clone()).await,
            EventKind::PermissionSettled(ruling) => self.close(&ruling.question_id),
            EventKind::PermissionWithdrawn(gone) => self.close(&gone.question_id),
            _ => {}
        }
        Ok(())
    }

    async fn on_question(&mut self, question: Question) {
        match (self.input.is_open() || self.has_door, self.input.was_there()) {
            (true, _) => {
                let until = self.question_timeout.map(|patience| Instant::now() + patience);
                self.open.push(Open { question, until });
            }
            (false, true) => self.deny(&question, INPUT_ENDED).await,
            (false, false) => self.deny(&question, NOBODY).await,
        }
    }

    fn close(&mut self, question: &QuestionId) {
        self.open.retain(|open| open.question.question_id != *question);
    }

    async fn deny_due(&mut self) {
        let now = Instant::now();
        let due = |open: &mut Open| open.until.is_some_and(|until| until <= now);
        let due: Vec<Open> = self.open.extract_if(.., due).collect();
        let patience = self.question_timeout.unwrap_or_default().as_secs_f32();
        for open in due {
            self.deny(&open.question, &format!("nobody answered within {patience} s")).await;
        }
    }

    /// Denies a question in the host's name. A settled or withdrawn question needs no answer.
    async fn deny(&mut self, question: &Question, why: &str) {
        let Some(choice) = question.refusal() else {
            // None of its options denies: the turn itself has to end.
            self.tally.denied = true;
            self.session.cancel().await.unwrap_or_default();
            return;
        };
        let decide = Decide::new(&question.question_id, choice.id.clone()).with_feedback(why);
        let host = ClientRef::new("multitap", Door::Host);
        match self.session.decide_as(decide, host).await {
            Ok(_) => self.tally.denied = true,
            // The agent takes no command now; the question stays open, and another attempt follows.
            Err(Refusal::Busy) => {
                let until = Some(Instant::now() + Duration::from_millis(100));
                self.open.push(Open { question: question.clone(), until });
            }
            // The question was settled or withdrawn meanwhile.
            Err(_) => {}
        }
    }

    async fn on_input(&mut self, line: Option<Line>) {
        match line {
            Some(Line::Text(text)) if text.trim().is_empty() => {}
            Some(Line::Text(text)) => {
                if let Err(bad) = self.on_line(&text).await {
                    self.complain(bad).await;
                }
            }
            Some(Line::TooLong { head, bytes }) => {
                let message = format!("a line of {bytes} bytes is too long");
                self.complain(BadLine::new(AgentErrorKind::ProtocolError, message, &head)).await;
            }
            None => {
                self.input.close();
                let open = if self.has_door { Vec::new() } else { std::mem::take(&mut self.open) };
                for open in open {
                    self.deny(&open.question, INPUT_ENDED).await;
                }
                self.session.finish().await.ok(); // a session that is gone already has ended
            }
        }
    }

    async fn on_line(&mut self, line: &str) -> Result<(), BadLine> {
        let mut call = request::parse(line)?;
        if let SessionCall::Prompt { when_busy, .. } = &mut call {
            when_busy.get_or_insert(self.when_busy);
        }
        self.session.call(call).await.map(drop).map_err(|refusal| {
            let kind = match refusal {
                // The line is valid, but not allowed: the question waits for another answer.
                Refusal::Answer(Refused::EditRefused { .. }) => AgentErrorKind::PermissionDenied,
                _ => AgentErrorKind::ProtocolError,
            };
            BadLine::new(kind, refusal.to_string(), line)
        })
    }

    /// Reports an input line without effect, as an event. The session goes on.
    async fn complain(&mut self, bad: BadLine) {
        if self.session.report(bad.into_error()).await.is_err() {
            tracing::warn!("a line of the input was not understood, and the error could not be reported");
        }
    }

    /// The first signal cancels the turn and then ends the session; the second ends everything at once.
    async fn on_signal(&mut self) -> Result<(), Cut> {
        if self.tally.interrupted {
            return Err(Cut::Interrupted);
        }
        self.tally.interrupted = true;
        self.input.close();
        self.open.clear();
        self.session.stop().await.ok(); // a session that is gone already has ended
        self.leave = Some(Leave::EndAt(Instant::now() + CANCEL_PATIENCE));
        Ok(())
    }

    fn on_leave(&mut self) -> Result<(), Cut> {
        match self.leave {
            Some(Leave::EndAt(_)) => {
                self.session.end();
                self.leave = Some(Leave::GoAt(Instant::now() + END_PATIENCE));
                Ok(())
            }
            Some(Leave::GoAt(_)) => Err(Cut::Interrupted),
            None => Ok(()),
        }
    }

    /// Writes to stdout, and handles signals even if nobody reads.
    async fn write(&mut self, text: &str) -> Result<(), Cut> {
        if text.is_empty() {
            return Ok(());
        }
        let (out, signals) = (&mut *self.out, &mut *self.signals);
        let written = async {
            let mut write = pin!(out.write(text));
            tokio::select! {
                written = &mut write => Written::Undisturbed(written),
                () = signals.next() => match timeout(WRITE_PATIENCE, write).await {
                    Ok(written) => Written::Signalled(written),
                    Err(_) => Written::Stuck,
                },
            }
        };
        match written.await {
            Written::Undisturbed(Ok(())) => Ok(()),
            Written::Signalled(Ok(())) => self.on_signal().await,
            Written::Undisturbed(Err(error)) | Written::Signalled(Err(error)) => Err(Cut::Unwritten(error)),
            Written::Stuck => Err(Cut::Stuck),
        }
    }
}

/// The outcome of a write to stdout.
enum Written {
    Undisturbed(Result<(), Unwritten>),
    Signalled(Result<(), Unwritten>),
    /// A signal came, and stdout is blocked because nobody reads it.
    Stuck,
}

impl Leave {
    fn at(&self) -> Instant {
        match self {
            Self::EndAt(at) | Self::GoAt(at) => *at,
        }
    }
}

/// Waits until then; forever without a time.
pub(super) async fn at(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => pending().await,
    }
}
