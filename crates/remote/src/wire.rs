//! The frames of `dialect=events` that we read and write. Pure.

use multitap_event::{MAX_JSON_VALUES, has_more_values};
use multitap_hub::{Entry, GapNotice, Refusal, SessionRequest};
use serde::Deserialize;
use serde::de::{DeserializeOwned, Error as _};
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// An incoming frame.
#[derive(Debug)]
pub(crate) enum Frame {
    Event(Entry),
    /// Events are lost.
    Gap(GapNotice),
    Answer {
        id: u64,
        answer: Result<Box<RawValue>, Refusal>,
    },
    /// Unknown to this version, or not for us.
    Other,
}

/// Maximum number of values in a snapshot or a reply: a snapshot has all calls of a turn. Events have their own limit.
const MOST_VALUES: usize = 4 * MAX_JSON_VALUES;

/// The `error` of a response.
#[derive(Deserialize)]
struct Problem<'a> {
    #[serde(default)]
    message: String,
    #[serde(borrow, default)]
    data: Option<&'a RawValue>,
}

impl From<Problem<'_>> for Refusal {
    /// A host of another version may send no code, or one that this version does not know.
    fn from(problem: Problem<'_>) -> Self {
        let data = problem.data.and_then(|data| parse(data.get()).ok()).unwrap_or_default();
        Self::read(problem.message, data)
    }
}

/// Parses JSON of the other process in bounded memory.
pub(crate) fn parse<T: DeserializeOwned>(json: &str) -> serde_json::Result<T> {
    check(json)?;
    serde_json::from_str(json)
}

/// Refuses JSON that would take too much memory.
pub(crate) fn check(json: &str) -> serde_json::Result<()> {
    if has_more_values(json, MOST_VALUES) {
        return Err(serde_json::Error::custom(format_args!("it has more than {MOST_VALUES} values")));
    }
    Ok(())
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(default)]
    method: Option<String>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(default)]
    result: Option<Box<RawValue>>,
    #[serde(borrow, default)]
    error: Option<Problem<'a>>,
}

impl Frame {
    pub(crate) fn read(text: &str) -> Self {
        let Ok(line) = serde_json::from_str::<Line<'_>>(text) else { return Self::Other };
        match (line.method.as_deref(), line.params) {
            (Some("event"), Some(params)) => return Entry::read(params.get()).map_or(Self::Other, Self::Event),
            (Some("replayGap"), Some(params)) => {
                return gap(params.get()).map_or(Self::Other, Self::Gap);
            }
            (Some(_), _) => return Self::Other,
            (None, _) => {}
        }
        let Some(id) = line.id.and_then(|id| id.get().parse().ok()) else { return Self::Other };
        match (line.result, line.error) {
            (_, Some(problem)) => Self::Answer { id, answer: Err(problem.into()) },
            (Some(result), None) => Self::Answer { id, answer: Ok(result) },
            (None, None) => Self::Other,
        }
    }
}

/// A gap. One whose snapshot cannot be read has none, so the reader joins again.
fn gap(json: &str) -> serde_json::Result<GapNotice> {
    #[derive(Deserialize)]
    struct Numbers {
        #[serde(default)]
        after: u64,
        next: u64,
    }
    parse(json).or_else(|_| {
        let Numbers { after, next } = serde_json::from_str(json)?;
        Ok(GapNotice { after, next, snapshot: None })
    })
}

pub(crate) fn request(id: u64, request: &SessionRequest) -> String {
    let (method, params) = request.to_request();
    call(id, &method, &params)
}

pub(crate) fn call(id: u64, method: &str, params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_keeps_its_words() {
        let json = r#"{"seq":7,"type":"ofTomorrow", "x":1.0}"#;
        let text = format!(r#"{{"jsonrpc":"2.0","method":"event","params":{json}}}"#);
        let Frame::Event(entry) = Frame::read(&text) else { panic!() };
        assert_eq!((entry.seq(), entry.json()), (7, json));
    }

    /// At a size at which a cost that grows with its square takes minutes.
    #[test]
    fn a_frame_is_read_in_linear_time() {
        let many = |part: &str| part.repeat(2_000_000 / part.len());
        for part in ["[", r#"{"a":"#, "\"", "\\\"", r#""method":"event","#, r#""params":{},"#, r#""id":1,"#, "0,"] {
            for beginning in ["", "{", r#"{"method":"event","params":{"seq":1,"x":"#, r#"{"id":1,"result":"#] {
                assert!(
                    matches!(Frame::read(&format!("{beginning}{}", many(part))), Frame::Other),
                    "{beginning} {part}"
                );
            }
        }
        let text = many("0,");
        let Frame::Event(entry) = Frame::read(&format!(r#"{{"method":"event","params":{{"x":"{text}","seq":7}}}}"#))
        else {
            panic!("an event")
        };
        assert_eq!((entry.seq(), entry.json().len()), (7, text.len() + r#"{"x":"","seq":7}"#.len()));
        let many_keys: String = (0..200_000).map(|number| format!("\"k{number}\":1,")).collect();
        let gap = Frame::read(&format!(r#"{{"method":"replayGap","params":{{{many_keys}"next":5}}}}"#));
        assert!(matches!(gap, Frame::Gap(GapNotice { next: 5, .. })));
        let answer = Frame::read(&format!(r#"{{"id":1,"error":{{"code":1,"data":{{{many_keys}"x":1}}}}}}"#));
        assert!(matches!(answer, Frame::Answer { id: 1, answer: Err(_) }));
    }

    #[test]
    fn many_values_are_not_held_in_memory() {
        let many = "0,".repeat(MOST_VALUES);
        let envelope = r#""id":"e","sessionId":"s","timestamp":"2026-01-01T00:00:00Z","seq":7,"type":"text""#;
        let event = Frame::read(&format!(r#"{{"method":"event","params":{{{envelope},"x":[{many}0]}}}}"#));
        let Frame::Event(entry) = event else { panic!("{event:?}") };
        assert!(entry.json().contains(r#""type":"unrecognized""#) && entry.json().len() < 20_000);
        let gap = format!(r#"{{"method":"replayGap","params":{{"after":1,"next":5,"snapshot":{{"x":[{many}0]}}}}}}"#);
        assert!(matches!(Frame::read(&gap), Frame::Gap(GapNotice { after: 1, next: 5, snapshot: None })));
        let error = format!(r#"{{"id":1,"error":{{"message":"no","data":{{"code":"noTurn","x":[{many}0]}}}}}}"#);
        let Frame::Answer { id: 1, answer: Err(refusal) } = Frame::read(&error) else { panic!("an answer") };
        assert_eq!(refusal, Refusal::Unknown { code: None, message: "no".to_owned() });
        let id = format!(r#"{{"id":[{many}0],"result":1}}"#);
        assert!(matches!(Frame::read(&id), Frame::Other));
        let refused = parse::<Value>(&format!("[{many}0]")).unwrap_err();
        assert_eq!(refused.to_string(), "it has more than 1000000 values");
    }

    #[test]
    fn what_nobody_knows_is_left_alone() {
        for text in ["", "[]", "{}", r#"{"method":"ofTomorrow"}"#, r#"{"id":"x","result":1}"#, r#"{"id":1}"#] {
            assert!(matches!(Frame::read(text), Frame::Other), "{text}");
        }
        let gap = Frame::read(r#"{"method":"replayGap","params":{"after":1,"next":5}}"#);
        assert!(matches!(gap, Frame::Gap(GapNotice { next: 5, snapshot: None, .. })));
        let gap = Frame::read(r#"{"method":"replayGap","params":{"after":1,"next":5,"snapshot":{"seq":7}}}"#);
        assert!(matches!(gap, Frame::Gap(GapNotice { next: 5, snapshot: Some(state), .. }) if state.seq == 7));
        let refused = Frame::read(r#"{"id":3,"error":{"code":-32011,"message":"late","data":{"at":"then"}}}"#);
        let Frame::Answer { id: 3, answer: Err(refusal) } = refused else { panic!() };
        assert_eq!(refusal, Refusal::Unknown { code: None, message: "late".to_owned() }, "a host of an older version");
        let refused = Frame::read(r#"{"id":3,"error":{"code":-32002,"message":"idle","data":{"code":"noTurn"}}}"#);
        assert!(matches!(refused, Frame::Answer { id: 3, answer: Err(Refusal::NoTurn) }));
    }
}
