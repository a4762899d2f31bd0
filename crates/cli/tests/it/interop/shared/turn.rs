//! Turns: prompted from every side, cancelled from every side, and left alone by those who go.

use multitap_testkit::model::Reply;
use multitap_testkit::peer::Kind;
use multitap_testkit::wait::until_blocking;

use super::frames;
use super::guest::{Sdk, Socket};
use super::party::{ASKING, Party, Side};
use crate::interop::agent::Agent;
use crate::interop::seat::place;
use crate::interop::stage::PATIENCE;

/// R003-12, R003-13, R003-16, R003-17, R003-30, R003-31.
pub(super) fn what_is_said_anywhere_is_heard_everywhere(agent: Agent, kind: Kind) {
    let place = place(agent);
    let mut party = Party::meet(&place, kind);
    for side in Side::ALL {
        let greeting = format!("Good morning, {}.", side.who().0);
        place.model.push(Reply::text(&greeting));
        party.prompt(side, &format!("greet {}", side.who().0));
        for told in party.told("end of the turn", |event| frames::is_state(event, "completed")) {
            assert_eq!(frames::text(&told), greeting, "{told:#?}");
        }
        party.terminal.shows(&greeting).unwrap();
        party.rests("completed");
    }
    for side in Side::ALL {
        cancel(&mut party, side);
    }
    let log = party.part();
    let ends = log.iter().filter(|event| event["type"] == "turnCompleted").map(|event| &event["status"]);
    assert_eq!(ends.collect::<Vec<_>>(), [["completed"; 3], ["cancelled"; 3]].as_flattened());
}

/// Somebody cancels what somebody else asked for, while the agent speaks.
fn cancel(party: &mut Party<'_>, by: Side) {
    let asker = if by == Side::Terminal { Side::Sdk } else { Side::Terminal };
    let words = format!("Until {} has enough", by.who().0);
    party.place.model.push(Reply::text(&words).then_hang());
    party.prompt(asker, &format!("bore {}", by.who().0));
    until_blocking("the model to hang", PATIENCE, || party.place.model.hangs().then_some(())).unwrap();
    party.terminal.shows(&words).unwrap();
    match party.guest(by) {
        None => party.terminal.press(&["Escape"]).unwrap(),
        Some(guest) => guest.cancel().unwrap(),
    }
    party.told("end of the turn", |event| frames::is_state(event, "canceled"));
    party.rests("canceled");
}

/// A question stays open when those leave who saw it asked; it is closed by a cancel as well.
pub(super) fn who_leaves_changes_nothing(agent: Agent, kind: Kind) {
    let place = place(agent);
    let mut party = Party::meet(&place, kind);
    let asked = party.ask(Side::Socket, "stays.txt");
    party.sdk.hang_up();
    party.socket.leave();
    party.terminal.until("it to leave", |screen| screen.contains("phone left") && screen.contains(ASKING)).unwrap();
    assert!(!place.scratch.path("stays.txt").exists());

    // Whoever comes now finds the question as it is.
    party.socket = Socket::join(party.port);
    party.sdk = Sdk::join(kind, &place.scratch, party.port, party.socket.task());
    for guest in party.guests() {
        assert_eq!(guest.state(), "input-required");
    }
    party.answer(Side::Sdk, &asked, "proceed_once");
    assert_eq!(party.closed(&asked, "stays.txt"), (Side::Sdk, "proceed_once".to_owned()));

    let asked = party.ask(Side::Sdk, "goes.txt");
    party.guest(Side::Socket).unwrap().cancel().unwrap();
    for told in party.told("end of the turn", |event| frames::is_state(event, "canceled")) {
        assert_eq!(frames::statuses(&told).last(), Some(&"CANCELLED"), "{told:#?}");
        assert!(told.iter().all(|event| frames::asked(event).is_none()), "nothing is asked any more: {told:#?}");
    }
    party.terminal.hides(ASKING).unwrap();
    party.rests("canceled");
    party.answer(Side::Sdk, &asked, "proceed_once");
    party.guest(Side::Sdk).unwrap().outcome().unwrap_err();
    assert!(!place.scratch.path("goes.txt").exists());
    party.part();
}
