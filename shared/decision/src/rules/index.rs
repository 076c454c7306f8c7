//! Finds the routes that may match without looking at each.
//!
//! Routes are numbered in order and kept as bits, 64 in a word. For each field that routes make demands on there is a
//! table from the field's value to the routes that accept it, and a bitmap of those that do not care. A request goes
//! through the words in order: the first route whose bit is left in all tables looked up so far is the next candidate; a
//! table that it cares about and that was not looked up yet is looked up now, which may rule it out, and others with it. So
//! a field's value is worked out only when everything else speaks for a route that cares about it, and cheap fields come
//! first.
//!
//! A candidate *may* match: tables are coarse where that is cheaper (long prefixes, many numbers). Whether it does, its
//! constraints tell; a route that is no candidate certainly does not.
//!
//! The idea is that of bitmap indices, see for example Lakshman and Stiliadis, "High-speed policy-based packet forwarding
//! using efficient multi-dimensional range matching", SIGCOMM 1998.

use std::collections::HashMap;

use penstock_model::policy::{Accepts, Field, Route, RouteId, TextField};
use smallvec::SmallVec;

use super::table::{Found, Table};
use crate::facts::Facts;

/// Fields beyond this many are not indexed: those that the fewest routes use.
const MAX_FIELDS: usize = 64;

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Index {
    routes: usize,
    /// Cheap ones first.
    columns: Vec<Column>,
    /// Of each route: the columns it cares about, a bit each.
    cares: Vec<u64>,
}

#[derive(Debug)]
struct Column {
    field: Field,
    table: Table,
    /// Routes that make no demand on the field, a bit each.
    indifferent: Vec<u64>,
}

impl Index {
    pub(super) fn new(routes: &[Route]) -> Self {
        let fields = fields(routes);
        let mut cares = vec![0; routes.len()];
        let columns = fields.iter().enumerate().map(|(bit, field)| column(routes, field, bit, &mut cares));
        Self { routes: routes.len(), columns: columns.collect(), cares }
    }

    /// The routes that may match, in order.
    pub(super) fn candidates<'i, 'f>(&'i self, facts: &'i Facts<'f>) -> Candidates<'i, 'f> {
        Candidates { index: self, facts, word: None, bits: 0, looked_up: 0, found: SmallVec::new() }
    }

    /// The routes of a word.
    fn word(&self, word: usize) -> u64 {
        match self.routes - word * 64 {
            0..64 => (1 << (self.routes % 64)) - 1,
            _ => u64::MAX,
        }
    }
}

/// The fields worth a table: cheap ones first, and of those the most used.
fn fields(routes: &[Route]) -> Vec<Field> {
    let mut uses: HashMap<&Field, usize> = HashMap::new();
    for constraint in routes.iter().flat_map(|route| &route.constraints) {
        *uses.entry(&constraint.field).or_default() += 1;
    }
    let mut uses: Vec<(&Field, usize)> = uses.into_iter().collect();
    uses.sort_by_key(|(field, uses)| (std::cmp::Reverse(*uses), field.to_string()));
    uses.truncate(MAX_FIELDS);
    uses.sort_by_key(|(field, _)| expense(field));
    uses.into_iter().map(|(field, _)| field.clone()).collect()
}

/// Which fields are worked out before which.
fn expense(field: &Field) -> u8 {
    match field {
        Field::Text(TextField::Capability) => 4,
        Field::Text(TextField::Language) => 3,
        Field::WeekMinute(_) => 2,
        Field::Header(_) | Field::Text(TextField::BizType | TextField::Session) => 1,
        Field::Text(_) | Field::Number(_) => 0,
    }
}

fn column(routes: &[Route], field: &Field, bit: usize, cares: &mut [u64]) -> Column {
    let mut indifferent = vec![0_u64; routes.len().div_ceil(64)];
    let mut demands: Vec<(u32, &Accepts)> = Vec::new();
    for (number, route) in routes.iter().enumerate() {
        // Of several demands on one field the first is enough to look for.
        match route.constraints.iter().find(|constraint| constraint.field == *field) {
            Some(constraint) => {
                cares[number] |= 1 << bit;
                demands.push((number as u32, &constraint.accepts));
            }
            None => indifferent[number / 64] |= 1 << (number % 64),
        }
    }
    Column { field: field.clone(), table: Table::new(&demands), indifferent }
}

/// Goes through the routes that may match.
pub(super) struct Candidates<'i, 'f> {
    index: &'i Index,
    facts: &'i Facts<'f>,
    /// The one that `bits` are of.
    word: Option<usize>,
    /// Its routes that are still to be looked at.
    bits: u64,
    /// The columns in `found`, a bit each.
    looked_up: u64,
    found: SmallVec<[(&'i Column, Found<'i>); 12]>,
}

impl Candidates<'_, '_> {
    /// Goes to the next word with anything in it.
    fn next_word(&mut self) -> Option<usize> {
        let words = self.index.routes.div_ceil(64);
        let mut word = self.word.map_or(0, |word| word + 1);
        while word < words {
            self.bits = self.index.word(word);
            for (column, found) in &mut self.found {
                self.bits &= column.indifferent[word] | found.word(word);
                if self.bits == 0 {
                    break;
                }
            }
            self.word = Some(word);
            if self.bits != 0 {
                return Some(word);
            }
            word += 1;
        }
        None
    }

    /// Looks the value of a column's field up, and rules out the routes of this word that do not accept it.
    fn look_up(&mut self, bit: u32, word: usize) {
        let column = &self.index.columns[bit as usize];
        let mut found = column.table.find(self.facts.value(&column.field));
        self.bits &= column.indifferent[word] | found.word(word);
        self.looked_up |= 1 << bit;
        self.found.push((column, found));
    }
}

impl Iterator for Candidates<'_, '_> {
    type Item = RouteId;

    fn next(&mut self) -> Option<RouteId> {
        loop {
            let word = match self.word.filter(|_| self.bits != 0) {
                Some(word) => word,
                None => self.next_word()?,
            };
            let route = word * 64 + self.bits.trailing_zeros() as usize;
            let unknown = self.index.cares[route] & !self.looked_up;
            if unknown == 0 {
                self.bits &= self.bits - 1;
                return Some(RouteId(route as u32));
            }
            self.look_up(unknown.trailing_zeros(), word);
        }
    }
}

#[cfg(test)]
mod tests;
