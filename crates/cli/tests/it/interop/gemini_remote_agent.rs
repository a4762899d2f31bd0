//! Gemini CLI calls a Multitap server as one of its remote agents, with its own A2A client.

use multitap_testkit::Scratch;
use multitap_testkit::cli::GEMINI;
use multitap_testkit::interop;
use multitap_testkit::model::{ModelServer, Reply, Tool};
use serde_json::json;

use super::a2a_peers::Door;

#[test]
fn interop_gemini_calls_us_as_its_remote_agent() {
    let Some(gemini) = interop::find(GEMINI) else { return };
    let door = Door::open();
    let call = json!({ "agent_name": "multitap", "prompt": "good morning" });
    let model =
        ModelServer::start([Reply::call(Tool::native("invoke_agent", call)), Reply::text("It greets you.")]).unwrap();
    let scratch = Scratch::new(&model).unwrap();
    let agent =
        format!("---\nkind: remote\nname: multitap\nagent_card_url: {}/.well-known/agent-card.json\n---\n", door.url);
    let folder = scratch.home().join(".gemini/agents");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("multitap.md"), agent).unwrap();
    let args = ["-p", "Greet the other agent.", "--approval-mode", "yolo", "--skip-trust"];
    let output = scratch.command(&gemini).args(args).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("It greets you."), "{output:#?}");
    let heard = model.conversation()[1].tool_results();
    assert!(heard[0].text.contains("You said \"good morning\"."), "{heard:#?}");
    assert_eq!(heard[0].text.matches("You said \"good morning\".").count(), 1, "once: {heard:#?}");
}
