//! What a caller is told of a sandbox before a session begins.

use multitap_agent::{Enforcement, FileAccess, NetworkAccess, Sandbox, SandboxError};
use multitap_event::SandboxMode;
use multitap_process::Keeper;

fn keeper() -> Keeper {
    Keeper::Supervisor(env!("CARGO_BIN_EXE_agent-keeper").into())
}

#[tokio::test]
async fn what_cannot_be_had_is_an_error_unless_less_will_do() {
    let folder = tempfile::tempdir().unwrap();
    let nowhere = [folder.path().join("nowhere")];
    let full = Sandbox::set_up(SandboxMode::WorkspaceWrite, &nowhere, Enforcement::Full, &keeper()).await.unwrap_err();
    assert!(matches!(&full, SandboxError::FileAccess(why) if why.starts_with("Landlock")), "{full:?}");
    assert!(full.to_string().starts_with("the sandbox cannot restrict writing files here: Landlock"));
    let less =
        Sandbox::set_up(SandboxMode::WorkspaceWrite, &nowhere, Enforcement::Best, &keeper()).await.unwrap().unwrap();
    assert_eq!(less.enforced().files, FileAccess::Open);
    assert!(less.enforced().to_string().starts_with("files: unrestricted; network: "));
}

#[tokio::test]
async fn what_is_asked_for_is_enforced_or_named_as_missing() {
    match Sandbox::set_up(SandboxMode::ReadOnly, &[], Enforcement::Full, &keeper()).await {
        Ok(sandbox) => {
            let enforced = sandbox.unwrap().enforced();
            assert_eq!(enforced.files, FileAccess::ReadOnly);
            assert_ne!(enforced.network, NetworkAccess::Open);
        }
        // An old kernel, or one that allows neither.
        Err(SandboxError::FileAccess(why) | SandboxError::NetworkAccess(why)) => assert!(!why.is_empty()),
        Err(other) => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_sandbox_needs_our_binary_and_full_access_needs_no_sandbox() {
    let none = Sandbox::set_up(SandboxMode::ReadOnly, &[], Enforcement::Best, &Keeper::Group).await;
    assert!(matches!(none, Err(SandboxError::NoBinary)));
    for open in [SandboxMode::None, SandboxMode::FullAccess] {
        assert!(Sandbox::set_up(open, &[], Enforcement::Full, &Keeper::Group).await.unwrap().is_none());
    }
}
