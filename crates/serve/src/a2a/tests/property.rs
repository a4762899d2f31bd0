//! Any order of events, also one that no agent keeps to: frames are made all the same, and the same ones again.

use std::collections::HashMap;

use multitap_event::{Event, EventKind, Timestamp};
use multitap_testkit::script;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use super::{FORMS, frames};
use crate::a2a::encode;
use crate::a2a::frame::{Body, Frame, ToolStatus};
use crate::a2a::project::Projector;

/// Every event of every script.
fn vocabulary() -> Vec<Event> {
    script::names().unwrap().iter().flat_map(|name| script::events(name).unwrap()).collect()
}

/// Events of the vocabulary in any order, each some time after the one before.
fn any_log() -> impl Strategy<Value = Vec<Event>> {
    let words = vocabulary();
    vec((any::<Index>(), 0..180_u64), 1..60).prop_map(move |picks| {
        let mut millis = 1_800_000_000_000;
        let mut log = Vec::new();
        for (seq, (pick, pause)) in (1..).zip(picks) {
            millis += pause.cast_signed();
            log.push(Event { seq, timestamp: Timestamp::from_millis(millis), ..pick.get(&words).clone() });
        }
        log
    })
}

/// A script with some of its events left out, and others told twice or too early.
fn bent_script() -> impl Strategy<Value = Vec<Event>> {
    let names = script::names().unwrap();
    let bends = vec((any::<Index>(), any::<Index>(), 0..3_u8), 0..6);
    (any::<Index>(), bends).prop_map(move |(name, bends)| {
        let mut log: Vec<Event> = script::events(&names[name.index(names.len())]).unwrap();
        for (from, to, bend) in bends {
            let (from, to) = (from.index(log.len()), to.index(log.len()));
            match bend {
                0 if log.len() > 1 => drop(log.remove(from)),
                1 => log.insert(to, log[from].clone()),
                _ => log.swap(from, to),
            }
        }
        for (seq, event) in (1..).zip(&mut log) {
            event.seq = seq;
        }
        let first = log[0].timestamp;
        for event in &mut log {
            event.timestamp = event.timestamp.max(first);
        }
        log
    })
}

pub(super) fn logs() -> impl Strategy<Value = Vec<Event>> {
    prop_oneof![any_log(), bent_script()]
}

/// What a frame says and where, in every form.
fn whole(frame: &Frame) -> (String, Vec<String>) {
    (frame.cursor.to_string(), FORMS.iter().map(|(_, form)| frame.json(*form).to_string()).collect())
}

/// The frames as they are made while it happens: what is due is shown although nothing happens.
fn as_it_happens(log: &[Event]) -> Vec<Frame> {
    let mut projector = Projector::new(log[0].session_id.as_str());
    let mut made = Vec::new();
    for event in log {
        while let Some(due) = projector.due().filter(|due| *due < event.timestamp) {
            projector.tick(due, &mut made);
        }
        projector.apply(event, &mut made);
    }
    made
}

/// Whether a frame may be there or not, depending on when it was looked: a call that began by itself, or live output.
fn depends_on_time(frame: &Frame) -> bool {
    let by_itself = |status| matches!(status, ToolStatus::Pending | ToolStatus::Executing);
    matches!(&frame.body, Body::Tool(tool) if by_itself(tool.status) && tool.asked.is_none())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn cursors_rise_and_every_frame_can_be_written(log in logs()) {
        let frames = frames(&log);
        for pair in frames.windows(2) {
            prop_assert!(pair[0].cursor < pair[1].cursor, "{} {}", pair[0].cursor, pair[1].cursor);
        }
        for frame in &frames {
            prop_assert!(frame.cursor.seq >= 1 && frame.cursor.seq <= log.len() as u64);
            for (_, form) in FORMS {
                prop_assert!(serde_json::from_str::<serde_json::Value>(frame.json(form)).unwrap().is_object());
            }
        }
    }

    /// However odd what is said, and whatever the agent calls itself.
    #[test]
    fn a_frame_looks_the_same_from_a_template(mut log in logs(), said in any::<String>(), name in any::<Option<String>>()) {
        for event in &mut log {
            if let EventKind::TextChunk(chunk) = &mut event.kind {
                chunk.content.clone_from(&said);
                chunk.message_id = name.as_deref().map(Into::into);
            }
            if let (EventKind::ModelChanged { model, .. }, Some(name)) = (&mut event.kind, &name) {
                model.clone_from(name);
            }
        }
        for (frame, (_, form)) in frames(&log).iter().flat_map(|frame| FORMS.map(|form| (frame, form))) {
            prop_assert_eq!(frame.json(form), encode::json(frame, form));
        }
    }

    #[test]
    fn a_call_that_is_over_stays_over(log in logs()) {
        let mut over: HashMap<String, bool> = HashMap::new();
        for frame in frames(&log) {
            let Body::Tool(tool) = &frame.body else { continue };
            let ended = over.entry(tool.call.tool_id.to_string()).or_default();
            // Only another call of the same id begins anew.
            prop_assert!(!*ended || tool.status == ToolStatus::Pending, "{} {:?}", tool.call.tool_id, tool.status);
            *ended = tool.end.is_some() || matches!(tool.status, ToolStatus::Succeeded | ToolStatus::Failed | ToolStatus::Cancelled);
        }
    }

    #[test]
    fn from_any_rest_or_clear_place_on_the_same_frames_follow(log in logs()) {
        let all: Vec<_> = frames(&log).iter().map(whole).collect();
        let mut projector = Projector::new(log[0].session_id.as_str());
        let mut made = Vec::new();
        for (at, event) in log.iter().enumerate() {
            projector.apply(event, &mut made);
            if !projector.is_idle() && !projector.is_clear() {
                continue;
            }
            let mut in_memory = projector.clone();
            let checkpoint = projector.checkpoint();
            prop_assert_eq!(checkpoint.is_some(), projector.is_clear());
            if projector.is_clear() {
                in_memory.forget();
            }
            let stored = checkpoint.map(|checkpoint| Projector::resume(log[0].session_id.as_str(), &checkpoint).unwrap());
            for mut resumed in [Some(in_memory), stored].into_iter().flatten() {
                let mut rest = Vec::new();
                for event in &log[at + 1..] {
                    resumed.apply(event, &mut rest);
                }
                let rest: Vec<_> = rest.iter().map(whole).collect();
                prop_assert_eq!(&all[made.len()..], &rest[..]);
            }
        }
    }

    #[test]
    fn what_does_not_depend_on_time_is_the_same_whenever_it_is_made(log in logs()) {
        let steady = |frames: Vec<Frame>| -> Vec<_> {
            frames.iter().filter(|frame| !depends_on_time(frame)).map(whole).collect()
        };
        prop_assert_eq!(steady(frames(&log)), steady(as_it_happens(&log)));
    }

    #[test]
    fn while_it_happens_cursors_rise_too(log in logs()) {
        let frames = as_it_happens(&log);
        prop_assert!(frames.windows(2).all(|pair| pair[0].cursor < pair[1].cursor));
    }
}
