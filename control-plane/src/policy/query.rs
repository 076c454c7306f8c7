//! Reading versions and the audit trail.

use futures_util::{StreamExt, TryStreamExt, stream};
use serde::de::DeserializeOwned;

use super::record::{AuditRecord, Version};
use super::{Error, Policies};
use crate::store::{List, keys};

/// What is listed when no limit is given, and the most that is.
const DEFAULT_LIMIT: usize = 50;
const MAX_LIMIT: usize = 500;

/// Versions read at the same time; each can be a mebibyte.
const PARALLEL_READS: usize = 8;

impl Policies {
    /// Versions, newest first, and the number of the stable one (0 when there is none).
    pub(crate) async fn list(&self, limit: u32) -> Result<(Vec<Version>, u64), Error> {
        let stable = self.head().await?.head.stable;
        let newest_first = (1..=stable).rev().take(limited(limit));
        let records = stream::iter(newest_first).map(|version| self.record(version)).buffered(PARALLEL_READS);
        let records: Vec<_> = records.try_collect().await?;
        Ok((records.into_iter().flatten().map(|record| record.version).collect(), stable))
    }

    /// One version with its document, and the number of the stable one. Version 0 is the stable one.
    pub(crate) async fn get(&self, version: u64) -> Result<(Version, String, u64), Error> {
        let stable = self.head().await?.head.stable;
        let version = match version {
            _ if stable == 0 => return Err(Error::Empty),
            0 => stable,
            version => version,
        };
        let record = self.record(version).await?.ok_or(Error::NoSuchVersion { version, newest: stable })?;
        Ok((record.version, record.document, stable))
    }

    /// Who did what, newest first.
    pub(crate) async fn audit(&self, limit: u32) -> Result<Vec<AuditRecord>, Error> {
        let list = List {
            prefix: keys::AUDIT.to_owned(),
            limit: limited(limit),
            descending: true,
            ..List::default()
        };
        let page = self.store.list(&list).await?;
        page.entries.iter().map(|entry| parse(&entry.key, &entry.value)).collect()
    }
}

pub(super) fn limited(limit: u32) -> usize {
    match limit as usize {
        0 => DEFAULT_LIMIT,
        limit => limit.min(MAX_LIMIT),
    }
}

pub(super) fn parse<T: DeserializeOwned>(key: &str, value: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(value).map_err(|source| Error::Damaged { key: key.to_owned(), source })
}
