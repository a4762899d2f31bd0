//! `kill -9` at any moment: sessions are driven, killed and taken up again and again, and keep every promise.
//!
//! A driver prompts, queues, answers, cancels and takes back as events come along, until the process is killed
//! somewhere in between. What anybody saw is noted in a [`Ledger`], which the log has to bear out after each crash.
//! `MULTITAP_SOAK=1` makes it 200 rounds. A round that fails tells its seed; with `MULTITAP_SEED` the same choices are
//! made again, though not in the same microsecond.

mod agent;
mod driver;
mod ledger;

use std::io::Write as _;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use multitap_hub::Journal as _;
use multitap_store::Store;
use multitap_testkit::fake::Fake;
use serde_json::Value;

use self::agent::{Heard, agent};
use self::driver::{Dice, Driver, Wish};
use self::ledger::Ledger;
use crate::scene::{Live, PATIENCE, Run, Scene, whole};

const ROUNDS: u64 = 12;
const SOAK_ROUNDS: u64 = 200;
/// The most crashes of one session.
const LONGEST_LIFE: u64 = 25;
/// However busy the machine is: by then it is killed.
const LONGEST_ROUND: Duration = Duration::from_secs(1);

const MANY: [&str; 5] = ["-p", "--input-format", "stream-json", "--output-format", "stream-json"];

#[test]
fn a_crash_loses_nothing_that_anybody_saw() {
    let soak = std::env::var_os("MULTITAP_SOAK").is_some();
    let seed = match std::env::var("MULTITAP_SEED") {
        Ok(seed) => seed.parse().unwrap(),
        Err(_) => u64::try_from(SystemTime::UNIX_EPOCH.elapsed().unwrap().as_micros()).unwrap(),
    };
    let mut rounds = Rounds::new(seed);
    for _ in 0..if soak { SOAK_ROUNDS } else { ROUNDS } {
        rounds.next();
    }
    rounds.take_leave();
    rounds.scene.nothing_left();
    if soak {
        let Tally { rounds: all, starting, turns, questions, queues, .. } = rounds.tally;
        let each = [starting, turns, questions, queues];
        assert!(each.iter().all(|count| *count > all / 100), "not enough was met to show anything: {:?}", rounds.tally);
        rounds.tell("all is well");
    }
}

/// What the rounds have met so far.
#[derive(Debug, Default)]
struct Tally {
    rounds: u64,
    sessions: u64,
    /// In all logs.
    events: usize,
    rulings: usize,
    /// How often it was killed before it had said anything, in a turn, with a question open, with a prompt waiting.
    starting: u64,
    turns: u64,
    questions: u64,
    queues: u64,
}

struct Rounds {
    seed: u64,
    dice: Dice,
    fake: Fake,
    scene: Scene,
    home: PathBuf,
    driver: Driver,
    /// The session that is driven now, once anybody saw something of it.
    id: Option<String>,
    ledger: Ledger,
    /// How many more crashes it has before it.
    crashes: u64,
    tally: Tally,
}

/// When the process is killed.
#[derive(Debug)]
enum Kill {
    After(Duration),
    /// A moment after so many events were seen.
    Events(u64, Duration),
    /// A moment after so many lines were sent.
    Lines(u64, Duration),
}

impl Rounds {
    fn new(seed: u64) -> Self {
        let fake = agent();
        let mut scene = Scene::with(&fake);
        let home = scene.scratch.root().join("multitap");
        scene.scratch.set("MULTITAP_HOME", &home);
        let (dice, driver, ledger, tally) = (Dice(seed), Driver::of(0), Ledger::default(), Tally::default());
        Self { seed, dice, fake, scene, home, driver, id: None, ledger, crashes: 0, tally }
    }

    /// One life of a process: started, driven, killed; then it is looked at what it left.
    fn next(&mut self) {
        if self.crashes == 0 {
            self.take_leave();
            self.crashes = self.dice.up_to(LONGEST_LIFE);
        }
        self.crashes -= 1;
        self.tally.rounds += 1;
        let moment = Duration::from_micros(self.dice.below(4000));
        let kill = match self.dice.below(3) {
            // Often while it starts, and mends what the last one left.
            0 => {
                let longest = 30 << self.dice.below(5);
                Kill::After(Duration::from_millis(self.dice.below(longest)))
            }
            1 => Kill::Events(self.dice.up_to(40), moment),
            _ => Kill::Lines(self.dice.up_to(8), moment),
        };
        let mut live = self.start();
        self.drive(&mut live, &kill);
        live.kill();
        let run = live.wait();
        assert_eq!(run.code, None, "it ended by itself: {run:#?}");
        let said = self.note(&run);
        self.tally.starting += u64::from(!said);
        let Some(id) = self.id.clone() else { return };
        if said {
            // Others could find it.
            let note = std::fs::read(self.home.join("run").join(format!("{id}.json"))).unwrap();
            assert_eq!(serde_json::from_slice::<Value>(&note).unwrap()["pid"], live.pid());
        }
        let left = self.ledger.crashed(exported(&self.scene, &id));
        self.tally.turns += u64::from(left.turn);
        self.tally.questions += u64::from(!left.questions.is_empty());
        self.tally.queues += u64::from(!left.queue.is_empty());
        self.check();
    }

    /// Takes the session up for the last time: all that waited is done, and then it ends. The next one is new.
    fn take_leave(&mut self) {
        if let Some(id) = self.id.clone() {
            self.driver.wish = Wish::Peace;
            let waiting = self.ledger.standing().queue.len();
            let mut live = self.scene.start(&[&MANY[..], &["-r", &id]].concat());
            let (mut done, mut up) = (0, false);
            while done < waiting || !up {
                let line = live.line_by(Instant::now() + PATIENCE).expect("what waited is not done");
                let event: Value = serde_json::from_str(&line).unwrap();
                up |= event["type"] == "sessionStarted";
                done += usize::from(up && event["type"] == "turnCompleted");
                self.driver.react(&event, &mut self.dice).iter().for_each(|line| live.tell(line));
            }
            let run = live.end();
            assert!(run.code.is_some(), "{run:#?}");
            whole(&run.events());
            self.note(&run);
            self.ledger.grew(exported(&self.scene, &id));
            self.check();
            self.ledger.check_all_done();
            self.tally.sessions += 1;
            self.tally.events += self.ledger.len();
            self.tally.rulings += self.ledger.rulings().len();
        }
        (self.id, self.ledger) = (None, Ledger::default());
        self.driver = Driver::of(self.tally.rounds);
    }

    fn start(&self) -> Live {
        match &self.id {
            Some(id) => self.scene.start(&[&MANY[..], &["-r", id]].concat()),
            None => self.scene.start(&MANY),
        }
    }

    /// Does what comes to mind at each event, until it is time to kill.
    fn drive(&mut self, live: &mut Live, kill: &Kill) {
        let start = Instant::now();
        let mut due = start + LONGEST_ROUND;
        if let Kill::After(time) = kill {
            due = start + *time;
        }
        let (mut events, mut lines) = (0, 0);
        let looks_at = self.dice.below(60);
        while let Some(line) = live.line_by(due) {
            let event: Value = serde_json::from_str(&line).unwrap();
            self.saw(&event);
            events += 1;
            if let Kill::Events(count, moment) = kill
                && events == *count
            {
                due = Instant::now() + *moment;
            }
            if events == looks_at {
                self.look_from_elsewhere();
            }
            for line in self.driver.react(&event, &mut self.dice) {
                live.tell(&line);
                lines += 1;
                if let Kill::Lines(count, moment) = kill
                    && lines == *count
                {
                    due = Instant::now() + *moment;
                }
            }
        }
    }

    /// Another process reads the log while the session is live: it has seen what it read.
    fn look_from_elsewhere(&mut self) {
        if let Some(id) = &self.id {
            exported(&self.scene, id).iter().for_each(|event| self.ledger.saw(event));
        }
    }

    fn saw(&mut self, event: &Value) {
        let id = event["sessionId"].as_str().unwrap();
        assert_eq!(self.id.get_or_insert_with(|| id.to_owned()), id, "{event}");
        self.ledger.saw(event);
    }

    /// Notes all that a run said, and whether that was anything.
    fn note(&mut self, run: &Run) -> bool {
        let mut lines = run.stdout.lines().peekable();
        let mut said = false;
        while let Some(line) = lines.next() {
            match serde_json::from_str(line) {
                Ok(event) => {
                    self.saw(&event);
                    said = true;
                }
                // A line that was cut off was told to nobody.
                Err(error) => assert!(lines.peek().is_none(), "{error}: {line}"),
            }
        }
        said
    }

    /// What the agents heard, and what the log's keeper knows besides the events, fits the log.
    fn check(&self) {
        let Some(id) = &self.id else { return };
        self.ledger.check_heard(&Heard::by(&self.fake), |prompt| self.driver.is_mine(prompt));
        let (epoch, rulings) = self.audited(id);
        assert_eq!(epoch, 1, "nothing was lost, so every place in the log is still good");
        let of_log = self.ledger.rulings();
        assert_eq!(rulings.len(), of_log.len());
        for (ruling, event) in rulings.iter().zip(of_log) {
            for key in ["questionId", "selectedOptionId", "kind", "settledBy", "at"] {
                assert_eq!(ruling[key], event[key], "{key} of {event}");
            }
        }
    }

    #[tokio::main(flavor = "current_thread")]
    async fn audited(&self, id: &str) -> (u64, Vec<Value>) {
        let store = Store::open(self.home.join("sessions.db")).unwrap();
        let record = store.find(id.to_owned()).await.unwrap().remove(0);
        let rulings = store.rulings(record.id).await.unwrap();
        store.close().await;
        (record.epoch, rulings.iter().map(|ruling| serde_json::to_value(ruling).unwrap()).collect())
    }

    /// For people: past the harness, which shows only what failed.
    fn tell(&self, what: &str) {
        let Self { seed, tally, .. } = self;
        writeln!(std::io::stderr(), "crash rounds: {what}; MULTITAP_SEED={seed} {tally:?}").ok();
    }
}

impl Drop for Rounds {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.tell("this one failed");
        }
    }
}

fn exported(scene: &Scene, id: &str) -> Vec<Value> {
    scene.run(&["sessions", "export", id]).exits(0).events()
}
