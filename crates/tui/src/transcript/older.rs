//! What came before the first event, when somebody scrolls there. Pure.

use std::cell::RefCell;

use multitap_event::Event;

use super::scroll::{Scroll, Shape};
use super::{Cell, Held, Transcript};

impl Transcript {
    /// The event before which something is missing, if somebody who looks there is close to it.
    pub(crate) fn missing(&self, scroll: Scroll, shape: Shape) -> Option<u64> {
        let first = self.first.filter(|first| *first > 1)?;
        let is_near = match scroll {
            Scroll::At { cell, .. } => cell <= self.base + 8,
            Scroll::Latest => self.top(shape) == Scroll::Latest,
        };
        is_near.then_some(first)
    }

    /// Puts the events before the first one in their place. None means that there are none.
    pub(crate) fn prepend(&mut self, events: &[Event]) {
        let Some(first) = events.first().map(|event| event.seq) else {
            self.first = Some(1);
            return;
        };
        let mut older = Self { me: self.me.clone(), unfolded: self.unfolded, ..Self::default() };
        for event in events {
            older.apply(event);
        }
        self.follow_up(&mut older);
        if !older.cells.is_empty() {
            self.join(&mut older);
            (self.strays.saying, self.strays.thinking) = (older.strays.saying.take(), older.strays.thinking.take());
        }
        let moved = self.base.saturating_sub_unsigned(older.cells.len() as u64);
        self.tools.extend(older.tools.drain().map(|(id, at)| (id, at + moved)));
        self.queued.extend(older.queued.drain().map(|(id, at)| (id, at + moved)));
        self.questions.extend(older.questions.drain());
        self.plan = self.plan.or(older.plan.map(|at| at + moved));
        self.strays.ended.extend(older.strays.ended);
        self.strays.sent.extend(older.strays.sent);
        for held in older.cells.into_iter().rev() {
            self.cells.push_front(Held { made: RefCell::default(), ..held });
        }
        self.base = moved;
        self.first = Some(first);
    }

    /// What was told here of things that began there.
    fn follow_up(&mut self, older: &mut Self) {
        let ended: Vec<_> = self.strays.ended.keys().filter(|id| older.tools.contains_key(*id)).cloned().collect();
        for done in ended.iter().filter_map(|id| self.strays.ended.remove(id)) {
            older.ended(&done);
        }
        let sent: Vec<_> = self.strays.sent.iter().filter(|id| older.queued.contains_key(*id)).cloned().collect();
        for id in &sent {
            self.strays.sent.remove(id);
            older.unqueue(id);
        }
        if let Some(plan) = older.plan.filter(|_| self.plan.is_some()) {
            older.change(plan, |cell| *cell = Cell::Gone);
            older.plan = None;
        }
        if older.questions.is_empty() {
            return;
        }
        for held in &mut self.cells {
            if let Cell::Ruled { ruling, question: question @ None, .. } = &mut held.cell {
                *question = older.close(&ruling.question_id).map(Box::new);
                held.version += 1;
            }
        }
    }

    /// A message that was cut in two is one again.
    fn join(&mut self, older: &mut Self) {
        let goes_on = match (&older.saying, &older.thinking, &self.strays.saying, &self.strays.thinking) {
            (Some((id, _)), _, Some(rest), _) | (_, Some((id, _)), _, Some(rest)) => id == rest,
            _ => false,
        };
        if !goes_on {
            return;
        }
        let Some(Held { cell: Cell::Said { text: before, .. } | Cell::Thought { text: before, .. }, .. }) =
            older.cells.pop_back()
        else {
            return;
        };
        self.change(self.base, |cell| {
            if let Cell::Said { text, .. } | Cell::Thought { text, .. } = cell {
                text.insert_str(0, &before);
            }
        });
    }
}
