//! The last-known-good snapshot on disk: what lets a proxy start without a control plane.
//!
//! One file, `snapshot.lkg`: a header (magic, format version, length, SHA-256) and the snapshot as it came over the wire.
//! It is written to a temporary file, synced and renamed, so that at any moment either the old or the new one is there,
//! whole. What is damaged, cut short or written by a newer format is refused with the reason; it is never half
//! believed. It holds no secrets: policies only refer to them.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use penstock_proto::fleet::v1::Snapshot;
use prost::Message;
use sha2::{Digest, Sha256};

const FILE: &str = "snapshot.lkg";
const MAGIC: &[u8; 8] = b"PNSTKLKG";
const FORMAT: u32 = 1;
const HEADER: usize = 8 + 4 + 8 + 32;
/// Larger than any policy that a store takes.
const MAX_FILE: u64 = 64 << 20;

/// Why the file on disk is of no use.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    /// It cannot be read.
    #[error("the snapshot file cannot be read")]
    Io(#[source] io::Error),
    /// It was not written by Penstock.
    #[error("not a snapshot file")]
    Foreign,
    /// A later Penstock wrote it.
    #[error("format {found} is newer than this build understands ({FORMAT})")]
    Newer {
        /// Its format version.
        found: u32,
    },
    /// Its end is missing, or there is more than there should be.
    #[error("{found} bytes where the header promises {promised}")]
    Length {
        /// After the header.
        found: u64,
        /// In the header.
        promised: u64,
    },
    /// Its content is not what was written.
    #[error("the checksum does not match")]
    Checksum,
    /// It is far larger than any snapshot.
    #[error("{0} bytes are too many for a snapshot")]
    TooLarge(u64),
}

fn path(folder: &Path) -> PathBuf {
    folder.join(FILE)
}

/// Reads the snapshot in `folder`; `None` when there is none.
///
/// # Errors
/// When there is one and it cannot be believed.
pub fn read(folder: &Path) -> Result<Option<Snapshot>, Unusable> {
    let size = match fs::metadata(path(folder)) {
        Ok(metadata) => metadata.len(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Unusable::Io(error)),
    };
    if size > MAX_FILE {
        return Err(Unusable::TooLarge(size));
    }
    decode(&fs::read(path(folder)).map_err(Unusable::Io)?).map(Some)
}

/// Makes `snapshot` the one in `folder`. When this returns, it survives a power cut.
///
/// # Errors
/// When the folder cannot be written; the old file is then still there.
pub fn write(folder: &Path, snapshot: &Snapshot) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let temporary = folder.join(format!("{FILE}.new"));
    let mut file = File::create(&temporary)?;
    file.write_all(&encode(snapshot))?;
    file.sync_all()?;
    fs::rename(&temporary, path(folder))?;
    // The rename itself must reach the disk as well.
    File::open(folder)?.sync_all()
}

fn encode(snapshot: &Snapshot) -> Vec<u8> {
    let payload = snapshot.encode_to_vec();
    let mut bytes = Vec::with_capacity(HEADER + payload.len());
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&FORMAT.to_le_bytes());
    bytes.extend_from_slice(&(payload.len() as u64).to_le_bytes());
    bytes.extend_from_slice(&Sha256::digest(&payload));
    bytes.extend_from_slice(&payload);
    bytes
}

fn decode(bytes: &[u8]) -> Result<Snapshot, Unusable> {
    let rest = bytes.strip_prefix(MAGIC).ok_or(Unusable::Foreign)?;
    let (format, rest) = rest.split_first_chunk().ok_or(Unusable::Foreign)?;
    let found = u32::from_le_bytes(*format);
    match found {
        FORMAT => {}
        0 => return Err(Unusable::Foreign),
        _ => return Err(Unusable::Newer { found }),
    }
    let (length, rest) = rest.split_first_chunk().ok_or(Unusable::Foreign)?;
    let (checksum, payload) = rest.split_first_chunk::<32>().ok_or(Unusable::Foreign)?;
    let promised = u64::from_le_bytes(*length);
    if payload.len() as u64 != promised {
        return Err(Unusable::Length { found: payload.len() as u64, promised });
    }
    if Sha256::digest(payload).as_slice() != checksum {
        return Err(Unusable::Checksum);
    }
    Snapshot::decode(payload).map_err(|_| Unusable::Checksum)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(version: u64) -> Snapshot {
        Snapshot { version, document: b"version: 1".to_vec(), ..Snapshot::default() }
    }

    #[test]
    fn what_was_written_last_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("made/on/demand");
        assert!(matches!(read(&folder), Ok(None)));
        for version in [3, 4] {
            write(&folder, &snapshot(version)).unwrap();
            assert_eq!(read(&folder).unwrap(), Some(snapshot(version)));
        }
    }

    /// CP-05: truncated, altered, from a newer format, or something else altogether.
    #[test]
    fn a_damaged_file_is_refused_with_its_reason() {
        let good = encode(&snapshot(3));
        for length in 0..good.len() {
            assert!(decode(&good[..length]).is_err(), "cut at {length}");
        }
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1;
            assert!(decode(&bad).is_err(), "altered at {at}");
        }
        let mut newer = good.clone();
        newer[8] = 2;
        assert!(matches!(decode(&newer), Err(Unusable::Newer { found: 2 })));
        assert!(matches!(decode(b"#!/bin/sh"), Err(Unusable::Foreign)));
    }

    #[test]
    fn a_leftover_of_an_interrupted_write_does_no_harm() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &snapshot(3)).unwrap();
        fs::write(folder.path().join("snapshot.lkg.new"), b"half").unwrap();
        assert_eq!(read(folder.path()).unwrap(), Some(snapshot(3)));
    }
}
