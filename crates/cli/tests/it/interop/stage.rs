//! One run of the binary with a real agent on the scripted model: a client that speaks `stream-json` both ways.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use multitap_testkit::Scratch;
use multitap_testkit::model::{ModelServer, Reply};
use multitap_testkit::wait;
use serde_json::{Value, json};

use super::agent::{Agent, Api, Refusal};
use super::invariants;

/// How long anything may take on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A command that does not end by itself.
pub(crate) const HANGING: &str = "touch started.txt; tail -f /dev/null";

/// A scratch home and workspace with a model; runs of the binary follow each other in it.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) agent: Agent,
    pub(crate) model: ModelServer,
    pub(crate) scratch: Scratch,
    /// What `--agent` says.
    choice: String,
}

impl Place {
    pub(crate) fn new(agent: Agent, script: impl IntoIterator<Item = Reply>) -> Self {
        let model = ModelServer::start(script).unwrap();
        let mut scratch = Scratch::new(&model).unwrap();
        scratch.set("MULTITAP_HOME", scratch.root().join("multitap"));
        let mut place = Self { agent, model, scratch, choice: agent.word().to_owned() };
        match agent {
            Agent::Builtin(api) => place.ask_by(api),
            Agent::Claude | Agent::Codex | Agent::Gemini | Agent::Acp => place.drive(&agent.program().unwrap()),
        }
        place
    }

    /// There is a key for this API only, so that it is the one by which models are asked.
    fn ask_by(&mut self, api: Api) {
        let url = format!("{}/v1", self.model.url());
        let keys =
            [(Api::Anthropic, "ANTHROPIC_API_KEY"), (Api::OpenAi, "OPENAI_API_KEY"), (Api::Gemini, "GEMINI_API_KEY")];
        for (of, variable) in keys {
            self.scratch.set(variable, if of == api { "dummy" } else { "" });
        }
        if api == Api::OpenAi {
            self.scratch.set("OPENAI_BASE_URL", url).set("OPENAI_API", "responses");
        }
    }

    /// This program is the agent.
    pub(crate) fn drive(&mut self, program: &Path) {
        match self.agent.program_variable() {
            Some(variable) => {
                self.scratch.set(variable, program);
            }
            None => self.choice = format!("acp:'{}'", program.display()),
        }
    }

    /// The binary in this place, for this agent.
    pub(crate) fn command(&self, options: &[&str]) -> std::process::Command {
        let mut command = self.scratch.command(env!("CARGO_BIN_EXE_multitap"));
        command.args(options).args(["--agent", &self.choice]);
        command
    }

    /// A run with many turns, idle at first.
    pub(crate) fn open(&self, options: &[&str]) -> Stage<'_> {
        let many = ["-p", "--input-format", "stream-json", "--output-format", "stream-json"];
        Stage::start(self, self.command(&[&many, options].concat()))
    }

    /// A whole run with one prompt and nobody to answer, as a script would do it.
    pub(crate) fn once(&self, prompt: &str, options: &[&str]) -> Run {
        let one = ["-p", prompt, "--output-format", "stream-json"];
        Stage::start(self, self.command(&[&one, options].concat())).finish()
    }

    /// Writes the user's settings of the binary.
    pub(crate) fn settings(&self, settings: &Value) {
        let home = self.scratch.root().join("multitap");
        std::fs::create_dir_all(&home).unwrap();
        std::fs::write(home.join("settings.json"), settings.to_string()).unwrap();
    }

    /// Where the model will find a file of the workspace.
    pub(crate) fn path(&self, name: &str) -> String {
        self.scratch.path(name).display().to_string()
    }
}

/// A run under way.
#[derive(Debug)]
pub(crate) struct Stage<'a> {
    pub(crate) place: &'a Place,
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    stderr: Option<JoinHandle<String>>,
    events: Vec<Value>,
    /// How many of them the test has looked at.
    seen: usize,
}

/// A run that is over.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) events: Vec<Value>,
    pub(crate) code: Option<i32>,
    pub(crate) stderr: String,
}

impl<'a> Stage<'a> {
    fn start(place: &'a Place, mut command: std::process::Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdout = child.stdout.take().unwrap();
        let (tx, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if tx.send(line).is_err() {
                    return;
                }
            }
        });
        let mut pipe = child.stderr.take().unwrap();
        let stderr = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            pipe.read_to_end(&mut bytes).ok();
            String::from_utf8_lossy(&bytes).into_owned()
        });
        let stdin = child.stdin.take();
        Self { place, child, stdin, lines, stderr: Some(stderr), events: Vec::new(), seen: 0 }
    }

    /// The process id of the binary.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The process id of the agent below it.
    pub(crate) fn agent_pid(&self) -> u32 {
        if matches!(self.place.agent, Agent::Builtin(_)) {
            return self.pid(); // it is one with the binary
        }
        let program = self.place.agent.program().unwrap().display().to_string();
        // A script stands behind the program that runs it; a supervisor names it among its own arguments.
        let is = |command: &str| command.contains(&program) && !command.contains("__child");
        let find = || wait::descendants(self.pid()).into_iter().find(|process| is(&process.command));
        wait::until_blocking("the agent's process", PATIENCE, find).unwrap().pid
    }

    /// Prompts for a tool that hangs ([`HANGING`]), and waits until it does.
    pub(crate) fn hang_in_a_tool(&mut self) {
        self.prompt("hang");
        self.next("toolStarted");
        self.until_started();
    }

    /// Waits until the tool that hangs ([`HANGING`]) runs.
    pub(crate) fn until_started(&self) {
        let started = || self.place.scratch.path("started.txt").exists().then_some(());
        wait::until_blocking("the tool to run", PATIENCE, started).unwrap();
    }

    /// Waits until the model was asked and does not answer.
    pub(crate) fn until_hanging(&self) {
        let hangs = || self.place.model.hangs().then_some(());
        wait::until_blocking("the model to hang", PATIENCE, hangs).unwrap();
    }

    /// Writes one line of input.
    pub(crate) fn send(&mut self, line: &Value) {
        let stdin = self.stdin.as_mut().expect("stdin is open");
        writeln!(stdin, "{line}").unwrap();
        stdin.flush().unwrap();
    }

    pub(crate) fn prompt(&mut self, text: &str) {
        self.send(&json!({"type": "prompt", "text": text}));
    }

    /// Answers a question with an option, and more fields if they are given.
    pub(crate) fn decide(&mut self, question: &Value, option: &str, more: &Value) {
        let mut line = json!({"type": "decide", "questionId": question["questionId"], "optionId": option});
        for (key, value) in more.as_object().into_iter().flatten() {
            line[key] = value.clone();
        }
        self.send(&line);
    }

    /// Waits for the next event of this type that was not looked at yet.
    pub(crate) fn next(&mut self, kind: &str) -> Value {
        self.find(kind, |event| event["type"] == kind)
    }

    /// Waits for the next event that fits.
    pub(crate) fn find(&mut self, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            while self.seen < self.events.len() {
                self.seen += 1;
                if fits(&self.events[self.seen - 1]) {
                    return self.events[self.seen - 1].clone();
                }
            }
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => self.events.push(read(&line)),
                Err(_) => panic!("no {what} came.\n{}\nmodel: {:#?}", self.story(), self.place.model.requests().len()),
            }
        }
    }

    /// Waits for the end of the running turn.
    pub(crate) fn turn(&mut self) -> Value {
        self.next("turnCompleted")
    }

    /// A prompt and its turn.
    pub(crate) fn ask(&mut self, text: &str) -> Value {
        self.prompt(text);
        self.turn()
    }

    /// A question; also checks that it offers a way to say no.
    pub(crate) fn question(&mut self) -> Value {
        let question = self.next("permissionAsked");
        let options = question["options"].as_array().unwrap();
        assert!(options.iter().any(|option| option["id"] == "cancel"), "{question:#}");
        assert!(options.iter().any(|option| option["kind"] == "allowOnce"), "{question:#}");
        question
    }

    /// All events so far, for people.
    pub(crate) fn story(&self) -> String {
        self.events.iter().map(|event| format!("{event}\n")).collect()
    }

    /// End of input; waits for the end of the program and checks what holds for every run.
    pub(crate) fn finish(mut self) -> Run {
        self.stdin = None;
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => self.events.push(read(&line)),
                Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => break,
                Err(std::sync::mpsc::RecvTimeoutError::Timeout) => panic!("it does not end.\n{}", self.story()),
            }
        }
        let code = self.child.wait().unwrap().code();
        let stderr = self.stderr.take().and_then(|reader| reader.join().ok()).unwrap_or_default();
        let run = Run { events: std::mem::take(&mut self.events), code, stderr };
        invariants::check(&run);
        run
    }
}

impl Stage<'_> {
    /// Kills the binary, and waits until nothing of the agent is left either.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        let gone = || wait::marked(&self.place.scratch).is_empty().then_some(());
        wait::until_blocking("everything to end", PATIENCE, gone).unwrap();
    }
}

impl Drop for Stage<'_> {
    fn drop(&mut self) {
        self.child.kill().ok(); // only matters when the test failed
        self.child.wait().ok();
    }
}

fn read(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|_| panic!("not an event on stdout: {line}"))
}

impl Run {
    /// All events of this type.
    pub(crate) fn all(&self, kind: &str) -> Vec<&Value> {
        self.events.iter().filter(|event| event["type"] == kind).collect()
    }

    /// The one event of this type.
    #[track_caller]
    pub(crate) fn one(&self, kind: &str) -> &Value {
        let all = self.all(kind);
        assert_eq!(all.len(), 1, "{kind} in\n{}", self.story());
        all[0]
    }

    /// What the agent said, in one piece.
    pub(crate) fn text(&self) -> String {
        self.joined("textChunk")
    }

    /// What the agent thought, in one piece.
    pub(crate) fn thoughts(&self) -> String {
        self.joined("reasoning")
    }

    fn joined(&self, kind: &str) -> String {
        self.all(kind).iter().map(|event| event["content"].as_str().unwrap()).collect()
    }

    pub(crate) fn story(&self) -> String {
        let events: String = self.events.iter().map(|event| format!("{event}\n")).collect();
        format!("{events}exit {:?}\n{}", self.code, self.stderr)
    }

    #[track_caller]
    pub(crate) fn exits(&self, code: i32) -> &Self {
        assert_eq!(self.code, Some(code), "{}", self.story());
        self
    }
}

/// The agent refuses what a row asks for, by name, and nothing is started.
pub(crate) fn check_refusal(agent: Agent, refusal: Refusal) {
    let place = Place::new(agent, Reply::text("unused"));
    if !refusal.settings.is_empty() {
        let own: serde_json::Map<_, _> =
            refusal.settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).into())).collect();
        place.settings(&json!({"agents": {agent.word(): own}}));
    }
    let run = place.once("hello", refusal.options);
    run.exits(2);
    assert!(run.stderr.contains(agent.word()) && run.stderr.contains(refusal.says), "{}", run.stderr);
    assert!(place.model.requests().is_empty());
}
