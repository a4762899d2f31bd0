//! A line that begins with `!`, with an agent that takes none itself: it runs, and the agent hears of it.

use multitap_testkit::fake::Fake;
use multitap_testkit::wait::{marked, until_blocking};
use serde_json::{Value, json};

use crate::scene::{PATIENCE, Scene, of, the, types, whole};

const MANY: [&str; 5] = ["-p", "--input-format", "stream-json", "--output-format", "stream-json"];

fn prompt(text: &str) -> Value {
    json!({ "type": "prompt", "text": text })
}

/// What the agent was prompted with.
fn prompts(fake: &Fake) -> Vec<String> {
    let lines = fake.heard().unwrap();
    let lines = lines.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let text = |line: Value| line.pointer("/message/content/0/text").and_then(Value::as_str).map(str::to_owned);
    lines.filter_map(text).collect()
}

#[test]
fn without_a_terminal_its_output_is_the_answer() {
    let fake = Fake::claude().says("hello").build().unwrap();
    let scene = Scene::with(&fake);
    let run = scene.run(&["-p", "!echo hi; echo oops >&2; echo made > made.txt"]).exits(0);
    assert_eq!(run.stdout, "hi\noops\n");
    assert_eq!(scene.scratch.read("made.txt").unwrap(), "made\n");
    assert_eq!(prompts(&fake), Vec::<String>::new());
}

#[test]
fn what_is_piped_in_is_never_a_line() {
    for (args, words) in [(&["-p", "!touch pwned"][..], "\n\n!touch pwned"), (&["-p", "-"], ""), (&[], "")] {
        let fake = Fake::claude().says("a readme").build().unwrap();
        let scene = Scene::with(&fake);
        let run = scene.run_with(args, "!touch pwned; #[logo](logo.png)").exits(0);
        assert_eq!(run.stdout, "a readme\n");
        assert_eq!(prompts(&fake), [format!(" !touch pwned; #[logo](logo.png){words}")]);
        assert!(!scene.scratch.path("pwned").exists());
    }
}

#[test]
fn the_agent_hears_of_it_with_the_next_prompt_and_the_log_says_what_was_said() {
    let fake = Fake::claude().says("one").says("two").build().unwrap();
    let scene = Scene::with(&fake);
    let mut live = scene.start(&MANY);
    for text in ["!echo first; exit 3", "!echo second", "what is it?", "and now?"] {
        live.tell(&prompt(text));
        live.until_type("turnCompleted");
    }
    let run = live.end().exits(0);
    let events = run.events();
    whole(&events);
    let said: Vec<_> = of(&events, "userMessage").iter().map(|event| event["content"].clone()).collect();
    assert_eq!(said, ["!echo first; exit 3", "!echo second", "what is it?", "and now?"]);
    let codes: Vec<_> = of(&events, "toolCompleted").iter().map(|event| event["exitCode"].clone()).collect();
    assert_eq!(codes, [3, 0]);
    let order = types(&events);
    let line = ["userMessage", "turnStarted", "toolStarted", "toolProgress", "toolCompleted", "turnCompleted"];
    assert!(order.windows(6).filter(|found| *found == line).count() == 2, "{order:?}");
    let [first, second] = &prompts(&fake)[..] else { panic!("{:?}", prompts(&fake)) };
    let frames = "<user-ran-command>\n$ echo first; exit 3\nfirst\n[exit code 3]\n</user-ran-command>\n\
                  <user-ran-command>\n$ echo second\nsecond\n[exit code 0]\n</user-ran-command>\n";
    assert!(first.ends_with(&format!("{frames}\nwhat is it?")), "{first}");
    assert_eq!(second, "and now?");
}

/// No agent goes on with a conversation in which it was told nothing.
#[test]
fn a_session_of_nothing_but_lines_is_gone_on_with() {
    let fake = Fake::claude().says("hello").build().unwrap();
    let scene = Scene::with(&fake);
    let stream = ["--output-format", "stream-json"];
    let first = scene.run(&[&["-p", "!echo hi"], &stream[..]].concat()).exits(0).events();
    let then = scene.run(&[&["-c", "-p", "well?"], &stream[..]].concat()).exits(0).events();
    assert_eq!(then[0]["sessionId"], first[0]["sessionId"], "in the same log");
    assert_eq!(the(&then, "userMessage")["content"], "well?");
    let heard = fake.heard().unwrap().join("\n");
    assert!(!heard.contains("--resume") && !heard.contains("--continue"), "{heard}");
}

#[test]
fn a_line_is_cancelled_and_nothing_of_it_is_left() {
    let fake = Fake::claude().says("well").build().unwrap();
    let scene = Scene::with(&fake);
    let mut live = scene.start(&MANY);
    live.tell(&prompt("!echo begun; setsid sleep 987 & sleep 987"));
    live.until_type("toolProgress");
    let sleepers = || marked(&scene.scratch).into_iter().filter(|process| process.command == "sleep 987").count();
    until_blocking("both to run", PATIENCE, || (sleepers() == 2).then_some(())).unwrap();
    live.tell(&json!({ "type": "cancel" }));
    let end = live.until_type("turnCompleted");
    assert_eq!(end["status"], "cancelled", "{end}");
    assert_eq!(sleepers(), 0);
    live.tell(&prompt("are you well?"));
    live.until_type("turnCompleted");
    let events = live.end().exits(0).events();
    assert_eq!(the(&events, "toolCompleted")["outcome"], "cancelled");
    assert_eq!(of(&events, "error"), Vec::<&Value>::new(), "the agent was asked to cancel nothing");
    assert!(prompts(&fake)[0].contains("begun\n[the user stopped it]\n"), "{:?}", prompts(&fake));
}

#[test]
fn a_line_ends_with_us_also_when_we_are_killed() {
    let fake = Fake::claude().build().unwrap();
    let scene = Scene::with(&fake);
    let mut live = scene.start(&MANY);
    live.tell(&prompt("!echo begun; setsid sleep 987 & sleep 987"));
    live.until_type("toolProgress");
    live.signal("-KILL", &scene.scratch);
    scene.nothing_left();
}
