//! SIGKILL of multitap leaves nothing, not even what detached itself.

use multitap_testkit::fake::{Act, Fake, assistant, init};
use multitap_testkit::wait::{marked, until_blocking};

use crate::scene::{PATIENCE, Scene, exists};

#[test]
fn a_killed_multitap_takes_everything_with_it() {
    assert!(exists("/usr/bin/setsid"), "util-linux is needed");
    let fake = Fake::claude().turn([init().into(), assistant("working").into(), Act::Hang]).build().unwrap();
    let detach = Fake::shell(
        "claude",
        &format!(
            "setsid sleep 4711 </dev/null >/dev/null 2>&1 &\n( setsid sleep 4712 </dev/null >/dev/null 2>&1 & )\nexec {}\n",
            fake.program().display()
        ),
    )
    .unwrap();
    let scene = Scene::with(&detach);
    let mut live = scene.start(&["-p", "hang", "--input-format", "stream-json", "--output-format", "stream-json"]);
    live.until_type("textChunk");
    let sleeping = || marked(&scene.scratch).iter().filter(|process| process.command.contains("sleep 471")).count();
    until_blocking("both sleeps", PATIENCE, || (sleeping() == 2).then_some(())).unwrap();
    live.signal("-KILL", &scene.scratch);
    scene.nothing_left();
}
