//! What people saw of a session, and whether its log keeps every promise that was made by it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::Value;

use super::agent::Heard;
use crate::scene::of;

/// One session over all of its crashes.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// What anybody saw, by number.
    seen: BTreeMap<u64, Value>,
    /// The log as it was after each crash; the last is the longest.
    log: Vec<Value>,
    /// How long it was then.
    crashes: Vec<usize>,
}

/// What was under way when the process was killed.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Standing {
    pub(super) agent: bool,
    pub(super) turn: bool,
    pub(super) questions: BTreeSet<String>,
    /// The ids of the prompts that wait.
    pub(super) queue: VecDeque<String>,
}

impl Ledger {
    /// Somebody saw it. Whatever has this number stays this.
    #[track_caller]
    pub(super) fn saw(&mut self, event: &Value) {
        let seq = event["seq"].as_u64().unwrap();
        let known = self.seen.entry(seq).or_insert_with(|| event.clone());
        assert_eq!(known, event, "number {seq} was used twice");
    }

    /// The process was killed and left this log: nothing is missing, nothing is changed. Tells how it stands.
    #[track_caller]
    pub(super) fn crashed(&mut self, log: Vec<Value>) -> Standing {
        self.grew(log);
        self.crashes.push(self.log.len());
        self.standing()
    }

    /// The log is longer now, and whole.
    #[track_caller]
    pub(super) fn grew(&mut self, log: Vec<Value>) {
        for (number, event) in (1..).zip(&log) {
            assert_eq!(event["seq"], number, "a gap or a repetition: {event}");
            assert_eq!(event["sessionId"], log[0]["sessionId"], "{event}");
        }
        let ids: BTreeSet<&str> = log.iter().map(|event| event["id"].as_str().unwrap()).collect();
        assert_eq!(ids.len(), log.len(), "an event stands there twice");
        assert!(log.starts_with(&self.log), "what was in the log is not there any more");
        for (seq, event) in &self.seen {
            let kept = log.get(usize::try_from(*seq).unwrap() - 1);
            assert_eq!(kept, Some(event), "somebody saw event {seq}, and it is not kept");
        }
        self.log = log;
        self.check_runs();
        self.check_rulings();
        self.check_prompts();
    }

    /// Each agent's run is closed before the next, and a turn that a crash cut off is marked `interrupted` before that.
    #[track_caller]
    fn check_runs(&self) {
        let (mut run, mut turn, mut cut) = (false, false, false);
        for (at, event) in self.log.iter().enumerate() {
            cut |= turn && self.crashes.contains(&at);
            match event["type"].as_str().unwrap() {
                "sessionStarted" => {
                    assert!(!run && !turn, "an agent began before the last was said to be gone: {event}");
                    run = true;
                }
                "sessionEnded" => {
                    assert!(run && !turn, "an agent ended that had not begun, or in a turn: {event}");
                    run = false;
                }
                "userMessage" => {
                    assert!(run && !turn, "a prompt was handed over in the middle of a turn: {event}");
                    turn = true;
                }
                "turnCompleted" => {
                    assert!(turn, "a turn ended that had not begun: {event}");
                    assert!(!cut || event["status"] == "interrupted", "it was cut off: {event}");
                    (turn, cut) = (false, false);
                }
                _ => {}
            }
        }
    }

    /// No question has two rulings, nor one that it did not offer.
    #[track_caller]
    fn check_rulings(&self) {
        let mut open = BTreeMap::new();
        for event in &self.log {
            match event["type"].as_str().unwrap() {
                "permissionAsked" => {
                    let question = event["questionId"].as_str().unwrap();
                    assert!(open.insert(question, &event["options"]).is_none(), "asked twice: {event}");
                }
                "permissionSettled" => {
                    let options = open.remove(event["questionId"].as_str().unwrap());
                    let options = options.unwrap_or_else(|| panic!("a ruling on nothing: {event}"));
                    let offered = |option: &Value| option["id"] == event["selectedOptionId"];
                    assert!(options.as_array().unwrap().iter().any(offered), "not offered: {event}");
                }
                "permissionWithdrawn" => {
                    let gone = open.remove(event["questionId"].as_str().unwrap());
                    assert!(gone.is_some(), "a question went that was not open: {event}");
                }
                _ => {}
            }
        }
    }

    /// Prompts are taken once and handed over once, those that waited in their order.
    #[track_caller]
    fn check_prompts(&self) {
        let mut queue = VecDeque::new();
        let (mut queued, mut handed) = (BTreeSet::new(), BTreeSet::new());
        let text = |prompt: &Value| prompt.as_str().unwrap().to_owned();
        for event in &self.log {
            match event["type"].as_str().unwrap() {
                "promptQueued" => {
                    assert!(queued.insert(text(&event["prompt"]["text"])), "taken twice: {event}");
                    queue.push_back(&event["prompt"]);
                }
                "promptWithdrawn" => {
                    let before = queue.len();
                    queue.retain(|prompt| prompt["promptId"] != event["promptId"]);
                    assert_eq!(queue.len() + 1, before, "it did not wait: {event}");
                }
                "userMessage" => {
                    assert!(handed.insert(text(&event["content"])), "handed over twice: {event}");
                    if let Some(next) = queue.pop_front() {
                        assert_eq!(next["text"], event["content"], "another one was next");
                    }
                }
                _ => {}
            }
        }
    }

    /// What the agents heard stood in the log before, and they heard nothing twice.
    #[track_caller]
    pub(super) fn check_heard(&self, heard: &Heard, mine: impl Fn(&str) -> bool) {
        let handed: BTreeSet<&str> =
            of(&self.log, "userMessage").iter().map(|message| message["content"].as_str().unwrap()).collect();
        let mut once = BTreeSet::new();
        for prompt in heard.prompts.iter().filter(|prompt| mine(prompt)) {
            assert!(handed.contains(prompt.as_str()), "the agent has a prompt that is not in the log: {prompt}");
            assert!(once.insert(prompt), "the agent has a prompt twice: {prompt}");
        }
        for question in of(&self.log, "permissionAsked").iter().map(|asked| &asked["questionId"]) {
            let Some(heard) = heard.allowed.get(question.as_str().unwrap()) else { continue };
            let ruling = self.rulings().into_iter().find(|ruling| ruling["questionId"] == *question);
            let allows = ruling.map(|ruling| ruling["kind"].as_str().unwrap().starts_with("allow"));
            assert_eq!(allows.as_slice(), heard, "the agent heard of another ruling on {question}");
        }
    }

    /// Every prompt that anybody was told of was handed over once, unless it was withdrawn.
    #[track_caller]
    pub(super) fn check_all_done(&self) {
        let handed: BTreeSet<&str> =
            of(&self.log, "userMessage").iter().map(|message| message["content"].as_str().unwrap()).collect();
        let withdrawn: Vec<&Value> =
            of(&self.log, "promptWithdrawn").iter().map(|withdrawal| &withdrawal["promptId"]).collect();
        let acknowledged = self.seen.values().filter(|event| event["type"] == "promptQueued");
        for prompt in acknowledged.map(|event| &event["prompt"]) {
            let text = prompt["text"].as_str().unwrap();
            assert_ne!(handed.contains(text), withdrawn.contains(&&prompt["promptId"]), "{prompt}");
        }
        assert_eq!(self.standing(), Standing::default());
    }

    pub(super) fn len(&self) -> usize {
        self.log.len()
    }

    pub(super) fn rulings(&self) -> Vec<&Value> {
        of(&self.log, "permissionSettled")
    }

    pub(super) fn standing(&self) -> Standing {
        standing(&self.log)
    }
}

/// What is under way at the end of a log.
fn standing(log: &[Value]) -> Standing {
    let mut now = Standing::default();
    for event in log {
        match event["type"].as_str().unwrap() {
            "sessionStarted" => now.agent = true,
            "sessionEnded" => now.agent = false,
            "userMessage" => {
                now.turn = true;
                now.queue.retain(|id| event["promptId"] != id.as_str());
            }
            "turnCompleted" => now.turn = false,
            "promptQueued" => now.queue.push_back(event["prompt"]["promptId"].as_str().unwrap().to_owned()),
            "promptWithdrawn" => now.queue.retain(|id| event["promptId"] != id.as_str()),
            "permissionAsked" => drop(now.questions.insert(event["questionId"].as_str().unwrap().to_owned())),
            "permissionSettled" | "permissionWithdrawn" => {
                now.questions.remove(event["questionId"].as_str().unwrap());
            }
            _ => {}
        }
    }
    now
}
