//! Whatever is cut where: who looks on from elsewhere is told the same, in the same order, each once.

use multitap_hub::{FeedEnd, Reach};
use multitap_serve::Access;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::proxy::Proxy;
use crate::stage::{Stage, attached, says, soon, text, try_attach, until, watch};

/// Clients call the door by the proxy's port, so any has to do.
async fn behind(stage: &Stage, cuts: Vec<usize>) -> (multitap_serve::OpenDoor, Proxy) {
    let any = Access { allow_hosts: vec!["127.0.0.1".to_owned()], ..Access::default() };
    let door = stage.door(any).await;
    let proxy = Proxy::to(door.addresses()[0], cuts).await;
    (door, proxy)
}

#[test]
fn whatever_is_cut_where_everything_is_told_once_in_order() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(12);
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    // The first cut leaves enough for the first joining: what breaks before that is an error of its own.
    let cuts = (2_000..40_000_usize, prop::collection::vec(0..20_000_usize, 0..6));
    let told = (0..400_usize, 1..400_usize, 1..200_usize);
    runner
        .run(&(cuts, told), |((first, mut rest), (before, after, size))| {
            rest.insert(0, first);
            runtime.block_on(check(rest, before, after, size));
            Ok(())
        })
        .unwrap();
}

async fn check(cuts: Vec<usize>, before: usize, after: usize, size: usize) {
    let stage = Stage::new().await;
    let words = "x".repeat(size);
    for number in 0..before {
        stage.tells(text(&format!("{number} {words}"))).await;
    }
    stage.tells(text("now")).await;
    until(&mut stage.watch().await, |kind| says(kind, "now")).await;
    let (door, proxy) = behind(&stage, cuts).await;
    // A snapshot that is cut in the middle is no joining yet.
    let far = match try_attach(&proxy.url, None).await {
        Ok(far) => far,
        Err(_) => attached(&proxy.url).await,
    };
    let mut there = watch(&far.session).await;
    for number in 0..after {
        stage.tells(text(&format!("{number} {words}"))).await;
        if number % 50 == 0 {
            tokio::task::yield_now().await;
        }
    }
    stage.tells(text("end")).await;
    let told = until(&mut there, |kind| says(kind, "end")).await;
    let log = until(&mut stage.watch().await, |kind| says(kind, "end")).await;
    assert_eq!(told, log);
    let (here, there) = (stage.session.snapshot().await.unwrap(), far.session.snapshot().await.unwrap());
    assert_eq!((here.title, here.native_id, here.turns), (there.title, there.native_id, there.turns));
    far.leave().await;
    door.stop().await;
    let _folder = stage.ends().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_connection_is_said_and_so_is_its_return() {
    let stage = Stage::new().await;
    let (_door, proxy) = behind(&stage, Vec::new()).await;
    let far = attached(&proxy.url).await;
    let (mut reaches, mut there) = (far.session.reaches(), watch(&far.session).await);
    assert_eq!(far.session.reach(), Reach::Here);
    proxy.close(true);
    proxy.cut();
    assert!(matches!(soon(reaches.changed()).await, Reach::Lost(_)));
    let refused = far.session.set_model("m", crate::stage::ann()).await.unwrap_err().to_string();
    assert!(refused.contains("lost"), "{refused}");
    stage.tells(text("meanwhile")).await;
    proxy.close(false);
    assert_eq!(soon(reaches.changed()).await, Reach::Here);
    let me = reaches.client().and_then(|me| me.client_id);
    assert!(me.is_some() && me != there.client().client_id, "nobody comes back under an id that has left");
    until(&mut there, |kind| says(kind, "meanwhile")).await;
    far.leave().await;
    assert_eq!(there.end(), FeedEnd::SessionOver);
}
