//! What the model sees of a text: hashed n-grams of its characters, and hashed words.
//!
//! No tokeniser and no dictionary: Chinese and English take the same way. Case, width, the kind of white space and the
//! value of digits are folded away. A feature is present or not, however often it occurs.

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// The longest n-gram that a recipe may ask for.
pub(super) const MAX_ORDER: usize = 5;
/// The most buckets, as a power of two.
pub(super) const MAX_BITS: u8 = 16;

/// How features are made. A model goes with the recipe that it was trained with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recipe {
    /// Features are hashed into 2^bits buckets, 8 to 16.
    pub bits: u8,
    /// The longest n-gram of characters, 1 to 5.
    pub order: u8,
    /// Do whole words in Latin script count as well?
    pub words: bool,
}

impl Default for Recipe {
    /// What the development split of the shipped set did best with; see ADR 11.
    fn default() -> Self {
        Self { bits: 16, order: 4, words: true }
    }
}

/// The buckets that were seen, each once.
#[derive(Debug)]
pub(super) struct Seen([u64; 1 << (MAX_BITS - 6)]);

impl Seen {
    pub(super) fn new() -> Self {
        Self([0; 1 << (MAX_BITS - 6)])
    }

    /// Is this the first time?
    pub(super) fn insert(&mut self, bucket: usize) -> bool {
        let (word, bit) = (&mut self.0[bucket / 64], 1 << (bucket % 64));
        let new = *word & bit == 0;
        *word |= bit;
        new
    }
}

/// Bytes of a text that are looked at: an instruction stands at the beginning or at the end of a long one.
const HEAD_BYTES: usize = 1_280;
const TAIL_BYTES: usize = 512;

/// The beginning and the end of `text`; the second is empty when all of it is looked at.
pub(super) fn excerpt(text: &str) -> [&str; 2] {
    if text.len() <= HEAD_BYTES + TAIL_BYTES {
        return [text, ""];
    }
    let head = text.floor_char_boundary(HEAD_BYTES);
    let tail = text.ceil_char_boundary(text.len() - TAIL_BYTES);
    [&text[..head], &text[tail..]]
}

/// Seeds of the kinds of features, so that a word is not its own n-gram.
const GRAM: u32 = 0x2545_F491;
const WORD: u32 = 0x9E6C_63D0;

const SPACE: u32 = ' ' as u32;

impl Recipe {
    /// Is it one that this build can follow?
    pub(super) fn is_sound(self) -> bool {
        (8..=MAX_BITS).contains(&self.bits) && (1..=MAX_ORDER as u8).contains(&self.order)
    }

    /// Buckets.
    pub(super) fn buckets(self) -> usize {
        1 << self.bits
    }

    /// The same with fewer buckets, where a table of so many weights could not have a row of `classes` for each.
    pub(super) fn for_classes(self, classes: usize, weights: usize) -> Self {
        let bits = (weights / classes).ilog2() as u8;
        Self { bits: self.bits.min(bits), ..self }
    }

    /// The buckets of `text`, each once.
    pub(super) fn features(self, text: &str) -> Vec<usize> {
        let mut seen = Seen::new();
        let mut features = Vec::new();
        for part in excerpt(text) {
            self.visit(part, |bucket, _| {
                if seen.insert(bucket) {
                    features.push(bucket);
                }
            });
        }
        features
    }

    /// Calls `each` with the bucket of every feature of `text`, repetitions included, and where in `text` it stands.
    #[inline]
    pub(super) fn visit(self, text: &str, mut each: impl FnMut(usize, Range<usize>)) {
        let shift = 32 - u32::from(self.bits);
        let mut emit = |hash: u32, span: Range<usize>| each((finish(hash) >> shift) as usize, span);
        // Newest first. The text begins and ends with a space that is not there.
        let mut window = [(SPACE, 0); MAX_ORDER];
        let mut filled = 1;
        let mut words = Words::default();
        for (at, character) in text.char_indices().chain([(text.len(), ' ')]) {
            let code = fold(character);
            if code == SPACE && window[0].0 == SPACE {
                continue;
            }
            let end = (at + character.len_utf8()).min(text.len());
            window.copy_within(0..MAX_ORDER - 1, 1);
            window[0] = (code, at);
            filled = (filled + 1).min(usize::from(self.order));
            let mut hash = GRAM;
            for (place, &(code, start)) in window[..filled].iter().enumerate() {
                hash = mix(hash, code);
                // One or two letters of an alphabet say nothing; one or two ideographs do.
                if place > 1 || !is_letter(code) {
                    emit(hash, start..end);
                }
            }
            if self.words {
                words.push(code, at, &mut emit);
            }
        }
    }
}

/// Words in Latin script, as they end.
#[derive(Default)]
struct Words {
    hash: u32,
    length: usize,
    start: usize,
}

impl Words {
    #[inline]
    fn push(&mut self, code: u32, at: usize, mut emit: impl FnMut(u32, Range<usize>)) {
        if is_letter(code) {
            if self.length == 0 {
                (self.hash, self.start) = (WORD, at);
            }
            self.hash = mix(self.hash, code);
            self.length += 1;
        } else if self.length > 0 {
            emit(self.hash, self.start..at);
            self.length = 0;
        }
    }
}

#[inline]
fn mix(hash: u32, code: u32) -> u32 {
    (hash.rotate_left(5) ^ code).wrapping_mul(0x9E37_79B1)
}

#[inline]
fn finish(hash: u32) -> u32 {
    let hash = (hash ^ (hash >> 15)).wrapping_mul(0x85EB_CA77);
    hash ^ (hash >> 13)
}

/// A letter or digit of the Latin alphabet, folded.
#[inline]
fn is_letter(code: u32) -> bool {
    matches!(code, 0x30..=0x39 | 0x61..=0x7a | 0xdf..=0xf6 | 0xf8..=0x24f)
}

/// Case, width, white space and the value of digits folded away.
#[inline]
fn fold(character: char) -> u32 {
    let code = character as u32;
    match code {
        0x61..=0x7a | 0x21..=0x2f | 0x3a..=0x40 | 0x5b..=0x60 | 0x7b..=0x7e => code,
        0x41..=0x5a => code | 0x20,
        0x30..=0x39 => '0' as u32,
        0..=0x20 | 0x7f => SPACE,
        0x4e00..=0x9fff => code,
        // Full-width forms of ASCII.
        0xff01..=0xff5e => fold(char::from((code - 0xfee0) as u8)),
        _ if character.is_whitespace() || character.is_control() => SPACE,
        _ => character.to_lowercase().next().map_or(code, |lower| lower as u32),
    }
}
