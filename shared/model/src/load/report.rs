//! Collects problems with their places.

use super::source::Spots;
use crate::problem::{Finding, Problem, Severity};

/// Nobody reads more.
const MAX_PROBLEMS: usize = 1_000;

/// 1-based line and column; 0 when unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) line: u32,
    pub(crate) column: u32,
}

/// The problems found so far.
#[derive(Debug, Default)]
pub(crate) struct Report {
    problems: Vec<Problem>,
    spots: Spots,
    /// Paths at which the structure is wrong. What else seems wrong there may follow from it.
    broken: Vec<String>,
}

impl Report {
    /// From now on, paths are looked up in `spots`.
    pub(crate) fn locate_in(&mut self, spots: Spots) {
        self.spots = spots;
    }

    /// Notes that the value at `path` was wrong and has been replaced or removed: nothing more is reported there.
    pub(crate) fn mark_broken(&mut self, path: &str) {
        self.broken.push(path.to_owned());
    }

    /// Is the value at `path` as written, whatever may be wrong below it?
    pub(crate) fn is_kept(&self, path: &str) -> bool {
        !self.broken.iter().any(|broken| contains(broken, path))
    }

    /// Is everything at and below `path` as written? Checks that compare several fields ask this first, so that they
    /// do not report what follows from another problem.
    pub(crate) fn is_sound(&self, path: &str) -> bool {
        !self.broken.iter().any(|broken| contains(path, broken) || contains(broken, path))
    }

    /// An error about the value at `path`.
    pub(crate) fn error(&mut self, path: &str, finding: Finding) {
        self.value(path, finding, Severity::Error);
    }

    /// The value, or an error about the value at `path`.
    pub(crate) fn check<T>(&mut self, path: &str, result: Result<T, Finding>) -> Option<T> {
        result.map_err(|finding| self.error(path, finding)).ok()
    }

    /// A warning about the value at `path`.
    pub(crate) fn warning(&mut self, path: &str, finding: Finding) {
        self.value(path, finding, Severity::Warning);
    }

    fn value(&mut self, path: &str, finding: Finding, severity: Severity) {
        let spots = self.spots.nearest(path);
        // A collection begins at its first entry; its key says better where it is.
        let place = if spots.is_collection() { spots.key.unwrap_or(spots.place) } else { spots.place };
        self.push(path, place, finding, severity);
    }

    /// An error about the key of the field at `path`.
    pub(crate) fn key_error(&mut self, path: &str, finding: Finding) {
        let spots = self.spots.nearest(path);
        self.push(path, spots.key.unwrap_or(spots.place), finding, Severity::Error);
    }

    /// An error within `text`, the value at `path`, `offset` bytes from its start.
    pub(crate) fn text_error(&mut self, path: &str, text: &str, offset: usize, finding: Finding) {
        let before = text.get(..offset).unwrap_or(text);
        let line = before.matches('\n').count() as u32;
        let column = before.chars().rev().take_while(|c| *c != '\n').count() as u32;
        let spots = self.spots.nearest(path);
        if let Some(start) = spots.text {
            let place = Place { line: start.line + line, column: start.column + column };
            return self.push(path, place, finding, Severity::Error);
        }
        let message = format!("{} (line {}, column {} of the text)", finding.message, line + 1, column + 1);
        self.push(path, spots.place, Finding { message, ..finding }, Severity::Error);
    }

    /// An error at a known place.
    pub(crate) fn error_at(&mut self, path: &str, place: Place, finding: Finding) {
        self.push(path, place, finding, Severity::Error);
    }

    fn push(&mut self, path: &str, place: Place, finding: Finding, severity: Severity) {
        if !self.is_kept(path) {
            return;
        }
        let Finding { message, hint } = finding;
        let Place { line, column } = place;
        self.problems.push(Problem { path: path.to_owned(), line, column, message, hint, severity });
    }

    pub(crate) fn has_errors(&self) -> bool {
        self.problems.iter().any(|problem| problem.severity == Severity::Error)
    }

    /// All problems of the document `text`, in its order; the first [`MAX_PROBLEMS`] of them.
    pub(crate) fn into_problems(mut self, text: &str) -> Vec<Problem> {
        self.problems.sort_by_key(|problem| (problem.line, problem.column));
        let more = self.problems.len().saturating_sub(MAX_PROBLEMS);
        if more > 0 {
            self.problems.truncate(MAX_PROBLEMS);
            let finding = Finding::new(format!("there are {more} more problems"), "");
            self.broken.clear();
            self.push("", Place::default(), finding, Severity::Error);
        }
        let end = end_of(text);
        for problem in self.problems.iter_mut().filter(|problem| problem.line > end.line) {
            (problem.line, problem.column) = (end.line, end.column);
        }
        self.problems
    }
}

/// Where the last line ends. The parser calls what follows the last line break a line of its own; editors do not show it.
fn end_of(text: &str) -> Place {
    let column = text.lines().last().map_or(0, |last| last.chars().count()) + 1;
    Place { line: text.lines().count().max(1) as u32, column: column as u32 }
}

/// Is `inner` the path `outer` or below it?
fn contains(outer: &str, inner: &str) -> bool {
    inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
