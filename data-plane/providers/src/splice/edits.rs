//! Several changes at once.

use std::ops::Range;

use bytes::Bytes;
use smallvec::SmallVec;

use super::{ModelName, SplicedBody};
use crate::json::quote;

/// Changes to top-level members of a JSON object. Members are named by the span of their value, as the views tell it;
/// each may be changed once. What is not changed stays where it is in memory.
#[derive(Debug, Clone)]
pub struct Edits {
    body: Bytes,
    /// What stands in the place of which bytes.
    replaced: SmallVec<[(Range<usize>, Bytes); 4]>,
    /// From the key's quote to the value's end.
    removed: SmallVec<[Range<usize>; 2]>,
    /// Members to be put in front, with a comma behind each.
    inserted: Vec<u8>,
}

impl Edits {
    /// `body` must be a JSON object, as the views have checked.
    #[must_use]
    pub fn new(body: &Bytes) -> Self {
        Self { body: body.clone(), replaced: SmallVec::new(), removed: SmallVec::new(), inserted: Vec::new() }
    }

    /// Puts `value`, which must be JSON, in the place of the value at `span`.
    pub fn replace(&mut self, span: Range<usize>, value: impl Into<Bytes>) -> &mut Self {
        self.replaced.push((span, value.into()));
        self
    }

    /// Puts a member in front of all others. `value` must be JSON, and no other member of this name may be left.
    pub fn insert(&mut self, name: &str, value: &[u8]) -> &mut Self {
        self.inserted.extend_from_slice(quote(name).as_bytes());
        self.inserted.push(b':');
        self.inserted.extend_from_slice(value);
        self.inserted.push(b',');
        self
    }

    /// Sets the model, as [`super::replace_model`] does.
    pub fn model(&mut self, span: Option<Range<usize>>, model: &ModelName) -> &mut Self {
        match span {
            Some(span) if self.body[span.clone()] == model.value => self,
            Some(span) => self.replace(span, model.value.clone()),
            None => self.insert("model", &model.value),
        }
    }

    /// Gives another name to the member whose value is at `span`.
    pub fn rename(&mut self, span: &Range<usize>, name: &str) -> &mut Self {
        let key = self.key(span);
        self.replaced.push((key, quote(name).into()));
        self
    }

    /// Takes out the member whose value is at `span`.
    pub fn remove(&mut self, span: &Range<usize>) -> &mut Self {
        let key = self.key(span);
        self.removed.push(key.start..span.end);
        self
    }

    /// The body with all changes made.
    #[must_use]
    pub fn apply(&self) -> SplicedBody {
        let Some(brace) = memchr::memchr(b'{', &self.body) else {
            return SplicedBody::whole(self.body.clone());
        };
        let after = brace + 1;
        let removals = self.removals(after);
        let mut changes: SmallVec<[(Range<usize>, Bytes); 6]> = SmallVec::new();
        if !self.inserted.is_empty() {
            let comma = usize::from(!self.leaves_members(after, &removals));
            let members = &self.inserted[..self.inserted.len() - comma];
            changes.push((after..after, Bytes::copy_from_slice(members)));
        }
        changes.extend(removals.into_iter().map(|removal| (removal, Bytes::new())));
        changes.extend(self.replaced.iter().cloned());
        changes.sort_by_key(|(span, _)| span.start);
        let mut segments = SmallVec::new();
        let mut push = |piece: Bytes| {
            if !piece.is_empty() {
                segments.push(piece);
            }
        };
        let mut from = 0;
        for (span, piece) in changes {
            push(self.body.slice(from..span.start));
            push(piece);
            from = span.end;
        }
        push(self.body.slice(from..));
        SplicedBody { segments }
    }

    /// Where the key of the value at `value` stands, quotes included. Its own quotes are the last before the colon:
    /// a quote within a key would be escaped, and no key that we know has one.
    fn key(&self, value: &Range<usize>) -> Range<usize> {
        let before = self.body[..value.start].trim_ascii_end();
        let before = before.strip_suffix(b":").unwrap_or(before).trim_ascii_end();
        let inside = before.strip_suffix(b"\"").unwrap_or(before);
        let start = memchr::memrchr(b'"', inside).unwrap_or(inside.len());
        start..before.len()
    }

    /// What to cut so that the members to be removed are gone, each with a comma: the one behind it, or, at the end of
    /// the object, the one before. Members side by side are cut as one. `after` is where the object's inside begins.
    fn removals(&self, after: usize) -> SmallVec<[Range<usize>; 2]> {
        let mut members = self.removed.clone();
        members.sort_by_key(|member| member.start);
        let mut runs: SmallVec<[Range<usize>; 2]> = SmallVec::new();
        for member in members {
            let end = self.skip(member.end);
            let end = if self.body.get(end) == Some(&b',') { end + 1 } else { member.end };
            match runs.last_mut().filter(|run| self.skip(run.end) == member.start) {
                Some(run) => run.end = end,
                None => runs.push(member.start..end),
            }
        }
        if let Some(last) = runs.last_mut()
            && !self.body[..last.end].ends_with(b",")
        {
            let before = self.body[after..last.start].trim_ascii_end();
            if let Some(before) = before.strip_suffix(b",") {
                last.start = after + before.len();
            }
        }
        runs
    }

    /// Is there a member that is not removed?
    fn leaves_members(&self, after: usize, removals: &[Range<usize>]) -> bool {
        let mut at = self.skip(after);
        for removal in removals {
            if at < removal.start {
                return true;
            }
            at = self.skip(removal.end);
        }
        self.body.get(at) != Some(&b'}')
    }

    /// The first byte from `at` on that is no white space.
    fn skip(&self, at: usize) -> usize {
        let rest = &self.body[at..];
        at + rest.iter().position(|byte| !byte.is_ascii_whitespace()).unwrap_or(rest.len())
    }
}

#[cfg(test)]
mod tests;
