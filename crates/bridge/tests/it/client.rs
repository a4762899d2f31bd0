//! The MCP client in front of the bridge: an rmcp client that records what it is shown.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use multitap_bridge::{Bridge, BridgeOptions, Loaded};
use multitap_event::A2aServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult,
    ElicitationAction, ErrorData, Implementation, ProgressNotificationParam, ProtocolVersion, Tool,
};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt as _, NotificationContext, RequestContext, RunningService};
use rmcp::{ClientHandler, RoleClient};
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Long enough for a busy machine; nothing waits this long when all is well.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
const PIPE: usize = 64 * 1024;

/// Which handshake the client begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    Initialize,
    Discover,
}

pub(crate) const ERAS: [Era; 2] = [Era::Initialize, Era::Discover];

/// Whether a person sits at the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Person {
    Present,
    Absent,
    /// There, and never answers.
    Asleep,
    /// Closes each dialog.
    Leaving,
}

#[derive(Debug, Clone)]
pub(crate) struct Desk {
    person: Person,
    pub(crate) answers: Arc<Mutex<VecDeque<Value>>>,
    pub(crate) asked: Arc<Mutex<Vec<Value>>>,
    pub(crate) progress: Arc<Mutex<Vec<String>>>,
    /// Whether the bridge took back what it asked.
    pub(crate) taken_back: watch::Sender<bool>,
    changes: watch::Sender<u64>,
}

impl ClientHandler for Desk {
    fn get_info(&self) -> ClientConfig {
        let capabilities = match self.person {
            Person::Present | Person::Asleep | Person::Leaving => {
                ClientCapabilities::builder().enable_elicitation().build()
            }
            Person::Absent => ClientCapabilities::default(),
        };
        ClientConfig::new(capabilities, Implementation::new("test", "1"))
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        self.asked.lock().unwrap().push(serde_json::to_value(request).unwrap());
        if self.person == Person::Asleep {
            context.ct.cancelled().await;
            self.taken_back.send_replace(true);
            return Ok(ElicitResult::new(ElicitationAction::Cancel));
        }
        if self.person == Person::Leaving {
            return Ok(ElicitResult::new(ElicitationAction::Cancel));
        }
        Ok(match self.answers.lock().unwrap().pop_front() {
            Some(answer) => ElicitResult::new(ElicitationAction::Accept).with_content(answer),
            None => ElicitResult::new(ElicitationAction::Decline),
        })
    }

    async fn on_progress(&self, progress: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.progress.lock().unwrap().extend(progress.message);
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changes.send_modify(|count| *count += 1);
    }
}

/// A bridge in this process and a client of it.
pub(crate) struct Rig {
    pub(crate) bridge: Bridge,
    pub(crate) loaded: Vec<Loaded>,
    pub(crate) client: RunningService<RoleClient, Desk>,
    tasks: JoinSet<()>,
}

/// Options of a test: short waits.
pub(crate) fn options() -> BridgeOptions {
    BridgeOptions { load_timeout: Duration::from_secs(20), ..BridgeOptions::default() }
}

/// The same with a short time for each call.
pub(crate) fn brief() -> BridgeOptions {
    BridgeOptions { call_budget: Duration::from_millis(300), ..options() }
}

impl Rig {
    pub(crate) async fn start(options: BridgeOptions, entries: Vec<A2aServer>, era: Era, person: Person) -> Self {
        let bridge = Bridge::new(options);
        let loaded = bridge.load(entries).await;
        Self::of(bridge, loaded, era, person).await
    }

    /// One more client of the same bridge.
    pub(crate) async fn another(&self, era: Era, person: Person) -> Self {
        Self::of(self.bridge.clone(), Vec::new(), era, person).await
    }

    async fn of(bridge: Bridge, loaded: Vec<Loaded>, era: Era, person: Person) -> Self {
        let (ours, theirs) = tokio::io::duplex(PIPE);
        let (read, write) = tokio::io::split(theirs);
        let mut tasks = JoinSet::new();
        let served = bridge.clone();
        tasks.spawn(async move { served.serve(read, write).await.unwrap() });
        let (answers, asked, progress) = (Arc::default(), Arc::default(), Arc::default());
        let (taken_back, changes) = (watch::Sender::new(false), watch::Sender::new(0));
        let desk = Desk { person, answers, asked, progress, taken_back, changes };
        let lifecycle = match era {
            Era::Initialize => ClientLifecycleMode::Initialize,
            Era::Discover => ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] },
        };
        let client = desk.serve_with_lifecycle(ours, lifecycle).await.unwrap();
        Self { bridge, loaded, client, tasks }
    }

    /// A client of the `initialize` era without a person.
    pub(crate) async fn plain(entries: Vec<A2aServer>) -> Self {
        Self::start(options(), entries, Era::Initialize, Person::Absent).await
    }

    pub(crate) fn desk(&self) -> &Desk {
        self.client.service()
    }

    pub(crate) fn request(tool: &str, arguments: Value) -> CallToolRequestParams {
        let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
        CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments)
    }

    /// Calls a tool, with as many rounds as it takes.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Value {
        let called = tokio::time::timeout(PATIENCE, self.client.call_tool(Self::request(tool, arguments)));
        serde_json::to_value(called.await.expect("the call returns").unwrap()).unwrap()
    }

    /// One round of a call.
    pub(crate) async fn once(&self, request: CallToolRequestParams) -> CallToolResponse {
        self.client.call_tool_once(request).await.unwrap()
    }

    pub(crate) async fn list(&self) -> Vec<Tool> {
        self.client.list_all_tools().await.unwrap()
    }

    pub(crate) async fn tools(&self) -> Vec<String> {
        self.list().await.into_iter().map(|tool| tool.name.into_owned()).collect()
    }

    /// Sees each `tools/list_changed` of the `initialize` era.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.desk().changes.subscribe()
    }

    /// The client leaves.
    pub(crate) async fn leave(mut self) -> Bridge {
        self.client.cancel().await.unwrap();
        while let Some(served) = self.tasks.join_next().await {
            served.unwrap();
        }
        self.bridge
    }

    /// Ends both sides: the bridge must be able to.
    pub(crate) async fn end(self) {
        let bridge = self.leave().await;
        tokio::time::timeout(PATIENCE, bridge.close()).await.expect("the bridge ends");
    }
}

/// All text of a result.
pub(crate) fn text(result: &Value) -> String {
    let blocks = result["content"].as_array().unwrap().iter();
    blocks.filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n")
}

/// Waits for a condition.
pub(crate) async fn until(what: &str, is_so: impl Fn() -> bool) {
    let wait = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, wait).await.is_ok(), "waited in vain for {what}");
}
