//! Forms and addresses of the agent, and how they end.

use super::*;

fn form() -> Value {
    json!({
        "mode": "form", "sessionId": "s1", "message": "Which color?",
        "requestedSchema": { "type": "object", "required": ["color"], "properties": {
            "color": { "type": "string", "title": "Color", "oneOf": [
                { "const": "r", "title": "red" }, { "const": "b", "title": "blue" },
            ] },
            "note": { "type": "string", "title": "Other" },
        } },
    })
}

fn page() -> Value {
    json!({ "mode": "url", "sessionId": "s1", "message": "Sign in", "url": "https://x/auth", "elicitationId": "e1" })
}

/// In a turn with an open call, where the agent shows this.
fn shown(params: &Value) -> Play {
    let mut play = Play::open();
    play.prompt("go");
    play.update(&json!({ "sessionUpdate": "tool_call", "toolCallId": "t1", "name": "AskUserQuestion", "status": "pending", "title": "Color", "rawInput": {} }));
    play.story.clear();
    play.elicit(5, params);
    play
}

impl Play {
    fn elicit(&mut self, id: u64, params: &Value) -> &mut Self {
        self.agent(&json!({ "id": id, "method": "elicitation/create", "params": params }))
    }

    fn completed(&mut self, id: &str) -> &mut Self {
        self.agent(&json!({ "method": "elicitation/complete", "params": { "elicitationId": id } }))
    }

    fn fill(&mut self, question: &str, answers: &Value) -> &mut Self {
        let mut decide = Decide::new(&QuestionId::from(question), "proceed_once");
        decide.answers = serde_json::from_value(answers.clone()).unwrap();
        self.command(Command::Decide(decide))
    }
}

#[test]
fn a_form_is_filled_in_declined_or_dismissed() {
    let mut asked = form();
    asked["toolCallId"] = "t1".into();
    let mut play = shown(&asked);
    let mut story = play.story.clone();
    play.story.clear();
    // The form needs a color, and green is none.
    play.fill("t1#5", &json!({})).fill("t1#5", &json!({ "Color": "green" })).fill("t1#5", &json!({ "Color": "red" }));
    story += &format!("\nfilled in\n{}", play.story);
    for option in ["decline", "cancel"] {
        let mut play = shown(&asked);
        play.story.clear();
        play.decide("t1#5", option);
        // The call goes on: only the form was refused.
        play.update(&json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": "on" } }));
        story += &format!("\n{option}\n{}", play.story);
    }
    insta::assert_snapshot!(story);
}

#[test]
fn an_address_is_completed_before_or_after_the_answer() {
    let mut play = shown(&page());
    play.completed("other").completed("e1").completed("e1");
    let before = play.story.clone();
    let mut play = shown(&page());
    play.story.clear();
    play.decide("e1#5", "proceed_once").completed("e1");
    insta::assert_snapshot!(format!("{before}\nafter\n{}", play.story));
}

#[test]
fn no_form_outlives_its_turn() {
    let mut play = shown(&form());
    let mut story = String::new();
    for end in ["cancel", "reply", "withdrawn"] {
        if end != "cancel" {
            play = shown(&form());
        }
        play.story.clear();
        match end {
            "cancel" => play.command(Command::Cancel).elicit(6, &form()),
            "reply" => play.agent(&json!({ "id": 3, "result": { "stopReason": "end_turn" } })),
            _ => play.agent(&json!({ "method": "$/cancel_request", "params": { "requestId": 5 } })),
        };
        story += &format!("{end}\n{}\n", play.story);
    }
    insta::assert_snapshot!(story);
}

/// The agent never waits for an answer that cannot come.
#[test]
fn what_cannot_be_shown_is_answered_at_once() {
    let mut play = Play::new(&config());
    play.agent(&initialized(&json!({}))).story.clear();
    play.elicit(5, &page());
    play.agent(&json!({ "id": 2, "result": { "sessionId": "s1" } })).story += "opened\n";
    play.elicit(6, &json!({ "mode": "hologram", "sessionId": "s1", "message": "look" }));
    play.agent(&json!({ "id": 7, "method": "elicitation/create" }));
    play.agent(&json!({ "id": 9, "method": "elicitation/create", "params": [] }));
    play.agent(&json!({ "method": "elicitation/complete", "params": {} }));
    play.story += "between turns\n";
    play.elicit(8, &json!({ "message": "Go on?" })).decide("2026-11-15T12:00:00.000Z#8", "proceed_once");
    insta::assert_snapshot!(play.story);
}

#[test]
fn notices_are_shown_with_their_details() {
    let mut play = Play::open();
    play.update(
        &json!({ "sessionUpdate": "notice", "severity": "warning", "title": "Slow", "description": "Try later." }),
    );
    play.update(&json!({ "sessionUpdate": "notice", "severity": "info", "title": "Hello" }));
    insta::assert_snapshot!(play.story);
}
