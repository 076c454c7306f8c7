//! What a request needs, by the words in it.
//!
//! All keywords of all capabilities are one Aho-Corasick automaton, so the time does not depend on how many there are.
//! A keyword with a Latin letter at its edge ends there (`code` is not in `decode`); scripts that put no spaces between
//! words, Chinese for one, match anywhere. The capability with the most different keywords wins; of several, the one
//! with the longest; of several still, the first of the policy.

use std::borrow::Cow;

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use penstock_model::Policy;
use penstock_model::policy::CapabilityId;

/// Bytes that are looked at. An instruction stands at the beginning or at the end of a long text.
const HEAD_BYTES: usize = 3_072;
const TAIL_BYTES: usize = 1_024;

/// What a request needs, and how that was found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Classification {
    /// What it needs.
    pub capability: CapabilityId,
    /// 0..1. By keywords: the winner's share of all different keywords found. 1 when it was told, 0 when it was assumed.
    pub confidence: f64,
    /// How it was found.
    pub source: CapabilitySource,
}

/// How a capability was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CapabilitySource {
    /// Words in the text.
    Keyword,
    /// The client said so.
    Caller,
    /// The route says so.
    Route,
    /// Nothing said otherwise.
    Default,
}

impl CapabilitySource {
    /// Its name on the wire, in metrics and in logs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Keyword => "keyword",
            Self::Caller => "caller",
            Self::Route => "route",
            Self::Default => "default",
        }
    }
}

/// The keywords of a policy, compiled.
#[derive(Debug)]
pub struct Classifier {
    /// `None` when the policy has no keywords, or more of them than an automaton can hold.
    automaton: Option<AhoCorasick>,
    /// By pattern id.
    keywords: Vec<Keyword>,
    capabilities: usize,
    default: CapabilityId,
}

#[derive(Debug)]
struct Keyword {
    capability: CapabilityId,
    /// Does its first (last) character have to be the first (last) of a word?
    starts_word: bool,
    ends_word: bool,
}

impl Classifier {
    /// Compiles the keywords of `policy`.
    #[must_use]
    pub fn new(policy: &Policy) -> Self {
        let mut patterns = Vec::new();
        let mut keywords = Vec::new();
        for (index, capability) in policy.capabilities.iter().enumerate() {
            for keyword in &capability.keywords {
                let (Some(first), Some(last)) = (keyword.chars().next(), keyword.chars().next_back()) else {
                    continue;
                };
                patterns.push(keyword.as_str());
                keywords.push(Keyword {
                    capability: CapabilityId(index as u32),
                    starts_word: in_word(first),
                    ends_word: in_word(last),
                });
            }
        }
        let automaton = (!patterns.is_empty())
            .then(|| {
                AhoCorasick::builder()
                    .ascii_case_insensitive(true)
                    .kind(Some(AhoCorasickKind::ContiguousNFA))
                    .build(patterns)
                    .ok()
            })
            .flatten();
        Self {
            automaton,
            keywords,
            capabilities: policy.capabilities.len(),
            default: policy.default_capability,
        }
    }

    /// What the request with these texts needs. The texts are those of the last user message, in order; of all of them
    /// together about 4 KiB are looked at.
    #[must_use]
    pub fn classify<'t>(&self, texts: impl IntoIterator<Item = &'t str>) -> Classification {
        let mut hits = Hits::new(self.keywords.len(), self.capabilities);
        let mut budget = HEAD_BYTES + TAIL_BYTES;
        for text in texts {
            let (head, tail) = ends(text, budget);
            for part in [head, tail] {
                budget -= part.len();
                self.scan(part, &mut hits);
            }
            if budget == 0 {
                break;
            }
        }
        hits.best().unwrap_or(Classification {
            capability: self.default,
            confidence: 0.0,
            source: CapabilitySource::Default,
        })
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

/// The beginning and the end of `text` that fit into `budget` bytes together; the second is empty when all of it fits.
fn ends(text: &str, budget: usize) -> (&str, &str) {
    if text.len() <= budget {
        return (text, "");
    }
    let head = budget * HEAD_BYTES / (HEAD_BYTES + TAIL_BYTES);
    let tail = text.len() - (budget - head);
    (&text[..text.floor_char_boundary(head)], &text[text.ceil_char_boundary(tail)..])
}

/// Which keywords were found.
struct Hits {
    /// One bit per keyword.
    seen: Vec<u64>,
    /// Different keywords and the longest of them, per capability.
    found: Vec<(u32, usize)>,
}

impl Hits {
    fn new(keywords: usize, capabilities: usize) -> Self {
        Self { seen: vec![0; keywords.div_ceil(64)], found: vec![(0, 0); capabilities] }
    }

    fn add(&mut self, id: usize, capability: CapabilityId, length: usize) {
        let (word, bit) = (&mut self.seen[id / 64], 1 << (id % 64));
        if *word & bit == 0 {
            *word |= bit;
            let (count, longest) = &mut self.found[capability.index()];
            *count += 1;
            *longest = length.max(*longest);
        }
    }

    fn best(&self) -> Option<Classification> {
        let total: u32 = self.found.iter().map(|(count, _)| count).sum();
        // The first of several equal ones, hence the reversed order.
        let (index, (count, _)) =
            self.found.iter().enumerate().rev().max_by_key(|(_, found)| **found).filter(|_| total > 0)?;
        Some(Classification {
            capability: CapabilityId(index as u32),
            confidence: f64::from(*count) / f64::from(total),
            source: CapabilitySource::Keyword,
        })
    }
}

#[cfg(test)]
mod tests;
