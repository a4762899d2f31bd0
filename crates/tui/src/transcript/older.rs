//! What came before the first event, when somebody scrolls there. Pure.

use multitap_event::Event;

use super::scroll::{Scroll, Shape};
use super::{Cell, Strays, Transcript};

impl Transcript {
    /// The event before which something is missing.
    pub(crate) fn first_known(&self) -> Option<u64> {
        self.first.filter(|first| *first > 1)
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
        if self.cells.is_empty() {
            self.saying = older.saying.map(|(id, at)| (id, at + moved));
            self.thinking = older.thinking.map(|(id, at)| (id, at + moved));
        }
        self.tools.extend(older.tools.into_iter().map(|(id, at)| (id, at + moved)));
        self.queued.extend(older.queued.into_iter().map(|(id, at)| (id, at + moved)));
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
        let sent: Vec<_> = self.strays.sent.iter().filter(|id| older.queued.contains_key(*id)).cloned().collect();
        for id in sent {
            self.strays.sent.remove(&id);
            older.unqueue(&id);
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
        let goes_on = match (&older.saying, &older.thinking, &self.strays.saying, &self.strays.thinking) {
            (Some((id, _)), _, Some(rest), _) | (_, Some((id, _)), _, Some(rest)) => id == rest,
            _ => false,
        };
        let Some(before) = goes_on.then(|| older.cells.pop_back()).flatten() else { return };
        self.change(self.base, |cell| {
            let rest = std::mem::replace(cell, before.cell);
            if let Cell::Said { text, .. } | Cell::Thought { text, .. } = rest {
                cell.append(&text);
            }
        });
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
        self.sent.extend(older.sent);
        let closed = older.closed.into_iter().map(|(id, at)| (id, at.map(|at| at + moved)));
        self.closed.splice(..0, closed);
    }
}
