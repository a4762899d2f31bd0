//! Runs prompts that begin with `!` as shell commands, for agents that do not: between the owner of a session and its
//! agent.
//!
//! Everything else passes through. A shell command is a turn of its own, with the same events as the built-in
//! agent's, and never runs during a turn of the agent: one waits for the other. The agent did not see it, so its
//! output goes with the next prompt. Outward waits: events that cannot be sent yet hold back the command and the
//! agent. Inward never waits: an agent without room for a command must not prevent a cancel.
//!
//! Must not come in: agent names, how a shell is run (`tools::shell` knows).

mod running;
#[cfg(test)]
#[cfg(unix)]
mod tests;
mod unseen;

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::path::PathBuf;

use multitap_event::{
    AgentEnd, AgentError, AgentErrorKind, AgentLink, ApprovalMode, COMMAND_QUEUE, Command, Draft, EventKind, Prompt,
    Timestamp, TurnStatus, link as new_link,
};
use multitap_process::Keeper;
use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;

use self::running::{CommandReport, RunningCommand, news};
use self::unseen::UnseenCommands;
use crate::policy::Policy;
use crate::tool::Outcome;
use crate::tools::shell::{Shell, Surroundings};

/// Most prompts that may wait for a shell command to end; one more is refused.
const WAITING: usize = COMMAND_QUEUE;

/// How the user's shell commands run. They are the user's own, so there is no sandbox.
#[derive(Clone)]
pub struct UserShell {
    pub folder: PathBuf,
    /// How the programs they start are supervised.
    pub keeper: Keeper,
    /// Added to the user's own environment.
    pub environment: BTreeMap<String, String>,
    pub hidden_env: Vec<String>,
    /// Block rules, as the agent spells them (`--block-tool`) or as our own settings do.
    pub blocked: Vec<String>,
}

impl fmt::Debug for UserShell {
    /// Values are omitted: variables may be keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UserShell").field("folder", &self.folder).field("keeper", &self.keeper).finish_non_exhaustive()
    }
}

/// Wraps an agent so that prompts beginning with `!` run as shell commands, if their sender has unlimited rights
/// ([`Prompt::within`]). `tasks` ends only after everything a command started is gone.
pub fn shell_lines(link: AgentLink, shell: UserShell, tasks: &TaskTracker) -> AgentLink {
    let (lines, owners) = Lines::new(link, shell);
    tasks.spawn(lines.run());
    owners
}

struct Lines {
    owner: AgentEnd,
    events: mpsc::Receiver<Draft>,
    /// Dropped to end the agent.
    agent: Option<mpsc::Sender<Command>>,
    shell: Shell,
    policy: Policy,
    line: Option<RunningCommand>,
    /// The start of a turn, or the end of the session, that the agent reported while a command ran. No more events are
    /// read until it is passed on.
    held: Option<Draft>,
    /// Commands for which the agent's queue had no room yet.
    handing: VecDeque<Command>,
    /// Prompts sent while a command ran, and shell commands sent while the agent worked.
    later: VecDeque<Prompt>,
    unseen: UnseenCommands,
    /// Whether the agent got a prompt and has not ended a turn since.
    said: bool,
    in_turn: bool,
    /// How the last turn ended, if it was a shell command.
    last: Option<TurnStatus>,
    /// The owner dropped its command channel.
    ending: bool,
    /// The agent is gone.
    over: bool,
}

struct OwnerGone;

impl Lines {
    fn new(link: AgentLink, shell: UserShell) -> (Self, AgentLink) {
        let AgentLink { events, commands, steers, reviews } = link;
        let (mut owners, owner) = new_link();
        owners.steers = steers;
        owners.reviews = reviews;
        let UserShell { folder, keeper, environment, hidden_env, blocked } = shell;
        let shell = Shell::new(Surroundings {
            folders: vec![folder],
            keeper,
            environment: environment.into_iter().collect(),
            hidden_env,
            // Only background commands use this folder, and there are none.
            private: PathBuf::new(),
            sandbox: None,
        });
        let lines = Self {
            owner,
            events,
            agent: Some(commands),
            shell,
            policy: Policy::beside_agent(ApprovalMode::Ask, &blocked),
            line: None,
            held: None,
            handing: VecDeque::new(),
            later: VecDeque::new(),
            unseen: UnseenCommands::default(),
            said: false,
            in_turn: false,
            last: None,
            ending: false,
            over: false,
        };
        (lines, owners)
    }

    /// Runs until the agent or the owner is gone, and every command has ended.
    async fn run(mut self) {
        if self.carry().await.is_err() {
            self.agent = None;
        }
        if let Some(line) = self.line.take() {
            line.abandon().await;
        }
    }

    async fn carry(&mut self) -> Result<(), OwnerGone> {
        while !(self.over && self.line.is_none()) {
            // Take one command at a time, so that the owner's queue can fill up and refuse. A running command must
            // still receive a cancel.
            let hands = !self.handing.is_empty();
            let takes = !hands || (self.line.is_some() && self.handing.len() < COMMAND_QUEUE);
            tokio::select! {
                command = self.owner.commands.recv(), if takes && !self.ending => match command {
                    Some(command) => self.command(command).await?,
                    None => self.let_go(),
                },
                draft = self.events.recv(), if self.held.is_none() && !self.over => match draft {
                    Some(draft) => self.heard(draft).await?,
                    None => self.lost(),
                },
                has_room = room(self.agent.as_ref()), if hands => self.hand_over(has_room),
                news = news(&mut self.line) => match news {
                    CommandReport::Told(kind) => self.tell(kind).await?,
                    CommandReport::Done(outcome) => self.done(outcome).await?,
                },
                () = self.owner.events.closed() => return Err(OwnerGone),
            }
            if self.ending && self.handing.is_empty() {
                self.agent = None;
            }
        }
        Ok(())
    }

    async fn command(&mut self, command: Command) -> Result<(), OwnerGone> {
        match (command, &mut self.line) {
            (Command::Cancel, Some(line)) => line.stop(TurnStatus::Cancelled),
            (Command::Prompt(prompt) | Command::Steer(prompt), Some(_)) => self.wait(prompt).await?,
            (Command::Prompt(prompt) | Command::Steer(prompt), None) if line_of(&prompt).is_some() => {
                self.wait(prompt).await?;
                self.go_on().await?;
            }
            (Command::Prompt(prompt), None) => self.say(prompt, Command::Prompt),
            (Command::Steer(prompt), None) => self.say(prompt, Command::Steer),
            (other, _) => self.handing.push_back(other),
        }
        Ok(())
    }

    async fn wait(&mut self, prompt: Prompt) -> Result<(), OwnerGone> {
        if self.later.len() >= WAITING {
            let why = format!("the queue is full ({WAITING} prompts)");
            return self.tell(EventKind::Error(AgentError::new(AgentErrorKind::Unknown, why).warning())).await;
        }
        self.later.push_back(prompt);
        Ok(())
    }

    /// Passes a prompt to the agent, with the commands it has not seen.
    fn say(&mut self, mut prompt: Prompt, how: fn(Prompt) -> Command) {
        self.unseen.put_before(&mut prompt);
        self.said = true;
        self.handing.push_back(how(prompt));
    }

    /// Starts what is queued, in order, one turn after the other.
    async fn go_on(&mut self) -> Result<(), OwnerGone> {
        if self.line.is_some() || self.in_turn || self.said {
            return Ok(());
        }
        let Some(prompt) = self.later.pop_front() else { return Ok(()) };
        let Some(command) = line_of(&prompt) else {
            self.say(prompt, Command::Prompt);
            return Ok(());
        };
        let (line, began) = RunningCommand::begin(command, &self.shell, &self.policy);
        self.line = Some(line);
        for kind in began {
            self.tell(kind).await?;
        }
        Ok(())
    }

    async fn heard(&mut self, mut draft: Draft) -> Result<(), OwnerGone> {
        match (&mut draft.kind, &mut self.line) {
            (EventKind::TurnStarted { .. }, Some(_)) => {
                self.held = Some(draft);
                return Ok(());
            }
            (EventKind::SessionEnded(_), Some(line)) => {
                line.stop(TurnStatus::Interrupted);
                self.held = Some(draft);
                return Ok(());
            }
            (EventKind::TurnStarted { .. }, None) => self.in_turn = true,
            (EventKind::TurnCompleted(_), _) => (self.in_turn, self.said, self.last) = (false, false, None),
            (EventKind::SessionEnded(end), None) => {
                self.later.clear();
                // A session ends like its last turn, and the agent does not know the turn of a shell command.
                if let (None, Some(last)) = (&end.error, self.last) {
                    end.reason = last.into();
                }
            }
            _ => {}
        }
        let rests = matches!(draft.kind, EventKind::TurnCompleted(_));
        self.owner.events.send(draft).await.map_err(|_| OwnerGone)?;
        if rests { self.go_on().await } else { Ok(()) }
    }

    /// The shell command ended: starts the next one in the queue.
    async fn done(&mut self, outcome: Outcome) -> Result<(), OwnerGone> {
        let Some(line) = self.line.take() else { return Ok(()) };
        self.unseen.add(&line.command, &outcome);
        self.last = Some(line.status);
        for kind in line.end(outcome) {
            self.tell(kind).await?;
        }
        if let Some(held) = self.held.take() {
            self.heard(held).await?;
        }
        self.go_on().await
    }

    async fn tell(&mut self, kind: EventKind) -> Result<(), OwnerGone> {
        self.owner.events.send(Draft::new(Timestamp::now(), kind)).await.map_err(|_| OwnerGone)
    }

    /// Passes on a command if the agent has room; `None` if the agent is gone.
    fn hand_over(&mut self, room: Option<mpsc::OwnedPermit<Command>>) {
        match room {
            Some(room) => {
                if let Some(command) = self.handing.pop_front() {
                    room.send(command);
                }
            }
            None => {
                // The agent is about to end: later requests fail.
                self.handing.clear();
                self.agent = None;
                self.owner.commands.close();
            }
        }
    }

    /// Ends the agent on the owner's request, after a running shell command.
    fn let_go(&mut self) {
        self.ending = true;
        self.later.clear();
        if let Some(line) = &mut self.line {
            line.stop(TurnStatus::Cancelled);
        }
    }

    /// The agent is gone.
    fn lost(&mut self) {
        self.over = true;
        self.later.clear();
        if let Some(line) = &mut self.line {
            line.stop(TurnStatus::Interrupted);
        }
    }
}

/// A permit in the agent's queue; `None` if it accepts no more.
async fn room(agent: Option<&mpsc::Sender<Command>>) -> Option<mpsc::OwnedPermit<Command>> {
    agent?.clone().reserve_owned().await.ok()
}

/// The shell command in a prompt, if its sender may run one without asking.
fn line_of(prompt: &Prompt) -> Option<&str> {
    prompt.shell_line().filter(|_| prompt.within.is_none())
}
