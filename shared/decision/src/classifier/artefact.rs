//! A model as bytes: what the control plane stores and proxies are sent.
//!
//! ```text
//! magic 8 │ format 4 │ SHA-256 of all that follows 32 │ length of the header 4 │ header, JSON │ rows
//! ```
//!
//! Of the table, only rows with weights are there: the distance from the row before as a varint, then a byte per class.
//! Numbers are little-endian. What is damaged or does not add up is refused whole.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::features::Recipe;
use super::model::{Class, MAX_CLASSES, Model, stride};

const MAGIC: &[u8; 8] = b"PNSTKCAP";
const FORMAT: u32 = 1;
const CHECKSUM: std::ops::Range<usize> = 12..44;

/// The most weights that a table may have: what fits into one value of a store.
pub(super) const MAX_WEIGHTS: usize = 1 << 20;

/// Why bytes are of no use as a model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// Written by a later build.
    #[error("format {found} is newer than this build understands ({FORMAT})")]
    Newer {
        /// Its format.
        found: u32,
    },
    /// Not a model, not whole, or not as it was written.
    #[error("the capability model is damaged: {0}")]
    Damaged(&'static str),
}

#[derive(Serialize, Deserialize)]
struct Header {
    trained_from: String,
    recipe: Recipe,
    scale: f32,
    classes: Vec<Class>,
}

impl Model {
    /// The model as bytes. The same model gives the same bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let header = Header {
            trained_from: self.trained_from.clone(),
            recipe: self.recipe,
            scale: self.scale,
            classes: self.classes.clone(),
        };
        let header = serde_json::to_vec(&header).expect("a header has string keys and finite numbers");
        let mut content = (header.len() as u32).to_le_bytes().to_vec();
        content.extend_from_slice(&header);
        let mut next = 0;
        for (bucket, row) in self.table.chunks_exact(self.stride).enumerate() {
            if row.iter().any(|weight| *weight != 0) {
                push_varint(&mut content, bucket - next);
                next = bucket + 1;
                content.extend(row[..self.classes.len()].iter().map(|weight| weight.cast_unsigned()));
            }
        }
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&FORMAT.to_le_bytes());
        bytes.extend_from_slice(&Sha256::digest(&content));
        bytes.extend_from_slice(&content);
        bytes
    }

    /// The model that these bytes are.
    ///
    /// # Errors
    /// When they are not, or were written by a newer build.
    pub fn decode(bytes: &[u8]) -> Result<Self, Unusable> {
        let rest = bytes.strip_prefix(MAGIC).ok_or(Unusable::Damaged("it does not begin like one"))?;
        let (format, rest) = rest.split_first_chunk().ok_or(CUT_SHORT)?;
        match u32::from_le_bytes(*format) {
            FORMAT => {}
            found if found > FORMAT => return Err(Unusable::Newer { found }),
            _ => return Err(Unusable::Damaged("it has no format")),
        }
        let (checksum, content) = rest.split_first_chunk::<32>().ok_or(CUT_SHORT)?;
        if Sha256::digest(content).as_slice() != checksum {
            return Err(Unusable::Damaged("the checksum does not match"));
        }
        let (length, rest) = content.split_first_chunk().ok_or(CUT_SHORT)?;
        let (header, rows) = rest.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or(CUT_SHORT)?;
        let header: Header =
            serde_json::from_slice(header).map_err(|_| Unusable::Damaged("the header cannot be read"))?;
        if !header.is_sound() {
            return Err(Unusable::Damaged("the header asks for what cannot be"));
        }
        let stride = stride(header.classes.len());
        let table = read_rows(rows, header.recipe.buckets(), header.classes.len(), stride)?;
        let Header { trained_from, recipe, scale, classes } = header;
        Ok(Self { trained_from, recipe, classes, scale, table, stride })
    }
}

const CUT_SHORT: Unusable = Unusable::Damaged("it is cut short");

/// The checksum within an encoded model, lower-case hex: which model it is. Empty when the bytes are none.
#[must_use]
pub fn checksum(bytes: &[u8]) -> String {
    bytes.get(CHECKSUM).unwrap_or_default().iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Header {
    fn is_sound(&self) -> bool {
        let finite = |class: &Class| class.bias.is_finite() && class.threshold.is_finite();
        self.recipe.is_sound()
            && (2..=MAX_CLASSES).contains(&self.classes.len())
            && self.classes.len() * self.recipe.buckets() <= MAX_WEIGHTS
            && self.scale.is_finite()
            && self.classes.iter().all(finite)
    }
}

fn read_rows(mut rows: &[u8], buckets: usize, classes: usize, stride: usize) -> Result<Vec<i8>, Unusable> {
    let mut table = vec![0; buckets * stride];
    let mut bucket = 0;
    while !rows.is_empty() {
        bucket += take_varint(&mut rows).ok_or(CUT_SHORT)?;
        let (row, rest) = rows.split_at_checked(classes).ok_or(CUT_SHORT)?;
        let cells = table.chunks_exact_mut(stride).nth(bucket);
        let cells = cells.ok_or(Unusable::Damaged("there are more rows than buckets"))?;
        cells.iter_mut().zip(row).for_each(|(cell, byte)| *cell = byte.cast_signed());
        rows = rest;
        bucket += 1;
    }
    Ok(table)
}

fn push_varint(bytes: &mut Vec<u8>, mut value: usize) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// At most three bytes: more than the largest number of buckets.
fn take_varint(bytes: &mut &[u8]) -> Option<usize> {
    let mut value = 0;
    for shift in [0, 7, 14] {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= usize::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Examples, Settings, train};
    use super::*;

    fn model() -> Model {
        let examples = Examples::new([
            ("fruit", vec!["an apple", "ripe pears", "a bowl of cherries", "苹果和梨"]),
            ("tools", vec!["a hammer", "two screwdrivers", "the saw is blunt", "锤子和锯"]),
        ]);
        train(&examples.unwrap(), &Settings::default())
    }

    #[test]
    fn what_is_encoded_is_decoded() {
        let model = model();
        let bytes = model.encode();
        assert_eq!(Model::decode(&bytes).as_ref(), Ok(&model));
        assert_eq!(Model::decode(&bytes).unwrap().encode(), bytes);
        assert_eq!(checksum(&bytes).len(), 64);
    }

    #[test]
    fn a_damaged_model_is_refused() {
        let good = model().encode();
        for length in (0..good.len()).step_by(7) {
            assert!(Model::decode(&good[..length]).is_err(), "cut at {length}");
        }
        for at in (0..good.len()).step_by(5) {
            let mut bad = good.clone();
            bad[at] ^= 1;
            assert!(Model::decode(&bad).is_err(), "altered at {at}");
        }
    }

    #[test]
    fn a_model_of_a_newer_build_says_so() {
        let mut newer = model().encode();
        newer[8] = 2;
        assert_eq!(Model::decode(&newer), Err(Unusable::Newer { found: 2 }));
    }

    /// The checksum proves that nothing was altered on the way, not that the sender was sane.
    #[test]
    fn a_header_that_asks_for_too_much_is_refused_although_its_checksum_is_right() {
        for (good, bad) in [
            ("\"bits\":16", "\"bits\":31"),
            ("\"order\":4", "\"order\":9"),
            ("\"name\":\"tools\"", "\"nome\":\"tools\""),
        ] {
            let bytes = model().encode();
            let content = String::from_utf8_lossy(&bytes[44..]);
            assert!(content.contains(good));
            let at = bytes.windows(good.len()).position(|window| window == good.as_bytes()).unwrap();
            let mut forged = bytes.clone();
            forged.splice(at..at + good.len(), bad.bytes());
            let digest = Sha256::digest(&forged[44..]);
            forged[CHECKSUM].copy_from_slice(&digest);
            assert!(matches!(Model::decode(&forged), Err(Unusable::Damaged(_))), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(mut content in proptest::collection::vec(any::<u8>(), 0..200), header in 0_u32..300) {
            content.splice(0..0, header.to_le_bytes());
            let mut bytes = MAGIC.to_vec();
            bytes.extend(FORMAT.to_le_bytes());
            bytes.extend(Sha256::digest(&content));
            bytes.extend(content);
            prop_assert!(Model::decode(&bytes).is_err());
        }

        #[test]
        fn varints_survive(value in 0_usize..1 << 16) {
            let mut bytes = Vec::new();
            push_varint(&mut bytes, value);
            let mut rest = bytes.as_slice();
            prop_assert_eq!(take_varint(&mut rest), Some(value));
            prop_assert!(rest.is_empty());
        }
    }
}
