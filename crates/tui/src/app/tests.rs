//! Keys in, effects and model out.

mod command;
mod mode;
mod question;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use multitap_event::{AgentType, ClientId, Door, Image, Prompt, SessionId, Timestamp};
use ratatui::layout::Size;
use serde_json::{Value, json};

use super::*;
use crate::effect::ScreenExit;
use crate::history::History;
use crate::host::{ClipboardContent, JoinAddress, ResumableSession, ShareRequest};
use crate::preferences::Colours;

/// The client at this screen.
fn me() -> ClientRef {
    ClientRef { client_id: Some(ClientId::from("me")), ..ClientRef::new("ann", Door::Terminal) }
}

struct Screen {
    model: Model,
    layout: Layout,
    seq: u64,
}

impl Screen {
    fn new(agent: AgentType) -> Self {
        let mut model = Model::new(me(), "~/shop".to_owned(), Theme::new(Colours::Sixteen));
        model.session.is_host = true;
        let layout = Layout::new(&model, Size::new(80, 24));
        let mut screen = Self { model, layout, seq: 0 };
        screen.tell("sessionStarted", &json!({ "agentType": agent, "nativeSessionId": "n" }));
        screen.tell("clientJoined", &json!({ "client": me() }));
        screen
    }

    fn tell(&mut self, kind: &str, fields: &Value) -> Vec<Effect> {
        self.seq += 1;
        let mut event = json!({
            "id": format!("e{}", self.seq), "sessionId": SessionId::from("s"), "timestamp": Timestamp::from_millis(0),
            "seq": self.seq, "type": kind,
        });
        event.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let event: Event = serde_json::from_value(event).unwrap();
        self.on(Msg::Event(Box::new(event)))
    }

    fn on(&mut self, msg: Msg) -> Vec<Effect> {
        let size = if let Msg::Resized(size) = msg { size } else { self.layout.size };
        let effects = update(&mut self.model, &self.layout, msg);
        self.layout = Layout::new(&self.model, size);
        effects
    }

    /// Types: letters as they are, and these keys by name between `<` and `>`.
    fn keys(&mut self, keys: &str) -> Vec<Effect> {
        let mut effects = Vec::new();
        let mut rest = keys;
        while let Some(letter) = rest.chars().next() {
            let (key, after) = match rest.strip_prefix('<').and_then(|rest| rest.split_once('>')) {
                Some((name, after)) => (named(name), after),
                None => (KeyEvent::from(KeyCode::Char(letter)), &rest[letter.len_utf8()..]),
            };
            effects.extend(self.on(Msg::Key(key)));
            rest = after;
        }
        effects
    }

    fn typed(&self) -> &str {
        self.model.prompt.composer.text()
    }

    fn join(&mut self, name: &str) {
        let client = ClientRef { client_id: Some(ClientId::from(name)), ..ClientRef::new(name, Door::A2a) };
        self.tell("clientJoined", &json!({ "client": client }));
    }

    fn offered(&self) -> Vec<&str> {
        let items = self.model.prompt.completion.iter().flat_map(|completion| &completion.items);
        items.map(|item| item.shown.as_str()).collect()
    }
}

fn named(name: &str) -> KeyEvent {
    let control = |letter| KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL);
    match name {
        "enter" => KeyCode::Enter.into(),
        "esc" => KeyCode::Esc.into(),
        "tab" => KeyCode::Tab.into(),
        "up" => KeyCode::Up.into(),
        "down" => KeyCode::Down.into(),
        "back" => KeyCode::Backspace.into(),
        name => control(name.strip_prefix('^').unwrap().chars().next().unwrap()),
    }
}

fn remembered(text: &str) -> Effect {
    Effect::Remember(text.to_owned())
}

/// What keys come to on a fresh screen: the effects, and what is typed then.
fn check(keys: &str, expected: &[Effect], typed: &str) {
    let mut screen = Screen::new(AgentType::Builtin);
    screen.model.agent.commands = Some(Vec::new());
    let effects = screen.keys(keys);
    assert_eq!(effects, expected, "{keys}");
    assert_eq!(screen.typed(), typed, "{keys}");
}

#[test]
fn keys_come_to_effects() {
    check("hi<enter>", &[remembered("hi"), Effect::Prompt(Prompt::text("hi"))], "");
    check("one\\<enter>two", &[], "one\ntwo");
    check("  <enter>", &[], "  ");
    check("<enter>", &[], "");
    check("/model opus<enter>", &[remembered("/model opus"), Effect::SetModel("opus".to_owned())], "");
    check("/mode plan<enter>", &[remembered("/mode plan"), Effect::SetMode("plan".to_owned())], "");
    check("/agents<enter>", &[remembered("/agents"), Effect::Agents], "");
    check("/sessions<enter>", &[remembered("/sessions"), Effect::Sessions], "");
    check("/share<enter>", &[remembered("/share"), Effect::Share(ShareRequest::On { port: None })], "");
    check("/share off<enter>", &[remembered("/share off"), Effect::Share(ShareRequest::Off)], "");
    check("/share 4100<enter>", &[remembered("/share 4100"), Effect::Share(ShareRequest::On { port: Some(4100) })], "");
    check("/share of<enter>", &[remembered("/share off"), Effect::Share(ShareRequest::Off)], "");
    check("/mode auto-e<enter>", &[remembered("/mode auto-edit"), Effect::SetMode("auto-edit".to_owned())], "");
    check("/new<enter>", &[remembered("/new"), Effect::Leave(ScreenExit::NewSession)], "");
    check("/quit<enter>", &[remembered("/quit"), Effect::Leave(ScreenExit::Quit)], "");
    check("/qui<enter>", &[remembered("/quit"), Effect::Leave(ScreenExit::Quit)], "");
    check("/qui<tab>", &[], "/quit");
    check("!ls<enter>", &[remembered("!ls"), Effect::Prompt(Prompt::text("!ls"))], "");
    check("<^d>", &[Effect::Leave(ScreenExit::Quit)], "");
    check("<^c><^c>", &[Effect::Leave(ScreenExit::Quit)], "");
    check("half<^c>", &[], "");
    check("half<esc><esc>", &[], "");
    check("half<esc>x<esc>", &[], "halfx");
    check("<^g>", &[Effect::Edit { what: Edited::Composer, text: String::new() }], "");
}

#[test]
fn a_picture_is_pasted_by_its_path() {
    let pasted = |text: &str| Screen::new(AgentType::Claude).on(Msg::Paste(text.to_owned()));
    let picture = |path: &str, text: &str| Effect::Picture { path: path.to_owned(), pasted: Some(text.to_owned()) };
    for (text, path) in [("/tmp/a\\ b.PNG", "/tmp/a b.PNG"), ("'/c d.jpg' ", "/c d.jpg"), ("file:///e.webp", "/e.webp")]
    {
        assert_eq!(pasted(text), [picture(path, text)]);
    }
    for text in ["see a.png\nand b.png", "https://example.org/a.png", "words"] {
        assert_eq!(pasted(text), [], "{text}");
    }
    let mut screen = Screen::new(AgentType::Claude);
    let none = Msg::Picture { name: "a.png".into(), image: Err("gone".into()), pasted: Some("a.png".into()) };
    screen.on(none);
    assert_eq!(screen.typed(), "a.png", "what is no picture is text");
}

#[test]
fn every_agent_takes_shell_lines() {
    for agent in [AgentType::Builtin, AgentType::Claude, AgentType::Codex, AgentType::Gemini, AgentType::Acp] {
        let mut screen = Screen::new(agent);
        assert_eq!(screen.keys("!ls<enter>"), [remembered("!ls"), Effect::Prompt(Prompt::text("!ls"))], "{agent}");
    }
}

#[test]
fn a_pasted_block_is_no_shell_line() {
    let mut screen = Screen::new(AgentType::Claude);
    let block = "![logo](logo.png)\n1\n2\n3\n4\n5";
    screen.on(Msg::Paste(block.to_owned()));
    let words = format!(" {block}");
    assert_eq!(screen.keys("<enter>"), [remembered(&words), Effect::Prompt(Prompt::text(&words))]);
}

#[test]
fn the_agents_commands_are_asked_for_once_and_offered() {
    let mut screen = Screen::new(AgentType::Builtin);
    assert_eq!(screen.keys("/mem"), [Effect::Query(multitap_event::Query::Commands)]);
    let told = json!({ "commands": [
        { "name": "memory", "subCommands": [{ "name": "show" }, { "name": "add", "arguments": [{ "name": "text", "isRequired": true }] }] },
        { "name": "model", "description": "hidden by ours" },
    ] });
    screen.tell("capabilities", &told);
    assert!(screen.offered().contains(&"/memory"), "{:?}", screen.offered());
    screen.keys("<back><back>");
    assert_eq!(screen.offered().iter().filter(|shown| shown.starts_with("/model")).count(), 1);
    assert_eq!(screen.keys("em<enter>"), []);
    assert_eq!((screen.typed(), screen.offered()), ("/memory ", vec!["show", "add text"]));
    screen.keys("<down><tab>");
    assert_eq!((screen.typed(), screen.offered().len()), ("/memory add ", 0));
    let sent = screen.keys("milk<enter>");
    assert_eq!(sent, [remembered("/memory add milk"), Effect::Prompt(Prompt::text("/memory add milk"))]);
}

#[test]
fn files_are_offered_where_they_are_still_wanted() {
    let mut screen = Screen::new(AgentType::Builtin);
    let asked = screen.keys("see @ma");
    let Some(Effect::Find(wanted)) = asked.into_iter().next_back() else { panic!("no files were asked for") };
    assert_eq!(wanted.query, "ma");
    let found = |paths: &[&str]| Msg::Found {
        wanted: wanted.clone(),
        paths: paths.iter().map(|path| (*path).to_owned()).collect(),
    };
    screen.on(found(&["src/main.rs", "Makefile"]));
    screen.keys("<down><enter>");
    assert_eq!(screen.typed(), "see @Makefile ");
    screen.on(found(&["late"]));
    assert_eq!(screen.offered(), Vec::<&str>::new(), "by now something else is typed");
}

#[test]
fn escape_closes_what_is_offered_and_nothing_else() {
    let mut screen = Screen::new(AgentType::Builtin);
    screen.tell("turnStarted", &json!({ "turnId": "t" }));
    screen.keys("/mod");
    assert_eq!(screen.keys("<esc>"), [], "the turn goes on");
    screen.keys("e");
    assert_eq!((screen.typed(), screen.offered().len()), ("/mode", 0), "it stays closed for this word");
    assert_eq!(screen.keys("<esc>"), [Effect::Cancel]);
}

#[test]
fn what_waits_is_withdrawn_unless_it_is_anothers() {
    let mut screen = Screen::new(AgentType::Builtin);
    screen.tell("turnStarted", &json!({ "turnId": "t" }));
    let theirs = ClientRef { client_id: Some(ClientId::from("bob")), ..ClientRef::new("bob", Door::A2a) };
    screen.tell("promptQueued", &json!({ "prompt": { "text": "mine", "promptId": "p1" }, "from": me() }));
    screen.tell("promptQueued", &json!({ "prompt": { "text": "theirs", "promptId": "p2" }, "from": theirs }));
    let mine = Prompt { prompt_id: Some("p1".into()), ..Prompt::text("mine") };
    assert_eq!(screen.keys("<up>"), [Effect::Withdraw(mine)]);
    assert_eq!(screen.typed(), "mine");
}

#[test]
fn a_picture_comes_out_of_the_clipboard_where_the_agent_takes_it() {
    let image = || Image { media_type: "image/png".to_owned(), data: "AA==".to_owned() };
    let paste = |screen: &mut Screen, clipped: Result<ClipboardContent<Image>, String>| {
        assert_eq!(screen.keys("<^v>"), [Effect::Paste]);
        screen.on(Msg::Clipped(clipped))
    };
    let mut screen = Screen::new(AgentType::Acp);
    screen.keys("what is ");
    assert_eq!(paste(&mut screen, Ok(ClipboardContent::Picture(image()))), []);
    assert_eq!(screen.typed(), "what is [Image #1: clipboard]");
    assert!(matches!(&screen.keys("<enter>")[..], [_, Effect::Prompt(prompt)] if prompt.images == [image()]));
    for (clipped, notice) in [
        (Ok(ClipboardContent::Nothing), "the clipboard has no image and no text"),
        (Err("install xclip".to_owned()), "install xclip"),
    ] {
        paste(&mut screen, clipped);
        assert_eq!(screen.model.status.notice.as_deref(), Some(notice));
    }
    let can = |images: bool| json!({ "images": images });
    screen.tell("capabilities", &can(true));
    paste(&mut screen, Ok(ClipboardContent::Picture(image())));
    assert_eq!(screen.typed(), "[Image #1: clipboard]");
    screen.keys("<^c>");
    screen.tell("capabilities", &can(false));
    paste(&mut screen, Ok(ClipboardContent::Picture(image())));
    assert_eq!((screen.typed(), screen.model.status.notice.as_deref()), ("", Some("this agent accepts no images")));
    let mut late = Screen::new(AgentType::Acp);
    late.model.begin(screen.model.session.state.clone());
    paste(&mut late, Ok(ClipboardContent::Picture(image())));
    assert_eq!(
        (late.typed(), late.model.status.notice.as_deref()),
        ("", Some("this agent accepts no images")),
        "joined late"
    );
    paste(&mut screen, Ok(ClipboardContent::Text("words".to_owned())));
    assert_eq!((screen.typed(), screen.model.status.notice.as_deref()), ("words", None));
    let dropped = Ok(ClipboardContent::Text("/tmp/cat.png".to_owned()));
    assert!(matches!(&paste(&mut screen, dropped)[..], [Effect::Picture { .. }]), "a file that was copied");
    screen.tell("sessionStarted", &json!({ "agentType": "acp", "nativeSessionId": "n" }));
    paste(&mut screen, Ok(ClipboardContent::Picture(image())));
    assert_eq!(screen.typed(), "words[Image #1: clipboard]", "another agent");
}

#[test]
fn history_is_walked_searched_and_brought_back() {
    let mut screen = Screen::new(AgentType::Builtin);
    screen.model.prompt.history = History::new(vec!["fix it".to_owned(), "explain it".to_owned()]);
    for (keys, typed) in [
        ("<up><up>", "fix it"),
        ("<down><down>", ""),
        ("<esc><esc>", "explain it"),
        ("<esc><esc>", ""),
        ("<^r>fi", "fix it"),
        ("<esc>", ""),
        ("<^r>it<^r><enter>", "fix it"),
    ] {
        assert_eq!(screen.keys(keys), [], "{keys}");
        assert_eq!(screen.typed(), typed, "{keys}");
    }
}

#[test]
fn leaving_thinks_of_others() {
    let mut screen = Screen::new(AgentType::Builtin);
    screen.join("phone");
    assert_eq!(screen.keys("<^d>"), []);
    assert!(matches!(screen.model.overlay, Some(Overlay::Picker(_))));
    assert_eq!(screen.keys("<esc>"), [], "stays");
    for (keys, outcome) in
        [("<^d>1", ScreenExit::KeepServing), ("<^d><enter>", ScreenExit::KeepServing), ("<^d>2", ScreenExit::Quit)]
    {
        assert_eq!(screen.keys(keys), [Effect::Leave(outcome)], "{keys}");
    }
    assert_eq!(screen.keys("<^d>3"), []);
    screen.model.session.is_host = false;
    assert_eq!(screen.keys("<^d>"), [Effect::Leave(ScreenExit::Quit)], "a screen of a session elsewhere ends nothing");
}

#[test]
fn an_earlier_session_is_chosen_by_what_it_was_about() {
    let mut screen = Screen::new(AgentType::Builtin);
    let earlier =
        |id: &str, title: &str| ResumableSession { id: id.to_owned(), title: title.to_owned(), about: String::new() };
    let all = vec![earlier("1a", "fix the shop"), earlier("2b", "explain main.rs")];
    screen.on(Msg::Sessions(all.clone()));
    assert_eq!(screen.keys("expl<enter>"), [Effect::Leave(ScreenExit::Resume("2b".to_owned()))]);
    screen.join("phone");
    screen.on(Msg::Sessions(all));
    assert_eq!(screen.keys("<enter>"), [], "it would end for the phone");
    assert_eq!(screen.keys("1"), [Effect::Leave(ScreenExit::Resume("1a".to_owned()))]);
}

#[test]
fn a_model_is_chosen_among_those_the_agent_names() {
    let mut screen = Screen::new(AgentType::Claude);
    screen.model.agent.commands = Some(Vec::new());
    let asked = screen.keys("/model<enter>");
    assert!(asked.contains(&Effect::Query(multitap_event::Query::Models)), "{asked:?}");
    let models = json!({ "models": [{ "id": "default", "name": "Default" }, { "id": "opus" }] });
    screen.tell("capabilities", &models);
    assert_eq!(screen.keys("<down><enter>"), [Effect::SetModel("opus".to_owned())]);
    screen.tell("capabilities", &models);
    assert!(screen.model.overlay.is_none(), "nobody asked this time");
    let sent = screen.keys("/model op<enter>");
    assert!(sent.contains(&Effect::SetModel("op".to_owned())), "there are models that no list has: {sent:?}");
    let sent = screen.keys("/model op<tab><enter>");
    assert!(sent.contains(&Effect::SetModel("opus".to_owned())), "{sent:?}");
}

#[test]
fn a_client_is_kicked_after_a_second_look() {
    let mut screen = Screen::new(AgentType::Builtin);
    screen.join("phone");
    screen.keys("/clients<enter>");
    assert_eq!(screen.keys("phone<enter>"), []);
    assert_eq!(screen.keys("<enter>"), [Effect::Kick("phone".into())]);
}

#[test]
fn the_door_is_shown_with_a_code_to_scan() {
    let mut screen = Screen::new(AgentType::Builtin);
    let address =
        JoinAddress { url: "http://127.0.0.1:4100".to_owned(), token: Some("secret".to_owned()), note: String::new() };
    screen.on(Msg::Shared(Some(address)));
    let Some(Overlay::Page(page)) = &screen.model.overlay else { panic!("no page") };
    assert!(page.lines.contains(&"token  secret".to_owned()));
    // The quiet zone is light, and dark is what is drawn.
    assert!(page.code.len() > 10 && page.code[0].chars().all(|c| c == ' '), "{:#?}", page.code);
    screen.on(Msg::Shared(None));
    assert_eq!(screen.model.session.address, None);
}

#[test]
fn a_turn_tells_how_long_it_takes_and_others_stop_nothing() {
    let mut screen = Screen::new(AgentType::Builtin);
    screen.tell("turnStarted", &json!({ "turnId": "t" }));
    assert_eq!(screen.model.session.working(), None, "nothing moves before a moment has passed");
    screen.on(Msg::Clock(Timestamp::from_millis(2100)));
    assert_eq!(screen.model.session.working(), Some((Timestamp::from_millis(2100), Some(2100))));
    assert_eq!(screen.keys("<^z>"), [Effect::Suspend]);
    screen.tell("clientJoined", &json!({ "client": { "clientId": "other", "client": "phone", "door": "a2a" } }));
    assert_eq!(screen.keys("<^z>"), []);
    assert!(screen.model.status.notice.as_ref().unwrap().contains("others are connected"));
    let effects = screen.tell("turnCompleted", &json!({ "turnId": "t", "status": "completed" }));
    let called = Effect::Notify { words: "the turn is over".to_owned(), is_sure: false };
    assert_eq!(effects, [Effect::Branch, called], "nobody knows whether somebody looks");
    assert_eq!(screen.model.session.working(), None);
}

#[test]
fn only_who_may_look_elsewhere_is_called() {
    let mut screen = Screen::new(AgentType::Builtin);
    let end = |screen: &mut Screen| {
        let effects = screen.tell("turnCompleted", &json!({ "turnId": "t", "status": "completed" }));
        effects.into_iter().find_map(|effect| match effect {
            Effect::Notify { is_sure, .. } => Some(is_sure),
            _ => None,
        })
    };
    assert_eq!(end(&mut screen), Some(false));
    screen.on(Msg::Focused(false));
    assert_eq!(end(&mut screen), Some(true));
    screen.on(Msg::Focused(true));
    assert_eq!(end(&mut screen), None);
}

#[test]
fn of_two_clients_that_look_the_same_the_chosen_one_is_kicked() {
    let mut screen = Screen::new(AgentType::Builtin);
    for id in ["one", "two"] {
        screen.tell("clientJoined", &json!({ "client": { "clientId": id, "client": "twin", "door": "a2a" } }));
    }
    screen.keys("/clients<enter><down><down><enter>");
    assert_eq!(screen.keys("1"), [], "a number chooses only what is numbered");
    screen.keys("<back>");
    assert_eq!(screen.keys("<enter>"), [Effect::Kick(ClientId::from("two"))]);
}

#[test]
fn a_lost_connection_is_told_until_it_is_back() {
    let mut screen = Screen::new(AgentType::Builtin);
    screen.on(Msg::ConnectionLost("reset".to_owned()));
    assert!(screen.model.status.notice.as_ref().unwrap().contains("reset"));
    screen.keys("x");
    assert!(screen.model.session.is_lost && screen.model.status.notice.is_none());
    screen.on(Msg::Reconnected(me()));
    assert!(!screen.model.session.is_lost);
}

#[test]
fn a_word_about_the_next_key_goes_when_it_is_no_longer_so() {
    let mut screen = Screen::new(AgentType::Builtin);
    screen.keys("<^c>");
    assert!(screen.model.status.notice.is_some());
    screen.on(Msg::RepeatExpired);
    assert_eq!(screen.model.status.notice, None);
    screen.on(Msg::Refused("no".to_owned()));
    screen.on(Msg::RepeatExpired);
    assert!(screen.model.status.notice.is_some(), "other words stay until a key");
}
