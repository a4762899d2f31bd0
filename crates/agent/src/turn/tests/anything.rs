//! Anything may happen, in any order.

use proptest::prelude::*;

use super::*;
use crate::conversation::Part;

/// Something that can happen to a machine, in any order, fitting or not.
#[derive(Debug, Clone)]
enum Happening {
    Prompt,
    Steer,
    Do,
    Say,
    Compress,
    Text,
    Call(bool, u32),
    Replied,
    Failed(bool),
    Again,
    Ready(usize, u8),
    Decide(bool),
    Done(usize),
    Elicit,
    TakeBack(usize),
    Summed(bool),
    Cancel,
    Force,
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        3 => Just(Happening::Prompt),
        1 => Just(Happening::Steer),
        1 => Just(Happening::Do),
        1 => Just(Happening::Say),
        1 => Just(Happening::Compress),
        3 => Just(Happening::Text),
        6 => (any::<bool>(), 0..4_u32).prop_map(|(looks, key)| Happening::Call(looks, key)),
        6 => Just(Happening::Replied),
        1 => any::<bool>().prop_map(Happening::Failed),
        2 => Just(Happening::Again),
        8 => (0..4_usize, 0..4_u8).prop_map(|(which, verdict)| Happening::Ready(which, verdict)),
        4 => any::<bool>().prop_map(Happening::Decide),
        8 => (0..4_usize).prop_map(Happening::Done),
        3 => Just(Happening::Elicit),
        1 => (0..4_usize).prop_map(Happening::TakeBack),
        1 => any::<bool>().prop_map(Happening::Summed),
        1 => Just(Happening::Cancel),
        1 => Just(Happening::Force),
    ]
}

/// Every call of every assistant message has its answer right behind it.
fn is_whole(talk: &Conversation) -> bool {
    let messages = talk.messages();
    messages.iter().enumerate().all(|(at, message)| {
        let Message::Assistant { parts } = message else { return true };
        let call = |part: &Part| if let Part::Call(call) = part { Some(call.id.clone()) } else { None };
        let calls: Vec<_> = parts.iter().filter_map(call).collect();
        let answers: Vec<_> = match messages.get(at + 1) {
            Some(Message::Results { answers }) => answers.iter().map(|answer| answer.id.clone()).collect(),
            _ => Vec::new(),
        };
        calls == answers
    })
}

/// Counts the answers of the last step, once.
fn count_answers(table: &mut Table, asks: &mut [(QuestionId, usize)]) {
    table.effects.retain(|effect| {
        let Effect::Answer(id, _) = effect else { return true };
        asks.iter_mut().filter(|(asked, _)| asked == id).for_each(|(_, answers)| *answers += 1);
        false
    });
}

proptest! {
    /// Whatever happens in whatever order: the model is only ever asked with a whole conversation, every tool that
    /// began ends once, every question closes, every turn that began ends once.
    #[test]
    fn anything_may_happen(happenings in proptest::collection::vec(happening(), 0..80)) {
        let mut table = Table::new(Limits { max_turns: Some(6), window: Some(150), structured: false });
        table.machine.read_only = BTreeSet::from(["look".to_owned()]);
        let mut known: Vec<ToolId> = Vec::new();
        // What servers ask, and how often each was answered.
        let mut asks: Vec<(QuestionId, usize)> = Vec::new();
        for happening in happenings {
            let said = || UserText { text: "words".to_owned(), images: Vec::new() };
            let busy = table.machine.is_busy();
            let id = |which: usize| known.get(known.len().saturating_sub(which + 1)).cloned();
            match happening {
                Happening::Prompt if !busy => table.step(Input::Prompt(said())),
                Happening::Steer => table.step(Input::Steer(said())),
                Happening::Do if !busy => {
                    let call = Call { id: "user".into(), name: "run".into(), arguments: json!({}), signature: None };
                    table.step(Input::Do(call));
                }
                Happening::Say if !busy => table.step(Input::Say(Ok("words".to_owned()))),
                Happening::Compress if !busy => table.step(Input::Compress),
                Happening::Text => table.say("words "),
                Happening::Call(looks, key) => table.call(if looks { "look" } else { "change" }, key),
                Happening::Replied => table.replied(),
                Happening::Failed(passes) => {
                    let kind = if passes { ModelErrorKind::Overloaded } else { ModelErrorKind::TooLong };
                    table.step(Input::Replied(Err(error(kind))));
                }
                Happening::Again => table.step(Input::Again),
                Happening::Ready(which, verdict) => if let Some(id) = id(which) {
                    let job = match verdict {
                        0 => Err("no such file".to_owned()),
                        1 => Ok((job(), Verdict::Deny("no".to_owned()))),
                        2 => Ok((job(), Verdict::Ask)),
                        _ => Ok((job(), Verdict::Run)),
                    };
                    table.step(Input::Ready(id, PreparedCall { kind: ToolKind::Mcp, server: Some("s".to_owned()), job }));
                },
                Happening::Decide(yes) => {
                    let asked = table.reported.iter().rev().find_map(|kind| match kind {
                        EventKind::PermissionAsked(question) => Some(question.question_id.clone()),
                        _ => None,
                    });
                    if let Some(question) = asked {
                        let option = if yes { option::PROCEED_ONCE } else { option::CANCEL };
                        table.step(Input::Decided(Decide::new(&question, option)));
                    }
                }
                Happening::Done(which) => if let Some(id) = id(which) {
                    table.step(Input::Done(id, Outcome::done("done")));
                },
                Happening::Elicit => {
                    let id = QuestionId::from(format!("ask-{}", asks.len()));
                    asks.push((id.clone(), 0));
                    table.step(Input::Elicited(id, Elicitation::of("s", &Map::new())));
                }
                Happening::TakeBack(which) => {
                    if let Some((id, _)) = asks.iter().rev().nth(which).cloned() {
                        table.step(Input::Withdrawn(id));
                    }
                }
                Happening::Summed(well) => {
                    let short = Summary { text: "short".to_owned(), usage: None };
                    let summary = if well { Ok(short) } else { Err(error(ModelErrorKind::Refused)) };
                    table.step(Input::Summed(summary));
                }
                Happening::Cancel => table.step(Input::Cancel),
                Happening::Force => table.step(Input::Force),
                Happening::Prompt | Happening::Do | Happening::Say | Happening::Compress => continue,
            }
            count_answers(&mut table, &mut asks);
            known.extend(table.prepared());
            if table.effects.contains(&Effect::AskModel) {
                prop_assert!(is_whole(&table.machine.talk), "{:?}", table.machine.talk);
            }
        }
        table.step(Input::Cancel);
        count_answers(&mut table, &mut asks);
        table.step(Input::Force);
        count_answers(&mut table, &mut asks);
        prop_assert!(asks.iter().all(|(_, answers)| *answers == 1), "{asks:?}");
        prop_assert!(!table.machine.is_busy());
        prop_assert!(is_whole(&table.machine.talk), "{:?}", table.machine.talk);
        let mut tools: Vec<ToolId> = Vec::new();
        let mut questions = Vec::new();
        let mut turns = 0;
        for kind in &table.reported {
            match kind {
                EventKind::ToolStarted(tool) => {
                    prop_assert!(!tools.contains(&tool.tool_id));
                    tools.push(tool.tool_id.clone());
                }
                EventKind::ToolCompleted(done) => {
                    let at = tools.iter().position(|tool| *tool == done.tool_id);
                    prop_assert!(at.is_some(), "it ended twice or never began");
                    tools.retain(|tool| *tool != done.tool_id);
                    questions.retain(|(_, tool)| *tool != Some(done.tool_id.clone()));
                }
                // What a server asks is no question about a tool: its answers are counted above.
                EventKind::PermissionAsked(asked) if asked.tool_id.is_none() => {}
                EventKind::PermissionAsked(asked) => questions.push((asked.question_id.clone(), asked.tool_id.clone())),
                EventKind::PermissionWithdrawn(gone) => questions.retain(|(id, _)| *id != gone.question_id),
                EventKind::TurnStarted { .. } => turns += 1,
                EventKind::TurnCompleted(_) => turns -= 1,
                _ => {}
            }
            prop_assert!((0..=1).contains(&turns), "turns follow one another");
        }
        prop_assert!(tools.is_empty() && questions.is_empty() && turns == 0);
    }
}
