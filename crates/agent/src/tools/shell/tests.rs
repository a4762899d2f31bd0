use std::fs;

use multitap_event::ToolOutcome;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::scene;

/// A session's shell in a folder of its own, whose children carry a mark.
struct Scene {
    folder: tempfile::TempDir,
    shell: Shell,
    mark: scene::Mark,
}

impl Scene {
    fn new(keeper: Keeper) -> Self {
        Self::confined(keeper, None)
    }

    fn confined(keeper: Keeper, sandbox: Option<Sandbox>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("work/sub")).unwrap();
        let mark = scene::Mark::new();
        let shell = Shell::new(Surroundings {
            folders: vec![folder.path().join("work")],
            keeper,
            environment: vec![mark.variable(), ("OWN".to_owned(), "mine".to_owned())],
            hidden_env: vec!["CARGO_MANIFEST_DIR".to_owned()],
            private: folder.path().join("private"),
            sandbox,
        });
        Self { folder, shell, mark }
    }

    fn command(&self, command: &str) -> Command {
        Command::of(command, &self.folder.path().join("work"))
    }

    async fn run(&self, command: &str) -> (Outcome, Heard) {
        let (context, heard) = listen();
        let outcome = self.shell.run(self.command(command), context.clone()).await;
        drop(context);
        (outcome, heard.await.unwrap())
    }

    fn prepare(&self, arguments: serde_json::Value) -> Result<Command, BadCall> {
        self.shell.prepare(serde_json::from_value(arguments).unwrap())
    }
}

/// What was told while it ran.
#[derive(Debug, Default)]
struct Heard {
    output: String,
    pieces: usize,
    messages: Vec<String>,
}

#[expect(clippy::disallowed_methods, reason = "the test waits for it")]
fn listen() -> (ToolContext, tokio::task::JoinHandle<Heard>) {
    let (progress, mut reported) = mpsc::channel::<Progress>(4);
    let heard = tokio::spawn(async move {
        let mut heard = Heard::default();
        while let Some(progress) = reported.recv().await {
            heard.pieces += 1;
            heard.output.extend(progress.output);
            heard.messages.extend(progress.message);
        }
        heard
    });
    (ToolContext { progress, stop: CancellationToken::new() }, heard)
}

#[tokio::test]
async fn a_command_that_closed_its_output_can_be_stopped() {
    for keeper in [Keeper::Group, scene::supervisor()] {
        let scene = Scene::new(keeper);
        let (context, heard) = listen();
        let stop = context.stop.clone();
        let command = scene.command("echo begun; touch begun; exec >/dev/null 2>&1; exec sleep 300");
        let begun = scene.folder.path().join("work/begun");
        let stopping = async {
            while !begun.exists() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
            stop.cancel();
        };
        let (outcome, ()) = tokio::join!(scene.shell.run(command, context.clone()), stopping);
        drop(context);
        assert_eq!(outcome.outcome, ToolOutcome::Cancelled);
        assert_eq!(heard.await.unwrap().output, "begun\n");
        scene.mark.gone().await;
    }
}

#[tokio::test]
async fn output_and_errors_come_together_in_order() {
    let scene = Scene::new(Keeper::Group);
    let (outcome, heard) = scene.run("echo one; echo two >&2; echo three; exit 3").await;
    assert_eq!(outcome.outcome, ToolOutcome::Failed);
    assert_eq!(outcome.exit_code, Some(3));
    assert_eq!(outcome.text, "one\ntwo\nthree\n[exit code 3]");
    assert_eq!(heard.output, "one\ntwo\nthree\n");
    let (outcome, _) = scene.run("true").await;
    assert_eq!((outcome.outcome, outcome.text.as_str()), (ToolOutcome::Completed, "(no output)"));
    let (outcome, _) = scene.run("kill -9 $$").await;
    assert_eq!((outcome.exit_code, outcome.text.as_str()), (None, "(no output)\n[it was ended by signal 9 (SIGKILL)]"));
    let (outcome, _) = scene.run("echo 'open").await;
    assert!(outcome.text.contains("unexpected EOF") || outcome.text.contains("nterminated"), "{}", outcome.text);
}

#[tokio::test]
async fn output_is_told_while_it_runs() {
    let scene = Scene::new(Keeper::Group);
    let (progress, mut reported) = mpsc::channel(4);
    let context = ToolContext { progress, stop: CancellationToken::new() };
    let command = scene.command("printf half; while ! [ -e go ]; do sleep 0.02; done; echo ' whole'");
    let (outcome, ()) = tokio::join!(scene.shell.run(command, context), async {
        assert_eq!(reported.recv().await.unwrap().output.as_deref(), Some("half"));
        fs::write(scene.folder.path().join("work/go"), "").unwrap();
        assert_eq!(reported.recv().await.unwrap().output.as_deref(), Some(" whole\n"));
    });
    assert_eq!(outcome.text, "half whole");
}

#[tokio::test]
async fn it_runs_in_its_folder_with_what_it_may_know_and_without_input() {
    let scene = Scene::new(Keeper::Group);
    let (outcome, _) =
        scene.run("pwd; echo $MULTITAP $TERM $PAGER $GIT_PAGER $OWN [$CARGO_MANIFEST_DIR]; cat; echo end").await;
    let folder = scene.folder.path().join("work").canonicalize().unwrap();
    assert_eq!(outcome.text, format!("{}\n1 dumb cat cat mine []\nend", folder.display()));
}

#[tokio::test]
async fn a_command_that_cannot_be_run_is_refused_before_anybody_is_asked() {
    let scene = Scene::new(Keeper::Group);
    let outside = scene.folder.path();
    std::os::unix::fs::symlink(outside, outside.join("work/link")).unwrap();
    fs::write(outside.join("work/file"), "").unwrap();
    for (arguments, words) in [
        (json!({ "command": " \n" }), "empty"),
        (json!({ "command": "a\0b" }), "NUL"),
        (json!({ "command": "ls", "timeout": 0 }), "at most 600"),
        (json!({ "command": "ls", "timeout": 120_000 }), "at most 600"),
        (json!({ "command": "ls", "directory": ".." }), "outside"),
        (json!({ "command": "ls", "directory": "link" }), "outside"),
        (json!({ "command": "ls", "directory": "sub/../../private" }), "cannot run it in"),
        (json!({ "command": "ls", "directory": "/" }), "outside"),
        (json!({ "command": "ls", "directory": "file" }), "not a folder"),
        (json!({ "command": "ls", "directory": "nowhere" }), "cannot run it in"),
    ] {
        let error = scene.prepare(arguments.clone()).unwrap_err();
        assert!(error.0.contains(words), "{arguments}: {error}");
    }
    let ready =
        scene.prepare(json!({ "command": "ls", "dir_path": "sub", "timeout": 1.5, "is_background": true })).unwrap();
    assert_eq!(ready.directory, outside.join("work/sub").canonicalize().unwrap());
    assert_eq!((ready.time, ready.background), (Duration::from_millis(1500), true));
    let Details::Command { description, .. } = ready.details() else { panic!() };
    assert_eq!(description.as_deref(), Some("runs in the background until the session ends"), "people are told");
}

#[tokio::test]
async fn its_time_is_bounded() {
    let scene = Scene::new(Keeper::Group);
    let (context, heard) = listen();
    let command = Command { time: Duration::from_millis(300), ..scene.command("echo begun; sleep 300 & wait") };
    let outcome = scene.shell.run(command, context).await;
    assert_eq!(outcome.outcome, ToolOutcome::Failed);
    assert!(outcome.text.starts_with("begun\n[it was stopped: it took longer than 0.3 s"), "{}", outcome.text);
    heard.await.unwrap();
    scene.mark.gone().await;
}

/// 1 GB is read, little of it is kept, and little of it is told.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_gigabyte_of_output_takes_no_memory() {
    let scene = Scene::new(Keeper::Group);
    let before = scene::memory();
    let (outcome, heard) = scene.run("yes 0123456789abcde | head -c 1073741824; echo end").await;
    let grown = scene::memory().saturating_sub(before);
    assert_eq!(outcome.outcome, ToolOutcome::Completed, "{}", outcome.text);
    assert!(outcome.text.len() < 31_000 && outcome.text.ends_with("end"), "{}", outcome.text.len());
    assert!(heard.output.len() <= 4 * 1024 * 1024, "{}", heard.output.len());
    assert!(heard.pieces < 2000, "{}", heard.pieces);
    assert!(heard.messages.last().unwrap().ends_with("bytes more are not shown"), "{:?}", heard.messages);
    // Other tests run beside this one, in the same memory.
    assert!(grown < 256 * 1024 * 1024, "{grown} bytes more");
}

/// A bounded bomb: each of its children starts sleepers that go into sessions of their own.
#[cfg(target_os = "linux")]
const BOMB: &str = "
    bomb() { for i in 1 2 3; do
        if [ $1 -gt 0 ]; then (bomb $(($1 - 1))) & else setsid sleep 300 >/dev/null 2>&1 & fi
    done; wait; }
    echo lit; bomb 2";

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_bombs_children_end_with_the_turn() {
    let scene = Scene::new(scene::supervisor());
    let (progress, mut reported) = mpsc::channel(4);
    let context = ToolContext { progress, stop: CancellationToken::new() };
    let stop = context.stop.clone();
    let (outcome, ()) = tokio::join!(scene.shell.run(scene.command(BOMB), context), async {
        assert_eq!(reported.recv().await.unwrap().output.as_deref(), Some("lit\n"));
        scene.mark.counts(|count| count >= 27).await;
        stop.cancel();
    });
    assert_eq!(outcome.outcome, ToolOutcome::Cancelled);
    assert_eq!(outcome.text, "lit\n[the user stopped it]");
    assert_eq!(scene.mark.processes(), [0_u32; 0]);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn nothing_stays_of_a_command_that_is_done_or_dropped() {
    let scene = Scene::new(scene::supervisor());
    let (outcome, _) = scene.run("setsid sleep 300 & nohup sleep 300 & echo done").await;
    assert!(outcome.text.contains("done"), "{}", outcome.text);
    assert_eq!(scene.mark.processes(), [0_u32; 0]);
    let (context, heard) = listen();
    {
        let run = scene.shell.run(scene.command("setsid sleep 300 & sleep 300"), context);
        tokio::pin!(run);
        tokio::select! {
            outcome = &mut run => panic!("{outcome:?}"),
            () = scene.mark.counts(|count| count >= 3) => {}
        }
    }
    scene.mark.gone().await;
    heard.await.unwrap();
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn what_runs_in_the_background_ends_with_the_session() {
    let scene = Scene::new(scene::supervisor());
    let start = |line: &str| Command { background: true, ..scene.command(line) };
    let (context, _heard) = listen();
    let outcome = scene.shell.run(start("echo up; echo oops >&2; setsid sleep 300 & sleep 300"), context.clone()).await;
    assert!(outcome.text.starts_with("It runs in the background as process "), "{}", outcome.text);
    let log = scene.folder.path().join("private/background-1.log");
    assert!(outcome.text.ends_with(&log.display().to_string()), "{}", outcome.text);
    scene::until("its output", || fs::read_to_string(&log).is_ok_and(|text| text == "up\noops\n")).await;
    let outcome = scene.shell.run(start("echo short; exit 4"), context).await;
    assert_eq!(outcome.outcome, ToolOutcome::Completed);
    let log = scene.folder.path().join("private/background-2.log");
    scene::until("its end", || fs::read_to_string(&log).is_ok_and(|text| text == "short\n\n[exit code 4]\n")).await;
    assert!(scene.mark.processes().len() >= 3);
    scene.shell.close().await;
    assert_eq!(scene.mark.processes(), [0_u32; 0]);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn what_runs_in_the_background_ends_when_the_session_is_dropped() {
    let scene = Scene::new(scene::supervisor());
    let (context, _heard) = listen();
    scene.shell.run(Command { background: true, ..scene.command("setsid sleep 300 & sleep 300") }, context).await;
    let Scene { folder: _folder, shell, mark } = scene;
    mark.counts(|count| count >= 3).await;
    drop(shell);
    mark.gone().await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn in_a_sandbox_it_is_confined_and_ends_as_well() {
    use crate::sandbox::Enforcement;
    let keeper = scene::supervisor();
    let mode = multitap_event::SandboxMode::ReadOnly;
    let sandbox = Sandbox::set_up(mode, &[], Enforcement::Full, &keeper).await.unwrap();
    let scene = Scene::confined(keeper, sandbox);
    let (outcome, _) = scene.run("setsid sleep 300 & echo seen; echo x > file").await;
    assert_eq!(outcome.exit_code, Some(1));
    assert!(outcome.text.starts_with("seen\n") && outcome.text.contains("ermission denied"), "{}", outcome.text);
    assert!(!scene.folder.path().join("work/file").exists());
    assert_eq!(scene.mark.processes(), [0_u32; 0]);
}
