//! The built-in agent with the model that needs no network, as a newcomer meets it and as an attacker would.

use std::fs;

use serde_json::{Value, json};

use crate::scene::{Scene, of, the, types, whole};

const BUILTIN: [&str; 4] = ["--agent", "builtin", "--model", "rehearsal"];

impl Scene {
    /// Runs one prompt to the end; its events.
    fn rehearse(&self, prompt: &str, options: &[&str], exit: i32) -> Vec<Value> {
        let args = [&["-p", prompt, "--output-format", "stream-json"], &BUILTIN[..], options].concat();
        let events = self.run(&args).exits(exit).events();
        whole(&events);
        events
    }

    /// Runs one prompt whose question is answered so; its events.
    fn answered(&self, prompt: &str, answer: impl Fn(&Value) -> Value) -> Vec<Value> {
        let args = ["-p", prompt, "--output-format", "stream-json", "--input-format", "stream-json"];
        let mut live = self.start(&[&args[..], &BUILTIN[..]].concat());
        let asked = live.until_type("permissionAsked");
        let mut line = answer(&asked);
        line["type"] = "decide".into();
        line["questionId"] = asked["questionId"].clone();
        live.send(&format!("{line}\n"));
        live.until_type("turnCompleted");
        live.end().exits(0).events()
    }
}

fn outcomes(events: &[Value]) -> Vec<&str> {
    of(events, "toolCompleted").iter().map(|done| done["outcome"].as_str().unwrap()).collect()
}

fn errors(events: &[Value]) -> String {
    let told = of(events, "toolCompleted").into_iter().filter_map(|done| done["error"].as_str());
    told.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_command_streams_what_it_prints() {
    let scene = Scene::bare();
    fs::write(scene.scratch.path("here.txt"), "").unwrap();
    let run = scene.run(&["-p", "run: echo hi && ls", "--approval-mode", "auto-all"]).exits(0);
    assert!(run.stderr.contains("  hi\n  here.txt"), "{run:#?}");
    let events = scene.rehearse("run: echo one; sleep 0.2; echo two", &["--approval-mode", "auto-all"], 0);
    let live: String = of(&events, "toolProgress").iter().filter_map(|event| event["output"].as_str()).collect();
    assert_eq!(live, "one\ntwo\n");
    assert_eq!(the(&events, "toolCompleted")["exitCode"], 0);
}

#[test]
fn a_question_that_nobody_answers_is_seen_and_denied() {
    let scene = Scene::bare();
    let events = scene.rehearse("run: touch made.txt", &[], 4);
    let asked = the(&events, "permissionAsked");
    assert_eq!(asked["details"]["command"], "touch made.txt");
    assert_eq!(asked["details"]["directory"], scene.scratch.workspace().canonicalize().unwrap().to_str().unwrap());
    let ids: Vec<_> = asked["options"].as_array().unwrap().iter().map(|option| &option["id"]).collect();
    assert_eq!(ids, ["proceed_once", "proceed_always", "proceed_always_and_save", "cancel"]);
    assert_eq!(the(&events, "permissionSettled")["selectedOptionId"], "cancel");
    assert_eq!(outcomes(&events), ["denied"]);
    assert!(!scene.scratch.path("made.txt").exists());
}

#[test]
fn every_rule_of_the_rehearsal_walks_through_its_part() {
    let scene = Scene::bare();
    let prompt = "think about it then write hello to a.txt then read a.txt then edit a.txt: hello => bye then \
                  search for bye then list then plan A; B then remember I like tea then slow 2";
    let events = scene.rehearse(prompt, &["--approval-mode", "auto-all"], 0);
    let tools: Vec<_> = of(&events, "toolStarted").iter().map(|tool| tool["toolName"].as_str().unwrap()).collect();
    let expected =
        ["write_file", "read_file", "replace", "search_file_content", "list_directory", "write_todos", "save_memory"];
    assert_eq!(tools, expected);
    assert_eq!(outcomes(&events), ["completed"; 7], "{}", errors(&events));
    assert!(types(&events).contains(&"reasoning"));
    assert_eq!(the(&events, "todoList")["items"][1], json!({ "text": "B", "status": "pending" }));
    let changes: Vec<_> = of(&events, "fileChanged").iter().map(|change| &change["changeType"]).collect();
    assert_eq!(changes, ["created", "modified"]);
    assert_eq!(fs::read_to_string(scene.scratch.path("a.txt")).unwrap(), "bye\n");
    // What is kept in mind is there in the next session.
    let kept = scene.run(&[&["-p", "/memory show"], &BUILTIN[..]].concat()).exits(0);
    assert!(kept.stdout.contains("I like tea"), "{kept:#?}");
    let failed = scene.rehearse("fail on purpose", &[], 1);
    assert_eq!(the(&failed, "turnCompleted")["status"], "failed");
}

#[test]
fn an_answer_may_bring_other_content_and_other_words() {
    let scene = Scene::bare();
    let events = scene.answered("write hello to a.txt", |asked| {
        assert_eq!(asked["details"]["after"], "hello\n");
        assert!(asked["details"]["diff"].as_str().unwrap().contains("+hello"), "{asked}");
        json!({ "optionId": "proceed_once", "newContent": "something else\n" })
    });
    assert_eq!(fs::read_to_string(scene.scratch.path("a.txt")).unwrap(), "something else\n");
    assert_eq!(the(&events, "fileChanged")["after"], "something else\n");
    let events = scene.answered("run: touch one", |_| json!({ "optionId": "proceed_once", "newContent": "touch two" }));
    assert_eq!(outcomes(&events), ["completed"]);
    assert!(scene.scratch.path("two").exists() && !scene.scratch.path("one").exists());
    let events = scene.answered("ask Which colour?", |_| json!({ "optionId": "proceed_once", "feedback": "blue" }));
    assert_eq!(the(&events, "toolCompleted")["result"], "blue");
    let events = scene.answered("run: touch three", |_| json!({ "optionId": "cancel", "feedback": "not now" }));
    assert!(errors(&events).contains("not now"), "{events:#?}");
}

#[test]
fn an_answer_for_good_holds_and_may_be_kept() {
    let scene = Scene::bare();
    let prompt = "run: touch one then run: touch two";
    let events = scene.answered(prompt, |_| json!({ "optionId": "proceed_always_and_save" }));
    assert_eq!(of(&events, "permissionAsked").len(), 1, "asked once for both");
    assert_eq!(outcomes(&events), ["completed"; 2], "{events:#?}");
    let events = scene.rehearse("run: touch three", &[], 0);
    assert!(of(&events, "permissionAsked").is_empty(), "it is in the settings now");
    // It covers this and nothing that is hung on to it.
    scene.rehearse("run: touch four; rm one", &[], 4);
    assert!(scene.scratch.path("one").exists());
}

#[test]
fn modes_mean_what_they_say() {
    let scene = Scene::bare();
    let write = "write x to a.txt";
    for (mode, exit, written) in [
        ("plan", 0, false),
        ("dont-ask", 0, false),
        ("ask", 4, false),
        ("ask-dangerous", 4, false),
        ("auto-edit", 0, true),
        ("auto-all", 0, true),
    ] {
        fs::remove_file(scene.scratch.path("a.txt")).ok();
        scene.rehearse(write, &["--approval-mode", mode], exit);
        assert_eq!(scene.scratch.path("a.txt").exists(), written, "{mode}");
    }
    for (command, exit) in [("run: ls", 0), ("run: ls; touch x", 4), ("run: ls > x", 4), ("run: ls $(touch x)", 4)] {
        scene.rehearse(command, &["--approval-mode", "ask-dangerous"], exit);
        assert!(!scene.scratch.path("x").exists(), "{command}");
    }
    // What git obeys is not just a file.
    fs::create_dir_all(scene.scratch.path(".git/hooks")).unwrap();
    scene.rehearse("write evil to .git/hooks/pre-commit", &["--approval-mode", "auto-edit"], 4);
    let events =
        scene.rehearse("run: touch y", &["--approval-mode", "auto-all", "--block-tool", "run_shell_command"], 0);
    assert_eq!(outcomes(&events), ["denied"]);
}

#[test]
fn nothing_outside_the_folder_is_read_or_written() {
    let scene = Scene::bare();
    let outside = scene.scratch.root().join("outside");
    fs::create_dir_all(&outside).unwrap();
    fs::write(outside.join("secret.txt"), "secret words").unwrap();
    std::os::unix::fs::symlink(&outside, scene.scratch.path("way-out")).unwrap();
    std::os::unix::fs::symlink(outside.join("secret.txt"), scene.scratch.path("link.txt")).unwrap();
    let all = ["--approval-mode", "auto-all"];
    for prompt in [
        "read ../outside/secret.txt".to_owned(),
        "read way-out/secret.txt".to_owned(),
        "read link.txt".to_owned(),
        format!("read {}", outside.join("secret.txt").display()),
        "list way-out".to_owned(),
        "search for secret in way-out".to_owned(),
        "write x to way-out/new.txt".to_owned(),
        "write x to link.txt".to_owned(),
        "write x to ../outside/new.txt".to_owned(),
        "edit link.txt: secret => known".to_owned(),
    ] {
        let events = scene.rehearse(&prompt, &all, 0);
        assert_eq!(outcomes(&events), ["failed"], "{prompt}: {events:#?}");
        assert!(!errors(&events).contains("secret words"), "{prompt}");
    }
    assert_eq!(fs::read_to_string(outside.join("secret.txt")).unwrap(), "secret words");
    assert!(!outside.join("new.txt").exists());
    // A folder that was added is inside.
    let added = [&all[..], &["--add-dir", outside.to_str().unwrap()]].concat();
    assert_eq!(outcomes(&scene.rehearse("read link.txt", &added, 0)), ["completed"]);
}

#[test]
fn a_link_that_is_put_in_after_the_question_leads_nowhere() {
    let scene = Scene::bare();
    let outside = scene.scratch.root().join("outside");
    fs::create_dir_all(&outside).unwrap();
    fs::create_dir_all(scene.scratch.path("sub")).unwrap();
    let events = scene.answered("write x to sub/new.txt", |_| {
        fs::remove_dir(scene.scratch.path("sub")).unwrap();
        std::os::unix::fs::symlink(&outside, scene.scratch.path("sub")).unwrap();
        json!({ "optionId": "proceed_once" })
    });
    assert_eq!(outcomes(&events), ["failed"], "{events:#?}");
    assert!(!outside.join("new.txt").exists());
}

#[test]
fn this_machine_and_its_network_are_not_fetched_from() {
    let scene = Scene::bare();
    for url in
        ["http://127.0.0.1:1/", "http://localhost:1/", "http://169.254.169.254/latest/meta-data", "http://[::1]/"]
    {
        let events = scene.rehearse(&format!("fetch {url}"), &["--approval-mode", "auto-all"], 0);
        assert!(errors(&events).contains("which is not allowed"), "{url}: {}", errors(&events));
    }
    fs::create_dir_all(scene.scratch.home().join(".config/multitap")).unwrap();
    let open = r#"{"tools": {"privateAddresses": true}}"#;
    fs::write(scene.scratch.home().join(".config/multitap/settings.json"), open).unwrap();
    let events = scene.rehearse("fetch http://127.0.0.1:1/", &["--approval-mode", "auto-all"], 0);
    assert!(!errors(&events).is_empty(), "nobody is there");
    assert!(!errors(&events).contains("which is not allowed"), "{}", errors(&events));
}

#[test]
fn a_folder_that_is_not_trusted_cannot_say_yolo() {
    let scene = Scene::bare();
    scene
        .scratch
        .write(".multitap/settings.json", r#"{"approvalMode": "auto-all", "tools": {"allowed": ["edit"]}}"#)
        .unwrap();
    let args = [&["-p", "write x to a.txt"], &BUILTIN[..]].concat();
    let run = scene.run(&args).exits(4);
    assert!(run.stderr.contains("trustedFolders"), "{run:#?}");
    let trusted = json!({ "trustedFolders": [scene.scratch.workspace()] }).to_string();
    fs::create_dir_all(scene.scratch.home().join(".config/multitap")).unwrap();
    fs::write(scene.scratch.home().join(".config/multitap/settings.json"), trusted).unwrap();
    scene.run(&args).exits(0);
    assert!(scene.scratch.path("a.txt").exists());
}

#[test]
fn a_cancelled_command_leaves_nothing_behind() {
    let scene = Scene::bare();
    let bomb =
        "run: for i in 1 2 3 4 5 6 7 8; do (setsid sh -c 'sleep 300 & sleep 300 & wait' &) ; done; echo up; sleep 300";
    let args =
        ["-p", bomb, "--approval-mode", "auto-all", "--output-format", "stream-json", "--input-format", "stream-json"];
    let mut live = scene.start(&[&args[..], &BUILTIN[..]].concat());
    live.until_type("toolProgress");
    live.send("{\"type\":\"cancel\"}\n");
    let end = live.until_type("turnCompleted");
    assert_eq!(end["status"], "cancelled");
    live.send("{\"type\":\"prompt\",\"text\":\"hello\"}\n");
    live.until_type("turnCompleted");
    let events = live.end().exits(0).events();
    assert_eq!(outcomes(&events), ["cancelled"]);
    scene.nothing_left();
}

#[test]
fn much_output_is_cut_and_said_so() {
    let scene = Scene::bare();
    let events = scene.rehearse("run: yes | head -c 200000000", &["--approval-mode", "auto-all"], 0);
    let live: usize =
        of(&events, "toolProgress").iter().filter_map(|event| event["output"].as_str()).map(str::len).sum();
    assert!(live < 8 * 1024 * 1024, "{live}");
    let result = the(&events, "toolCompleted")["result"].as_str().unwrap();
    assert!(result.len() < 64 * 1024, "{}", result.len());
}

#[test]
fn a_conversation_goes_on_where_it_was() {
    let scene = Scene::bare();
    let first = scene.rehearse("hello", &[], 0);
    let again = scene.rehearse("/stats", &["-c"], 0);
    assert_eq!(first[0]["sessionId"], again[0]["sessionId"]);
    assert!(types(&again).contains(&"turnCompleted"));
    let said: String = of(&again, "textChunk").iter().filter_map(|chunk| chunk["content"].as_str()).collect();
    assert!(said.contains("has 2 messages"), "{said}");
    let fork = scene.rehearse("/stats", &["-c", "--fork"], 0);
    assert_ne!(fork[0]["sessionId"], first[0]["sessionId"]);
}

#[test]
fn prompts_take_files_commands_and_slash_commands() {
    let scene = Scene::bare();
    scene.scratch.write("notes.txt", "run: touch from-a-file").unwrap();
    scene.scratch.write(".multitap/commands/greet.md", "---\ndescription: Say hello\n---\nread $ARGUMENTS").unwrap();
    let said = |run: crate::scene::Run| run.stdout;
    let run = |prompt: &str, exit| scene.run(&[&["-p", prompt], &BUILTIN[..]].concat()).exits(exit);
    assert!(said(run("look at @notes.txt", 0)).contains("--- notes.txt ---\nrun: touch from-a-file"));
    assert!(said(run("/greet notes.txt", 0)).contains("run: touch from-a-file"));
    assert!(said(run("!echo mine", 0)).contains("mine"));
    assert!(said(run("/tools", 0)).contains("run_shell_command"));
    assert!(run("/nope", 1).stderr.contains("unknown command /nope"));
    let listed = scene.run(&["commands", "--json"]).exits(0).stdout;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let names: Vec<_> = listed["commands"].as_array().unwrap().iter().map(|command| &command["name"]).collect();
    assert!(names.contains(&&json!("memory")) && names.contains(&&json!("greet")), "{names:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_sandbox_says_what_it_enforces() {
    let scene = Scene::bare();
    let options = ["--approval-mode", "auto-all", "--sandbox", "read-only", "--sandbox-best-effort"];
    let events = scene.rehearse("run: touch made.txt then write x to b.txt", &options, 0);
    let told = of(&events, "system").into_iter().find(|note| note["subtype"] == "sandbox");
    let told = told.expect("it is always said, also that nothing is enforced");
    assert!(!scene.scratch.path("b.txt").exists(), "our own tools keep to it everywhere");
    // A kernel without Landlock leaves files open, and then that is what is said.
    let is_open = match told["data"]["files"].as_str() {
        Some("readOnly") => false,
        Some("open") => true,
        other => panic!("{other:?}: {told}"),
    };
    assert_eq!(scene.scratch.path("made.txt").exists(), is_open, "{told}");
}
