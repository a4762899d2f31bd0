//! How programs start, or why they do not.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use multitap_process::{Keeper, SpawnError, StdinMode, spawn};

use crate::scene::{Scene, both, keeper, rest, within};

fn file(folder: &tempfile::TempDir, name: &str, text: &str, mode: u32) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    path
}

#[tokio::test]
async fn a_missing_program_is_missing() {
    let scene = Scene::new();
    for keeper in both() {
        for name in ["no-such-program-here", "/no/such/program", "./no-such-program"] {
            let error = spawn(scene.program(name, &[]), &keeper).await.unwrap_err();
            assert!(matches!(error, SpawnError::Missing(_)), "{keeper:?} {name}: {error:?}");
        }
    }
}

#[tokio::test]
async fn a_file_without_permission_is_not_executable() {
    let scene = Scene::new();
    let folder = tempfile::tempdir().unwrap();
    let script = file(&folder, "script", "#!/bin/sh\n", 0o644);
    for keeper in both() {
        for path in [script.as_path(), folder.path()] {
            let error = spawn(scene.program(path, &[]), &keeper).await.unwrap_err();
            assert!(matches!(&error, SpawnError::NotExecutable(told) if told == path), "{keeper:?}: {error:?}");
        }
    }
}

#[tokio::test]
async fn a_missing_interpreter_is_not_a_missing_program() {
    let scene = Scene::new();
    let folder = tempfile::tempdir().unwrap();
    let script = file(&folder, "script", "#!/no/such/shell\n", 0o755);
    for keeper in both() {
        let error = spawn(scene.program(&script, &[]), &keeper).await.unwrap_err();
        let SpawnError::Other { source, .. } = error else { panic!("{keeper:?}: {error:?}") };
        assert!(source.to_string().contains("interpreter"), "{source}");
    }
}

#[tokio::test]
async fn a_missing_folder_is_told_as_such() {
    let scene = Scene::new();
    for keeper in both() {
        let mut program = scene.program("sh", &[]);
        program.cwd = Some("/no/such/folder".into());
        let error = spawn(program, &keeper).await.unwrap_err();
        assert!(matches!(error, SpawnError::NoSuchFolder(_)), "{error:?}");
    }
}

#[tokio::test]
async fn a_binary_that_is_no_supervisor_is_told_as_such() {
    let scene = Scene::new();
    for binary in ["/bin/echo", "/no/such/binary"] {
        let keeper = Keeper::Supervisor(binary.into());
        let error = within("the refusal", spawn(scene.program("sh", &[]), &keeper)).await.unwrap_err();
        let SpawnError::Other { source, .. } = error else { panic!("{error:?}") };
        assert!(source.to_string().contains(binary), "{source}");
    }
}

#[tokio::test]
async fn codes_and_signals_are_reported() {
    let scene = Scene::new();
    for keeper in both() {
        for (script, code, signal) in [
            ("exit 0", Some(0), None),
            ("exit 7", Some(7), None),
            ("exit 255", Some(255), None),
            ("kill -TERM $$", None, Some(15)),
            ("kill -KILL $$", None, Some(9)),
        ] {
            let mut child = scene.sh(script, &keeper).await;
            let (_, exit) = rest(&mut child).await;
            assert_eq!((exit.code, exit.signal), (code, signal), "{keeper:?} {script}");
            assert_eq!(within("a second wait", child.wait()).await, exit);
        }
    }
}

#[tokio::test]
async fn its_process_id_is_known_while_it_runs() {
    let scene = Scene::new();
    for keeper in both() {
        let mut child = scene.sh("echo $$; read line", &keeper).await;
        let told = crate::scene::line(&mut child).await;
        assert_eq!(child.pid().map(|pid| pid.to_string()), Some(told));
        child.stdin.close();
        rest(&mut child).await;
        assert_eq!(child.pid(), None);
    }
}

#[tokio::test]
async fn its_environment_is_ours_without_the_secrets_and_with_the_additions() {
    let scene = Scene::new();
    for keeper in both() {
        let mut program = scene.program("sh", &["-c", "echo \"${PATH:+path} ${CARGO_PKG_NAME:-none} $ADDED $BOTH\""]);
        program.env.extend([("ADDED".into(), "added value".into()), ("BOTH".into(), "both".into())]);
        program.env_remove = vec!["CARGO_PKG_NAME".into(), "BOTH".into()];
        assert!(!format!("{program:?}").contains("added value"));
        let mut child = spawn(program, &keeper).await.unwrap();
        let (lines, _) = rest(&mut child).await;
        assert_eq!(lines, ["path none added value both"]);
    }
}

#[tokio::test]
async fn it_runs_in_its_folder_and_is_found_from_ours() {
    let scene = Scene::new();
    let folder = tempfile::tempdir_in(".").unwrap();
    file(&folder, "script", "#!/bin/sh\npwd -P\n", 0o755);
    let relative = PathBuf::from(".").join(folder.path().file_name().unwrap()).join("script");
    for keeper in both() {
        let mut program = scene.program(&relative, &[]);
        program.cwd = Some("/".into());
        let (lines, _) = rest(&mut spawn(program, &keeper).await.unwrap()).await;
        assert_eq!(lines, ["/"]);
    }
}

#[tokio::test]
async fn without_a_pipe_its_input_is_empty() {
    let scene = Scene::new();
    for keeper in both() {
        let mut program = scene.program("cat", &[]);
        program.stdin = StdinMode::Null;
        let mut child = spawn(program, &keeper).await.unwrap();
        let (lines, exit) = rest(&mut child).await;
        assert!(lines.is_empty() && exit.success());
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_supervised_program_inherits_nothing_that_another_would_not() {
    let scene = Scene::new();
    let mut seen = Vec::new();
    for keeper in both() {
        let mut child = scene.sh("ls /proc/self/fd", &keeper).await;
        seen.push(rest(&mut child).await.0);
    }
    assert_eq!(seen[0], seen[1]);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_supervisor_has_a_session_of_its_own() {
    let scene = Scene::new();
    // Process, parent, group, session.
    let mut child = scene.sh("cut -d ' ' -f 1,4,5,6 /proc/$$/stat", &crate::scene::supervisor()).await;
    let line = rest(&mut child).await.0.concat();
    let [program, parent, group, session] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
    assert_eq!((group, session), (program, parent));
}

/// A shell starts what it puts into the background with SIGINT and SIGQUIT ignored, and `nohup` ignores SIGHUP.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_child_starts_with_default_signals_whatever_we_ignore() {
    let scene = Scene::new();
    let show = "exec grep -E 'Sig(Ign|Blk)' /proc/self/status";
    for keeper in ["supervisor", "group"] {
        let script = format!("trap '' HUP INT QUIT TERM USR1 USR2 ALRM TSTP CHLD; exec \"$0\" sh -c \"{show}\"");
        let mut program = scene.program("sh", &["-c", &script, crate::scene::keeper().to_str().unwrap()]);
        program.env.push(("KEEPER".into(), keeper.into()));
        let mut child = spawn(program, &Keeper::Group).await.unwrap();
        let (lines, _) = rest(&mut child).await;
        // The C library has 32 and 33 for itself, and lets nobody change them.
        let own = 0b11 << 31;
        let masks = lines.iter().map(|line| {
            let (name, mask) = line.split_once(":\t").unwrap();
            (name, u64::from_str_radix(mask, 16).unwrap() & !own)
        });
        assert_eq!(masks.collect::<Vec<_>>(), [("SigBlk", 0), ("SigIgn", 0)], "{keeper}");
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_supervised_child_starts_with_no_signal_blocked() {
    use nix::sys::signal::{SigSet, Signal};
    let scene = Scene::new();
    let mut blocked = SigSet::empty();
    blocked.extend([Signal::SIGTERM, Signal::SIGINT, Signal::SIGCHLD, Signal::SIGUSR1]);
    blocked.thread_block().unwrap();
    let mut child = scene.sh("grep SigBlk /proc/self/status", &crate::scene::supervisor()).await;
    let (lines, _) = rest(&mut child).await;
    blocked.thread_unblock().unwrap();
    assert_eq!(lines, ["SigBlk:\t0000000000000000"]);
}

#[tokio::test]
async fn a_person_who_calls_the_supervisor_is_told() {
    let scene = Scene::new();
    for args in [&["__child"][..], &["__child", "--", "true"]] {
        let mut child = spawn(scene.program(keeper(), args), &Keeper::Group).await.unwrap();
        let (_, exit) = rest(&mut child).await;
        assert_eq!(exit.code, Some(2));
        assert!(exit.stderr_tail.contains("not for the command line"), "{}", exit.stderr_tail);
    }
}
