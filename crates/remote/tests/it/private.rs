//! Through a private socket: by the same user, as the owner, and by nobody else.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use multitap_event::{ClientRole, Door as Came, EventKind};
use multitap_hub::Reach;
use multitap_remote::{Address, Attach, Attached, Way, attach};
use multitap_serve::{DoorError, Limits, OpenDoor};

use crate::stage::{Stage, says, soon, text, until, watch};

async fn open(stage: &Stage, socket: &Path) -> Result<OpenDoor, DoorError> {
    OpenDoor::open_private(socket, Limits::default(), stage.host.clone()).await
}

async fn through(socket: &Path) -> Attached {
    through_as(socket, Came::Terminal).await
}

async fn through_as(socket: &Path, door: Came) -> Attached {
    let address = Address { way: Way::Unix(socket.to_owned()), session: None };
    soon(attach(Attach { address, client: "eve".to_owned(), door, token: None })).await.unwrap()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_user_gets_in_as_the_owner() {
    let stage = Stage::new().await;
    let run = stage.folder.path().join("run");
    let socket = run.join("session.sock");
    // One that a process left which was killed.
    fs::create_dir(&run).unwrap();
    fs::set_permissions(&run, fs::Permissions::from_mode(0o755)).unwrap();
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    let door = open(&stage, &socket).await.unwrap();
    assert_eq!((mode(&run), mode(&socket), door.socket()), (0o700, 0o600, Some(socket.as_path())));
    let taken = open(&stage, &socket).await.unwrap_err();
    assert!(matches!(taken, DoorError::PrivateInUse { .. }), "{taken}");
    let far = through(&socket).await;
    let mut feed = watch(&far.session).await;
    let me = feed.client();
    assert_eq!((me.role, me.door), (Some(ClientRole::Owner), Came::Terminal), "here it is believed");
    let editor = watch(&through_as(&socket, Came::Acp).await.session).await;
    assert_eq!((editor.client().role, editor.client().door), (Some(ClientRole::Owner), Came::Acp));
    stage.tells(text("hello")).await;
    until(&mut feed, |kind| says(kind, "hello")).await;
    // Its host starts again at the same place, and the session is still there.
    door.stop().await;
    assert!(!socket.exists());
    let mut reaches = far.session.reaches();
    stage.tells(text("meanwhile")).await;
    let door = open(&stage, &socket).await.unwrap();
    until(&mut feed, |kind| says(kind, "meanwhile")).await;
    while reaches.now() != Reach::Here {
        soon(reaches.changed()).await;
    }
    // Its end is told as such, though the door closes at once.
    let session = stage.session.clone();
    let closed = async {
        session.over().await;
        door.stop().await;
    };
    let (_folder, ()) = tokio::join!(stage.ends(), closed);
    until(&mut feed, |kind| matches!(kind, EventKind::SessionEnded(_))).await;
    soon(far.session.over()).await;
    assert_eq!(far.session.reach(), Reach::Gone("the session is over".into()));
}

#[tokio::test]
async fn a_page_of_a_browser_gets_nothing() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let stage = Stage::new().await;
    let socket = stage.folder.path().join("s.sock");
    let _door = open(&stage, &socket).await.unwrap();
    let mut stream = tokio::net::UnixStream::connect(&socket).await.unwrap();
    let request = "GET /healthz HTTP/1.1\r\nHost: x\r\nOrigin: http://evil.example\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    soon(stream.read_to_string(&mut answer)).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
}
