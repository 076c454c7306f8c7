//! From a field's value to the routes that may accept it.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use penstock_model::policy::{Accepts, Pattern};
use smallvec::SmallVec;

use crate::facts::FieldValue;

/// Of a pattern's beginning or end, so many bytes are looked up at most: each length that occurs costs a look-up.
const MAX_AFFIX: usize = 48;
/// Numbers are told apart by so many cuts at most.
const MAX_CUTS: usize = 255;

/// Routes, as the words in which there are any, in order, each with its bits. As large as the routes it holds, and never
/// much larger than a bitmap of all.
type Set = Vec<(u32, u64)>;

fn add(set: &mut Set, route: u32) {
    let (word, bit) = (route / 64, 1 << (route % 64));
    match set.last_mut() {
        Some((last, bits)) if *last == word => *bits |= bit,
        _ => set.push((word, bit)),
    }
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) enum Table {
    Text(Box<TextTable>),
    Number(NumberTable),
}

impl Table {
    /// Of what routes accept, in order. All demands on a field are of one kind.
    pub(super) fn new(demands: &[(u32, &Accepts)]) -> Self {
        match demands.first() {
            Some((_, Accepts::Texts(_))) => Self::Text(Box::new(TextTable::new(demands))),
            _ => Self::Number(NumberTable::new(demands)),
        }
    }

    /// The routes that may accept `value`.
    pub(super) fn find(&self, value: FieldValue<'_>) -> Found<'_> {
        let mut found = Found::default();
        match (self, value) {
            (Self::Text(table), FieldValue::Text(Some(text))) => table.find(text, &mut found),
            (Self::Number(table), FieldValue::Number(number)) => found.add(table.find(number)),
            // A header that is absent.
            _ => {}
        }
        found
    }
}

#[derive(Debug, Default)]
pub(super) struct TextTable {
    exact: HashMap<Box<str>, Set>,
    prefixes: Affixes,
    suffixes: Affixes,
}

/// What values begin with, or end with.
#[derive(Debug, Default)]
struct Affixes {
    /// Those that occur, in order.
    lengths: Vec<usize>,
    sets: HashMap<Box<str>, Set>,
}

impl Affixes {
    fn add(&mut self, affix: &str, route: u32) {
        if let Err(place) = self.lengths.binary_search(&affix.len()) {
            self.lengths.insert(place, affix.len());
        }
        add(self.sets.entry(affix.into()).or_default(), route);
    }

    /// `part` takes so many bytes of the value, if that is whole characters.
    fn find<'i, 'v>(&'i self, part: impl Fn(usize) -> Option<&'v str>, found: &mut Found<'i>) {
        for &length in &self.lengths {
            if let Some(set) = part(length).and_then(|affix| self.sets.get(affix)) {
                found.add(set);
            }
        }
    }
}

impl TextTable {
    fn new(demands: &[(u32, &Accepts)]) -> Self {
        let mut table = Self::default();
        for (route, accepts) in demands {
            let Accepts::Texts(patterns) = accepts else { continue };
            for pattern in patterns {
                table.add(pattern, *route);
            }
        }
        table
    }

    fn add(&mut self, pattern: &Pattern, route: u32) {
        match pattern {
            Pattern::Exact(text) => add(self.exact.entry(text.as_str().into()).or_default(), route),
            Pattern::Glob(parts) => {
                let first = parts.first().map_or("", String::as_str);
                let last = parts.last().map_or("", String::as_str);
                // The longer of the two says more.
                if first.len() >= last.len() {
                    self.prefixes.add(&first[..first.floor_char_boundary(MAX_AFFIX)], route);
                } else {
                    let start = last.ceil_char_boundary(last.len().saturating_sub(MAX_AFFIX));
                    self.suffixes.add(&last[start..], route);
                }
            }
        }
    }

    fn find<'i>(&'i self, text: &str, found: &mut Found<'i>) {
        if let Some(set) = self.exact.get(text) {
            found.add(set);
        }
        self.prefixes.find(|length| text.get(..length), found);
        self.suffixes.find(|length| text.get(text.len().checked_sub(length)?..), found);
    }
}

#[derive(Debug)]
pub(super) struct NumberTable {
    /// Where what is accepted changes, in order.
    cuts: Vec<u128>,
    /// Routes that accept something before the first cut, between it and the second, and so on.
    sets: Vec<Set>,
}

impl NumberTable {
    fn new(demands: &[(u32, &Accepts)]) -> Self {
        let mut cuts: Vec<u128> = demands
            .iter()
            .flat_map(|(_, accepts)| ranges(accepts))
            .flat_map(|range| [Some(*range.start()), range.end().checked_add(1)])
            .flatten()
            .collect();
        cuts.sort_unstable();
        cuts.dedup();
        let each = cuts.len().div_ceil(MAX_CUTS).max(1);
        let cuts: Vec<u128> = cuts.into_iter().step_by(each).collect();
        let mut table = Self { sets: vec![Set::new(); cuts.len() + 1], cuts };
        for (route, accepts) in demands {
            for range in ranges(accepts).iter().filter(|range| !range.is_empty()) {
                let parts = table.part(*range.start())..=table.part(*range.end());
                table.sets[parts].iter_mut().for_each(|set| add(set, *route));
            }
        }
        table
    }

    fn part(&self, number: u128) -> usize {
        self.cuts.partition_point(|cut| *cut <= number)
    }

    fn find(&self, number: u128) -> &Set {
        &self.sets[self.part(number)]
    }
}

fn ranges(accepts: &Accepts) -> &[RangeInclusive<u128>] {
    match accepts {
        Accepts::Numbers(ranges) => ranges,
        Accepts::Texts(_) => &[],
    }
}

/// The routes that may accept a value, to be read from the first word to the last.
#[derive(Debug, Default)]
pub(super) struct Found<'i> {
    /// What is left of each set.
    sets: SmallVec<[&'i [(u32, u64)]; 3]>,
}

impl<'i> Found<'i> {
    fn add(&mut self, set: &'i Set) {
        self.sets.push(set);
    }

    /// The routes of a word. Words before one that was asked for are gone.
    pub(super) fn word(&mut self, word: usize) -> u64 {
        let mut all = 0;
        for set in &mut self.sets {
            while let [(here, bits), rest @ ..] = *set {
                if *here as usize > word {
                    break;
                }
                if *here as usize == word {
                    all |= bits;
                    break;
                }
                *set = rest;
            }
        }
        all
    }
}
