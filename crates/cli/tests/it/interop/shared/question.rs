//! Questions: asked from every side, answered from every side, too late, and at the same moment.

use std::collections::BTreeMap;
use std::sync::Barrier;
use std::time::Duration;

use multitap_testkit::peer::Kind;
use serde_json::Value;

use super::frames::Asked;
use super::guest::Guest as _;
use super::party::{Party, Side};
use crate::interop::agent::Agent;
use crate::interop::seat::place;

/// By how much one of them may be ahead of the others in a race, so that it is not always the same who wins. Who does
/// is not for the test to say.
const AHEAD: Duration = Duration::from_millis(8);

/// R003-18 to R003-31: everybody asks once, one of them answers: yes, no, and yes again.
fn one_answers(agent: Agent, kind: Kind, by: Side) {
    let place = place(agent);
    let mut party = Party::meet(&place, kind);
    for (asker, option) in Side::ALL.into_iter().zip(["proceed_once", "cancel", "proceed_once"]) {
        let file = format!("of-{}.txt", asker.who().0);
        let asked = party.ask(asker, &file);
        party.answer(by, &asked, option);
        assert_eq!(party.closed(&asked, &file), (by, option.to_owned()));
        come_late(&mut party, &asked, by, option);
        assert_eq!(place.scratch.path(&file).exists(), option != "cancel", "nothing came of it");
    }
    party.rests("completed");
    check_rulings(&party.part(), Side::ALL.len());
}

/// R003-29: whoever says the opposite of what was ruled hears who was first, and nothing changes.
fn come_late(party: &mut Party<'_>, asked: &Asked, by: Side, option: &str) {
    let other = if option == "cancel" { "proceed_once" } else { "cancel" };
    for side in [Side::Socket, Side::Sdk] {
        party.answer(side, asked, other);
        let refused = party.guest(side).unwrap().outcome().unwrap_err();
        check_refusal(&refused, by, option);
    }
}

/// The error of a late answer tells who was first, through which door, and what they said. What SDKs make of an error
/// they do not know has its message at least.
#[track_caller]
fn check_refusal(refused: &Value, by: Side, option: &str) {
    let (client, door) = by.who();
    let message = refused["message"].as_str().unwrap_or_default();
    assert!([client, door, option].iter().all(|word| message.contains(word)), "{refused:#}");
    if let Some(code) = refused["code"].as_i64() {
        assert_eq!(code, -32011, "{refused:#}");
    }
    if let Some(data) = refused["data"].as_object() {
        assert_eq!((&data["settledBy"]["client"], &data["selectedOptionId"]), (&client.into(), &option.into()));
    }
}

/// Every question in the log has one ruling.
#[track_caller]
fn check_rulings(log: &[Value], questions: usize) {
    let mut rulings = BTreeMap::new();
    for event in log {
        let question = event["questionId"].as_str().unwrap_or_default();
        match event["type"].as_str() {
            Some("permissionAsked") => assert_eq!(rulings.insert(question, 0), None, "{event:#}"),
            Some("permissionSettled") => *rulings.get_mut(question).unwrap() += 1,
            _ => {}
        }
    }
    assert_eq!(rulings.len(), questions, "{rulings:#?}");
    assert!(rulings.values().all(|count| *count == 1), "{rulings:#?}");
}

pub(super) fn the_terminal_answers(agent: Agent, kind: Kind) {
    one_answers(agent, kind, Side::Terminal);
}

pub(super) fn the_socket_answers(agent: Agent, kind: Kind) {
    one_answers(agent, kind, Side::Socket);
}

pub(super) fn the_sdk_answers(agent: Agent, kind: Kind) {
    one_answers(agent, kind, Side::Sdk);
}

/// R003-35. The key says yes, the two others disagree; each of the three is a little ahead once.
pub(super) fn answers_at_the_same_moment_leave_one_ruling(agent: Agent, kind: Kind) {
    let place = place(agent);
    let mut party = Party::meet(&place, kind);
    let rounds = [
        (Side::Terminal, Some(Side::Terminal), "cancel", "proceed_once"),
        (Side::Socket, Some(Side::Sdk), "proceed_once", "cancel"),
        (Side::Sdk, Some(Side::Socket), "cancel", "cancel"),
        (Side::Terminal, None, "proceed_once", "cancel"),
    ];
    for (round, (asker, ahead, by_socket, by_sdk)) in rounds.into_iter().enumerate() {
        let file = format!("round-{round}.txt");
        let asked = party.ask(asker, &file);
        fire(&mut party, &asked, ahead, by_socket, by_sdk);
        let (winner, option) = party.closed(&asked, &file);
        let said = match winner {
            Side::Terminal => "proceed_once",
            Side::Socket => by_socket,
            Side::Sdk => by_sdk,
        };
        assert_eq!(option, said, "{winner:?} won round {round}");
        for side in [Side::Socket, Side::Sdk] {
            match party.guest(side).unwrap().outcome() {
                Ok(()) => assert_eq!(side, winner, "round {round}"),
                Err(refused) => check_refusal(&refused, winner, &option),
            }
        }
        // Asked once for the prompt and once for what came of the tool: the agent was told of one ruling.
        assert_eq!(place.model.conversation().len(), 2 * (round + 1), "round {round}");
    }
    check_rulings(&party.part(), rounds.len());
}

/// All three answer, each from a thread of its own.
fn fire(party: &mut Party<'_>, asked: &Asked, ahead: Option<Side>, by_socket: &str, by_sdk: &str) {
    let Party { terminal, socket, sdk, .. } = party;
    let start = Barrier::new(Side::ALL.len());
    let ready = |side: Side| {
        start.wait();
        if ahead.is_some_and(|ahead| ahead != side) {
            std::thread::sleep(AHEAD);
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            ready(Side::Terminal);
            terminal.press(&["Enter"]).unwrap();
        });
        scope.spawn(|| {
            ready(Side::Socket);
            socket.answer(asked, by_socket);
        });
        scope.spawn(|| {
            ready(Side::Sdk);
            sdk.answer(asked, by_sdk);
        });
    });
}
