//! A network that breaks: carries bytes to a door, and cuts each connection where it is told.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinSet;

pub(crate) struct Proxy {
    pub(crate) url: String,
    cut: Arc<Notify>,
    closed: Arc<AtomicBool>,
    _tasks: JoinSet<()>,
}

impl Proxy {
    /// Cuts the first connections after so many bytes each that came back; the rest hold.
    pub(crate) async fn to(door: SocketAddr, cuts: Vec<usize>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        // The door goes by its own port.
        let url = format!("http://127.0.0.1:{}", listener.local_addr().unwrap().port());
        let (cut, closed, mut tasks) = (Arc::new(Notify::new()), Arc::new(AtomicBool::new(false)), JoinSet::new());
        let (asked, shut) = (cut.clone(), closed.clone());
        tasks.spawn(async move {
            let (mut cuts, mut carried) = (cuts.into_iter(), JoinSet::new());
            while let Ok((near, _)) = listener.accept().await {
                if shut.load(Ordering::Acquire) {
                    continue;
                }
                let most = cuts.next().unwrap_or(usize::MAX);
                let asked = asked.clone();
                carried.spawn(async move {
                    let far = TcpStream::connect(door).await.unwrap();
                    tokio::select! {
                        () = carry(near, far, most) => {}
                        () = asked.notified() => {}
                    }
                });
            }
        });
        Self { url, cut, closed, _tasks: tasks }
    }

    /// Cuts what there is now.
    pub(crate) fn cut(&self) {
        self.cut.notify_waiters();
    }

    /// Whether new connections lead anywhere.
    pub(crate) fn close(&self, closed: bool) {
        self.closed.store(closed, Ordering::Release);
    }
}

async fn carry(near: TcpStream, far: TcpStream, most: usize) {
    let (mut near_in, mut near_out) = near.into_split();
    let (mut far_in, mut far_out) = far.into_split();
    let back = async {
        let (mut left, mut bytes) = (most, vec![0; 4096]);
        while left > 0 {
            let Ok(read @ 1..) = far_in.read(&mut bytes).await else { return };
            let take = read.min(left);
            if near_out.write_all(&bytes[..take]).await.is_err() {
                return;
            }
            left -= take;
        }
    };
    tokio::select! {
        () = back => {}
        _ = tokio::io::copy(&mut near_in, &mut far_out) => {}
    }
}
