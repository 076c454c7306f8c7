//! All keywords of all capabilities as one Aho-Corasick automaton, so that the time does not depend on how many there
//! are.
//!
//! A keyword with a Latin letter at its edge ends there (`code` is not in `decode`); scripts that put no spaces between
//! words, Chinese for one, match anywhere.

use std::borrow::Cow;

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use penstock_model::Policy;
use penstock_model::policy::CapabilityId;
use smallvec::{SmallVec, smallvec};

/// Bytes of a text that are looked at. An instruction stands at the beginning or at the end of a long one.
const HEAD_BYTES: usize = 3_072;
const TAIL_BYTES: usize = 1_024;

/// The keywords of a policy, compiled.
#[derive(Debug)]
pub(super) struct Keywords {
    /// `None` when the policy has no keywords, or more of them than an automaton can hold.
    automaton: Option<AhoCorasick>,
    /// By pattern id.
    keywords: Vec<Keyword>,
    capabilities: usize,
}

#[derive(Debug)]
struct Keyword {
    capability: CapabilityId,
    text: String,
    /// Does its first (last) character have to be the first (last) of a word?
    starts_word: bool,
    ends_word: bool,
}

impl Keywords {
    pub(super) fn new(policy: &Policy) -> Self {
        let keywords: Vec<Keyword> = policy
            .capabilities
            .iter()
            .enumerate()
            .flat_map(|(index, capability)| {
                capability
                    .keywords
                    .iter()
                    .filter_map(move |text| Keyword::new(CapabilityId(index as u32), text))
            })
            .collect();
        let build = || {
            AhoCorasick::builder()
                .ascii_case_insensitive(true)
                .kind(Some(AhoCorasickKind::ContiguousNFA))
                .build(keywords.iter().map(|keyword| &keyword.text))
                .ok()
        };
        let automaton = if keywords.is_empty() { None } else { build() };
        Self { automaton, capabilities: policy.capabilities.len(), keywords }
    }

    /// The keywords in `text`, of which about 4 KiB are looked at.
    pub(super) fn find(&self, text: &str) -> Hits {
        let mut hits = Hits::new(self);
        for part in ends(text) {
            self.scan(part, &mut hits);
        }
        hits
    }

    /// A keyword by its id.
    pub(super) fn text(&self, id: usize) -> &str {
        &self.keywords[id].text
    }

    /// Whose a keyword is, by its id.
    pub(super) fn capability(&self, id: usize) -> CapabilityId {
        self.keywords[id].capability
    }

    fn scan(&self, text: &str, hits: &mut Hits) {
        let Some(automaton) = &self.automaton else { return };
        let text = fold_case(text);
        for found in automaton.find_overlapping_iter(text.as_ref()) {
            let id = found.pattern().as_usize();
            let keyword = &self.keywords[id];
            let before = || text[..found.start()].chars().next_back();
            let after = || text[found.end()..].chars().next();
            if keyword.starts_word && before().is_some_and(in_word)
                || keyword.ends_word && after().is_some_and(in_word)
            {
                continue;
            }
            hits.add(id, keyword.capability, found.len());
        }
    }
}

impl Keyword {
    fn new(capability: CapabilityId, text: &str) -> Option<Self> {
        let (first, last) = (text.chars().next()?, text.chars().next_back()?);
        Some(Self {
            capability,
            text: text.to_owned(),
            starts_word: in_word(first),
            ends_word: in_word(last),
        })
    }
}

/// Part of a Latin word: letters, digits and the underscore.
fn in_word(character: char) -> bool {
    character.is_ascii_alphanumeric()
        || character == '_'
        || (character.is_alphabetic() && matches!(character, '\u{aa}'..='\u{24f}' | '\u{1e00}'..='\u{1eff}'))
}

/// `text` in lower case. The automaton folds ASCII by itself, so a copy is made only for other letters that have cases.
fn fold_case(text: &str) -> Cow<'_, str> {
    let has_case = |character: char| ('\u{80}'..'\u{2000}').contains(&character) && character.is_uppercase();
    if text.is_ascii() || !text.chars().any(has_case) {
        Cow::Borrowed(text)
    } else {
        text.to_lowercase().into()
    }
}

/// The beginning and the end of `text`; the second is empty when all of it is looked at.
fn ends(text: &str) -> [&str; 2] {
    if text.len() <= HEAD_BYTES + TAIL_BYTES {
        return [text, ""];
    }
    let head = text.floor_char_boundary(HEAD_BYTES);
    let tail = text.ceil_char_boundary(text.len() - TAIL_BYTES);
    [&text[..head], &text[tail..]]
}

/// Which keywords were found.
#[derive(Debug)]
pub(super) struct Hits {
    /// One bit per keyword.
    seen: SmallVec<[u64; 16]>,
    /// Different keywords and the bytes of the longest of them, per capability.
    found: SmallVec<[(u32, u32); 16]>,
}

impl Hits {
    fn new(keywords: &Keywords) -> Self {
        Self {
            seen: smallvec![0; keywords.keywords.len().div_ceil(64)],
            found: smallvec![(0, 0); keywords.capabilities],
        }
    }

    fn add(&mut self, id: usize, capability: CapabilityId, length: usize) {
        let (word, bit) = (&mut self.seen[id / 64], 1 << (id % 64));
        if *word & bit == 0 {
            *word |= bit;
            let (count, longest) = &mut self.found[capability.index()];
            *count += 1;
            *longest = (*longest).max(length as u32);
        }
    }

    /// The ids of the keywords found.
    pub(super) fn ids(&self) -> impl Iterator<Item = usize> {
        let bits = self.seen.iter().enumerate();
        bits.flat_map(|(word, bits)| {
            (0..64).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| word * 64 + bit)
        })
    }

    /// Does this capability have one of them?
    pub(super) fn has(&self, capability: CapabilityId) -> bool {
        self.found[capability.index()].0 > 0
    }

    /// The capabilities that have some.
    pub(super) fn capabilities(&self) -> impl Iterator<Item = CapabilityId> {
        let found = self.found.iter().enumerate().filter(|(_, (count, _))| *count > 0);
        found.map(|(index, _)| CapabilityId(index as u32))
    }

    /// The capability with the most different keywords and its share of all that were found; of several, the one with the
    /// longest; of several still, the first of the policy.
    pub(super) fn best(&self) -> Option<(CapabilityId, f64)> {
        let total: u32 = self.found.iter().map(|(count, _)| count).sum();
        // The first of several equal ones, hence the reversed order.
        let best = self.found.iter().enumerate().rev().max_by_key(|(_, found)| **found).filter(|_| total > 0);
        best.map(|(index, (count, _))| (CapabilityId(index as u32), f64::from(*count) / f64::from(total)))
    }
}
