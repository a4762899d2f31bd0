//! What clients are sent: all the same, however slowly they read and whenever they join.

use std::time::Duration;

use multitap_event::Command;
use proptest::collection::vec;
use proptest::test_runner::{Config, TestRunner};
use serde_json::json;

use super::{
    asks, editor, hello, initialize, is_asked, load, new, prompt, says, selected, shared, stop_reason, types, updates,
    words,
};
use crate::live::{Client, asked, soon, text, turn_ended, turn_started};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_does_not_read_is_cut_off_and_harms_nobody() {
    const PIECES: usize = 1500;
    let (live, session, mut agent) = shared().await;
    let mut reading = editor(&live).await;
    let mut deaf = Client::narrow(live.port(), "").await;
    initialize(&mut deaf, "deaf", json!({})).await;
    new(&mut deaf).await;
    types(&session, "a lot").await;
    agent.hears_prompt().await;
    agent.tells(turn_started()).await;
    let piece = "0123456789".repeat(1024);
    let telling = async {
        for _ in 0..PIECES {
            agent.tells(text(&piece)).await;
        }
        agent.tells(text("the end")).await;
    };
    let (frames, ()) = tokio::join!(reading.until(says("the end")), telling);
    assert_eq!(words(&frames, "agent_message_chunk").len(), PIECES + 1);
    soon(async {
        while session.snapshot().await.unwrap().clients.iter().any(|client| client.client == "deaf") {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    })
    .await;
    agent.tells(turn_ended()).await;
    prompt(&mut reading, "p", &session, "more").await;
    agent.answers(1).await;
    assert_eq!(stop_reason(&mut reading, "p").await, "end_turn");
}

#[tokio::test]
async fn a_late_client_is_sent_the_same_in_the_same_order() {
    let (live, session, mut agent) = shared().await;
    let mut early = editor(&live).await;
    for turn in ["one", "two"] {
        types(&session, turn).await;
        agent.answers(3).await;
    }
    types(&session, "may I?").await;
    agent.asks("q").await;
    let seen = early.until(asks).await;
    let mut late = hello(&live, "/acp", json!({})).await;
    load(&mut late, "load", session.id().as_str()).await;
    let replay = late.until(|frame| frame["id"] == "load").await;
    assert_eq!(updates(&replay), updates(&seen));
    assert!(!replay.iter().any(asks), "history asks nothing");
    let request = is_asked(&mut late).await;
    late.reply(&request, selected("proceed_once")).await;
    assert!(matches!(agent.hears().await, Command::Decide(_)));
    agent.tells(text("and on")).await;
    let (of_late, of_early) = (late.until(says("and on")).await, early.until(says("and on")).await);
    assert_eq!(updates(&of_late), updates(&of_early));
}

/// What is open is asked even if the events about it can no longer be read.
#[tokio::test]
async fn a_history_with_a_gap_still_ends() {
    const PIECES: usize = 160;
    let (live, session, mut agent) = shared().await;
    types(&session, "may I?").await;
    agent.asks("q").await;
    let piece = "x".repeat(128 * 1024);
    for _ in 0..PIECES {
        agent.tells(text(&piece)).await;
    }
    agent.tells(text("the latest")).await;
    soon(async {
        while session.last() < PIECES as u64 + 4 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    live.break_log();
    let mut late = hello(&live, "/acp", json!({})).await;
    load(&mut late, "load", session.id().as_str()).await;
    let replay = late.until(|frame| frame["id"] == "load").await;
    assert!(replay.last().unwrap()["result"].is_object(), "{:?}", replay.last());
    assert_eq!(words(&replay, "user_message_chunk"), [""; 0], "that is lost");
    assert_eq!(words(&replay, "agent_message_chunk").last().unwrap(), "the latest");
    let request = is_asked(&mut late).await;
    late.reply(&request, selected("proceed_once")).await;
    assert!(matches!(agent.hears().await, Command::Decide(_)));
    agent.tells(text("and on")).await;
    late.until(says("and on")).await;
}

/// A prompt whose end was lost is answered all the same.
#[tokio::test]
async fn a_prompt_whose_end_is_lost_fails() {
    // More than sockets take in, then more than is in memory; little enough that the client is not cut off meanwhile.
    const UNREAD: u64 = 80;
    const PIECES: u64 = 160;
    let (live, session, mut agent) = shared().await;
    let mut slow = Client::narrow(live.port(), "").await;
    initialize(&mut slow, "slow", json!({})).await;
    new(&mut slow).await;
    prompt(&mut slow, "p", &session, "work").await;
    agent.hears_prompt().await;
    agent.tells(turn_started()).await;
    let piece = "x".repeat(128 * 1024);
    for _ in 0..UNREAD {
        agent.tells(text(&piece)).await;
    }
    agent.tells(turn_ended()).await;
    types(&session, "may I?").await;
    agent.asks("q").await;
    for _ in 0..PIECES {
        agent.tells(text(&piece)).await;
    }
    soon(async {
        while session.last() < UNREAD + PIECES + 8 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    live.break_log();
    let failed = slow.until(|frame| frame["id"] == "p").await.pop().unwrap();
    assert!(failed["error"]["message"].as_str().unwrap().contains("events were lost"), "{failed}");
    is_asked(&mut slow).await;
}

/// What comes from before is not mixed into the replay, and the prompt is answered once.
#[tokio::test]
async fn a_session_is_loaded_anew_during_a_turn() {
    let (live, session, mut agent) = shared().await;
    let mut client = editor(&live).await;
    prompt(&mut client, "p", &session, "work").await;
    agent.hears_prompt().await;
    agent.tells(turn_started()).await;
    agent.tells(text("first")).await;
    client.until(says("first")).await;
    agent.tells(asked("q")).await;
    let before = is_asked(&mut client).await;
    load(&mut client, "load", session.id().as_str()).await;
    let frames = client.until(|frame| frame["id"] == "load").await;
    assert_eq!(words(&frames, "user_message_chunk"), ["work"]);
    assert_eq!(words(&frames, "agent_message_chunk"), ["first"]);
    let taken_back = frames.iter().find(|frame| frame["method"] == "$/cancel_request").unwrap();
    assert_eq!(taken_back["params"]["requestId"], before["id"]);
    let again = is_asked(&mut client).await;
    client.reply(&again, selected("proceed_once")).await;
    assert!(matches!(agent.hears().await, Command::Decide(_)));
    agent.tells(text("last")).await;
    agent.tells(turn_ended()).await;
    let rest = client.until(|frame| frame["id"] == "p").await;
    assert_eq!(words(&rest, "agent_message_chunk"), ["last"]);
    client.is_silent().await;
    // Two at once: both are answered.
    load(&mut client, "a", session.id().as_str()).await;
    load(&mut client, "b", session.id().as_str()).await;
    let mut answers = Vec::new();
    while answers.len() < 2 {
        let frame = client.frame().await;
        if frame["id"] == "a" || frame["id"] == "b" {
            answers.push(frame);
        }
    }
    assert!(answers.iter().any(|answer| answer["result"].is_object()), "{answers:?}");
}

/// However fast each reads, all are sent the same in one order.
#[test]
fn any_interleaving_of_reads_shows_the_same() {
    const CLIENTS: usize = 3;
    const PIECES: usize = 30;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::with_cases(12) });
    // Whose turn it is to read, or that the agent goes on.
    let schedule = vec(0..=CLIENTS, 1..120);
    let run = runner.run(&schedule, |schedule| {
        runtime.block_on(async {
            let (live, session, mut agent) = shared().await;
            let (mut clients, mut seen) = (Vec::new(), vec![Vec::new(); CLIENTS]);
            for _ in 0..CLIENTS {
                clients.push(editor(&live).await);
            }
            types(&session, "go").await;
            agent.hears_prompt().await;
            agent.tells(turn_started()).await;
            let mut told = 0;
            for who in schedule {
                if who == CLIENTS && told < PIECES {
                    agent.tells(text(&format!("{told}"))).await;
                    told += 1;
                } else if who < CLIENTS && seen[who].len() <= told {
                    let frame = clients[who].until(|frame| !updates(std::slice::from_ref(frame)).is_empty()).await;
                    seen[who].extend(updates(&frame));
                }
            }
            agent.tells(text("the end")).await;
            for (client, seen) in clients.iter_mut().zip(&mut seen) {
                seen.extend(updates(&client.until(says("the end")).await));
            }
            assert_eq!(seen[0].len(), told + 3, "the prompt, its title and the end beside the pieces");
            assert!(seen.iter().all(|other| *other == seen[0]));
        });
        Ok(())
    });
    run.unwrap();
}
