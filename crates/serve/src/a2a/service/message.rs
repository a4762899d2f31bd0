//! Handles a message: finds its session, what it means there, and the frames that answer it.

use std::path::PathBuf;
use std::sync::Arc;

use multitap_a2a::devtool::{self, EditKind, Spelling, ToolCallConfirmation};
use multitap_a2a::{Error, ErrorKind, Message, Request, SendMessage, hops};
use multitap_event::{
    ClientRef, ClientRole, Decide, Details, Prompt, PromptId, Question, QuestionId, Refused, Ruling, SessionId, ToolId,
};
use multitap_hub::{Refusal, Session, WhenBusy};
use serde::Deserialize as _;
use serde_json::{Map, Value, json};

use super::command::close;
use super::opening::{Action, Opening};
use super::task::view;
use super::wish::{Settings, check_folder, settings, wanted};
use super::{Call, Service, wish};
use crate::a2a::decode::{self, Said};
use crate::a2a::encode::OURS;
use crate::a2a::follow::Follow;
use crate::a2a::frame::Form;
use crate::a2a::stage::Stage;
use crate::a2a::{name, uri};
use crate::error;
use crate::host::Wanted;
use crate::http::Shared;

/// The session a message is for.
struct Target {
    session: Session,
    /// The task it names.
    task: Option<String>,
    /// Whether the turns of this session are one lasting task.
    lasting: bool,
    is_new: bool,
}

impl Service {
    /// Plans the effect of a message.
    pub(super) async fn message(&self, door: &Shared, call: &Call, mut send: SendMessage) -> Result<Opening, Error> {
        let push = match send.configuration.push.take() {
            Some(config) => Some(self.check_push(door, call, config).await?),
            None => None,
        };
        let opening = self.opening(door, call, send).await?;
        if let Some(config) = &push {
            // Before the prompt is sent: afterwards, a client that is refused would send it again.
            self.has_room_for(door, &opening.task, config).await?;
        }
        Ok(Opening { push, ..opening })
    }

    async fn opening(&self, door: &Shared, call: &Call, send: SendMessage) -> Result<Opening, Error> {
        // Checked before anything is opened: agents that call each other in a circle must stop.
        let hops = hops::read(&send.message.metadata)?;
        let said = decode::message(&send.message)?;
        let settings = settings(&send)?;
        let when_busy = when_busy(&send.message.metadata)?;
        if door.about.extension_required && !call.extension && settings.is_none() {
            let why = format!(
                "this agent requires the extension {}: name it in X-A2A-Extensions or A2A-Extensions",
                devtool::URI
            );
            return Err(Error::new(ErrorKind::ExtensionRequired, why));
        }
        let target = self.target(door, call, &send.message, &said, settings.as_ref()).await?;
        let id = target.session.id().clone();
        let showed = showed(settings.as_ref(), &said);
        if showed && door.host.shared().is_none() {
            self.coders.add(&id);
        }
        let mut form = self.form(door, call, &id);
        if showed {
            form.spelling = Spelling::Coder;
        }
        let stage = self.stage(door, &target.session).await?;
        match said {
            Said::Answer(answer) => {
                let quoted = answer.correlation_id.clone().or_else(|| correlation(&send.message.metadata));
                let decide = decision(&stage, &answer, quoted, &call.client()).await?;
                Ok(answering(door, stage, call, form, decide))
            }
            Said::Prompt(prompt, files) => {
                let folder = if files.is_empty() { None } else { wish::folder(&target.session).await };
                let read = uri::read_files(files, folder.map(PathBuf::from), prompt).await;
                if read.is_err() && target.is_new {
                    close(&target.session).await;
                }
                let mut prompt = read?;
                if let Some(decide) = plain_answer(&target, &stage, &prompt, &call.client()).await? {
                    return Ok(answering(door, stage, call, form, decide));
                }
                prompt.sent_as = Some(send.message.message_id);
                prompt.hops = hops;
                prompt.notices = self.notices.take(&id);
                Ok(prompting(door, stage, call, form, (prompt, when_busy), &target))
            }
        }
    }

    /// The session a message is for; a new one, if it names none.
    async fn target(
        &self,
        door: &Shared,
        call: &Call,
        message: &Message,
        said: &Said,
        settings: Option<&Settings>,
    ) -> Result<Target, Error> {
        let context = message.context_id.as_deref().filter(|id| !id.is_empty());
        let task = message.task_id.as_deref().filter(|id| !id.is_empty());
        let host = &door.host;
        if let Some(task) = task {
            let (session, is_lasting) = self.session_of(door, call, task).await?;
            if context.is_some_and(|context| context != session.id().as_str()) {
                return Err(mismatch(task, session.id()));
            }
            check_folder(&session, settings).await?;
            return Ok(Target { session, task: Some(task.to_owned()), lasting: is_lasting, is_new: false });
        }
        if let Some(session) = host.shared() {
            if context.is_some_and(|context| context != session.id().as_str()) {
                return Err(unknown_context(context.unwrap_or_default()));
            }
            check_folder(&session, settings).await?;
            return Ok(Target { session, task: None, lasting: true, is_new: false });
        }
        let in_use = call.extension || settings.is_some();
        if let Some(context) = context {
            let session = self.live(door, call, &context.into()).await?.ok_or_else(|| unknown_context(context))?;
            check_folder(&session, settings).await?;
            self.recall(door, &session).await;
            let stage = self.stage(door, &session).await?;
            let now = stage.now();
            let lasting = in_use || (!now.has_own_tasks && now.cursor.seq > 0 && session_had_turns(&session).await);
            return Ok(Target { session, task: None, lasting, is_new: false });
        }
        if matches!(said, Said::Answer(_)) {
            return Err(Error::invalid_params("message.taskId: say which task the answer is for"));
        }
        let session = self.open(door, call, wanted(call.client(), settings)?).await?;
        Ok(Target { session, task: None, lasting: in_use, is_new: true })
    }

    /// Opens a session for a client. Observers may not start agents.
    pub(super) async fn open(&self, door: &Shared, call: &Call, wanted: Wanted) -> Result<Session, Error> {
        if call.caller.role == ClientRole::Observer {
            return Err(Error::new(ErrorKind::NotController, "an observer may not open sessions"));
        }
        let opened = door.host.open(wanted).await.map_err(|error| error::from_refusal(&error))?;
        self.notices.put(opened.session.id(), opened.notices);
        Ok(opened.session)
    }

    /// A session that is live here, or can be resumed.
    pub(super) async fn live(&self, door: &Shared, call: &Call, id: &SessionId) -> Result<Option<Session>, Error> {
        let host = &door.host;
        if let Some(session) = host.find(id) {
            return Ok(Some(session));
        }
        if call.caller.role == ClientRole::Observer {
            let why = format!("session {id} is not live here, and observers cannot resume sessions");
            return Err(Error::new(ErrorKind::NotController, why));
        }
        match host.resume(id.clone(), Wanted::bare(call.client())).await {
            Ok(opened) => {
                // If another client resumed the session first, its notices are waiting already.
                if !opened.notices.is_empty() {
                    self.notices.put(opened.session.id(), opened.notices);
                }
                Ok(Some(opened.session))
            }
            Err(Refusal::UnknownSession { .. }) => Ok(None),
            Err(error) => Err(error::from_refusal(&error)),
        }
    }
}

fn prompting(
    door: &Shared,
    stage: Arc<Stage>,
    call: &Call,
    form: Form,
    (mut prompt, when_busy): (Prompt, WhenBusy),
    target: &Target,
) -> Opening {
    let now = stage.now();
    let id = if target.lasting { PromptId::fresh() } else { name::fresh_turn() };
    prompt.prompt_id = Some(id.clone());
    // A prompt that joins the running turn is answered by that turn's frames.
    let joins = now.turn.clone().filter(|_| when_busy == WhenBusy::Steer);
    let turn: Arc<str> = joins.unwrap_or_else(|| id.as_str().into());
    let task = name::task_of(stage.session().id().as_str(), &turn);
    Opening {
        view: view(door, call, form.spelling, &task),
        task,
        follow: Follow::turn(turn),
        form,
        after: call.after.filter(|_| !target.is_new).unwrap_or(now.cursor),
        by: call.client(),
        action: Action::Prompt { prompt, when_busy },
        push: None,
        stage,
    }
}

fn answering(door: &Shared, stage: Arc<Stage>, call: &Call, form: Form, decide: Decide) -> Opening {
    let now = stage.now();
    // A question outside of any turn belongs to the last task.
    let turn = now.turn.clone().unwrap_or_else(|| now.task.clone());
    // With a cursor, the client wants everything that it missed; without one, only the frames after its answer.
    let answered = call.after.is_none().then(|| decide.question_id.clone());
    Opening {
        follow: Follow::Turn { turn, answered },
        form,
        after: call.after.unwrap_or(now.cursor),
        view: view(door, call, form.spelling, &now.task),
        task: now.task,
        by: call.client(),
        action: Action::Decide(Box::new(decide)),
        push: None,
        stage,
    }
}

/// Answers a question. For an unknown one, the refusal lists the open ones.
pub(super) async fn decide_on(session: &Session, decide: Decide, by: ClientRef) -> Result<Ruling, Error> {
    let asked = decide.question_id.clone();
    match session.decide(decide, by.clone()).await {
        Ok(ruling) => Ok(ruling),
        Err(Refusal::Answer(Refused::UnknownQuestion { .. })) => {
            let state = session.snapshot().await;
            let open = state.as_ref().map_or(&[][..], |state| state.questions.open());
            Err(unknown_call(asked.as_str(), open, &by))
        }
        Err(error) => Err(error::from_refusal(&error)),
    }
}

fn unknown_call(id: &str, open: &[Question], client: &ClientRef) -> Error {
    let call = |question: &Question| {
        question.tool_id.as_ref().map_or(question.question_id.as_str(), ToolId::as_str).to_owned()
    };
    let options = |question: &Question| offered(question, client).join(", ");
    let listed: Vec<String> = open
        .iter()
        .map(|question| format!("{} ({}; options: {})", call(question), question.title, options(question)))
        .collect();
    let listed =
        if listed.is_empty() { "no question is open".to_owned() } else { format!("open: {}", listed.join("; ")) };
    let data: Vec<Value> = open
        .iter()
        .map(|question| {
            json!({ "tool_call_id": call(question), "correlationId": question.question_id, "title": question.title,
                "options": offered(question, client) })
        })
        .collect();
    Error::invalid_params(format!("tool_call_id: there is no question about \"{id}\"; {listed}")).with("open", data)
}

/// The options of a question that a client may choose.
fn offered(question: &Question, client: &ClientRef) -> Vec<String> {
    let open = question.options.iter().filter(|choice| choice.is_open_to(client));
    open.map(|choice| choice.id.as_str().to_owned()).collect()
}

/// The decision that an answer makes.
pub(super) async fn decision(
    stage: &Stage,
    answer: &ToolCallConfirmation,
    quoted: Option<String>,
    client: &ClientRef,
) -> Result<Decide, Error> {
    let state = stage.session().snapshot().await;
    let state = state.ok_or_else(|| Error::new(ErrorKind::UnsupportedOperation, "the session has ended"))?;
    let tool = answer.tool_call_id.as_str();
    let about = state.questions.about_tool(&tool.into());
    // A question without a call has an id of its own.
    let question: QuestionId = about.clone().unwrap_or_else(|| tool.into());
    let is_wrong = quoted.as_deref().is_some_and(|quoted| quoted != question.as_str());
    if is_wrong && about.is_none() && state.questions.question(&question).is_none() {
        return Err(unknown_call(tool, state.questions.open(), client));
    }
    if is_wrong {
        let why = format!("correlationId: the question about tool call {tool} is {question}");
        return Err(Error::invalid_params(why).with("questionId", question.as_str()));
    }
    if let Some(why) = state.questions.question(&question).and_then(|asked| misdirected(answer, asked)) {
        return Err(Error::invalid_params(why.clone()).with("questionId", question.as_str()).with("editRefused", why));
    }
    let mut decide = Decide::new(&question, answer.selected_option_id.as_str());
    decide.new_content.clone_from(&answer.new_content);
    decide.feedback.clone_from(&answer.feedback);
    decide.answers = answer.answers.clone().map(|answers| answers.into_iter().collect());
    Ok(decide)
}

/// Why an edit does not fit the question, if it does not: the text of a file must not run as a command, nor go to
/// another file.
fn misdirected(answer: &ToolCallConfirmation, asked: &Question) -> Option<String> {
    let (place, wrong) = match &asked.details {
        Details::FileEdit { file_path, .. } => {
            (Some(file_path), (EditKind::Command, "execute_details cannot edit a file: send file_details"))
        }
        Details::Command { directory, .. } => {
            (directory.as_ref(), (EditKind::File, "file_details cannot edit a command: send execute_details"))
        }
        _ => return None,
    };
    if answer.edit_kind == Some(wrong.0) {
        return Some(wrong.1.to_owned());
    }
    let (target, place) = (answer.edit_target.as_ref()?, place?);
    (target != place).then(|| format!("an edit cannot go to {target}: the question is about {place}"))
}

/// A client without the extension answers with text: only the id of an option counts.
async fn plain_answer(
    target: &Target,
    stage: &Stage,
    prompt: &Prompt,
    client: &ClientRef,
) -> Result<Option<Decide>, Error> {
    let Some(task) = target.task.as_deref() else { return Ok(None) };
    let Some(state) = stage.session().snapshot().await else { return Ok(None) };
    if !name::is_own_task(task) {
        // Any other text begins the next turn of a lasting task.
        let [question] = state.questions.open() else { return Ok(None) };
        return Ok(by_word(question, prompt.text.trim(), client).ok());
    }
    let runs = stage.now().turn.as_deref() == Some(task);
    match state.questions.open() {
        [question] if runs => by_word(question, prompt.text.trim(), client).map(Some),
        [] if runs => Err(Error::new(
            ErrorKind::UnsupportedOperation,
            format!("task {task} is running: send without a task id to queue another turn in its context"),
        )),
        _ if runs => Err(Error::invalid_params("several questions are open: answer one by its tool_call_id")),
        _ => Err(Error::new(
            ErrorKind::UnsupportedOperation,
            format!("task {task} is finished: send its context id alone to begin another"),
        )),
    }
}

fn by_word(question: &Question, word: &str, client: &ClientRef) -> Result<Decide, Error> {
    let choice = question.options.iter().find(|choice| choice.id.as_str() == word);
    let choice = choice.ok_or_else(|| {
        let offered = offered(question, client);
        let why = format!("the task waits for an answer to \"{}\": one of {}", question.title, offered.join(", "));
        Error::invalid_params(why).with("offered", offered)
    })?;
    Ok(Decide::new(&question.question_id, choice.id.clone()))
}

async fn session_had_turns(session: &Session) -> bool {
    session.snapshot().await.is_some_and(|state| state.turns > 0 || state.is_busy())
}

/// Whether a request shows that its client uses the shipped spelling.
pub(crate) fn shows_coder(request: &Request) -> bool {
    match request {
        Request::SendMessage(send) | Request::StreamMessage(send) => {
            match (settings(send), decode::message(&send.message)) {
                (Ok(settings), Ok(said)) => showed(settings.as_ref(), &said),
                _ => false,
            }
        }
        Request::ConfirmToolCall { confirmation, .. } => {
            ToolCallConfirmation::read(confirmation).is_ok_and(|answer| answer.is_coder)
        }
        _ => false,
    }
}

fn showed(settings: Option<&Settings>, said: &Said) -> bool {
    matches!(settings, Some((_, Spelling::Coder))) || matches!(said, Said::Answer(answer) if answer.is_coder)
}

fn when_busy(metadata: &Map<String, Value>) -> Result<WhenBusy, Error> {
    let given = metadata.get(OURS).and_then(|ours| ours.get("whenBusy"));
    let read = given.map(WhenBusy::deserialize).transpose();
    Ok(read.map_err(|_| Error::invalid_params("whenBusy: queue, steer or interrupt"))?.unwrap_or_default())
}

/// The question that a message claims to answer.
pub(super) fn correlation(metadata: &Map<String, Value>) -> Option<String> {
    let keys = [devtool::URI, devtool::coder::KEY];
    keys.iter().find_map(|key| metadata.get(*key)?.get("correlationId")?.as_str().map(str::to_owned))
}

fn mismatch(task: &str, session: &SessionId) -> Error {
    Error::invalid_params(format!("message.contextId: task {task} belongs to context {session}"))
}

fn unknown_context(context: &str) -> Error {
    Error::invalid_params(format!("message.contextId: there is no context {context}; omit it to begin a new one"))
}
