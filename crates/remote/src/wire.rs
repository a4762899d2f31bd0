//! The frames of `dialect=events`, as far as we read and write them. Pure.

use multitap_hub::{Entry, GapNotice, Refusal, SessionRequest};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// What came.
#[derive(Debug)]
pub(crate) enum Frame {
    Event(Entry),
    /// Events are lost there.
    Gap(GapNotice),
    Answer {
        id: u64,
        answer: Result<Box<RawValue>, Refusal>,
    },
    /// Something that this version does not know, or is not for us.
    Other,
}

/// The `error` of a response.
#[derive(Deserialize)]
struct Problem {
    #[serde(default)]
    message: String,
    #[serde(default)]
    data: Value,
}

impl From<Problem> for Refusal {
    /// A host of another version may send no code, or one that this version does not know.
    fn from(problem: Problem) -> Self {
        let data = match problem.data {
            Value::Object(data) => data,
            _ => Map::new(),
        };
        Self::read(problem.message, data)
    }
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(default)]
    id: Option<Value>,
    #[serde(default)]
    method: Option<String>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(default)]
    result: Option<Box<RawValue>>,
    #[serde(default)]
    error: Option<Problem>,
}

impl Frame {
    pub(crate) fn read(text: &str) -> Self {
        let Ok(line) = serde_json::from_str::<Line<'_>>(text) else { return Self::Other };
        match (line.method.as_deref(), line.params) {
            (Some("event"), Some(params)) => return Entry::read(params.get()).map_or(Self::Other, Self::Event),
            (Some("replayGap"), Some(params)) => {
                return serde_json::from_str(params.get()).map_or(Self::Other, Self::Gap);
            }
            (Some(_), _) => return Self::Other,
            (None, _) => {}
        }
        let Some(id) = line.id.as_ref().and_then(Value::as_u64) else { return Self::Other };
        match (line.result, line.error) {
            (_, Some(problem)) => Self::Answer { id, answer: Err(problem.into()) },
            (Some(result), None) => Self::Answer { id, answer: Ok(result) },
            (None, None) => Self::Other,
        }
    }
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
        let events = many("0,");
        let Frame::Event(entry) = Frame::read(&format!(r#"{{"method":"event","params":{{"x":[{events}0],"seq":7}}}}"#))
        else {
            panic!("an event")
        };
        assert_eq!((entry.seq(), entry.json().len()), (7, events.len() + r#"{"x":[0],"seq":7}"#.len()));
        let many_keys: String = (0..200_000).map(|number| format!("\"k{number}\":1,")).collect();
        let gap = Frame::read(&format!(r#"{{"method":"replayGap","params":{{{many_keys}"next":5}}}}"#));
        assert!(matches!(gap, Frame::Gap(GapNotice { next: 5, .. })));
        let answer = Frame::read(&format!(r#"{{"id":1,"error":{{"code":1,"data":{{{many_keys}"x":1}}}}}}"#));
        assert!(matches!(answer, Frame::Answer { id: 1, answer: Err(_) }));
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
