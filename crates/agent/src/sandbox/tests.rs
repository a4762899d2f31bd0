use std::fs;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::Path;

use multitap_process::Line;

use super::*;
use crate::scene;

struct Scene {
    folder: tempfile::TempDir,
    keeper: Keeper,
}

impl Scene {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("work")).unwrap();
        fs::create_dir(folder.path().join("tmp")).unwrap();
        fs::write(folder.path().join("outside"), "outside\n").unwrap();
        fs::write(folder.path().join("work/inside"), "inside\n").unwrap();
        Self { folder, keeper: scene::supervisor() }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    async fn sandbox(&self, mode: SandboxMode) -> Sandbox {
        let set_up = Sandbox::set_up(mode, &[self.at("work")], Enforcement::Full, &self.keeper).await;
        let mut sandbox = set_up.unwrap().unwrap();
        // The scene itself lies in the folder for temporary files: it brings its own.
        for folder in &mut sandbox.writable {
            if *folder == std::env::temp_dir() {
                *folder = self.at("tmp");
            }
        }
        sandbox
    }

    async fn sh(&self, program: Program) -> String {
        let mut child = spawn(program, &self.keeper).await.unwrap();
        let mut text = String::new();
        while let Some(Line::Text(line)) = child.stdout.next().await.unwrap() {
            text = format!("{text}{line}\n");
        }
        let exit = child.wait().await;
        format!("{text}{exit} {}", exit.stderr_tail)
    }

    fn program(&self, script: &str) -> Program {
        Program {
            program: "sh".into(),
            args: vec!["-c".into(), script.into()],
            env: vec![("TMPDIR".into(), self.at("tmp").into())],
            env_remove: Vec::new(),
            cwd: Some(self.at("work")),
            stdin: StdinMode::Null,
        }
    }

    async fn run(&self, sandbox: &Sandbox, script: &str) -> String {
        self.sh(sandbox.wrap(self.program(script))).await
    }
}

#[track_caller]
fn kept_back(said: &str) {
    assert!(said.contains("ermission denied") && !said.contains("exit code 0"), "{said}");
}

#[tokio::test]
async fn a_workspace_is_written_and_nothing_else() {
    let scene = Scene::new();
    let sandbox = scene.sandbox(SandboxMode::WorkspaceWrite).await;
    assert_eq!(sandbox.enforced().files, FileAccess::WorkspaceWrite);
    let said = scene
        .run(&sandbox, "cat inside ../outside; echo new > new; mkdir a && mv new a/; echo x > /dev/null; id -u")
        .await;
    assert!(said.starts_with("inside\noutside\n") && said.contains("exit code 0"), "{said}");
    assert_eq!(fs::read_to_string(scene.at("work/a/new")).unwrap(), "new\n");
    assert!(scene.run(&sandbox, "t=$(mktemp) && echo x > $t && rm $t").await.contains("exit code 0"));
    for script in [
        "echo x > ../outside",
        "truncate -s 0 ../outside",
        "rm ../outside",
        "mkdir ../folder",
        "ln -s x ../link",
        "mv inside ../moved",
        "ln ../outside hard",
        "ln -s .. up; echo x > up/outside",
        "chmod 777 /proc/self/mem; echo x > /proc/sys/kernel/hostname",
    ] {
        let said = scene.run(&sandbox, script).await;
        assert!(!said.contains("exit code 0"), "{script}: {said}");
    }
    kept_back(&scene.run(&sandbox, "echo x > ../outside").await);
    assert_eq!(fs::read_to_string(scene.at("outside")).unwrap(), "outside\n");
    assert!(!scene.at("folder").exists() && !scene.at("link").exists() && !scene.at("moved").exists());
}

#[tokio::test]
async fn nothing_is_written_where_all_is_read_only() {
    let scene = Scene::new();
    let sandbox = scene.sandbox(SandboxMode::ReadOnly).await;
    assert_eq!(sandbox.enforced().files, FileAccess::ReadOnly);
    kept_back(&scene.run(&sandbox, "echo x > inside").await);
    kept_back(&scene.run(&sandbox, "mktemp").await);
    assert!(scene.run(&sandbox, "cat inside 2>/dev/null").await.starts_with("inside\n"));
}

#[tokio::test]
async fn the_network_is_out_of_reach() {
    let scene = Scene::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let connect = format!("exec bash -c 'echo hi > /dev/tcp/127.0.0.1/{}'", listener.local_addr().unwrap().port());
    assert!(scene.sh(scene.program(&connect)).await.contains("exit code 0"));
    let mut sandbox = scene.sandbox(SandboxMode::WorkspaceWrite).await;
    for network in [NetworkAccess::Nothing, NetworkAccess::NoTcp] {
        let enforced = Enforced { network, ..sandbox.enforced };
        if let Err(why) = sandbox.works(enforced, &scene.keeper).await.unwrap() {
            assert_ne!(network, sandbox.enforced.network, "it was said to work: {why}");
            continue; // this kernel cannot, and is not said to
        }
        sandbox.enforced = enforced;
        let said = scene.run(&sandbox, &connect).await;
        assert!(said.contains("exit code 1") && said.contains("/dev/tcp"), "{network:?}: {said}");
    }
}

#[tokio::test]
async fn a_command_that_cannot_be_confined_is_not_started() {
    let scene = Scene::new();
    let mut sandbox = scene.sandbox(SandboxMode::WorkspaceWrite).await;
    sandbox.writable.push(scene.at("nowhere"));
    let said = scene.run(&sandbox, "echo started").await;
    assert!(said.starts_with("exit code 126 Landlock: ") && said.contains("nowhere"), "{said}");
}

#[tokio::test]
async fn what_is_outside_cannot_be_signalled() {
    let scene = Scene::new();
    let sandbox = scene.sandbox(SandboxMode::ReadOnly).await;
    let said = scene.run(&sandbox, "kill -0 $PPID && echo reached").await;
    // A kernel before 6.12 cannot keep signals back.
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = kernel.split(['.', '-']).map_while(|number| number.parse::<u32>().ok());
    let keeps = (numbers.next().unwrap(), numbers.next().unwrap()) >= (6, 12);
    assert_eq!(said.contains("reached"), !keeps, "{kernel}: {said}");
}

/// A program that listens outside may start others, as tmux does.
#[tokio::test]
async fn sockets_of_programs_outside_are_out_of_reach() {
    let scene = Scene::new();
    let outside = UnixListener::bind(scene.at("outside.sock")).unwrap();
    let temporary = UnixListener::bind(scene.at("tmp/other.sock")).unwrap();
    let inside = UnixListener::bind(scene.at("work/own.sock")).unwrap();
    let connect = |socket: &str| {
        let script = "use IO::Socket::UNIX; print IO::Socket::UNIX->new(Peer => shift) ? q(reached) : qq(no: $!)";
        format!("perl -e '{script}' {}", scene.at(socket).display())
    };
    assert!(scene.sh(scene.program(&connect("outside.sock"))).await.contains("reached"));
    let sandbox = scene.sandbox(SandboxMode::WorkspaceWrite).await;
    if sandbox.enforced().network != NetworkAccess::Nothing || !can_mount(&scene, &sandbox).await {
        return; // without namespaces they stay in reach, and the words for what is enforced say so
    }
    for socket in ["outside.sock", "tmp/other.sock"] {
        let said = scene.run(&sandbox, &connect(socket)).await;
        assert!(said.contains("no: "), "{socket}: {said}");
    }
    assert!(scene.run(&sandbox, &connect("work/own.sock")).await.contains("reached"), "the workspace's own");
    let sandbox = scene.sandbox(SandboxMode::ReadOnly).await;
    assert!(scene.run(&sandbox, &connect("work/own.sock")).await.contains("no: "), "nothing may be changed here");
    drop((outside, temporary, inside));
}

/// What Multitap reads at its next start runs outside the sandbox.
#[tokio::test]
async fn protected_folders_in_a_workspace_are_not_changed() {
    let scene = Scene::new();
    let settings = |base: &str| scene.at(&format!("work/{base}/multitap/settings.json"));
    fs::create_dir_all(settings(".config").parent().unwrap()).unwrap();
    fs::create_dir(scene.at("work/.config/other")).unwrap();
    fs::write(settings(".config"), "{}").unwrap();
    let protected = [".config/multitap", ".data/multitap", "."].map(|folder| scene.at("work").join(folder));
    let sandbox = scene.sandbox(SandboxMode::WorkspaceWrite).await;
    if sandbox.enforced().network != NetworkAccess::Nothing || !can_mount(&scene, &sandbox).await {
        return; // without namespaces they can be changed, as docs/security.md says
    }
    assert!(scene.run(&sandbox, "echo x > .config/multitap/settings.json").await.contains("exit code 0"));
    fs::write(settings(".config"), "{}").unwrap();
    let sandbox = sandbox.protecting(protected.to_vec());
    for script in [
        "echo x > .config/multitap/settings.json",
        "echo x > .config/other/../multitap/settings.json",
        "rm .config/multitap/settings.json",
        "mv .config/multitap .config/away",
        "mv .config away && mkdir -p .config/multitap && echo x > .config/multitap/settings.json",
        "mkdir -p .data/multitap && echo x > .data/multitap/settings.json",
        "mv .data away && mkdir -p .data/multitap && echo x > .data/multitap/settings.json",
        "ln .config/multitap/settings.json hard && echo x > hard",
        "mount -o remount,rw .config/multitap",
        "umount .config/multitap",
        "unshare -Urm sh -c 'umount -l .config/multitap; echo x > .config/multitap/settings.json'",
    ] {
        let said = scene.run(&sandbox, script).await;
        assert!(!said.contains("exit code 0"), "{script}: {said}");
        assert_eq!(fs::read_to_string(settings(".config")).unwrap(), "{}", "{script}");
        assert!(!settings(".data").exists() && !scene.at("work/away").exists(), "{script}");
    }
    let said =
        scene.run(&sandbox, "cat .config/multitap/settings.json; echo; cd .config; echo x > other/y; mv other z").await;
    assert!(said.starts_with("{}\nexit code 0"), "what lies beside them is written: {said}");
    fs::rename(scene.at("work/.config/z"), scene.at("work/.config/other")).unwrap();
    let mut elsewhere = scene.program("echo x > ../multitap/settings.json");
    elsewhere.cwd = Some(scene.at("work/.config/other"));
    kept_back_as_read_only(&scene.sh(sandbox.wrap(elsewhere)).await);
    std::os::unix::fs::symlink(scene.at("work"), scene.at("link")).unwrap();
    let linked = Sandbox { writable: vec![scene.at("link")], ..sandbox.clone() };
    kept_back_as_read_only(&scene.run(&linked, "echo x > .config/multitap/settings.json").await);
    assert!(!scene.run(&sandbox, "rm -rf .config").await.contains("exit code 0"));
    assert_eq!(fs::read_to_string(settings(".config")).unwrap(), "{}");
}

#[track_caller]
fn kept_back_as_read_only(said: &str) {
    assert!(said.contains("ead-only file system") && !said.contains("exit code 0"), "{said}");
}

/// Whether folders can be hidden here: some systems give namespaces and forbid mounts.
async fn can_mount(scene: &Scene, sandbox: &Sandbox) -> bool {
    let hiding = sandbox.clone().hiding(vec![scene.at("work")]);
    !scene.run(&hiding, &format!("cat {}", scene.at("work/inside").display())).await.starts_with("inside")
}

#[test]
fn what_is_enforced_is_said_in_plain_words() {
    let enforced = Enforced { files: FileAccess::WorkspaceWrite, network: NetworkAccess::NoTcp };
    assert_eq!(
        enforced.to_string(),
        "files: only the workspace and the temporary folder are written (Landlock); \
         network: no TCP, other protocols unrestricted (Landlock)"
    );
    let value = serde_json::to_value(enforced).unwrap();
    assert_eq!(value, serde_json::json!({ "files": "workspaceWrite", "network": "noTcp" }));
}

#[test]
fn a_missing_or_strange_order_starts_nothing() {
    let open = r#"{"files": "open", "network": "open"}"#;
    for args in [
        &["--enforce"][..],
        &["--enforce", r#"{"files": "all", "network": "open"}"#],
        &["--enforce", r#"{"files": "open", "network": "x"}"#],
        &["--enforce", r#"{"files": "open"}"#],
        &["--other", "x"],
        &["--enforce", open],
    ] {
        let said = enter(args.iter().map(OsString::from));
        assert!(!said.is_empty() && !said.contains("cannot start"), "{said}");
    }
    assert!(!Path::new("/nowhere").exists());
    let said = enter(["--", "/nowhere"].iter().map(OsString::from));
    assert!(said.starts_with("cannot start /nowhere in the sandbox: "), "{said}");
}
