//! Turns: a whole piece of work, a cancel in each phase, words said into one, and what goes wrong in one.

use multitap_testkit::model::{Reply, Tool};
use serde_json::{Value, json};

use super::{assert_whole, ends, script};
use crate::interop::agent::{Agent, Api};
use crate::interop::scenario::text::{PIXEL, base64};
use crate::interop::scenario::tools::MCP_SERVER;
use crate::interop::stage::{HANGING, Place, Stage};

/// A sum that is wrong, and what shows it.
fn faulty(api: Api) -> Place {
    let place = Place::new(Agent::Builtin(api), []);
    place.scratch.write("src/sum.sh", "echo $(( $1 - $2 ))\n").unwrap();
    let check =
        "sum=$(sh src/sum.sh 2 3)\n[ \"$sum\" = 5 ] && echo good || { echo \"2 and 3 are not $sum\"; exit 7; }\n";
    place.scratch.write("check.sh", check).unwrap();
    place
}

/// It looks with several calls at once, edits with leave, runs the check, which fails, edits again, runs it again
/// unasked because it was allowed for good, has a server shout it out, and says so.
pub(super) fn it_finds_mends_and_checks_a_fault(api: Api) {
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
            Reply::call(Tool::mcp("echo", "shout", json!({"text": "mended"}))),
            Reply::text("Mended."),
        ],
    );
    // Beside the workspace, so that it is not found there.
    let server = place.scratch.root().join("server.sh");
    std::fs::write(&server, MCP_SERVER).unwrap();
    assert!(place.agent.mcp_server(&place.scratch, "echo", &server).is_empty());
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
    allow(&mut stage, "proceed_once", "mcp");
    let end = stage.turn();
    assert_eq!((&end["status"], &end["numTurns"]), (&json!("completed"), &json!(7)), "{end:#}");
    assert_eq!((&end["text"], &end["usage"]["totalTokens"]), (&json!("Mended."), &json!(770)), "{end:#}");
    let run = stage.finish();
    run.exits(0);
    let kinds: Vec<&str> = run.all("toolStarted").iter().map(|tool| tool["toolKind"].as_str().unwrap()).collect();
    assert_eq!(kinds[3..], ["edit", "shell", "edit", "shell", "mcp"], "{}", run.story());
    let ends: Vec<_> = ends(&run).into_iter().skip(3).collect();
    let done = |code| ("completed".to_owned(), code);
    assert_eq!(
        ends,
        [done(None), ("failed".to_owned(), Some(7)), done(None), done(Some(0)), done(None)],
        "{}",
        run.story()
    );
    assert_eq!(run.all("permissionAsked").len(), 4, "{}", run.story());
    assert_eq!(run.text(), "I look.Not yet.Mended.");
    assert_eq!(place.scratch.read("src/sum.sh").unwrap(), "echo $(( $1 + $2 ))\n");

    let asked = place.model.conversation();
    let told = |at: usize| asked[at].tool_results().into_iter().map(|result| result.text).collect::<Vec<_>>();
    let looked = told(1);
    assert!(looked[0].contains("check.sh") && looked[1].contains("src/sum.sh") && looked[2].contains("$1 - $2"));
    assert!(told(3)[0].contains("2 and 3 are not 6"), "{:?}", told(3));
    assert!(told(5)[0].contains("good"), "{:?}", told(5));
    assert!(told(6)[0].contains("HELLO FROM MCP"), "{:?}", told(6));
    let calls: Vec<usize> = asked.iter().map(|request| assert_whole(api, request)).collect();
    assert_eq!(calls, [0, 3, 4, 5, 6, 7, 8]);
}

/// Waits until a turn is in the phase that is meant.
type Reach<'a> = &'a dyn Fn(&mut Stage<'_>);

/// Before the reply, in it, before another try, with a question open, in a tool; each time the next turn is as good as
/// any, and the model hears a conversation in which every call has its answer.
pub(super) fn it_can_be_stopped_in_each_phase_of_a_turn(api: Api) {
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
        ("before another try", Reply::status(503).retry_after(120), &|stage| {
            assert_eq!(stage.next("retry")["delayMs"], 120_000);
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

pub(super) fn what_is_said_into_a_turn_reaches_the_model(api: Api) {
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

pub(super) fn an_interruption_ends_one_turn_and_begins_the_next(api: Api) {
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

/// What was shown of it is said to be void, the retry says why, and the model is asked as if it had said nothing.
pub(super) fn a_reply_that_broke_off_is_taken_back(api: Api) {
    let place = Place::new(Agent::Builtin(api), [Reply::text("half a sen").then_cut(), Reply::text("the whole")]);
    let run = place.once("hello", &[]);
    run.exits(0);
    let half = run.all("textChunk")[0];
    let after: Vec<&Value> = run.events.iter().skip_while(|event| *event != half).skip(1).collect();
    assert_eq!((&after[0]["type"], &after[1]["type"]), (&json!("textRetracted"), &json!("retry")), "{}", run.story());
    assert_eq!(after[0]["messageIds"], json!([half["messageId"]]));
    assert_ne!(after[2]["messageId"], half["messageId"], "{}", run.story());
    assert_eq!(run.one("turnCompleted")["text"], "the whole");
    let heard = place.model.conversation().pop().unwrap();
    assert!(!heard.body.to_string().contains("half a sen"), "{:#}", heard.body);
}

/// A tool that there is not, arguments of the wrong type, a file outside: the model hears what is wrong, nothing is
/// asked, and the turn goes on.
pub(super) fn a_call_that_cannot_be_made_is_told_to_the_model(api: Api) {
    let bad = Reply::call(Tool::native("no_such_tool", json!({})))
        .then_call(Tool::native("read_file", json!({"absolute_path": 7})))
        .then_call(Tool::native("write_file", json!({"file_path": "../outside.txt", "content": "x"})));
    let place = Place::new(Agent::Builtin(api), [bad, Reply::text("I see")]);
    let run = place.once("go", &[]);
    run.exits(0);
    assert!(ends(&run).iter().all(|(outcome, _)| outcome == "failed"), "{}", run.story());
    assert!(run.all("permissionAsked").is_empty() && run.all("error").is_empty(), "{}", run.story());
    let heard = place.model.conversation().pop().unwrap();
    let told: Vec<String> = heard.tool_results().into_iter().map(|result| result.text).collect();
    for (text, wrong) in told.iter().zip(["no tool 'no_such_tool'", "absolute_path", "outside"]) {
        assert!(text.contains(wrong), "{wrong}: {text}");
    }
    assert_eq!(assert_whole(api, &heard), 3);
}

pub(super) fn a_picture_that_it_reads_reaches_the_model(api: Api) {
    let place = Place::new(Agent::Builtin(api), []);
    std::fs::write(place.scratch.path("pixel.png"), base64(PIXEL)).unwrap();
    script(&place, [Reply::call(Tool::read(place.path("pixel.png"))), Reply::text("red")]);
    place.once("what colour is it?", &[]).exits(0);
    let heard = place.model.conversation().pop().unwrap();
    assert!(heard.body.to_string().contains(PIXEL), "{:#}", heard.body);
    assert_eq!(assert_whole(api, &heard), 1);
}
