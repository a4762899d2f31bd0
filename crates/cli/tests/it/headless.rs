//! `multitap -p`: what is asked, what is printed, how it ends.

use std::process::Stdio;
use std::time::Duration;

use multitap_testkit::fake::{Act, Fake, SESSION, assistant, init, result};
use multitap_testkit::wait::until_blocking;
use serde_json::{Value, json};

use crate::scene::{MULTITAP, Scene, asker, of, the, types, whole};

const STREAM: [&str; 2] = ["--output-format", "stream-json"];

fn stream<'a>(args: &[&'a str]) -> Vec<&'a str> {
    [args, &STREAM].concat()
}

#[test]
fn text_is_the_answer_and_nothing_else() {
    let fake = Fake::claude().says("hello\\nthere").build().unwrap();
    let run = Scene::with(&fake).run(&["-p", "hi"]).exits(0);
    assert_eq!(run.stdout, "hello\\nthere\n");
    assert_eq!(run.stderr, "");
}

#[test]
fn stream_json_is_one_event_a_line_that_fits_the_schema() {
    let fake = Fake::claude().says("hello").build().unwrap();
    let scene = Scene::with(&fake);
    let run = scene.run(&stream(&["-p", "hi", "--model", "m", "--raw"])).exits(0);
    let events = run.events();
    whole(&events);
    assert_eq!(events[0]["type"], "sessionStarted");
    assert_eq!(the(&events, "userMessage")["content"], "hi");
    assert_eq!(the(&events, "userMessage")["from"]["door"], "headless");
    assert_eq!(the(&events, "turnCompleted")["status"], "completed");
    let order = types(&events);
    let at = |kind: &str| order.iter().position(|other| *other == kind).unwrap();
    assert!(at("userMessage") < at("turnStarted") && at("turnStarted") < at("textChunk"), "{order:?}");
    let schema = serde_json::from_str(&scene.run(&["schema"]).stdout).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    for event in &events {
        assert!(validator.is_valid(event), "{event}");
    }
    assert_eq!(run.stderr, "");
}

#[test]
fn json_is_one_object_at_the_end() {
    let fake = asker();
    let run = Scene::with(&fake).run(&["-p", "please ask", "--output-format", "json"]).exits(4);
    assert_eq!(run.stdout.lines().count(), 1);
    let value: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(value["text"], "answer");
    assert_eq!(value["status"], "completed");
    assert_eq!(value["nativeSessionId"], SESSION);
    assert_eq!(value["tools"][0]["toolName"], "Bash");
    assert_eq!(value["tools"][0]["outcome"], "denied");
    assert_eq!(value["usage"]["totalTokens"], 120);
    assert!(value["costUsd"].as_f64().unwrap() > 0.0);
    assert_eq!(value["files"], json!([]));
    assert!(value["denials"].is_array() && value["sessionId"].is_string());
}

#[test]
fn a_question_that_nobody_can_answer_is_denied_at_once() {
    let fake = asker();
    let scene = Scene::with(&fake);
    let events = scene.run(&stream(&["-p", "please ask"])).exits(4).events();
    whole(&events);
    let asked = the(&events, "permissionAsked");
    let settled = the(&events, "permissionSettled");
    assert_eq!(asked["questionId"], settled["questionId"]);
    assert_eq!(settled["settledBy"]["door"], "host");
    assert_eq!(settled["kind"], "rejectOnce");
    assert!(settled["feedback"].as_str().unwrap().contains("nobody"), "{settled}");
    assert!(fake.heard().unwrap().iter().any(|line| line.contains(r#""behavior":"deny""#)));

    let run = scene.run(&["-p", "please ask"]).exits(4);
    assert_eq!(run.stdout, "answer\n");
    assert!(run.stderr.contains("[tool] Bash") && run.stderr.contains("[denied]"), "{run:#?}");
    assert_eq!(run.stderr.matches("denied").count(), 1, "once is enough: {run:#?}");
}

#[test]
fn piped_text_comes_before_the_prompt() {
    let fake = Fake::claude().says("ok").build().unwrap();
    let scene = Scene::with(&fake);
    scene.run_with(&["-p", "review this"], "some diff\n").exits(0);
    scene.run_with(&["-p", "-"], "all of it").exits(0);
    scene.run_with(&["-p"], "from the pipe").exits(0);
    scene.run_with(&["-p", "--model", "m", "words last"], "").exits(0);
    let heard = fake.heard().unwrap().join("\n");
    for wanted in [r"some diff\n\nreview this", "all of it", "from the pipe", "words last"] {
        assert!(heard.contains(wanted), "no {wanted} in {heard}");
    }
}

#[test]
fn options_reach_the_agent() {
    let fake = Fake::claude().says("ok").build().unwrap();
    let scene = Scene::with(&fake);
    scene.scratch.write("schema.json", r#"{"type":"object"}"#).unwrap();
    scene
        .run(&[
            "-p",
            "hi",
            "--model",
            "opus",
            "--approval-mode",
            "auto-edit",
            "--max-turns",
            "3",
            "--add-dir",
            "extra",
            "--allow-tool",
            "Bash(git log:*)",
            "--block-tool",
            "WebFetch",
            "-r",
            SESSION,
            "--at",
            "msg",
            "--fork",
            "--agent-arg",
            "--debug",
            "--append-system-prompt",
            "be kind",
            "--output-schema",
            "schema.json",
        ])
        .exits(0);
    let args = &fake.heard().unwrap()[0];
    for wanted in [
        "--model opus",
        "acceptEdits",
        "--max-turns 3",
        "/extra",
        "Bash(git log:*)",
        "WebFetch",
        SESSION,
        "--fork-session",
        "--debug",
        "be kind",
        "msg",
    ] {
        assert!(args.contains(wanted), "no {wanted} in {args}");
    }
}

#[test]
fn a_picture_goes_with_the_prompt() {
    let fake = Fake::claude().says("ok").build().unwrap();
    let scene = Scene::with(&fake);
    std::fs::write(scene.scratch.path("dot.png"), b"\x89PNG\r\n\x1a\n....").unwrap();
    let events = scene.run(&stream(&["-p", "look", "--image", "dot.png"])).exits(0).events();
    assert_eq!(the(&events, "userMessage")["images"][0]["mediaType"], "image/png");
    let heard = fake.heard().unwrap().join("\n");
    assert!(heard.contains("iVBORw0KGgo"), "{heard}");
}

#[test]
fn a_failed_turn_ends_with_1_and_says_why() {
    let mut failed = result("");
    failed["is_error"] = true.into();
    failed["terminal_reason"] = "api_error".into();
    failed["result"] = "API Error: 401 invalid key".into();
    let fake = Fake::claude().turn([init().into(), failed.into()]).build().unwrap();
    let scene = Scene::with(&fake);
    let run = scene.run(&["-p", "hi"]).exits(1);
    assert!(run.stderr.contains("401"), "{run:#?}");
    let events = scene.run(&stream(&["-p", "hi"])).exits(1).events();
    whole(&events);
    assert_eq!(the(&events, "turnCompleted")["status"], "failed");
    assert_eq!(the(&events, "sessionEnded")["reason"], "failed");
    let value: Value =
        serde_json::from_str(&scene.run(&["-p", "hi", "--output-format", "json"]).exits(1).stdout).unwrap();
    assert_eq!(value["status"], "failed");
    assert!(value["error"]["message"].as_str().unwrap().contains("401"), "{value}");
}

#[test]
fn a_start_that_fails_is_told_in_every_format() {
    let fake = Fake::exits(3, "cannot possibly").unwrap();
    let scene = Scene::with(&fake);
    let run = scene.run(&stream(&["-p", "hi"])).exits(3);
    let events = run.events();
    whole(&events);
    assert_eq!(types(&events), ["error", "sessionEnded"]);
    assert_eq!(events[0]["kind"], "processExitError");
    assert_eq!(events[0]["exitCode"], 3);
    assert_eq!(events[0]["agentType"], "claude");
    assert!(events[0]["nativeError"].as_str().unwrap().contains("cannot possibly"));
    assert_eq!(events[1]["reason"], "failed");
    assert!(run.stderr.contains("cannot possibly"), "{run:#?}");
    let run = scene.run(&["-p", "hi", "--output-format", "json"]).exits(3);
    let value: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(value["error"]["kind"], "processExitError");
    assert_eq!(value["status"], "failed");
    let run = scene.run(&["-p", "hi"]).exits(3);
    assert_eq!(run.stdout, "");
    assert!(run.stderr.contains("cannot possibly"), "{run:#?}");
}

#[test]
fn an_interrupt_cancels_the_turn_and_ends_with_130() {
    for signal in ["-INT", "-TERM", "-HUP"] {
        let fake = asker();
        let scene = Scene::with(&fake);
        let mut live = scene.start(&stream(&["-p", "slow", "--input-format", "stream-json"]));
        live.until_type("textChunk");
        live.signal(signal, &scene.scratch);
        let run = live.wait().exits(130);
        let events = run.events();
        whole(&events);
        assert_eq!(the(&events, "turnCompleted")["status"], "cancelled", "{signal}");
        assert!(fake.heard().unwrap().iter().any(|line| line.contains("interrupt")));
        scene.nothing_left();
    }
}

#[test]
fn a_second_interrupt_ends_at_once() {
    let fake = Fake::claude().turn([init().into(), assistant("working").into(), Act::Hang]).build().unwrap();
    let scene = Scene::with(&fake);
    let mut live = scene.start(&stream(&["-p", "hang", "--input-format", "stream-json"]));
    live.until_type("textChunk");
    let begun = std::time::Instant::now();
    live.signal("-INT", &scene.scratch);
    std::thread::sleep(Duration::from_millis(200));
    live.signal("-INT", &scene.scratch);
    let events = live.wait().exits(130).events();
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    whole(&events);
    assert_eq!(the(&events, "sessionEnded")["reason"], "cancelled");
    scene.nothing_left();
}

#[test]
fn a_second_interrupt_leaves_one_object_in_json() {
    let fake = Fake::claude().turn([init().into(), assistant("working").into(), Act::Hang]).build().unwrap();
    let scene = Scene::with(&fake);
    let mut live = scene.start(&["-p", "hang", "--input-format", "stream-json", "--output-format", "json"]);
    until_blocking("the turn", Duration::from_secs(10), || {
        fake.heard().unwrap().iter().any(|line| line.contains("hang")).then_some(())
    })
    .unwrap();
    std::thread::sleep(Duration::from_millis(300));
    live.signal("-INT", &scene.scratch);
    std::thread::sleep(Duration::from_millis(200));
    live.signal("-INT", &scene.scratch);
    let run = live.wait().exits(130);
    assert_eq!(run.stdout.lines().count(), 1, "{run:#?}");
    assert!(run.events()[0]["sessionId"].is_string(), "{run:#?}");
}

#[test]
fn an_interrupt_at_the_start_leaves_nothing() {
    let fake = Fake::silent().unwrap();
    let scene = Scene::with(&fake);
    let live = scene.start(&stream(&["-p", "hi", "--input-format", "stream-json"]));
    let mut live = live;
    until_blocking("the agent to start", Duration::from_secs(10), || {
        multitap_testkit::wait::descendants(live.pid())
            .iter()
            .any(|process| process.command.contains("silent"))
            .then_some(())
    })
    .unwrap();
    live.signal("-INT", &scene.scratch);
    let events = live.wait().exits(130).events();
    assert_eq!(the(&events, "sessionEnded")["reason"], "cancelled");
    scene.nothing_left();
}

#[test]
fn a_reader_that_has_seen_enough_ends_it_quietly() {
    let lines = (0..2000).map(|number| Act::from(assistant(&format!("line {number} {}", "x".repeat(200)))));
    let fake = Fake::claude().turn(std::iter::once(init().into()).chain(lines).chain([Act::Hang])).build().unwrap();
    let scene = Scene::with(&fake);
    let pipe = format!("{MULTITAP} -p hi --output-format stream-json </dev/null | head -1");
    let mut command = scene.scratch.command("/bin/sh");
    let output = command.args(["-c", &pipe]).stdout(Stdio::piped()).stderr(Stdio::piped()).output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert_eq!(stdout.lines().count(), 1);
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    scene.nothing_left();
}

#[test]
fn piped_text_is_waited_for_to_its_end() {
    let fake = Fake::claude().says("ok").build().unwrap();
    let scene = Scene::with(&fake);
    let mut live = scene.start(&["-p", "hi"]);
    std::thread::sleep(Duration::from_millis(3500));
    live.send("LATE ");
    std::thread::sleep(Duration::from_millis(500));
    live.send("CONTEXT\n");
    let run = live.end().exits(0);
    assert_eq!(run.stdout, "ok\n");
    assert_eq!(run.stderr, "multitap: waiting for the end of stdin (close it or use </dev/null)…\n");
    let heard = fake.heard().unwrap().join("\n");
    assert!(heard.contains(r"LATE CONTEXT\n\nhi"), "{heard}");
}

#[test]
fn an_interrupt_is_heard_while_stdin_is_waited_for() {
    let fake = Fake::claude().says("ok").build().unwrap();
    let scene = Scene::with(&fake);
    for signal in ["-INT", "-TERM"] {
        let mut live = scene.start(&stream(&["-p", "hi"]));
        std::thread::sleep(Duration::from_millis(500));
        live.signal(signal, &scene.scratch);
        let events = live.wait().exits(130).events();
        whole(&events);
        assert_eq!(the(&events, "sessionEnded")["reason"], "cancelled");
    }
    assert!(fake.heard().unwrap().is_empty(), "nothing was started");
}

#[cfg(target_os = "linux")]
#[test]
fn output_that_is_lost_is_a_failure() {
    let words = "multitap: cannot write to stdout: No space left on device";
    for format in ["text", "json", "stream-json"] {
        let fake = Fake::claude().says("hello").build().unwrap();
        let scene = Scene::with(&fake);
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let mut command = scene.command(&["-p", "hi", "--output-format", format]);
        let output = command.stdin(Stdio::null()).stdout(full).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{format}: {stderr}");
        assert_eq!(stderr.matches(words).count(), 1, "{format}: {stderr}");
        scene.nothing_left();
    }
    // Nor is it told where there was no session.
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let scene = Scene::bare();
    let mut command = scene.command(&["-p", "hi", "--output-format", "json"]);
    let output = command.stdin(Stdio::null()).stdout(full).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains(words), "{stderr}");
}

#[test]
fn every_line_of_the_agent_is_in_exactly_one_event_with_raw() {
    let fake = Fake::claude().says("hello").build().unwrap();
    let events = Scene::with(&fake).run(&stream(&["-p", "hi", "--raw"])).exits(0).events();
    let mut raw: Vec<&str> = Vec::new();
    for event in &events {
        raw.extend(event["raw"].as_array().into_iter().flatten().map(|line| line.as_str().unwrap()));
    }
    assert_eq!(raw.len(), 4, "{raw:#?}");
    assert_eq!(of(&events, "unrecognized").len(), 0);
}
