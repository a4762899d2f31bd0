//! A file that is written: asked about, allowed, changed or refused, in every way of speaking.

use serde_json::{Value, json};

use super::cast::{Cast, Deed};
use super::client::Form;
use super::host::Host;
use super::told::{Asked, Told};
use crate::interop::stage::Place;

const FILE: &str = "made.txt";
const LINE: &str = "as it was meant";
const WRITTEN: &str = "as it was meant\n";

/// Steps 1 to 5: the prompt, up to the question.
#[track_caller]
fn ask(talk: &mut super::client::Talk<'_>, cast: Cast, place: &Place, who: &str) -> (Told, Asked) {
    let path = place.path(FILE);
    let told = talk.prompt(who, &cast.prompt(place, Deed::Write { path: &path, line: LINE }));
    let asked = told.asked();
    assert!(!place.scratch.path(FILE).exists(), "nothing is written before the answer");
    (told, asked)
}

/// R000-34: a file that was not there.
#[track_caller]
fn check_new_file(diff: &Value, place: &Place, content: &str) {
    assert_eq!((&diff["file_name"], &diff["file_path"]), (&json!(FILE), &json!(place.path(FILE))), "{diff:#}");
    assert_eq!(diff["new_content"], content, "{diff:#}");
    assert!(diff.get("old_content").is_none(), "{diff:#}");
    assert!(diff["formatted_diff"].as_str().is_some_and(|diff| diff.contains('+')), "{diff:#}");
}

/// The extension's appendix A, steps 1 to 10: R000-12, R000-18, R000-19, R000-21, R000-29, R000-34, R000-37, R000-41,
/// R000-54 to R000-61.
pub(super) fn the_worked_example_from_first_to_last(cast: Cast) {
    let place = Place::new(cast.agent(), []);
    let host = Host::start(&place, cast, &[]);
    let mut talk = host.talk(Form::Specified);
    let (told, asked) = ask(&mut talk, cast, &place, "ann");
    assert_eq!(
        told.deeds(),
        ["task submitted", "state working", "tool PENDING, asked", "state input-required, final"],
        "{told}"
    );
    let [(subject, description)] = &told.thoughts()[..] else { panic!("one thought\n{told}") };
    assert!(["Weighing it", "Thinking it over"].contains(&subject.as_str()) && !description.is_empty(), "{told}");
    let options = asked.tool["confirmation_request"]["options"].as_array().unwrap();
    assert!(options.iter().any(|option| option["id"] == "proceed_once"), "{:#}", asked.tool);
    check_new_file(&asked.tool["confirmation_request"]["file_edit_details"], &place, WRITTEN);

    let told = talk.answer("bob", &asked, "proceed_once", &json!({})).unwrap();
    assert_eq!(told.story(), ["tool EXECUTING", "tool SUCCEEDED", "text", "state completed, final"], "{told}");
    assert!(told.tools().iter().all(|tool| tool["tool_call_id"] == asked.call), "{told}");
    check_new_file(&told.tools()[1]["output"]["diff"], &place, WRITTEN);
    let [changes] = &told.changes()[..] else { panic!("{told}") };
    check_new_file(&changes[0], &place, WRITTEN);
    assert!(cast.says(&told.text()), "{told}");
    assert_eq!(place.scratch.read(FILE).unwrap(), WRITTEN);

    let before = told.ids();
    let told = talk.prompt("cy", &cast.prompt(&place, Deed::Speak));
    assert_eq!(told.story(), ["task submitted", "state working", "text", "state completed, final"], "{told}");
    assert_eq!(told.ids(), before, "it is the same task");
    assert!(remembers(cast, &place, &told), "{told}");
    host.stop();
}

/// Whether the second turn knew of the first.
fn remembers(cast: Cast, place: &Place, told: &Told) -> bool {
    match cast {
        // It says what it is once in a conversation.
        Cast::Rehearsal => !told.text().contains("This is a rehearsal"),
        Cast::Agent(_) => {
            let heard = place.model.conversation().pop().expect("the model was asked");
            heard.body.to_string().contains(LINE)
        }
    }
}

/// R000-20, R000-30, R000-42, R000-43. Where an agent writes only what it asked for, other content is refused, and
/// nothing is approved by it.
pub(super) fn other_content_and_then_a_no(cast: Cast) {
    let place = Place::new(cast.agent(), []);
    let host = Host::start(&place, cast, &[]);
    let mut talk = host.talk(Form::Specified);
    let (_, asked) = ask(&mut talk, cast, &place, "ann");
    let unknown = talk.answer("eve", &asked, "proceed_somehow", &json!({})).unwrap_err();
    assert_eq!(unknown["code"], -32602, "{unknown:#}");
    assert!(unknown["message"].as_str().unwrap().contains("proceed_once"), "it says what was offered: {unknown:#}");
    let edited = json!({"modified_details": {"file_details": {"new_content": "as bob wants it\n"}}});
    let answered = talk.answer("bob", &asked, "proceed_once", &edited);
    if cast.takes_other_content() {
        let told = answered.unwrap();
        assert_eq!(told.story(), ["tool EXECUTING", "tool SUCCEEDED", "text", "state completed, final"], "{told}");
        check_new_file(&told.tools()[1]["output"]["diff"], &place, "as bob wants it\n");
        assert_eq!(place.scratch.read(FILE).unwrap(), "as bob wants it\n");
        std::fs::remove_file(place.scratch.path(FILE)).unwrap();
        let (_, asked) = ask(&mut talk, cast, &place, "ann");
        say_no(&talk, cast, &place, &asked);
    } else {
        let refused = answered.unwrap_err();
        assert_eq!(refused["code"], -32602, "{refused:#}");
        let why = refused["message"].as_str().unwrap();
        assert!(why.contains("does not accept newContent"), "{refused:#}");
        assert!(!place.scratch.path(FILE).exists(), "nothing was approved");
        say_no(&talk, cast, &place, &asked);
    }
    host.stop();
}

#[track_caller]
fn say_no(talk: &super::client::Talk<'_>, cast: Cast, place: &Place, asked: &Asked) {
    let told = talk.answer("bob", asked, "cancel", &json!({})).unwrap();
    assert_eq!(told.story(), ["tool CANCELLED", "text", "state completed, final"], "{told}");
    let error = &told.tools()[0]["error"];
    assert!(error["message"].as_str().is_some_and(|message| message.contains("bob")), "{error:#}");
    assert!(!place.scratch.path(FILE).exists());
    assert!(cast.says(&told.text()), "{told}");
}

/// R000-11, R000-12, R000-28, R000-38, R000-42, R000-60 for clients of Google's server.
pub(super) fn the_shipped_spelling(cast: Cast) {
    let place = Place::new(cast.agent(), []);
    let host = Host::start(&place, cast, &[]);
    let mut talk = host.talk(Form::Coder);
    let (told, asked) = ask(&mut talk, cast, &place, "ann");
    assert_eq!(
        told.deeds(),
        ["task submitted", "state working", "tool awaiting_approval, asked", "state input-required, final"],
        "{told}"
    );
    let details = &asked.tool["confirmationDetails"];
    assert_eq!((&details["type"], &details["fileName"]), (&json!("edit"), &json!(FILE)), "{details:#}");
    assert_eq!((&details["filePath"], &details["newContent"]), (&json!(place.path(FILE)), &json!(WRITTEN)));
    assert!(details["originalContent"].is_null() && details["fileDiff"].is_string(), "{details:#}");
    let told = talk.answer("bob", &asked, "proceed_once", &json!({})).unwrap();
    assert_eq!(told.story(), ["tool executing", "tool success", "text", "state input-required, final"], "{told}");
    let done = told.tools()[1];
    assert_eq!((&done["request"]["callId"], &done["outcome"]), (&json!(asked.call), &json!("proceed_once")));
    assert_eq!(done["response"]["resultDisplay"]["newContent"], WRITTEN, "{done:#}");
    assert!(cast.says(&told.text()), "{told}");
    assert_eq!(place.scratch.read(FILE).unwrap(), WRITTEN);
    host.stop();
}

/// The same walk in 1.0, where the end of a stream is its end and nothing else says so.
pub(super) fn version_1_0(cast: Cast) {
    let place = Place::new(cast.agent(), []);
    let host = Host::start(&place, cast, &[]);
    let mut talk = host.talk(Form::V1);
    let (told, asked) = ask(&mut talk, cast, &place, "ann");
    assert_eq!(
        told.deeds(),
        [
            "task TASK_STATE_SUBMITTED",
            "state TASK_STATE_WORKING",
            "tool PENDING, asked",
            "state TASK_STATE_INPUT_REQUIRED"
        ],
        "{told}"
    );
    check_new_file(&asked.tool["confirmation_request"]["file_edit_details"], &place, WRITTEN);
    let told = talk.answer("bob", &asked, "proceed_once", &json!({})).unwrap();
    assert_eq!(told.story(), ["tool EXECUTING", "tool SUCCEEDED", "text", "state TASK_STATE_COMPLETED"], "{told}");
    check_new_file(&told.tools()[1]["output"]["diff"], &place, WRITTEN);
    assert!(cast.says(&told.text()), "{told}");
    assert_eq!(place.scratch.read(FILE).unwrap(), WRITTEN);
    host.stop();
}
