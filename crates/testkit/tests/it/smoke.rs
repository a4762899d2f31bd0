//! One run of each real CLI through the model server.

use multitap_testkit::model::{ModelServer, Script};
use multitap_testkit::{Scratch, interop};

#[test]
fn interop_claude_says_what_the_model_was_scripted_to_say() {
    let Some(claude) = interop::claude() else { return };
    let server = ModelServer::start(Script::new().text("hello from the script")).unwrap();
    let scratch = Scratch::new(&server).unwrap();
    let output = scratch.command(&claude).args(["-p", "hi"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "hello from the script", "{output:?}");
    assert_eq!(server.conversation()[0].last_user_text(), "hi");
}
