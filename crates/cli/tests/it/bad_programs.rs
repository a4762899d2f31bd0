//! Programs that are no agents: each gives one clear error of the right kind, and nothing is left of it.

use multitap_testkit::fake::{Act, Fake, assistant, init, result};
use serde_json::Value;

use crate::scene::{Scene, of, the, whole};

/// Runs it and gives the events; everything of it must be gone.
#[track_caller]
fn run(fake: &Fake, more: &[&str], code: i32) -> Vec<Value> {
    let scene = Scene::with(fake);
    let args = [&["-p", "hi", "--output-format", "stream-json"][..], more].concat();
    let events = scene.run(&args).exits(code).events();
    scene.nothing_left();
    whole(&events);
    events
}

/// It did not start, for this reason.
#[track_caller]
fn does_not_start(fake: &Fake, more: &[&str], kind: &str, words: &str) -> Value {
    let events = run(fake, more, 3);
    let error = the(&events, "error").clone();
    assert_eq!(error["kind"], kind, "{error}");
    assert_eq!(error["agentType"], "claude");
    assert!(error.to_string().contains(words), "{error}");
    // R002-109.
    let reason = if kind == "timeout" { "timeout" } else { "failed" };
    assert_eq!(the(&events, "sessionEnded")["reason"], reason);
    error
}

#[test]
fn missing() {
    let fake = Fake::missing().unwrap();
    does_not_start(&fake, &[], "processSpawnFailed", "no such program");
}

#[test]
fn not_executable() {
    let fake = Fake::not_executable().unwrap();
    does_not_start(&fake, &[], "processSpawnFailed", "not allowed to run");
}

#[test]
fn no_interpreter() {
    let fake = Fake::shell("odd", "").unwrap();
    std::fs::write(fake.program(), "#!/no/such/interpreter\n").unwrap();
    does_not_start(&fake, &[], "processSpawnFailed", "interpreter");
}

#[test]
fn exits_at_once() {
    let fake = Fake::exits(9, "no licence").unwrap();
    let error = does_not_start(&fake, &[], "processExitError", "no licence");
    assert_eq!(error["exitCode"], 9);
    let fake = Fake::exits(0, "goodbye").unwrap();
    does_not_start(&fake, &[], "processExitError", "goodbye");
}

#[test]
fn hangs_at_its_start() {
    let fake = Fake::hangs().unwrap();
    does_not_start(&fake, &["--start-timeout", "1"], "timeout", "1 s");
}

#[test]
fn closes_its_output_but_lives() {
    let fake = Fake::closes_stdout().unwrap();
    does_not_start(&fake, &[], "protocolError", "closed its output");
}

#[test]
fn speaks_garbage_instead_of_starting() {
    let fake = Fake::shell("garbage", "echo 'Welcome to Garbage 1.0'\nwhile read -r line; do :; done\n").unwrap();
    does_not_start(&fake, &["--start-timeout", "1"], "timeout", "");
}

#[test]
fn dies_in_its_turn() {
    let fake = Fake::claude().turn([init().into(), Act::Stderr("segfault".into()), Act::Exit(139)]).build().unwrap();
    let events = run(&fake, &[], 1);
    let error = the(&events, "error");
    assert_eq!((&error["kind"], &error["exitCode"]), (&"processExitError".into(), &139.into()), "{error}");
    assert!(error["nativeError"].as_str().unwrap().contains("segfault"), "{error}");
    assert_eq!(the(&events, "turnCompleted")["status"], "interrupted");
    assert_eq!(the(&events, "sessionEnded")["reason"], "failed");
}

#[test]
fn is_killed_in_its_turn() {
    let fake = Fake::claude().turn([init().into(), Act::Kill(9)]).build().unwrap();
    let events = run(&fake, &[], 1);
    assert_eq!(the(&events, "error")["kind"], "processExitError");
}

#[test]
fn closes_its_output_in_its_turn() {
    let fake = Fake::shell(
        "closes",
        r#"read -r line
id=${line#*\"request_id\":\"}
id=${id%%\"*}
printf '{"type":"control_response","response":{"subtype":"success","request_id":"%s","response":{}}}\n' "$id"
read -r line
exec >&-
while :; do sleep 1; done
"#,
    )
    .unwrap();
    let events = run(&fake, &[], 1);
    let error = the(&events, "error");
    assert_eq!(error["kind"], "protocolError");
    assert!(error["message"].as_str().unwrap().contains("closed its output"), "{error}");
}

#[test]
fn garbage_a_hundred_megabytes_and_broken_text_do_not_end_a_turn() {
    let acts = [
        init().into(),
        Act::Garbage,
        Act::LongLine { mebibytes: 100 },
        Act::InvalidUtf8,
        Act::Stderr("\u{1b}[31mred noise".into()),
        assistant("still here").into(),
        result("still here").into(),
    ];
    let fake = Fake::claude().turn(acts).build().unwrap();
    let events = run(&fake, &[], 0);
    let odd = of(&events, "unrecognized");
    assert_eq!(odd.len(), 3, "{odd:#?}");
    assert_eq!(odd[1]["bytes"], 100 << 20);
    assert_eq!(the(&events, "textChunk")["content"], "still here");
    assert_eq!(of(&events, "error").len(), 0);
}

#[test]
fn ends_without_its_turn() {
    let fake = Fake::claude().turn([init().into(), Act::Exit(0)]).build().unwrap();
    let events = run(&fake, &[], 1);
    assert_eq!(the(&events, "turnCompleted")["status"], "interrupted");
}

/// The kinds that no bad program shows: refused by the vendor, no such conversation, anything else.
#[test]
fn errors_of_the_agents_own_are_told_apart() {
    let failed = |reason: &str, words: &str| {
        let mut failed = result("");
        failed["subtype"] = "error_during_execution".into();
        failed["is_error"] = true.into();
        failed["api_error_type"] = reason.into();
        failed["errors"] = serde_json::json!([words]);
        Act::from(failed)
    };
    for (reason, words, kind) in [
        ("authentication_failed", "invalid key", "permissionDenied"),
        ("overloaded", "too busy", "unknown"),
        ("", "No conversation found with session ID: x", "sessionNotFound"),
    ] {
        let fake = Fake::claude().turn([init().into(), failed(reason, words)]).build().unwrap();
        let events = run(&fake, &[], 1);
        let error = the(&events, "error");
        assert_eq!(error["kind"], kind, "{error}");
        assert!(error["message"].as_str().unwrap().contains(words), "{error}");
    }
}
