//! Collects problems with their places.

use std::collections::BTreeSet;
use std::ops::Bound;

use super::source::Spots;
use crate::problem::{Finding, Problem, Severity};

/// How many problems are kept. Nobody reads more.
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
    /// Problems beyond [`MAX_PROBLEMS`].
    dropped: usize,
    errors: usize,
    spots: Spots,
    /// Paths at which the structure is wrong. What else seems wrong there may follow from it.
    broken: BTreeSet<String>,
}

impl Report {
    /// From now on, paths are looked up in `spots`.
    pub(crate) fn locate_in(&mut self, spots: Spots) {
        self.spots = spots;
    }

    /// Notes that the value at `path` was wrong and has been replaced or removed: nothing more is reported there.
    pub(crate) fn mark_broken(&mut self, path: &str) {
        self.broken.insert(path.to_owned());
    }

    /// Is the value at `path` as written, whatever may be wrong below it?
    pub(crate) fn is_kept(&self, path: &str) -> bool {
        let parents = path.match_indices('/').map(|(at, _)| &path[..at]);
        !parents.chain([path]).any(|path| self.broken.contains(path))
    }

    /// Is everything at and below `path` as written? Checks that compare several fields ask this first, so that they
    /// do not report what follows from another problem.
    pub(crate) fn is_sound(&self, path: &str) -> bool {
        let below = format!("{path}/");
        let next = self.broken.range::<str, _>((Bound::Included(below.as_str()), Bound::Unbounded)).next();
        self.is_kept(path) && !next.is_some_and(|broken| broken.starts_with(&below))
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
        self.errors += usize::from(severity == Severity::Error);
        if self.problems.len() >= MAX_PROBLEMS {
            self.dropped += 1;
            return;
        }
        let Finding { message, hint } = finding;
        let Place { line, column } = place;
        self.problems.push(Problem { path: path.to_owned(), line, column, message, hint, severity });
    }

    /// Is there an error among the problems?
    pub(crate) fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// How many errors there are.
    pub(crate) fn errors(&self) -> usize {
        self.errors
    }

    /// The problems of the document `text`, in its order.
    pub(crate) fn into_problems(mut self, text: &str) -> Vec<Problem> {
        let end = end_of(text);
        for problem in self.problems.iter_mut().filter(|problem| problem.line > end.line) {
            (problem.line, problem.column) = (end.line, end.column);
        }
        self.problems.sort_by_key(|problem| (problem.line, problem.column));
        if self.dropped > 0 {
            self.problems.push(Problem {
                path: String::new(),
                line: 0,
                column: 0,
                message: format!("there are {} more problems", self.dropped),
                hint: "solve these first".to_owned(),
                severity: if self.errors > 0 { Severity::Error } else { Severity::Warning },
            });
        }
        self.problems
    }
}

/// Where the last line ends. The parser calls what follows the last line break a line of its own; editors do not show it.
fn end_of(text: &str) -> Place {
    let column = text.lines().last().map_or(0, |last| last.chars().count()) + 1;
    Place { line: text.lines().count().max(1) as u32, column: column as u32 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(path: &str) -> Report {
        let mut report = Report::default();
        report.mark_broken(path);
        report
    }

    #[test]
    fn a_broken_path_spoils_what_is_below_it_and_unsettles_what_is_above() {
        let report = broken("/a/b");
        assert!(!report.is_kept("/a/b") && !report.is_kept("/a/b/c"));
        assert!(report.is_kept("/a") && report.is_kept("/a/bb") && report.is_kept(""));
        assert!(!report.is_sound("/a/b/c") && !report.is_sound("/a") && !report.is_sound(""));
        assert!(report.is_sound("/a/bb") && report.is_sound("/b") && report.is_sound("/a/b-c"));
        assert!(!broken("").is_kept("/a"));
    }

    #[test]
    fn an_error_refuses_the_document_even_when_it_is_dropped() {
        let mut report = Report::default();
        (0..MAX_PROBLEMS).for_each(|_| report.warning("/a", Finding::new("w", "")));
        assert!(!report.has_errors());
        report.error("/a", Finding::new("e", ""));
        assert!(report.has_errors());
        let problems = report.into_problems("a: 1\n");
        assert_eq!(problems.len(), MAX_PROBLEMS + 1);
        assert_eq!(problems.last().map(|problem| problem.severity), Some(Severity::Error));
    }
}
