//! HTTP+JSON: the operation that a method and a path name, and its parameters in path, query and body.
//!
//! In 0.3 paths begin with `v1`, and bodies are the JSON form of its gRPC messages; bodies of JSON-RPC are read as well.
//! 1.0 has the shapes of JSON-RPC, at the root or below a tenant, which is not looked at.

use serde_json::{Value, json};

use crate::dialect::Dialect;
use crate::error::Error;
use crate::model::Map;
use crate::params::{self, Method};
use crate::read::{Node, name_of};
use crate::request::Request;
use crate::v0_3;

const GET: &str = "GET";
const POST: &str = "POST";
const DELETE: &str = "DELETE";
const PUSH: &str = "tasks/{}/pushNotificationConfigs";
const PUSH_ID: &str = "tasks/{}/pushNotificationConfigs/{}";

/// The operations, with their HTTP method and the path below the prefix; `{}` is an id. Of patterns that fit the same
/// path, the first counts.
const ROUTES: [(Method, &str, &str); 12] = [
    (Method::Send, POST, "message:send"),
    (Method::Stream, POST, "message:stream"),
    (Method::ListTasks, GET, "tasks"),
    (Method::CancelTask, POST, "tasks/{}:cancel"),
    // The text of the specification says POST, its gRPC definition says GET; servers accept both.
    (Method::Subscribe, POST, "tasks/{}:subscribe"),
    (Method::Subscribe, GET, "tasks/{}:subscribe"),
    (Method::GetTask, GET, "tasks/{}"),
    (Method::CreatePush, POST, PUSH),
    (Method::ListPush, GET, PUSH),
    (Method::GetPush, GET, PUSH_ID),
    (Method::DeletePush, DELETE, PUSH_ID),
    (Method::GetCard, GET, "extendedAgentCard"),
];
/// The path of the card in 0.3.
const CARD_0_3: &str = "card";

/// Parameters of a query that are numbers or flags.
const NUMBERS: [&str; 2] = ["historyLength", "pageSize"];
const FLAGS: [&str; 1] = ["includeArtifacts"];

/// An operation, as a request's method and path name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestCall {
    dialect: Dialect,
    method: Method,
    /// Of the task, and of the push config.
    ids: Vec<String>,
}

/// Why a request names no operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoRestCall {
    /// There is no such path.
    Path,
    /// The path exists, with these methods.
    Verb { allowed: Vec<&'static str> },
}

impl RestCall {
    /// The operation with that HTTP method and these segments of the path, decoded.
    pub fn find(verb: &str, path: &[&str]) -> Result<Self, NoRestCall> {
        match path {
            ["v1", rest @ ..] => Self::find_in(Dialect::V0_3, verb, rest),
            [_, rest @ ..] => match Self::find_in(Dialect::V1_0, verb, path) {
                // The first segment may be a tenant.
                Err(NoRestCall::Path) => Self::find_in(Dialect::V1_0, verb, rest),
                found => found,
            },
            [] => Err(NoRestCall::Path),
        }
    }

    fn find_in(dialect: Dialect, verb: &str, path: &[&str]) -> Result<Self, NoRestCall> {
        let fit = |(method, _, at): &(Method, &str, &'static str)| ids(pattern(dialect, *method, at), path);
        let mut fitting = ROUTES.iter().filter(|route| fit(route).is_some()).peekable();
        let Some((_, _, pattern)) = fitting.peek() else { return Err(NoRestCall::Path) };
        let mut allowed = Vec::new();
        for route in fitting.take_while(|(_, _, at)| at == pattern) {
            if route.1 == verb {
                let ids = fit(route).unwrap_or_default();
                return Ok(Self { dialect, method: route.0, ids });
            }
            allowed.push(route.1);
        }
        Err(NoRestCall::Verb { allowed })
    }

    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Reads its parameters. A request without a body has them in its query.
    pub fn read(&self, query: Vec<(String, String)>, body: Option<Value>) -> Result<Request, Error> {
        let given = match body {
            Some(Value::Object(map)) => map,
            None | Some(Value::Null) => of_query(query),
            Some(other) => {
                return Err(Error::invalid_params(format!("body: must be an object, not {}", name_of(&other))));
            }
        };
        let mut params = match self.dialect {
            Dialect::V0_3 => v0_3::rest::params(self.method, given)?,
            Dialect::V1_0 => given,
        };
        let (task, config) = match self.method {
            Method::CreatePush => ("taskId", None),
            Method::GetPush | Method::ListPush | Method::DeletePush => {
                let (task, config) = params::push_keys(self.dialect);
                (task, Some(config))
            }
            _ => ("id", None),
        };
        let named = [Some(task), config].into_iter().flatten().zip(&self.ids);
        params.extend(named.map(|(key, id)| (key.to_owned(), json!(id))));
        params::read(self.dialect, self.method, &Node::of_client("body", &Value::Object(params))?)
    }

    /// The body of the answer whose `result` this is on JSON-RPC. Messages and tasks are in the right
    /// [`Encoding`](crate::Encoding) already.
    pub fn body(&self, result: String) -> String {
        match (self.dialect, self.method) {
            (Dialect::V0_3, Method::CreatePush | Method::GetPush | Method::ListPush | Method::DeletePush) => {
                v0_3::rest::push_answer(serde_json::from_str(&result).unwrap_or_default()).to_string()
            }
            _ => result,
        }
    }

    /// The HTTP method and the path of a request, for a client; `None` if it has none.
    #[cfg(feature = "client")]
    pub(crate) fn of_request<'a>(
        dialect: Dialect,
        request: &'a Request,
    ) -> Option<(&'static str, Vec<String>, Ids<'a>)> {
        let (method, ids): (Method, Ids<'a>) = match request {
            Request::SendMessage(_) => (Method::Send, [None, None]),
            Request::StreamMessage(_) => (Method::Stream, [None, None]),
            Request::GetTask { id, .. } => (Method::GetTask, [Some(id), None]),
            Request::ListTasks(_) => (Method::ListTasks, [None, None]),
            Request::CancelTask { id, .. } => (Method::CancelTask, [Some(id), None]),
            Request::Subscribe { id } => (Method::Subscribe, [Some(id), None]),
            Request::CreatePushConfig { task_id, .. } => (Method::CreatePush, [Some(task_id), None]),
            Request::GetPushConfig { task_id, config_id } => {
                (Method::GetPush, [Some(task_id), Some(config_id.as_deref().unwrap_or_default())])
            }
            Request::ListPushConfigs { task_id } => (Method::ListPush, [Some(task_id), None]),
            Request::DeletePushConfig { task_id, config_id } => (Method::DeletePush, [Some(task_id), Some(config_id)]),
            Request::GetExtendedCard => (Method::GetCard, [None, None]),
            Request::GetCommands { .. } | Request::ExecuteCommand(_) | Request::ConfirmToolCall { .. } => return None,
        };
        let mut routes = ROUTES.iter().filter(|route| route.0 == method);
        let (_, verb, at) = match dialect {
            Dialect::V0_3 => routes.next()?,
            Dialect::V1_0 => routes.next_back()?,
        };
        let mut left = ids.into_iter().flatten();
        let segments = pattern(dialect, method, at).split('/').map(|segment| match segment.strip_prefix("{}") {
            Some(more) => format!("{}{more}", left.next().unwrap_or_default()),
            None => segment.to_owned(),
        });
        Some((verb, segments.collect(), ids))
    }
}

/// The ids of a task and of a push config.
#[cfg(feature = "client")]
pub(crate) type Ids<'a> = [Option<&'a str>; 2];

fn pattern(dialect: Dialect, method: Method, path: &'static str) -> &'static str {
    if (dialect, method) == (Dialect::V0_3, Method::GetCard) { CARD_0_3 } else { path }
}

/// The ids in a path; `None` if it does not fit.
fn ids(pattern: &str, path: &[&str]) -> Option<Vec<String>> {
    let mut given = path.iter();
    let mut ids = Vec::new();
    for part in pattern.split('/') {
        let segment = given.next()?;
        match part.strip_prefix("{}") {
            Some(verb) => ids.push(segment.strip_suffix(verb).filter(|id| !id.is_empty())?.to_owned()),
            None if part == *segment => {}
            None => return None,
        }
    }
    given.next().is_none().then_some(ids)
}

/// A query as parameters: its values are texts, unless they must be numbers or flags.
fn of_query(query: Vec<(String, String)>) -> Map {
    let value = |key: &str, text: String| match text.parse::<u64>() {
        Ok(number) if NUMBERS.contains(&key) => json!(number),
        _ if FLAGS.contains(&key) && text == "true" => json!(true),
        _ if FLAGS.contains(&key) && text == "false" => json!(false),
        _ => json!(text),
    };
    query.into_iter().map(|(key, text)| (key.clone(), value(&key, text))).collect()
}
