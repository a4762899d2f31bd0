//! What somebody does at the other end of the pipes, and the dice that decide it.

use serde_json::{Value, json};

/// Gives the same numbers again for the same seed.
#[derive(Debug)]
pub(super) struct Dice(pub(super) u64);

impl Dice {
    /// Below that.
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }

    /// From one on.
    pub(super) fn up_to(&mut self, most: u64) -> u64 {
        1 + self.below(most)
    }

    /// Once in so many times.
    fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }
}

/// What the driver is out for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wish {
    /// As much at once as may be.
    Trouble,
    /// That all comes to its end.
    Peace,
}

/// Somebody who prompts, answers, cancels and takes back, as things come along.
#[derive(Debug)]
pub(super) struct Driver {
    /// No two prompts are the same, in whatever session.
    session: u64,
    prompts: u64,
    pub(super) wish: Wish,
}

impl Driver {
    pub(super) fn of(session: u64) -> Self {
        Self { session, prompts: 0, wish: Wish::Trouble }
    }

    /// Whether this driver may have sent that prompt.
    pub(super) fn is_mine(&self, prompt: &str) -> bool {
        prompt.starts_with(&format!("{}.", self.session))
    }

    /// The lines to send after an event was seen.
    pub(super) fn react(&mut self, event: &Value, dice: &mut Dice) -> Vec<Value> {
        let trouble = self.wish == Wish::Trouble;
        match event["type"].as_str().unwrap() {
            "sessionStarted" if trouble => (0..dice.below(3)).map(|_| self.prompt(dice)).collect(),
            // As many as are done, so that now and then nothing waits.
            "turnStarted" | "turnCompleted" if trouble && dice.once_in(2) => vec![self.prompt(dice)],
            "promptQueued" if trouble && dice.once_in(8) => {
                vec![json!({ "type": "withdraw", "promptId": event["prompt"]["promptId"] })]
            }
            // Now and then nobody answers, or two people do.
            "permissionAsked" if !trouble || !dice.once_in(5) => {
                let answers = if trouble { dice.up_to(2) } else { 1 };
                (0..answers).map(|_| answer(event, dice)).collect()
            }
            "textChunk" if event["content"] == "hanging" && (!trouble || dice.once_in(2)) => {
                vec![json!({ "type": "cancel" })]
            }
            _ => Vec::new(),
        }
    }

    fn prompt(&mut self, dice: &mut Dice) -> Value {
        self.prompts += 1;
        let kind = ["talk", "talk", "ask", "ask", "hang"][usize::try_from(dice.below(5)).unwrap()];
        json!({ "type": "prompt", "text": format!("{}.{} {kind}", self.session, self.prompts) })
    }
}

fn answer(question: &Value, dice: &mut Dice) -> Value {
    let options = question["options"].as_array().unwrap();
    let option = &options[usize::try_from(dice.below(options.len() as u64)).unwrap()];
    json!({ "type": "decide", "questionId": question["questionId"], "optionId": option["id"] })
}
