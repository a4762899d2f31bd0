//! Decides which answer to a question counts.
//!
//! Pure, and changed by events alone, so that it can be rebuilt from the log: an answer is judged here, and counts once
//! its ruling is an event. No channels, clock or task here; time comes in as a value.

use std::collections::VecDeque;

use multitap_event::{
    ClientRef, ClientRole, Decide, Question, QuestionId, Refused, Ruling, Timestamp, ToolId, shortened,
};
use serde::{Deserialize, Serialize};

/// Number of closed questions that are remembered, so that a late answer is refused with the outcome of its question.
const REMEMBERED: usize = 256;
/// Maximum number of open questions that the refusal of an answer to an unknown one names.
const NAMED: usize = 20;

/// Most characters of an answer's free text that are remembered; the log has all of it.
const WORDS: usize = 1000;

/// Open questions, and the outcome of closed ones.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Arbiter {
    open: Vec<Question>,
    over: VecDeque<Over>,
}

/// A closed question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Over {
    #[serde(flatten)]
    end: End,
    /// The tool call that it was about. States stored by earlier versions lack it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tool: Option<ToolId>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum End {
    Settled(Box<Ruling>),
    Withdrawn { question: QuestionId, at: Timestamp },
}

impl Over {
    fn question(&self) -> &QuestionId {
        match &self.end {
            End::Settled(ruling) => &ruling.question_id,
            End::Withdrawn { question, .. } => question,
        }
    }
}

impl Arbiter {
    /// The open questions, oldest first.
    pub fn open(&self) -> &[Question] {
        &self.open
    }

    /// The question with that id, if it is open.
    pub fn question(&self, id: &QuestionId) -> Option<&Question> {
        self.open.iter().find(|open| open.question_id == *id)
    }

    /// The latest question about that tool call: an open one, else a closed one, so that a late answer is refused with
    /// the ruling.
    pub fn about_tool(&self, tool: &ToolId) -> Option<QuestionId> {
        let open = self.open.iter().rev().find(|open| open.tool_id.as_ref() == Some(tool));
        let over = || self.over.iter().rev().find(|over| over.tool.as_ref() == Some(tool)).map(Over::question);
        open.map(|open| &open.question_id).or_else(over).cloned()
    }

    pub(crate) fn asked(&mut self, question: Question) {
        self.open.retain(|open| open.question_id != question.question_id);
        self.over.retain(|over| *over.question() != question.question_id);
        self.open.push(question);
    }

    /// The agent needs no answer any more. A settled question stays settled.
    pub(crate) fn withdrawn(&mut self, question: &QuestionId, at: Timestamp) {
        if let Some(closed) = self.close(question) {
            self.remember(Over { end: End::Withdrawn { question: question.clone(), at }, tool: closed.tool_id });
        }
    }

    /// Records a ruling made elsewhere, such as by a rule of the agent.
    pub(crate) fn settled(&mut self, ruling: Ruling) {
        let tool = self.close(&ruling.question_id).and_then(|closed| closed.tool_id);
        let mut ruling = ruling.without_edit();
        ruling.feedback = ruling.feedback.map(|words| shortened(&words, WORDS));
        self.remember(Over { end: End::Settled(Box::new(ruling)), tool });
    }

    /// Judges an answer: the first valid one wins, every other is refused with a reason. The ruling counts once it is
    /// [`settled`](Self::settled).
    pub(crate) fn judge(&self, decide: &Decide, by: ClientRef, now: Timestamp) -> Result<Ruling, Refused> {
        if by.role == Some(ClientRole::Observer) {
            return Err(Refused::Observer);
        }
        let id = &decide.question_id;
        let question = self.question(id).ok_or_else(|| self.why_not(id))?;
        let choice = question.check(decide)?;
        // A denied call does not run, so its edit does not matter.
        let edit = decide.is_edited() && choice.kind.allows();
        Ok(Ruling {
            question_id: id.clone(),
            selected_option_id: choice.id.clone(),
            kind: choice.kind,
            settled_by: by,
            at: now,
            feedback: decide.feedback.clone(),
            edited: edit,
            new_content: decide.new_content.clone().filter(|_| edit),
            new_input: decide.new_input.clone().filter(|_| edit),
            runs: None,
        })
    }

    fn why_not(&self, question: &QuestionId) -> Refused {
        match self.over.iter().rev().find(|over| over.question() == question).map(|over| &over.end) {
            Some(End::Settled(ruling)) => Refused::AlreadySettled(ruling.clone()),
            Some(End::Withdrawn { question, at }) => Refused::Withdrawn { question: question.clone(), at: *at },
            None => self.unknown(question.clone()),
        }
    }

    /// The refusal of an answer to a question that was never asked. It names the open ones.
    pub(crate) fn unknown(&self, question: QuestionId) -> Refused {
        let open = self.open.iter().take(NAMED).map(|open| open.question_id.clone()).collect();
        Refused::UnknownQuestion { question, open }
    }

    fn close(&mut self, question: &QuestionId) -> Option<Question> {
        let at = self.open.iter().position(|open| open.question_id == *question)?;
        Some(self.open.remove(at))
    }

    fn remember(&mut self, over: Over) {
        if self.over.len() == REMEMBERED {
            self.over.pop_front();
        }
        self.over.push_back(over);
    }
}

#[cfg(test)]
mod tests {
    use multitap_event::{AskedQuestion, Choice, ChoiceKind, Details, Door, option};
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn question(id: &str) -> Question {
        Question {
            question_id: id.into(),
            tool_id: None,
            tool_name: None,
            title: "may I?".into(),
            options: vec![
                Choice::new(option::PROCEED_ONCE, "Yes", ChoiceKind::AllowOnce),
                Choice::new(option::CANCEL, "No", ChoiceKind::RejectOnce),
            ],
            details: Details::Text { text: String::new(), arguments: serde_json::Map::new() },
            edits: Vec::new(),
            reason: None,
        }
    }

    fn by(name: &str) -> ClientRef {
        ClientRef::new(name, Door::Library)
    }

    impl Arbiter {
        /// Judges an answer and lets it count, as the session does.
        fn answer(&mut self, decide: &Decide, by: ClientRef, now: Timestamp) -> Result<Ruling, Refused> {
            let ruling = self.judge(decide, by, now)?;
            self.settled(ruling.clone());
            Ok(ruling)
        }
    }

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    #[test]
    fn first_valid_answer_wins_and_the_second_hears_who_did() {
        let mut arbiter = Arbiter::default();
        arbiter.asked(question("q1"));
        let ruling = arbiter.answer(&Decide::new(&"q1".into(), option::CANCEL), by("ann"), at(1)).unwrap();
        assert_eq!(ruling.kind, ChoiceKind::RejectOnce);
        let late = arbiter.answer(&Decide::new(&"q1".into(), option::PROCEED_ONCE), by("bob"), at(2)).unwrap_err();
        assert_eq!(late, Refused::AlreadySettled(Box::new(ruling)));
        assert!(late.to_string().contains("ann"), "{late}");
    }

    /// Everybody who joins gets a copy of these, and so does each checkpoint.
    #[test]
    fn long_words_of_answers_are_not_held() {
        let mut arbiter = Arbiter::default();
        for number in 0..20 {
            let id = QuestionId::from(format!("q{number}"));
            arbiter.asked(Question { question_id: id.clone(), ..question("") });
            let decide = Decide::new(&id, option::CANCEL).with_feedback("ä".repeat(500_000));
            let ruling = arbiter.answer(&decide, by("ann"), at(1)).unwrap();
            assert_eq!(ruling.feedback.map(|words| words.len()), Some(1_000_000), "the event has all of it");
        }
        let held = serde_json::to_string(&arbiter).unwrap().len();
        assert!(held < 100_000, "{held} bytes");
        let late = arbiter.answer(&Decide::new(&"q0".into(), option::CANCEL), by("bob"), at(2)).unwrap_err();
        let Refused::AlreadySettled(ruling) = late else { panic!("{late:?}") };
        assert!(ruling.feedback.unwrap().ends_with("ä…"));
    }

    #[test]
    fn an_option_that_was_not_offered_leaves_the_question_open() {
        let mut arbiter = Arbiter::default();
        arbiter.asked(question("q1"));
        let refused = arbiter.answer(&Decide::new(&"q1".into(), "yes please"), by("ann"), at(1)).unwrap_err();
        assert!(matches!(refused, Refused::NotOffered { ref offered, .. } if offered.len() == 2));
        arbiter.answer(&Decide::new(&"q1".into(), option::PROCEED_ONCE), by("ann"), at(2)).unwrap();
    }

    #[test]
    fn an_answer_that_does_not_fit_leaves_the_question_open() {
        let mut arbiter = Arbiter::default();
        arbiter.asked(question("q"));
        let mut edited = Decide::new(&"q".into(), option::PROCEED_ONCE);
        edited.new_content = Some("other".into());
        let refused = arbiter.answer(&edited, by("ann"), at(1)).unwrap_err();
        assert!(matches!(&refused, Refused::DoesNotFit { why, .. } if why.contains("newContent")), "{refused}");
        let asked = |text: &str| AskedQuestion { question: text.into(), ..AskedQuestion::default() };
        let questions = vec![asked("colour?"), asked("size?")];
        arbiter.asked(Question { details: Details::Input { questions }, ..question("i") });
        let mut half = Decide::new(&"i".into(), option::PROCEED_ONCE);
        half.answers = Some([("colour?".to_owned(), "red".into())].into());
        let refused = arbiter.answer(&half, by("ann"), at(1)).unwrap_err();
        assert!(matches!(&refused, Refused::DoesNotFit { why, .. } if why.contains("size?")), "{refused}");
        // What fits still counts, and a no needs to fit nothing.
        half.feedback = Some("as you like".into());
        assert!(arbiter.answer(&half, by("ann"), at(1)).is_ok());
        edited.option_id = option::CANCEL.into();
        assert!(arbiter.answer(&edited, by("ann"), at(1)).is_ok());
    }

    #[test]
    fn unknown_withdrawn_and_observer_are_told_apart() {
        let mut arbiter = Arbiter::default();
        arbiter.asked(question("q1"));
        let decide = Decide::new(&"q1".into(), option::PROCEED_ONCE);
        let observer = ClientRef { role: Some(ClientRole::Observer), ..by("eve") };
        assert_eq!(arbiter.answer(&decide, observer, at(1)), Err(Refused::Observer));
        arbiter.withdrawn(&"q1".into(), at(2));
        let withdrawn = Refused::Withdrawn { question: "q1".into(), at: at(2) };
        assert_eq!(arbiter.answer(&decide, by("ann"), at(3)), Err(withdrawn));
        let answer = Decide::new(&"q9".into(), option::CANCEL);
        let unknown = arbiter.answer(&answer, by("ann"), at(4)).unwrap_err();
        assert_eq!(unknown.to_string(), "there is no question q9");
        arbiter.asked(question("q2"));
        arbiter.asked(question("q3"));
        let unknown = arbiter.answer(&answer, by("ann"), at(5)).unwrap_err();
        assert_eq!(unknown.to_string(), "there is no question q9; open: q2, q3");
        let json = serde_json::to_value(&unknown).unwrap();
        assert_eq!(json, json!({ "code": "unknownQuestion", "questionId": "q9", "openQuestions": ["q2", "q3"] }));
        let of_older_version = json!({ "code": "unknownQuestion", "questionId": "q9" });
        assert!(serde_json::from_value::<Refused>(of_older_version).is_ok());
        (10..100).for_each(|number| arbiter.asked(question(&format!("q{number}"))));
        let Err(Refused::UnknownQuestion { open, .. }) = arbiter.answer(&answer, by("ann"), at(6)) else { panic!() };
        assert_eq!(open.len(), NAMED);
    }

    #[test]
    fn a_withdrawal_after_the_ruling_changes_nothing() {
        let mut arbiter = Arbiter::default();
        arbiter.asked(question("q1"));
        let decide = Decide::new(&"q1".into(), option::PROCEED_ONCE);
        arbiter.answer(&decide, by("ann"), at(1)).unwrap();
        arbiter.withdrawn(&"q1".into(), at(2));
        assert!(matches!(arbiter.answer(&decide, by("bob"), at(3)), Err(Refused::AlreadySettled(_))));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut arbiter = Arbiter::default();
        for number in 0..REMEMBERED + 10 {
            let id = format!("q{number}");
            arbiter.asked(question(&id));
            arbiter.answer(&Decide::new(&id.as_str().into(), option::CANCEL), by("ann"), at(1)).unwrap();
        }
        assert_eq!(arbiter.over.len(), REMEMBERED);
        assert!(arbiter.open.is_empty());
    }

    #[test]
    fn a_tool_call_leads_to_its_latest_question_also_when_that_is_over() {
        let about = |id: &str, tool: &str| Question { tool_id: Some(tool.into()), ..question(id) };
        let mut arbiter = Arbiter::default();
        let (tool, other) = (ToolId::from("t"), ToolId::from("o"));
        assert_eq!(arbiter.about_tool(&tool), None);
        arbiter.asked(question("about nothing"));
        arbiter.asked(about("q1", "t"));
        arbiter.asked(about("q2", "t"));
        arbiter.asked(about("q3", "o"));
        assert_eq!(arbiter.about_tool(&tool), Some("q2".into()));
        arbiter.answer(&Decide::new(&"q2".into(), option::CANCEL), by("ann"), at(1)).unwrap();
        assert_eq!(arbiter.about_tool(&tool), Some("q1".into()), "one that waits comes first");
        arbiter.withdrawn(&"q1".into(), at(2));
        assert_eq!(arbiter.about_tool(&tool), Some("q1".into()), "the latest of those that are over");
        assert_eq!(arbiter.about_tool(&other), Some("q3".into()));
        arbiter.answer(&Decide::new(&"q3".into(), option::CANCEL), by("bob"), at(3)).unwrap();
        let late = Decide::new(&arbiter.about_tool(&other).unwrap(), option::PROCEED_ONCE);
        let refused = arbiter.answer(&late, by("eve"), at(4)).unwrap_err();
        assert!(matches!(&refused, Refused::AlreadySettled(ruling) if ruling.settled_by.client == "bob"), "{refused}");
        // It is the same after it was kept.
        let kept = serde_json::to_string(&arbiter).unwrap();
        assert_eq!(serde_json::from_str::<Arbiter>(&kept).unwrap(), arbiter);
    }

    #[test]
    fn what_earlier_versions_kept_is_read() {
        let kept = r#"{"open":[],"over":[
            {"settled":{"questionId":"q1","selectedOptionId":"cancel","kind":"rejectOnce",
                "settledBy":{"client":"ann","door":"library"},"at":"1970-01-01T00:00:00.001Z"}},
            {"withdrawn":{"question":"q2","at":"1970-01-01T00:00:00.002Z"}}]}"#;
        let mut arbiter: Arbiter = serde_json::from_str(kept).unwrap();
        let late = |question: &str| Decide::new(&question.into(), option::CANCEL);
        let refused = arbiter.answer(&late("q1"), by("bob"), at(3)).unwrap_err();
        assert!(matches!(&refused, Refused::AlreadySettled(ruling) if ruling.settled_by.client == "ann"), "{refused}");
        let withdrawn = Refused::Withdrawn { question: "q2".into(), at: at(2) };
        assert_eq!(arbiter.answer(&late("q2"), by("bob"), at(3)), Err(withdrawn));
    }

    #[derive(Debug, Clone)]
    enum Happening {
        Answer { option: &'static str, by: &'static str },
        Withdraw,
    }

    fn happening() -> impl Strategy<Value = Happening> {
        let options = prop::sample::select(vec![option::PROCEED_ONCE, option::CANCEL, "nonsense"]);
        let people = prop::sample::select(vec!["ann", "bob", "eve"]);
        prop_oneof![
            4 => (options, people).prop_map(|(option, by)| Happening::Answer { option, by }),
            1 => Just(Happening::Withdraw),
        ]
    }

    proptest! {
        /// Whatever the answers and their order, a question gets at most one ruling; with a valid answer before any
        /// withdrawal, exactly one; and everybody later hears of that one.
        #[test]
        fn exactly_one_ruling(happenings in prop::collection::vec(happening(), 1..40)) {
            let mut arbiter = Arbiter::default();
            arbiter.asked(question("q"));
            let mut won: Option<Ruling> = None;
            let mut gone = false;
            for (now, happening) in (1..).zip(happenings) {
                match happening {
                    Happening::Withdraw => {
                        arbiter.withdrawn(&"q".into(), at(now));
                        gone |= won.is_none();
                    }
                    Happening::Answer { option, by: who } => {
                        match arbiter.answer(&Decide::new(&"q".into(), option), by(who), at(now)) {
                            Ok(ruling) => {
                                prop_assert!(won.is_none() && !gone && option != "nonsense");
                                won = Some(ruling);
                            }
                            Err(Refused::AlreadySettled(ruling)) => prop_assert_eq!(Some(&*ruling), won.as_ref()),
                            Err(Refused::Withdrawn { .. }) => prop_assert!(gone && won.is_none()),
                            Err(Refused::NotOffered { .. }) => prop_assert!(option == "nonsense" && won.is_none() && !gone),
                            Err(other) => prop_assert!(false, "{other}"),
                        }
                    }
                }
            }
        }
    }
}
