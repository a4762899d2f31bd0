//! The built-in agent at work, the same over every model API: whole turns, and what becomes of a conversation later.

mod later;
mod turn;

use std::collections::BTreeSet;

use multitap_testkit::model::{Reply, Request};
use serde_json::Value;

use super::agent::Api;
use super::stage::{Place, Run};

/// One test for each API.
macro_rules! over_every_api {
    ($($room:ident: $($test:ident)+;)+) => {
        mod builtin_on_anthropic {
            $($(#[test] fn $test() { super::$room::$test(super::Api::Anthropic); })+)+
        }

        mod builtin_on_openai {
            $($(#[test] fn $test() { super::$room::$test(super::Api::OpenAi); })+)+
        }

        mod builtin_on_gemini {
            $($(#[test] fn $test() { super::$room::$test(super::Api::Gemini); })+)+
        }
    };
}

over_every_api! {
    turn: it_finds_mends_and_checks_a_fault
        it_can_be_stopped_in_each_phase_of_a_turn
        what_is_said_into_a_turn_reaches_the_model
        an_interruption_ends_one_turn_and_begins_the_next
        a_reply_that_broke_off_is_taken_back
        a_call_that_cannot_be_made_is_told_to_the_model
        a_picture_that_it_reads_reaches_the_model;
    later: a_full_conversation_is_summed_up
        another_process_goes_on_with_the_whole_conversation
        another_process_goes_on_with_the_same_model
        a_conversation_that_was_killed_goes_on;
}

fn script(place: &Place, replies: impl IntoIterator<Item = Reply>) {
    replies.into_iter().for_each(|reply| place.model.push(reply));
}

/// How each tool ended, and with which code.
fn ends(run: &Run) -> Vec<(String, Option<i64>)> {
    let end = |end: &&Value| (end["outcome"].as_str().unwrap().to_owned(), end["exitCode"].as_i64());
    run.all("toolCompleted").iter().map(end).collect()
}

/// Every call in what the model was sent has exactly one answer; how many there are.
#[track_caller]
fn assert_whole(api: Api, request: &Request) -> usize {
    let (mut calls, mut answers) = (Vec::new(), Vec::new());
    let list = match api {
        Api::Anthropic => &request.body["messages"],
        Api::OpenAi => &request.body["input"],
        Api::Gemini => &request.body["contents"],
    };
    for item in list.as_array().unwrap() {
        let inner = match api {
            Api::Anthropic => &item["content"],
            Api::Gemini => &item["parts"],
            Api::OpenAi => &Value::Null,
        };
        for part in inner.as_array().into_iter().flatten().chain([item]) {
            let text = |value: &Value| value.as_str().map(str::to_owned);
            let (call, answer) = match api {
                Api::Anthropic => match part["type"].as_str() {
                    Some("tool_use") => (text(&part["id"]), None),
                    _ => (None, text(&part["tool_use_id"])),
                },
                Api::OpenAi => match part["type"].as_str() {
                    Some("function_call") => (text(&part["call_id"]), None),
                    _ => (None, text(&part["call_id"])),
                },
                Api::Gemini => (text(&part["functionCall"]["name"]), text(&part["functionResponse"]["name"])),
            };
            calls.extend(call);
            answers.extend(answer);
        }
    }
    assert_eq!(calls, answers, "{list:#}");
    if api != Api::Gemini {
        assert_eq!(calls.iter().collect::<BTreeSet<_>>().len(), calls.len(), "an id twice: {calls:?}");
    }
    calls.len()
}
