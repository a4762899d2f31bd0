//! Older events, prepended when the user scrolls to the top. Pure.

use std::sync::Arc;

use multitap_event::{Event, PromptId};

use super::scroll::{Scroll, Shape};
use super::{Cell, Held, OpenText, Orphans, Transcript};

impl Transcript {
    /// The first event, if there are older ones.
    pub(crate) fn first_known(&self) -> Option<u64> {
        self.first.filter(|first| *first > 1 && !self.is_cleared)
    }

    /// The first event, if there are older ones and the screen is close to it.
    pub(crate) fn missing(&self, scroll: Scroll, shape: Shape) -> Option<u64> {
        let first = self.first_known()?;
        let is_near = match scroll {
            Scroll::At { cell, .. } => cell <= self.base + 8,
            Scroll::Latest => self.top(shape) == Scroll::Latest,
        };
        is_near.then_some(first)
    }

    /// Prepends older events. An empty list means that there are none.
    pub(crate) fn prepend(&mut self, events: &[Event]) {
        if self.is_cleared {
            return;
        }
        let Some(first) = events.first().map(|event| event.seq) else {
            self.first = Some(1);
            return;
        };
        let mut older =
            Self { me: self.me.earlier(), unfolded: self.unfolded, folder: self.folder.clone(), ..Self::default() };
        for event in events {
            older.apply(event);
        }
        if let (None, Some(folder)) = (&self.folder, &older.folder) {
            self.folder = Some(folder.clone());
            self.cells.iter_mut().for_each(|held| held.works_in(folder));
        }
        self.follow_up(&mut older);
        self.join(&mut older);
        let moved = self.base.saturating_sub_unsigned(older.cells.len() as u64);
        let there = |open: Option<OpenText>| open.map(|open| OpenText { at: open.at + moved, ..open });
        if !self.has_begun {
            self.open_text = there(older.open_text.take());
        }
        if older.has_begun {
            self.orphans.open_text = there(older.orphans.open_text.take());
        }
        self.has_begun |= older.has_begun;
        self.is_cleared = older.is_cleared;
        self.tools.extend(older.tools.into_iter().map(|(id, at)| (id, at + moved)));
        self.texts.extend(older.texts.into_iter().map(|(id, at)| (id, at + moved)));
        self.queued.extend(older.queued);
        self.questions.extend(older.questions);
        self.plan = self.plan.or(older.plan.map(|at| at + moved));
        self.orphans.add(older.orphans, moved);
        for held in older.cells.into_iter().rev() {
            self.cells.push_front(held);
        }
        self.base = moved;
        self.first = Some(first);
    }

    /// Applies waiting events to the older calls, prompts and texts that they are about.
    fn follow_up(&mut self, older: &mut Self) {
        let tools: Vec<_> = self.orphans.tools.keys().filter(|id| older.tools.contains_key(*id)).cloned().collect();
        for id in tools {
            let Some(orphan) = self.orphans.tools.remove(&id) else { continue };
            let is_over = orphan.run.end.is_some();
            older.tool(&id, |run| run.extend(orphan.run));
            if is_over {
                older.tools.remove(&id);
            }
            for at in orphan.cells {
                self.change(at, |cell| *cell = Cell::Empty);
            }
        }
        let is_known = |(id, _): &mut (PromptId, i64)| older.queued.contains_key(id);
        for (id, at) in self.orphans.withdrawn.extract_if(.., is_known).collect::<Vec<_>>() {
            self.change(at, |cell| {
                if let Cell::Withdrawn { begins, .. } = cell {
                    *begins = older.queued.get(&id).cloned();
                }
            });
        }
        if let Some(plan) = older.plan.take_if(|_| self.plan.is_some()) {
            older.change(plan, |cell| *cell = Cell::Empty);
        }
        older.retract(&std::mem::take(&mut self.orphans.retracted));
        self.show_error_once(older.last_error.take());
        for (id, at) in std::mem::take(&mut self.orphans.closed) {
            match older.close(&id) {
                Some(asked) => self.change(at.unwrap_or(self.end()), |cell| {
                    if let Cell::Answered { question, .. } = cell {
                        *question = Some(Box::new(asked));
                    }
                }),
                None => self.orphans.closed.push((id, at)),
            }
        }
    }

    /// Removes errors that the older events show already.
    fn show_error_once(&mut self, before: Option<String>) {
        for held in &mut self.cells {
            let error = if let Cell::TurnEnd(end) = &mut held.cell {
                &mut end.error
            } else if let Cell::Ended(end) = &mut held.cell {
                &mut end.error
            } else if matches!(held.cell, Cell::Error(_)) {
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
        self.last_error = self.last_error.take().or(before);
    }

    /// Joins a text that began in the older events and continues here.
    fn join(&mut self, older: &mut Self) {
        let (Some(before), Some(after)) = (&older.open_text, &self.orphans.open_text) else { return };
        if (&before.id, before.kind) != (&after.id, after.kind) {
            return;
        }
        let (there, here) = (before.at, after.at);
        let moved = self.base.saturating_sub_unsigned(older.cells.len() as u64);
        let mut rest = Cell::Empty;
        self.change(here, |cell| rest = std::mem::replace(cell, Cell::Empty));
        older.change(there, |cell| cell.append(rest.text()));
        // Its neighbours keep their place on the screen.
        if there + 1 == older.end() && here == self.base {
            let mut whole = Cell::Empty;
            older.change(there, |cell| whole = std::mem::replace(cell, Cell::Empty));
            if let Some(open) = older.orphans.open_text.as_mut().filter(|open| open.at == there) {
                open.at = here - moved;
            }
            return self.change(here, |cell| *cell = whole);
        }
        if let Some(open) = self.open_text.as_mut().filter(|open| open.at == here) {
            open.at = there + moved;
        }
    }
}

impl Held {
    fn works_in(&mut self, in_folder: &Arc<str>) {
        if let Cell::Changed { folder, .. } = &mut self.cell {
            *folder = Some(in_folder.clone());
        } else if let Cell::Tool(tool) = &mut self.cell {
            tool.folder = Some(in_folder.clone());
        } else {
            return;
        }
        self.version += 1;
    }
}

impl Orphans {
    /// Prepends those of older events.
    fn add(&mut self, older: Self, moved: i64) {
        for (id, mut orphan) in older.tools {
            orphan.cells.iter_mut().for_each(|at| *at += moved);
            if let Some(rest) = self.tools.remove(&id).filter(|_| orphan.run.end.is_none()) {
                orphan.run.extend(rest.run);
                orphan.cells.extend(rest.cells);
            }
            self.tools.insert(id, orphan);
        }
        let withdrawn = older.withdrawn.into_iter().map(|(id, at)| (id, at + moved));
        self.withdrawn.splice(..0, withdrawn);
        let closed = older.closed.into_iter().map(|(id, at)| (id, at.map(|at| at + moved)));
        self.closed.splice(..0, closed);
        self.retracted.extend(older.retracted);
    }
}
