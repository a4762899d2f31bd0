use serde_json::Value;

use super::*;
use crate::conversation::Part;
use crate::tools::todos;

#[track_caller]
fn check(text: &str, expected: &[Step]) {
    assert_eq!(steps(text), expected, "{text}");
}

#[test]
fn the_rules_are_followed_with_and_without_a_colon() {
    check("run: echo hi && ls", &[Step::Run("echo hi && ls".into())]);
    check("Run echo hi", &[Step::Run("echo hi".into())]);
    check("read: a b.txt", &[Step::Read("a b.txt".into())]);
    check("list", &[Step::List(".".into())]);
    check("list src", &[Step::List("src".into())]);
    check("search for fn main in src", &[Step::Search { text: "fn main".into(), path: Some("src".into()) }]);
    check("search for fn main", &[Step::Search { text: "fn main".into(), path: None }]);
    check("write go to bed to todo.txt", &[Step::Write { text: "go to bed".into(), path: "todo.txt".into() }]);
    check("edit a.rs: let x => let y", &[Step::Edit { path: "a.rs".into(), old: "let x".into(), new: "let y".into() }]);
    check("plan A; B;C", &[Step::Plan(vec!["A".into(), "B".into(), "C".into()])]);
    check("think about love", &[Step::Think("love".into())]);
    check("ask Which colour?", &[Step::Ask("Which colour?".into())]);
    check("remember I like tea", &[Step::Remember("I like tea".into())]);
    check("slow 3", &[Step::Slow(3)]);
    check("fail on purpose", &[Step::Fail]);
    let arguments = json!({ "a": 1 });
    check("call web look {\"a\": 1}", &[Step::Call { server: "web".into(), tool: "look".into(), arguments }]);
    check("call web look", &[Step::Call { server: "web".into(), tool: "look".into(), arguments: json!({}) }]);
    check("list then read a", &[Step::List(".".into()), Step::Read("a".into())]);
}

/// Otherwise a prompt of 15 MB would take 20 GB.
#[test]
fn steps_take_no_more_memory_than_the_prompt() {
    let [Step::Plan(items)] = &steps(&format!("plan {}", "a;".repeat(100_000)))[..] else { panic!("a plan") };
    assert_eq!(items.len(), todos::MAX_STEPS + 1);
    let json = format!("[{}0]", "[],".repeat(100_000));
    let [Step::Call { arguments, .. }] = &steps(&format!("call web look {json}"))[..] else { panic!("a call") };
    assert_eq!(arguments, &Value::from(json));
}

#[test]
fn what_no_rule_fits_is_repeated() {
    for text in ["hello", "writer", "write it", "edit a", "slow down", "run:", "", "running"] {
        check(text, &[Step::Other(text.into())]);
    }
}

fn request(messages: Vec<Message>) -> Request {
    Request { system: String::new(), messages, tools: Vec::new(), thinking: None, output_schema: None }
}

fn said(acts: &[Act]) -> String {
    acts.iter().map(|act| if let Act::Say(text) = act { text.as_str() } else { "" }).collect()
}

#[test]
fn steps_follow_one_another_and_the_end_says_what_this_is() {
    let mut messages = vec![Message::user("list then think about it then read a")];
    let calls = |acts: &[Act]| {
        let name = |act: &Act| if let Act::Call(call) = act { Some(call.clone()) } else { None };
        acts.iter().filter_map(name).collect::<Vec<_>>()
    };
    for expected in ["list_directory", "read_file"] {
        let acts = acts(&request(messages.clone()));
        let made = calls(&acts);
        assert_eq!(made[0].name, expected);
        messages.push(Message::Assistant { parts: vec![Part::Call(made[0].clone())] });
        let answer = Answer { failed: false, ..made[0].unanswered("the result") };
        messages.push(Message::Results { answers: vec![answer] });
    }
    let last = acts(&request(messages.clone()));
    assert!(calls(&last).is_empty());
    assert!(said(&last).starts_with("the result\n") && said(&last).contains("This is a rehearsal"), "{last:?}");
    messages.extend([Message::assistant("done"), Message::user("hello")]);
    let second = acts(&request(messages));
    assert!(!said(&second).contains("This is a rehearsal"), "it is said once");
    assert!(said(&second).contains("You said \"hello\"") && said(&second).contains("run: COMMAND"));
}

#[test]
fn a_failure_is_told_and_the_next_step_is_still_tried() {
    let call = Call { id: "1".into(), name: "read_file".into(), arguments: Value::Null, signature: None };
    let messages = vec![
        Message::user("read a then list"),
        Message::Assistant { parts: vec![Part::Call(call.clone())] },
        Message::Results { answers: vec![call.unanswered("there is no file a")] },
    ];
    let acts = acts(&request(messages));
    assert!(said(&acts).starts_with("That did not work: there is no file a"), "{acts:?}");
    assert!(matches!(acts.last(), Some(Act::Call(call)) if call.name == "list_directory"));
}

#[tokio::test(start_paused = true)]
async fn slowly_means_a_tenth_of_a_second_each() {
    let (deltas, mut heard) = tokio::sync::mpsc::channel(64);
    let began = tokio::time::Instant::now();
    ask(request(vec![Message::user("slow 10"), Message::assistant("x"), Message::user("slow 10")]), deltas)
        .await
        .unwrap();
    assert_eq!(began.elapsed(), Duration::from_secs(1));
    let mut text = String::new();
    while let Some(Delta::Text(piece)) = heard.recv().await {
        text.push_str(&piece);
    }
    assert_eq!(text, "1 2 3 4 5 6 7 8 9 10 \n");
}

#[tokio::test]
async fn it_fails_when_told_to() {
    let (deltas, _heard) = tokio::sync::mpsc::channel(64);
    let error = ask(request(vec![Message::user("fail on purpose")]), deltas).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Refused);
}
