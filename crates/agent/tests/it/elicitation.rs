//! What an MCP server asks the user for is a question of the session; its answer goes back to the server.

use std::time::Duration;

use multitap_event::{ApprovalMode, Command, Decide, Details, EventKind, McpReach, McpServer, Question, option};
use serde_json::{Value, json};

use crate::scene::{Scene, completed};

/// Asks by a form when its tool is called, and says what came back. `modern` speaks 2026-07-28 and asks by its result;
/// `taken` takes the question back; `twice` asks outside a call, too.
const SERVER: &str = r#"
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
say() { answer '{"resultType":"complete","content":[{"type":"text","text":"'"$(printf %s "$1" | sed 's/"/\\"/g')"'"}]}'; }
form='{"message":"Which colour?","requestedSchema":{"type":"object","properties":{"colour":{"type":"string"}},"required":["colour"]}}'
ask() { printf '{"jsonrpc":"2.0","id":"ask","method":"elicitation/create","params":%s}\n' "$form"; }
while IFS= read -r line; do
  id=${line##*\"id\":}
  id=${id%%[,\}]*}
  case $line in
    *'"method":"initialize"'*)
      if [ "$1" = modern ]; then printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id"; continue; fi
      case $line in *'"elicitation":{"form":{},"url":{}}'*) ;; *) exit 7 ;; esac
      answer '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"asking","version":"1"}}' ;;
    *'"method":"server/discover"'*)
      answer '{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"serverInfo":{"name":"asking","version":"1"},"ttlMs":0,"cacheScope":"private"}' ;;
    *'"method":"tools/list"'*)
      answer '{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[{"name":"paint","inputSchema":{"type":"object","properties":{}}}]}' ;;
    *'"method":"tools/call"'*'"inputResponses"'*)
      case $line in *'"requestState":"kept"'*) ;; *) exit 8 ;; esac
      answers=${line##*\"inputResponses\":}
      say "${answers%%,\"requestState\"*}" ;;
    *'"method":"tools/call"'*)
      call=$id
      if [ "$1" = modern ]; then
        answer '{"resultType":"input_required","requestState":"kept","inputRequests":{"q":{"method":"elicitation/create","params":'"$form"'}}}'
        continue
      fi
      ask
      if [ "$1" = taken ]; then
        sleep 0.5
        printf '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"ask"}}\n'
        sleep 0.5
        id=$call; say 'never mind'
      fi ;;
    *'"id":"ask"'*) if [ "$1" != taken ]; then id=$call; say "$line"; fi
      if [ "$1" = twice ]; then sleep 0.5; ask; fi ;;
    *'"method":"notifications'*) ;;
  esac
done
"#;

fn asking(mode: &str) -> McpServer {
    let args = vec!["-c".to_owned(), SERVER.to_owned(), "sh".to_owned(), mode.to_owned()];
    McpReach::program("/bin/sh", args).into()
}

async fn scene(server: McpServer) -> (Scene, Question) {
    let mut scene = Scene::in_mode(ApprovalMode::AutoAll, [("asking", server)]).await;
    let question = scene.asked("call asking paint {}").await;
    (scene, question)
}

#[tokio::test]
async fn a_server_that_asks_hears_the_answer() {
    for mode in ["", "modern"] {
        let (mut scene, question) = scene(asking(mode)).await;
        assert_eq!(question.title, "asking asks: Which colour?");
        let Details::Input { questions } = &question.details else { panic!("{question:#?}") };
        assert_eq!(questions[0].question, "colour");
        let feedback = Some("blue".to_owned());
        let decide = Decide { feedback, ..Decide::new(&question.question_id, option::PROCEED_ONCE) };
        let result = scene.answer(decide).await.result.unwrap().to_string();
        assert!(result.contains("accept") && result.contains("blue"), "{mode}: {result}");
        scene.close().await;
    }
}

#[tokio::test]
async fn whoever_declines_gives_nothing_away() {
    for (option, word) in [(option::CANCEL, "cancel"), (option::DECLINE, "decline")] {
        let (mut scene, question) = scene(asking("")).await;
        let result = scene.answer(Decide::new(&question.question_id, option)).await.result.unwrap().to_string();
        assert!(result.contains(word) && !result.contains("content"), "{result}");
        scene.close().await;
    }
}

/// Returns what is said when the question is withdrawn.
async fn withdrawn(scene: &mut Scene, question: &Question) -> Option<String> {
    let id = question.question_id.clone();
    let reason = scene.until("the withdrawal", |kind| match kind {
        EventKind::PermissionWithdrawn(gone) if gone.question_id == id => Some(gone.reason.clone()),
        _ => None,
    });
    reason.await
}

#[tokio::test]
async fn a_question_goes_with_what_it_belongs_to() {
    // The server takes it back.
    let (mut scene, question) = scene(asking("taken")).await;
    assert_eq!(withdrawn(&mut scene, &question).await.as_deref(), Some("the MCP server no longer asks"));
    scene.end_of_turn().await;
    assert_eq!(completed(&scene.told)[0].result, Some(json!("never mind")));
    scene.close().await;
    // The turn is cancelled.
    let (mut scene, question) = self::scene(asking("")).await;
    scene.send(Command::Cancel).await;
    assert_eq!(withdrawn(&mut scene, &question).await.as_deref(), Some("the turn was cancelled"));
    scene.end_of_turn().await;
    scene.close().await;
}

/// The time of a call stands still while a person thinks.
#[tokio::test]
async fn a_person_may_take_longer_than_a_call() {
    let slow = McpServer { timeout: Some(Duration::from_secs(1)), ..asking("") };
    let (mut scene, question) = scene(slow).await;
    tokio::time::sleep(Duration::from_millis(2500)).await;
    let decide =
        Decide { feedback: Some("red".to_owned()), ..Decide::new(&question.question_id, option::PROCEED_ONCE) };
    let result = scene.answer(decide).await.result.unwrap_or(Value::Null).to_string();
    assert!(result.contains("red"), "{result}");
    scene.close().await;
}

/// Outside a call nobody is asked, and the server hears so.
#[tokio::test]
async fn a_server_that_asks_at_other_times_is_not_heard() {
    let (mut scene, question) = scene(asking("twice")).await;
    let decide =
        Decide { feedback: Some("red".to_owned()), ..Decide::new(&question.question_id, option::PROCEED_ONCE) };
    scene.answer(decide).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let told = scene.close().await;
    let asked = told.iter().filter(|kind| matches!(kind, EventKind::PermissionAsked(_))).count();
    assert_eq!(asked, 1);
}
