use std::time::Duration;

use multitap_event::{
    ApprovalMode, EVENT_QUEUE, SessionEnd, SessionEndReason, SystemNote, ToolCompleted, ToolId, ToolOutcome,
    ToolStarted, TurnEnd, TurnId,
};
use tokio::time::timeout;

use super::*;
use crate::scene;

/// Longer than anything takes, even on a busy machine.
const LONG: Duration = Duration::from_secs(30);
const FOREVER: &str = "!echo begun; sleep 300 & sleep 300";

/// A session's owner, lines, and an agent that does what the test says.
struct Scene {
    folder: tempfile::TempDir,
    mark: scene::Mark,
    owner: AgentLink,
    agent: AgentEnd,
    tasks: TaskTracker,
}

impl Scene {
    fn new() -> Self {
        Self::of(Keeper::Group, false)
    }

    fn of(keeper: Keeper, steers: bool) -> Self {
        Self::blocking(&["Bash(mkfs *)"], keeper, steers)
    }

    fn blocking(blocked: &[&str], keeper: Keeper, steers: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (mark, tasks) = (scene::Mark::new(), TaskTracker::new());
        let (mut theirs, agent) = new_link();
        theirs.steers = steers;
        let (name, value) = mark.variable();
        let environment = BTreeMap::from([(name, value), ("OWN".to_owned(), "mine".to_owned())]);
        let hidden_env = vec!["CARGO_MANIFEST_DIR".to_owned()];
        let blocked = blocked.iter().map(|rule| (*rule).to_owned()).collect();
        let shell = UserShell { folder: folder.path().to_owned(), keeper, environment, hidden_env, blocked };
        let owner = shell_lines(theirs, shell, &tasks);
        Self { folder, mark, owner, agent, tasks }
    }

    async fn ask(&self, command: Command) {
        self.owner.commands.send(command).await.unwrap();
    }

    async fn prompt(&self, text: &str) {
        self.ask(Command::Prompt(Prompt::text(text))).await;
    }

    /// The agent tells something.
    async fn agent_tells(&self, kind: EventKind) {
        self.agent.events.send(Draft::new(Timestamp::now(), kind)).await.unwrap();
    }

    /// What the owner hears next; nothing at the end.
    async fn heard(&mut self) -> Option<EventKind> {
        let draft = timeout(LONG, self.owner.events.recv()).await.expect("something is told");
        draft.map(|draft| draft.kind)
    }

    /// What the owner hears next, in a word.
    async fn word(&mut self) -> String {
        self.heard().await.as_ref().map_or_else(|| "the end".to_owned(), word)
    }

    async fn words(&mut self, count: usize) -> Vec<String> {
        let mut words = Vec::new();
        for _ in 0..count {
            words.push(self.word().await);
        }
        words
    }

    /// The rest of a line's turn, without its output.
    async fn end_of_turn(&mut self) -> (ToolCompleted, TurnEnd) {
        let mut tool = None;
        loop {
            match self.heard().await {
                Some(EventKind::ToolCompleted(done)) => tool = Some(done),
                Some(EventKind::TurnCompleted(end)) => return (tool.expect("the tool ends before its turn"), end),
                Some(EventKind::TurnStarted { .. } | EventKind::ToolStarted(_) | EventKind::ToolProgress(_)) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    /// What the agent is asked next; nothing at the end.
    async fn asked(&mut self) -> Option<Command> {
        timeout(LONG, self.agent.commands.recv()).await.expect("the agent is asked something")
    }

    async fn asked_words(&mut self) -> String {
        match self.asked().await {
            Some(Command::Prompt(prompt)) => prompt.text,
            other => panic!("{other:?}"),
        }
    }

    /// Begins a line that does not end, and waits until it runs.
    async fn hang(&mut self) {
        self.prompt(FOREVER).await;
        assert_eq!(self.words(3).await, ["turn begins", "tool begins", "output begun\n"]);
    }

    /// The agent goes as well; nothing is left of anything.
    async fn over(self) {
        let Self { mark, owner, agent, tasks, .. } = self;
        drop((owner, agent));
        tasks.close();
        timeout(LONG, tasks.wait()).await.expect("the task ends");
        // Without a supervisor nobody waits for what a line started.
        mark.gone().await;
    }
}

fn word(kind: &EventKind) -> String {
    match kind {
        EventKind::TurnStarted { turn_id } if turn_id.as_str() == "theirs" => "their turn begins".to_owned(),
        EventKind::TurnStarted { .. } => "turn begins".to_owned(),
        EventKind::ToolStarted(_) => "tool begins".to_owned(),
        EventKind::ToolProgress(progress) => format!("output {}", progress.output.as_deref().unwrap_or_default()),
        EventKind::ToolCompleted(done) => format!("tool {:?}", done.outcome),
        EventKind::TurnCompleted(end) => format!("turn {:?}", end.status),
        EventKind::System(note) => note.subtype.clone(),
        EventKind::SessionEnded(end) => format!("session {:?}", end.reason),
        EventKind::Error(error) => error.message.clone(),
        other => panic!("{other:?}"),
    }
}

fn note(word: &str) -> EventKind {
    EventKind::System(SystemNote { subtype: word.to_owned(), message: None, data: serde_json::Map::new() })
}

fn their_turn() -> [EventKind; 2] {
    let turn_id = TurnId::from("theirs".to_owned());
    let end = TurnEnd { turn_id: Some(turn_id.clone()), ..TurnEnd::of(TurnStatus::Completed) };
    [EventKind::TurnStarted { turn_id }, EventKind::TurnCompleted(end)]
}

fn session_end(error: Option<&str>) -> EventKind {
    let reason = if error.is_some() { SessionEndReason::Failed } else { SessionEndReason::Completed };
    EventKind::SessionEnded(SessionEnd { reason, error: error.map(str::to_owned), final_usage: None, exit_code: None })
}

#[tokio::test]
async fn a_line_is_a_turn_with_one_call() {
    let mut scene = Scene::new();
    scene.prompt("! printf 'one\\ntwo\\n'; exit 3").await;
    let Some(EventKind::TurnStarted { turn_id }) = scene.heard().await else { panic!("no turn") };
    let Some(EventKind::ToolStarted(ToolStarted { tool_id, tool_name, title, arguments, .. })) = scene.heard().await
    else {
        panic!("no call")
    };
    assert_eq!((tool_name.as_str(), title.as_deref()), ("run_shell_command", Some("printf 'one\\ntwo\\n'; exit 3")));
    assert_eq!(arguments["command"], "printf 'one\\ntwo\\n'; exit 3");
    let Some(EventKind::ToolProgress(progress)) = scene.heard().await else { panic!("no output") };
    assert_eq!(progress.tool_id, tool_id);
    assert!(progress.output.unwrap().starts_with("one\n"));
    let (tool, turn) = scene.end_of_turn().await;
    assert_eq!((tool.tool_id, tool.outcome, tool.exit_code), (tool_id, ToolOutcome::Failed, Some(3)));
    assert_eq!(tool.error.as_deref(), Some("one\ntwo\n[exit code 3]"));
    assert_eq!((turn.turn_id, turn.status, turn.origin), (Some(turn_id), TurnStatus::Completed, None));
    assert_eq!((turn.text.as_deref(), turn.num_turns), (Some("one\ntwo\n[exit code 3]"), Some(0)));
    scene.over().await;
}

#[tokio::test]
async fn ids_are_never_the_same() {
    let mut scene = Scene::new();
    let mut ids = Vec::<ToolId>::new();
    for _ in 0..3 {
        scene.prompt("!true").await;
        let (tool, turn) = scene.end_of_turn().await;
        ids.extend([tool.tool_id, ToolId::from(turn.turn_id.unwrap().to_string())]);
    }
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 6);
}

#[tokio::test]
async fn it_runs_in_the_sessions_folder_with_what_it_may_know() {
    let mut scene = Scene::new();
    scene.prompt("!pwd; echo $OWN [$CARGO_MANIFEST_DIR]; cat").await;
    let (tool, _) = scene.end_of_turn().await;
    let folder = scene.folder.path().canonicalize().unwrap();
    assert_eq!(tool.result.unwrap(), format!("{}\nmine []", folder.display()));
}

#[tokio::test]
async fn a_line_that_cannot_be_run_is_told_as_one_that_failed() {
    let mut scene = Scene::new();
    scene.prompt("!echo a\0b").await;
    assert_eq!(scene.words(4).await, ["turn begins", "tool begins", "tool Failed", "turn Completed"]);
    std::fs::remove_dir(scene.folder.path()).unwrap();
    scene.prompt("!ls").await;
    let (tool, _) = scene.end_of_turn().await;
    assert!(tool.error.as_ref().is_some_and(|why| why.starts_with("cannot run it in ")), "{tool:?}");
}

#[tokio::test]
async fn the_agent_hears_of_it_with_the_next_prompt_and_once() {
    let mut scene = Scene::new();
    scene.prompt("!echo 'ein Apfel'").await;
    scene.end_of_turn().await;
    scene.prompt("!echo </user-ran-command>").await;
    scene.end_of_turn().await;
    scene.prompt("/compact").await;
    assert_eq!(scene.asked_words().await, "/compact");
    scene.prompt("what was it?").await;
    let words = scene.asked_words().await;
    assert!(words.contains("$ echo 'ein Apfel'\nein Apfel\n[exit code 0]\n</user-ran-command>\n"), "{words}");
    assert!(words.ends_with("</user-ran-command>\n\nwhat was it?"), "{words}");
    assert_eq!(words.matches("</user-ran-command").count(), 2, "{words}");
    scene.prompt("and now?").await;
    assert_eq!(scene.asked_words().await, "and now?");
}

#[tokio::test]
async fn what_is_no_line_passes_as_it_is() {
    let mut scene = Scene::new();
    let within = Prompt { within: Some(ApprovalMode::Ask), ..Prompt::text("!touch made") };
    for command in [
        Command::Prompt(within),
        Command::Prompt(Prompt::text(" !touch made")),
        Command::Prompt(Prompt::text("!")),
        Command::Prompt(Prompt::text("! \n")),
        Command::Cancel,
        Command::SetModel { model: "big".to_owned() },
        Command::Steer(Prompt::text("more")),
    ] {
        scene.ask(command.clone()).await;
        assert_eq!(scene.asked().await, Some(command));
    }
    assert!(!scene.folder.path().join("made").exists());
}

#[tokio::test]
async fn cancel_ends_the_line_and_whatever_it_started_and_is_not_for_the_agent() {
    let mut scene = Scene::new();
    scene.hang().await;
    scene.ask(Command::Cancel).await;
    scene.ask(Command::Cancel).await;
    let (tool, turn) = scene.end_of_turn().await;
    assert_eq!((tool.outcome, turn.status), (ToolOutcome::Cancelled, TurnStatus::Cancelled));
    assert_eq!(tool.error.as_deref(), Some("begun\n[the user stopped it]"));
    scene.mark.gone().await;
    // Had it been for the agent, it would come first.
    scene.prompt("go on").await;
    assert!(scene.asked_words().await.contains("[the user stopped it]\n</user-ran-command>\n\ngo on"));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn what_got_away_from_a_line_ends_with_it() {
    let mut scene = Scene::of(scene::supervisor(), false);
    scene.prompt("!setsid sleep 300 >/dev/null 2>&1 & nohup sleep 300 >/dev/null 2>&1 & echo done").await;
    let (tool, _) = scene.end_of_turn().await;
    assert_eq!(tool.result.unwrap(), "done");
    assert_eq!(scene.mark.processes(), [0_u32; 0]);
}

#[tokio::test]
async fn what_an_agent_that_rests_tells_and_is_asked_passes_meanwhile() {
    let mut scene = Scene::new();
    scene.hang().await;
    for word in ["one", "two"] {
        scene.agent_tells(note(word)).await;
    }
    assert_eq!(scene.words(2).await, ["one", "two"]);
    let command = Command::SetMode { mode: "plan".to_owned() };
    scene.ask(command.clone()).await;
    assert_eq!(scene.asked().await, Some(command));
    scene.ask(Command::Cancel).await;
    assert_eq!(scene.words(2).await, ["tool Cancelled", "turn Cancelled"]);
    scene.over().await;
}

#[tokio::test]
async fn a_turn_that_the_agent_begins_meanwhile_comes_after_the_line() {
    let mut scene = Scene::new();
    scene.hang().await;
    let [begin, end] = their_turn();
    for kind in [note("before"), begin, note("within"), end] {
        scene.agent_tells(kind).await;
    }
    assert_eq!(scene.word().await, "before");
    scene.ask(Command::Cancel).await;
    let words = ["tool Cancelled", "turn Cancelled", "their turn begins", "within", "turn Completed"];
    assert_eq!(scene.words(5).await, words);
}

#[tokio::test]
async fn a_line_waits_for_the_agents_turn() {
    let mut scene = Scene::new();
    let [begin, end] = their_turn();
    scene.agent_tells(begin).await;
    assert_eq!(scene.word().await, "their turn begins");
    scene.prompt("!echo hi").await;
    // The cancel that follows is for the turn that runs.
    scene.ask(Command::Cancel).await;
    assert_eq!(scene.asked().await, Some(Command::Cancel));
    scene.agent_tells(end).await;
    let words = ["turn Completed", "turn begins", "tool begins", "output hi\n", "tool Completed", "turn Completed"];
    assert_eq!(scene.words(6).await, words);
}

#[tokio::test]
async fn what_is_said_while_a_line_runs_comes_after_it_one_turn_after_the_other() {
    for steers in [false, true] {
        let mut scene = Scene::of(Keeper::Group, steers);
        scene.hang().await;
        for text in ["see", "/compact", "!echo second", "and this"] {
            scene.ask(Command::Steer(Prompt::text(text))).await;
        }
        scene.ask(Command::Cancel).await;
        scene.end_of_turn().await;
        for words in ["</user-ran-command>\n\nsee", "/compact"] {
            let said = scene.asked_words().await;
            assert!(said.ends_with(words), "{said}");
            for kind in their_turn() {
                scene.agent_tells(kind).await;
            }
            assert_eq!(scene.words(2).await, ["their turn begins", "turn Completed"], "no line runs beside it");
        }
        let (tool, _) = scene.end_of_turn().await;
        assert_eq!(tool.result.unwrap(), "second");
        let said = scene.asked_words().await;
        assert!(said.contains("$ echo second") && said.ends_with("\n\nand this"), "{said}");
        scene.over().await;
    }
}

#[tokio::test]
async fn what_waited_for_an_agent_that_is_gone_does_not_begin() {
    let mut scene = Scene::of(Keeper::Group, true);
    scene.hang().await;
    scene.ask(Command::Steer(Prompt::text("!touch late; sleep 300"))).await;
    scene.agent_tells(session_end(None)).await;
    let words = ["tool Cancelled", "turn Interrupted", "session Failed"];
    assert_eq!(scene.words(3).await, words);
    assert!(!scene.folder.path().join("late").exists());
    scene.over().await;
}

#[tokio::test]
async fn no_more_waits_than_there_is_room_for() {
    let mut scene = Scene::of(Keeper::Group, true);
    scene.hang().await;
    for number in 0..=WAITING {
        scene.ask(Command::Steer(Prompt::text(number.to_string()))).await;
    }
    assert!(scene.word().await.contains("the queue is full"));
    scene.ask(Command::Cancel).await;
    scene.end_of_turn().await;
}

#[tokio::test]
async fn the_line_ends_before_an_agent_that_dies() {
    let mut scene = Scene::new();
    scene.hang().await;
    scene.agent_tells(session_end(Some("claude ended"))).await;
    let (tool, turn) = scene.end_of_turn().await;
    assert_eq!((tool.outcome, turn.status), (ToolOutcome::Cancelled, TurnStatus::Interrupted));
    assert_eq!(scene.word().await, "session Failed");
    scene.mark.gone().await;

    let mut scene = Scene::new();
    scene.hang().await;
    drop(std::mem::replace(&mut scene.agent, new_link().1));
    assert_eq!(scene.words(3).await, ["tool Cancelled", "turn Interrupted", "the end"]);
    scene.over().await;
}

#[tokio::test]
async fn an_owner_that_lets_go_ends_the_line_and_hears_the_agents_last_words() {
    let mut scene = Scene::new();
    scene.hang().await;
    scene.ask(Command::SetModel { model: "last".to_owned() }).await;
    drop(std::mem::replace(&mut scene.owner.commands, new_link().0.commands));
    assert_eq!(scene.words(2).await, ["tool Cancelled", "turn Cancelled"]);
    assert_eq!(scene.asked().await, Some(Command::SetModel { model: "last".to_owned() }));
    assert_eq!(scene.asked().await, None);
    scene.agent_tells(note("bye")).await;
    scene.agent_tells(session_end(None)).await;
    drop(std::mem::replace(&mut scene.agent, new_link().1));
    assert_eq!(scene.words(3).await, ["bye", "session Cancelled", "the end"], "it ends as its last turn did");
    scene.over().await;
}

#[tokio::test]
async fn an_owner_that_is_gone_leaves_nothing_behind() {
    let mut scene = Scene::new();
    scene.hang().await;
    scene.over().await;
}

/// While nobody hears anything the agent has to wait, and so has the line.
#[tokio::test]
async fn outward_waits() {
    let mut scene = Scene::new();
    scene.prompt("!while echo more; do sleep 0.01; done").await;
    let flood = async { while scene.agent.events.send(Draft::new(Timestamp::now(), note("flood"))).await.is_ok() {} };
    let is_full = || scene.owner.events.len() == EVENT_QUEUE && scene.agent.events.capacity() == 0;
    tokio::select! {
        () = flood => panic!("the agent is gone"),
        () = scene::until("both queues to be full", is_full) => {}
    }
    // Whoever listens again hears all of it, and can stop the line.
    scene.ask(Command::Cancel).await;
    let mut floods = 0;
    let status = loop {
        match scene.heard().await.unwrap() {
            EventKind::TurnCompleted(end) => break end.status,
            EventKind::System(_) => floods += 1,
            _ => {}
        }
    };
    assert_eq!(status, TurnStatus::Cancelled);
    assert!(floods > 0);
    scene.over().await;
}

/// An agent that takes nothing keeps no line from being stopped, and then a queue that is full refuses as ever.
#[tokio::test]
async fn an_agent_that_takes_nothing_keeps_no_line_from_being_stopped() {
    let mut scene = Scene::new();
    let think = || Command::SetThinking { tokens: None };
    for _ in 0..COMMAND_QUEUE {
        scene.ask(think()).await;
    }
    scene.hang().await;
    for _ in 0..3 {
        scene.ask(think()).await;
    }
    scene.ask(Command::Cancel).await;
    assert_eq!(scene.words(2).await, ["tool Cancelled", "turn Cancelled"]);
    let taken = (0..2 * COMMAND_QUEUE).take_while(|_| scene.owner.commands.try_send(think()).is_ok()).count();
    assert_eq!(taken, COMMAND_QUEUE);
    // Nobody ever will: whoever asks hears so.
    drop(std::mem::replace(&mut scene.agent, new_link().1));
    assert_eq!(scene.word().await, "the end");
    assert!(scene.owner.commands.is_closed());
}

/// A rule that cannot be read may be about any command.
#[tokio::test]
async fn no_line_runs_while_a_rule_about_commands_cannot_be_read() {
    for rule in ["Bash(* --force)", "Bash(rm", "PowerShell(rm:*)"] {
        let mut scene = Scene::blocking(&["Read(./.env)", rule], Keeper::Group, false);
        scene.prompt("!touch made").await;
        let (done, _) = scene.end_of_turn().await;
        assert_eq!(done.outcome, ToolOutcome::Denied, "{rule}");
        assert!(done.error.as_deref().unwrap().contains(rule), "{done:?}");
        assert!(!scene.folder.path().join("made").exists());
        scene.over().await;
    }
    let mut scene = Scene::blocking(&["Read(./.env)"], Keeper::Group, false);
    scene.prompt("!touch made").await;
    scene.end_of_turn().await;
    assert!(scene.folder.path().join("made").exists(), "a rule about something else blocks no command");
    scene.over().await;
}

#[tokio::test]
async fn a_line_that_a_rule_blocks_does_not_run() {
    let mut scene = Scene::new();
    for line in ["!mkfs made", "!touch made; env mkfs made"] {
        scene.prompt(line).await;
        let (done, _) = scene.end_of_turn().await;
        assert_eq!(done.outcome, ToolOutcome::Denied, "{line}");
        assert!(done.error.as_deref().unwrap().contains("blocked"), "{done:?}");
    }
    assert!(!scene.folder.path().join("made").exists());
    scene.over().await;
}
