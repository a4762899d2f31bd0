//! The built-in agent at work, the same over every model API: a whole conversation, a cancel in each phase of a turn,
//! words said into one, and what was said before taken up by another process.

use std::collections::BTreeSet;

use multitap_testkit::model::{Reply, Request, Script, Tool};
use serde_json::{Value, json};

use super::agent::{Agent, Api};
use super::scenario::history::{listed, sessions};
use super::stage::{HANGING, Place, Run, Stage};

/// One test for each API.
macro_rules! over_every_api {
    ($($test:ident)+) => {
        mod builtin_on_anthropic {
            $(#[test] fn $test() { super::$test(super::Api::Anthropic); })+
        }

        mod builtin_on_openai {
            $(#[test] fn $test() { super::$test(super::Api::OpenAi); })+
        }

        mod builtin_on_gemini {
            $(#[test] fn $test() { super::$test(super::Api::Gemini); })+
        }
    };
}

over_every_api! {
    it_finds_mends_and_checks_a_fault
    it_can_be_stopped_in_each_phase_of_a_turn
    what_is_said_into_a_turn_reaches_the_model
    an_interruption_ends_one_turn_and_begins_the_next
    a_full_conversation_is_summed_up
    a_reply_that_broke_off_is_taken_back
    another_process_goes_on_with_the_whole_conversation
    a_conversation_that_was_killed_goes_on
}

/// Our log has all that it said, also of a turn that was cut off.
#[test]
fn what_it_said_is_read_back_from_our_log() {
    let agent = Agent::Builtin(Api::Anthropic);
    let tool = Reply::think("hm").then_text("I look.").then_call(Tool::shell("echo hi"));
    let place = Place::new(agent, [tool, Reply::text("It says hi."), Reply::text("wait").then_hang()]);
    let mut stage = place.open(&["--approval-mode", "auto-all"]);
    stage.ask("remember plum");
    stage.prompt("hang");
    stage.next("textChunk");
    let live: Vec<Value> = stage.story().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    stage.kill();
    let list = listed(&place);
    assert_eq!(list.len(), 1, "{list:#?}");
    assert_eq!((&list[0]["agent"], &list[0]["title"]), (&json!("builtin"), &json!("remember plum")));
    assert!(list[0]["model"].as_str().unwrap().starts_with("anthropic/"), "{list:#?}");
    // As any later run of multitap would mark it.
    place.once("go on", &["-r", list[0]["id"].as_str().unwrap()]).exits(0);
    let (code, stdout, stderr) = sessions(&place, &["show", "latest", "--json"]);
    assert_eq!(code, Some(0), "{stderr}");
    let again: Vec<Value> = stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(again[..live.len()], live, "{stdout}");
    let ends: Vec<&Value> = again.iter().filter(|event| event["type"] == "turnCompleted").collect();
    let ends: Vec<&str> = ends.iter().map(|end| end["status"].as_str().unwrap()).collect();
    assert_eq!(ends, ["completed", "interrupted", "completed"]);
}

/// A sum that is wrong, and what shows it.
fn faulty(api: Api) -> Place {
    let place = Place::new(Agent::Builtin(api), []);
    place.scratch.write("src/sum.sh", "echo $(( $1 - $2 ))\n").unwrap();
    let check =
        "sum=$(sh src/sum.sh 2 3)\n[ \"$sum\" = 5 ] && echo good || { echo \"2 and 3 are not $sum\"; exit 7; }\n";
    place.scratch.write("check.sh", check).unwrap();
    place
}

fn script(place: &Place, replies: impl IntoIterator<Item = Reply>) {
    replies.into_iter().for_each(|reply| place.model.push(reply));
}

/// It looks with several calls at once, edits with leave, runs the check, which fails, edits again, runs it again
/// unasked because it was allowed for good, and says so.
fn it_finds_mends_and_checks_a_fault(api: Api) {
    let place = faulty(api);
    let sum = place.path("src/sum.sh");
    let look = Reply::think("where is it?")
        .then_text("I look.")
        .then_call(Tool::native("list_directory", json!({"path": place.scratch.workspace()})))
        .then_call(Tool::native("search_file_content", json!({"pattern": "\\$1"})))
        .then_call(Tool::read(&sum));
    script(
        &place,
        [
            look,
            Reply::call(Tool::edit(&sum, "$1 - $2", "$1 * $2")),
            Reply::call(Tool::shell("sh check.sh")),
            Reply::text("Not yet.").then_call(Tool::edit(&sum, "$1 * $2", "$1 + $2")),
            Reply::call(Tool::shell("sh check.sh")),
            Reply::text("Mended."),
        ],
    );
    let mut stage = place.open(&["--approval-mode", "ask"]);
    stage.prompt("mend the sum");
    let allow = |stage: &mut Stage<'_>, option: &str, kind: &str| {
        let question = stage.question();
        assert_eq!(question["details"]["type"], kind, "{question:#}");
        stage.decide(&question, option, &json!({}));
        question
    };
    let first = allow(&mut stage, "proceed_once", "fileEdit");
    assert_eq!(first["details"]["after"], "echo $(( $1 * $2 ))\n");
    allow(&mut stage, "proceed_always", "command");
    allow(&mut stage, "proceed_once", "fileEdit");
    let end = stage.turn();
    assert_eq!((&end["status"], &end["numTurns"]), (&json!("completed"), &json!(6)), "{end:#}");
    assert_eq!((&end["text"], &end["usage"]["totalTokens"]), (&json!("Mended."), &json!(660)), "{end:#}");
    let run = stage.finish();
    run.exits(0);
    let kinds: Vec<&str> = run.all("toolStarted").iter().map(|tool| tool["toolKind"].as_str().unwrap()).collect();
    assert_eq!(kinds[3..], ["edit", "shell", "edit", "shell"], "{}", run.story());
    let ends: Vec<_> = ends(&run).into_iter().skip(3).collect();
    let done = |code| ("completed".to_owned(), code);
    assert_eq!(ends, [done(None), ("failed".to_owned(), Some(7)), done(None), done(Some(0))], "{}", run.story());
    assert_eq!(run.all("permissionAsked").len(), 3, "{}", run.story());
    assert_eq!(run.text(), "I look.Not yet.Mended.");
    assert_eq!(place.scratch.read("src/sum.sh").unwrap(), "echo $(( $1 + $2 ))\n");

    let asked = place.model.conversation();
    let told = |at: usize| asked[at].tool_results().into_iter().map(|result| result.text).collect::<Vec<_>>();
    let looked = told(1);
    assert!(looked[0].contains("check.sh") && looked[1].contains("src/sum.sh") && looked[2].contains("$1 - $2"));
    assert!(told(3)[0].contains("2 and 3 are not 6"), "{:?}", told(3));
    assert!(told(5)[0].contains("good"), "{:?}", told(5));
    let calls: Vec<usize> = asked.iter().map(|request| assert_whole(api, request)).collect();
    assert_eq!(calls, [0, 3, 4, 5, 6, 7]);
}

/// How each tool ended, and with which code.
fn ends(run: &Run) -> Vec<(String, Option<i64>)> {
    let end = |end: &&Value| (end["outcome"].as_str().unwrap().to_owned(), end["exitCode"].as_i64());
    run.all("toolCompleted").iter().map(end).collect()
}

/// Waits until a turn is in the phase that is meant.
type Reach<'a> = &'a dyn Fn(&mut Stage<'_>);

/// Before the reply, in it, before another try, with a question open, in a tool; each time the next turn is as good as
/// any, and the model hears a conversation in which every call has its answer.
fn it_can_be_stopped_in_each_phase_of_a_turn(api: Api) {
    let place = Place::new(Agent::Builtin(api), []);
    let mut stage = place.open(&["--approval-mode", "ask"]);
    let read = place.path("notes.txt");
    place.scratch.write("notes.txt", "plum\n").unwrap();
    let phases: [(&str, Reply, Reach<'_>); 5] = [
        ("before the reply", Reply::hang(), &|stage| {
            stage.next("turnStarted");
            stage.until_hanging();
        }),
        ("in the reply", Reply::text("once upon a time").then_call(Tool::read(&read)).then_hang(), &|stage| {
            stage.next("textChunk");
        }),
        ("before another try", Reply::status(503).retry_after(600), &|stage| {
            assert_eq!(stage.next("retry")["delayMs"], 600_000);
        }),
        // The second call never had its turn.
        ("with a question open", Reply::call(Tool::shell("touch made.txt")).then_call(Tool::read(&read)), &|stage| {
            stage.question();
        }),
        ("in a tool", Reply::call(Tool::shell(HANGING)), &|stage| {
            let question = stage.question();
            stage.decide(&question, "proceed_once", &json!({}));
            stage.until_started();
        }),
    ];
    for (phase, reply, reach) in phases {
        place.model.push(reply);
        stage.prompt(&format!("stop me {phase}"));
        reach(&mut stage);
        stage.send(&json!({"type": "cancel"}));
        assert_eq!(stage.turn()["status"], "cancelled", "{phase}\n{}", stage.story());
        place.model.push(Reply::text("still here"));
        assert_eq!(stage.ask(&format!("was it {phase}?"))["status"], "completed", "{phase}\n{}", stage.story());
        let heard = place.model.conversation().pop().unwrap();
        assert_whole(api, &heard);
        let texts = heard.user_texts();
        assert!(texts.iter().any(|text| text.contains(&format!("stop me {phase}"))), "{texts:?}");
        assert_eq!(place.model.queued(), 0, "{phase}: nothing is asked for twice");
    }
    assert!(!place.scratch.path("made.txt").exists());
    let run = stage.finish();
    run.exits(0);
    assert!(run.all("error").is_empty(), "{}", run.story());
    assert_eq!(run.all("permissionWithdrawn").len(), 1, "{}", run.story());
    assert_eq!(ends(&run).iter().filter(|(end, _)| end == "cancelled").count(), 2, "{}", run.story());
}

fn what_is_said_into_a_turn_reaches_the_model(api: Api) {
    let place = Place::new(Agent::Builtin(api), [Reply::call(Tool::shell("touch made.txt")), Reply::text("both")]);
    let mut stage = place.open(&["--approval-mode", "ask", "--when-busy", "steer"]);
    stage.prompt("make a file");
    let question = stage.question();
    stage.prompt("and be quick");
    assert_eq!(stage.next("userMessage")["steering"], true);
    stage.decide(&question, "proceed_once", &json!({}));
    assert_eq!(stage.turn()["status"], "completed");
    let run = stage.finish();
    run.exits(0);
    assert_eq!((run.all("turnStarted").len(), run.text().as_str()), (1, "both"), "{}", run.story());
    let heard = place.model.conversation().pop().unwrap();
    assert_eq!(heard.tool_results().len(), 1, "what the tool gave comes along");
    assert_eq!(heard.user_texts(), ["make a file", "and be quick"]);
    assert_eq!(assert_whole(api, &heard), 1);
}

fn an_interruption_ends_one_turn_and_begins_the_next(api: Api) {
    let place = Place::new(Agent::Builtin(api), [Reply::text("a long story").then_hang(), Reply::text("in short")]);
    let mut stage = place.open(&[]);
    stage.prompt("tell me a story");
    stage.next("textChunk");
    stage.send(&json!({"type": "prompt", "text": "make it short", "whenBusy": "interrupt"}));
    assert_eq!(stage.turn()["status"], "cancelled");
    assert_eq!(stage.turn()["status"], "completed");
    let run = stage.finish();
    run.exits(0);
    assert!(run.text().ends_with("in short"), "{}", run.story());
    assert_eq!(place.model.conversation().pop().unwrap().user_texts(), ["tell me a story", "make it short"]);
}

/// By itself when there is little room left, and when the user wants it. The next question begins with the summary.
fn a_full_conversation_is_summed_up(api: Api) {
    const SUMMARY: &str = "the word is plum";
    let place = Place::new(Agent::Builtin(api), Script::new().side_text(SUMMARY));
    let look = Reply::call(Tool::native("list_directory", json!({"path": "."})));
    script(&place, [look, Reply::text("noted").usage(900_000, 10)]);
    let mut stage = place.open(&[]);
    stage.ask("remember plum");
    let summaries = |count: usize| {
        let asks = |request: &Request| request.last_user_text().contains("Sum up our conversation");
        assert_eq!(place.model.requests().iter().filter(|request| asks(request)).count(), count);
    };
    if api == Api::Anthropic {
        // Tools that were called are named to it even then, so this looks like any other question.
        place.model.push(Reply::text(SUMMARY).when_asked("Sum up our conversation"));
    }
    place.model.push(Reply::text("plum"));
    assert_eq!(stage.ask("which word?")["text"], "plum", "{}", stage.story());
    summaries(1);
    let heard = place.model.conversation().pop().unwrap();
    assert!(heard.user_texts()[0].contains(SUMMARY), "{:?}", heard.user_texts());
    assert_eq!(heard.last_user_text(), "which word?");
    assert_eq!(assert_whole(api, &heard), 0);
    assert_eq!(stage.ask("/compress")["status"], "completed");
    summaries(2);
    let run = stage.finish();
    run.exits(0);
    let notes = run.all("system").into_iter().filter(|note| note["subtype"] == "compacted");
    assert_eq!(notes.count(), 2, "{}", run.story());
}

/// What was shown of it is void, the retry says why, and the report of a script has the whole only.
fn a_reply_that_broke_off_is_taken_back(api: Api) {
    let place = Place::new(Agent::Builtin(api), [Reply::text("half a sen").then_cut(), Reply::text("the whole")]);
    let output = place.command(&["-p", "hello", "--output-format", "json"]).output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["text"], &report["status"]), (&json!("the whole"), &json!("completed")), "{report:#}");
    let heard = place.model.conversation().pop().unwrap();
    assert!(!heard.body.to_string().contains("half a sen"), "{:#}", heard.body);
}

/// What the model said, what it called for and what that gave: all of it is there again.
fn another_process_goes_on_with_the_whole_conversation(api: Api) {
    let place = Place::new(Agent::Builtin(api), []);
    place.scratch.write("word.txt", "quince\n").unwrap();
    let read = Reply::think("hm").then_text("I read it.").then_call(Tool::read(place.path("word.txt")));
    script(&place, [read, Reply::text("It is a fruit."), Reply::text("I told you: a fruit.")]);
    let first = place.once("what is in word.txt?", &[]);
    first.exits(0);
    let second = place.once("what did you say?", &["-r", first.events[0]["sessionId"].as_str().unwrap()]);
    second.exits(0);
    assert_eq!(second.text(), "I told you: a fruit.", "the past is not told again");
    let heard = place.model.conversation().pop().unwrap();
    assert_eq!(heard.user_texts(), ["what is in word.txt?", "what did you say?"]);
    assert_eq!(assert_whole(api, &heard), 1);
    let sent = heard.body.to_string();
    let order = ["what is in word.txt?", "I read it.", "quince", "It is a fruit.", "what did you say?"];
    let order = order.map(|words| sent.find(words));
    assert!(order.iter().all(Option::is_some) && order.is_sorted(), "{order:?}\n{:#}", heard.body);
}

/// A call that the end of the process cut off has an answer that says so.
fn a_conversation_that_was_killed_goes_on(api: Api) {
    let place = Place::new(Agent::Builtin(api), [Reply::text("noted"), Reply::call(Tool::shell(HANGING))]);
    let mut stage = place.open(&["--approval-mode", "auto-all"]);
    stage.ask("remember plum");
    stage.hang_in_a_tool();
    let id: Value = serde_json::from_str(stage.story().lines().next().unwrap()).unwrap();
    stage.kill();
    place.model.push(Reply::text("plum"));
    let run = place.once("which word?", &["-r", id["sessionId"].as_str().unwrap()]);
    run.exits(0);
    assert_eq!(run.text(), "plum");
    let heard = place.model.conversation().pop().unwrap();
    assert_eq!(heard.user_texts(), ["remember plum", "hang", "which word?"]);
    assert_eq!(assert_whole(api, &heard), 1);
    assert!(heard.body.to_string().contains("cut off"), "{:#}", heard.body);
}

/// Every call in what the model was sent has exactly one answer; how many there are.
#[track_caller]
fn assert_whole(api: Api, request: &Request) -> usize {
    let (mut calls, mut answers) = (Vec::new(), Vec::new());
    let list = match api {
        Api::Anthropic => &request.body["messages"],
        Api::OpenAi => &request.body["input"],
        Api::Gemini => &request.body["contents"],
    };
    for item in list.as_array().unwrap() {
        let inner = match api {
            Api::Anthropic => &item["content"],
            Api::Gemini => &item["parts"],
            Api::OpenAi => &Value::Null,
        };
        for part in inner.as_array().into_iter().flatten().chain([item]) {
            let text = |value: &Value| value.as_str().map(str::to_owned);
            let (call, answer) = match api {
                Api::Anthropic => match part["type"].as_str() {
                    Some("tool_use") => (text(&part["id"]), None),
                    _ => (None, text(&part["tool_use_id"])),
                },
                Api::OpenAi => match part["type"].as_str() {
                    Some("function_call") => (text(&part["call_id"]), None),
                    _ => (None, text(&part["call_id"])),
                },
                Api::Gemini => (text(&part["functionCall"]["name"]), text(&part["functionResponse"]["name"])),
            };
            calls.extend(call);
            answers.extend(answer);
        }
    }
    assert_eq!(calls, answers, "{list:#}");
    if api != Api::Gemini {
        assert_eq!(calls.iter().collect::<BTreeSet<_>>().len(), calls.len(), "an id twice: {calls:?}");
    }
    calls.len()
}
