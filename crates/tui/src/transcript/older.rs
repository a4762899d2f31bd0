//! What came before the first event, when somebody scrolls there. Pure.

use multitap_event::{Event, PromptId};

use super::scroll::{Scroll, Shape};
use super::{Cell, Going, Strays, Transcript};

impl Transcript {
    /// The event before which something is missing.
    pub(crate) fn first_known(&self) -> Option<u64> {
        self.first.filter(|first| *first > 1 && !self.is_cleared)
    }

    /// The same, if somebody who looks there is close to it.
    pub(crate) fn missing(&self, scroll: Scroll, shape: Shape) -> Option<u64> {
        let first = self.first_known()?;
        let is_near = match scroll {
            Scroll::At { cell, .. } => cell <= self.base + 8,
            Scroll::Latest => self.top(shape) == Scroll::Latest,
        };
        is_near.then_some(first)
    }

    /// Puts the events before the first one in their place. None means that there are none.
    pub(crate) fn prepend(&mut self, events: &[Event]) {
        if self.is_cleared {
            return;
        }
        let Some(first) = events.first().map(|event| event.seq) else {
            self.first = Some(1);
            return;
        };
        let mut older = Self { me: self.me.earlier(), unfolded: self.unfolded, ..Self::default() };
        for event in events {
            older.apply(event);
        }
        self.follow_up(&mut older);
        self.join(&mut older);
        let moved = self.base.saturating_sub_unsigned(older.cells.len() as u64);
        let there = |going: Option<Going>| going.map(|going| Going { at: going.at + moved, ..going });
        if !self.is_cut {
            self.going = there(older.going.take());
        }
        if older.is_cut {
            self.strays.going = there(older.strays.going.take());
        }
        self.is_cut |= older.is_cut;
        self.is_cleared = older.is_cleared;
        self.tools.extend(older.tools.into_iter().map(|(id, at)| (id, at + moved)));
        self.queued.extend(older.queued);
        self.questions.extend(older.questions);
        self.plan = self.plan.or(older.plan.map(|at| at + moved));
        self.strays.add(older.strays, moved);
        for held in older.cells.into_iter().rev() {
            self.cells.push_front(held);
        }
        self.base = moved;
        self.first = Some(first);
    }

    /// What was told here of things that began there.
    fn follow_up(&mut self, older: &mut Self) {
        let tools: Vec<_> = self.strays.tools.keys().filter(|id| older.tools.contains_key(*id)).cloned().collect();
        for id in tools {
            let Some(stray) = self.strays.tools.remove(&id) else { continue };
            let is_over = stray.run.end.is_some();
            older.tool(&id, |run| run.follow(stray.run));
            if is_over {
                older.tools.remove(&id);
            }
            for at in stray.cells {
                self.change(at, |cell| *cell = Cell::Gone);
            }
        }
        let is_known = |(id, _): &mut (PromptId, i64)| older.queued.contains_key(id);
        for (id, at) in self.strays.taken_back.extract_if(.., is_known).collect::<Vec<_>>() {
            self.change(at, |cell| {
                if let Cell::TakenBack { begins, .. } = cell {
                    *begins = older.queued.get(&id).cloned();
                }
            });
        }
        if let Some(plan) = older.plan.take_if(|_| self.plan.is_some()) {
            older.change(plan, |cell| *cell = Cell::Gone);
        }
        self.tell_once(older.wrong.take());
        for (id, at) in std::mem::take(&mut self.strays.closed) {
            match older.close(&id) {
                Some(asked) => self.change(at.unwrap_or(self.end()), |cell| {
                    if let Cell::Ruled { question, .. } = cell {
                        *question = Some(Box::new(asked));
                    }
                }),
                None => self.strays.closed.push((id, at)),
            }
        }
    }

    /// What went wrong there is not told here again.
    fn tell_once(&mut self, before: Option<String>) {
        for held in &mut self.cells {
            let error = if let Cell::TurnEnd(end) = &mut held.cell {
                &mut end.error
            } else if let Cell::Ended(end) = &mut held.cell {
                &mut end.error
            } else if matches!(held.cell, Cell::Wrong(_)) {
                break;
            } else {
                continue;
            };
            if error.is_some() && *error != before {
                break;
            }
            *error = None;
            held.version += 1;
        }
        self.wrong = self.wrong.take().or(before);
    }

    /// A message that was cut in two is one again.
    fn join(&mut self, older: &mut Self) {
        let (Some(before), Some(after)) = (&older.going, &self.strays.going) else { return };
        if (&before.id, before.is_thought) != (&after.id, after.is_thought) {
            return;
        }
        let (there, here) = (before.at, after.at);
        let moved = self.base.saturating_sub_unsigned(older.cells.len() as u64);
        let mut rest = Cell::Gone;
        self.change(here, |cell| rest = std::mem::replace(cell, Cell::Gone));
        older.change(there, |cell| cell.append(rest.text()));
        // What stands next to it keeps its place on the screen.
        if there + 1 == older.end() && here == self.base {
            let mut whole = Cell::Gone;
            older.change(there, |cell| whole = std::mem::replace(cell, Cell::Gone));
            if let Some(going) = older.strays.going.as_mut().filter(|going| going.at == there) {
                going.at = here - moved;
            }
            return self.change(here, |cell| *cell = whole);
        }
        if let Some(going) = self.going.as_mut().filter(|going| going.at == here) {
            going.at = there + moved;
        }
    }
}

impl Strays {
    /// Those of older events, which come before these.
    fn add(&mut self, older: Self, moved: i64) {
        for (id, mut stray) in older.tools {
            stray.cells.iter_mut().for_each(|at| *at += moved);
            if let Some(rest) = self.tools.remove(&id).filter(|_| stray.run.end.is_none()) {
                stray.run.follow(rest.run);
                stray.cells.extend(rest.cells);
            }
            self.tools.insert(id, stray);
        }
        let taken_back = older.taken_back.into_iter().map(|(id, at)| (id, at + moved));
        self.taken_back.splice(..0, taken_back);
        let closed = older.closed.into_iter().map(|(id, at)| (id, at.map(|at| at + moved)));
        self.closed.splice(..0, closed);
    }
}
