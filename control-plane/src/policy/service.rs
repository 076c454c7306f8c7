//! Applying and rolling back.

use std::sync::Arc;

use penstock_model::snapshot::content_hash;
use penstock_model::{Problem, Severity};
use ulid::Ulid;

use super::record::{Action, AuditRecord, Head, Version, VersionRecord};
use super::{Error, query};
use crate::clock::unix_ms;
use crate::store::{self, Revision, Store, Txn, keys};

/// The largest document, so that its record stays under etcd's limit of 1.5 MiB per request.
const DOCUMENT_LIMIT: usize = 1 << 20;

/// The largest record: a document of a mebibyte can grow by the escapes of JSON.
const RECORD_LIMIT: usize = 1_400 << 10;

/// Longest author, idempotency key (both short names) and message.
const NAME_LIMIT: usize = 256;
const MESSAGE_LIMIT: usize = 4096;

/// The versions of one policy.
#[derive(Clone)]
pub(crate) struct Policies {
    pub(super) store: Arc<dyn Store>,
    pub(super) name: Arc<str>,
}

/// A change by document.
#[derive(Debug, Clone, Default)]
pub(crate) struct Apply {
    pub(crate) document: Vec<u8>,
    pub(crate) author: String,
    pub(crate) message: String,
    /// The stable version the change was made from, 0 for none; `None`: the one that is stable now.
    pub(crate) expected_version: Option<u64>,
    /// Empty: a repeated call is another change.
    pub(crate) idempotency_key: String,
    pub(crate) dry_run: bool,
}

/// A change back to the content of an earlier version.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rollback {
    /// 0: the one before the stable one.
    pub(crate) to_version: u64,
    pub(crate) author: String,
    pub(crate) message: String,
    pub(crate) idempotency_key: String,
}

/// What became of a change.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outcome {
    /// The version in force because of the call; `None` when the document was refused, or only checked.
    pub(crate) version: Option<Version>,
    /// Errors (then nothing was stored) and warnings.
    pub(crate) problems: Vec<Problem>,
    /// The document is the stable one already: no version was made.
    pub(crate) unchanged: bool,
}

/// The head as read, for the comparison when it is written.
pub(super) struct HeadEntry {
    pub(super) head: Head,
    pub(super) revision: Option<Revision>,
}

/// What a new version is made of.
struct Draft<'a> {
    action: Action,
    document: String,
    author: &'a str,
    message: &'a str,
    idempotency_key: &'a str,
    restored_from: Option<u64>,
}

impl Policies {
    pub(crate) fn new(store: Arc<dyn Store>, name: &str) -> Self {
        Self { store, name: name.into() }
    }

    /// Checks that a request means the policy that is served here; an empty name does.
    pub(crate) fn check_name(&self, asked: &str) -> Result<(), Error> {
        if asked.is_empty() || *asked == *self.name {
            return Ok(());
        }
        let asked = asked.chars().take(64).collect();
        Err(Error::UnknownPolicy { asked, served: self.name.to_string() })
    }

    /// The name of the policy served here.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Checks the document, and makes it the stable version unless it is already.
    #[tracing::instrument(name = "policy_apply", skip_all, fields(
        policy = %self.name, author = apply.author, bytes = apply.document.len(), version,
    ))]
    pub(crate) async fn apply(&self, apply: Apply) -> Result<Outcome, Error> {
        check_texts(&apply.author, &apply.message, &apply.idempotency_key)?;
        let document = text(apply.document)?;
        let (document, problems) = validate(document).await;
        if apply.dry_run || has_errors(&problems) {
            return Ok(Outcome { problems, ..Outcome::default() });
        }
        let read = self.head().await?;
        if let Some(made) = read.head.made_by(&apply.idempotency_key) {
            return self.existing(made, problems, false).await;
        }
        let stable = read.head.stable;
        if apply.expected_version.is_some_and(|expected| expected != stable) {
            return Err(self.conflict(apply.expected_version.unwrap_or(stable)).await?);
        }
        if stable != 0 && read.head.content_hash == content_hash(&document) {
            return self.existing(stable, problems, true).await;
        }
        let draft = Draft {
            action: Action::Apply,
            document,
            author: &apply.author,
            message: &apply.message,
            idempotency_key: &apply.idempotency_key,
            restored_from: None,
        };
        self.commit(&read, draft, problems).await
    }

    /// Makes a new version with the content of an earlier one.
    #[tracing::instrument(name = "policy_rollback", skip_all, fields(
        policy = %self.name, author = rollback.author, to_version = rollback.to_version, version,
    ))]
    pub(crate) async fn rollback(&self, rollback: Rollback) -> Result<Outcome, Error> {
        check_texts(&rollback.author, &rollback.message, &rollback.idempotency_key)?;
        let read = self.head().await?;
        if let Some(made) = read.head.made_by(&rollback.idempotency_key) {
            return self.existing(made, Vec::new(), false).await;
        }
        let target = match (rollback.to_version, read.head.stable) {
            (_, 0) => return Err(Error::Empty),
            (0, 1) => return Err(Error::NothingBefore { stable: 1 }),
            (0, stable) => stable - 1,
            (version, stable) if version > stable => {
                return Err(Error::NoSuchVersion { version, newest: stable });
            }
            (version, _) => version,
        };
        let record = self.record(target).await?.ok_or(Error::Missing { version: target })?;
        // This build may refuse what an earlier one took.
        let (document, problems) = validate(record.document).await;
        if has_errors(&problems) {
            return Ok(Outcome { problems, ..Outcome::default() });
        }
        let draft = Draft {
            action: Action::Rollback,
            document,
            author: &rollback.author,
            message: &rollback.message,
            idempotency_key: &rollback.idempotency_key,
            restored_from: Some(target),
        };
        self.commit(&read, draft, problems).await
    }

    async fn commit(
        &self,
        read: &HeadEntry,
        draft: Draft<'_>,
        problems: Vec<Problem>,
    ) -> Result<Outcome, Error> {
        let now = unix_ms();
        let version = Version {
            version: read.head.stable + 1,
            content_hash: content_hash(&draft.document),
            author: draft.author.to_owned(),
            message: draft.message.to_owned(),
            created_unix_ms: now,
            restored_from: draft.restored_from,
        };
        let audit = AuditRecord {
            id: Ulid::new().to_string(),
            unix_ms: now,
            actor: version.author.clone(),
            action: draft.action,
            policy: self.name.to_string(),
            from_version: read.head.stable,
            to_version: version.version,
            message: version.message.clone(),
            subject: String::new(),
        };
        let head = read.head.advanced_to(&version, draft.idempotency_key);
        let (head_key, version_key) = (keys::head(&self.name), keys::version(&self.name, version.version));
        let record = json(&VersionRecord { version: version.clone(), document: draft.document });
        if record.len() > RECORD_LIMIT {
            return Err(Error::TooLarge { bytes: record.len(), limit: RECORD_LIMIT });
        }
        let txn = Txn::default()
            .when(&head_key, read.revision)
            .when(&version_key, None)
            .put(&version_key, record)
            .put(&head_key, json(&head))
            .put(keys::audit(&audit.id), json(&audit));
        match self.store.commit(txn).await {
            Ok(_) => {
                tracing::Span::current().record("version", version.version);
                tracing::info!(version = version.version, action = draft.action.as_str(), "policy changed");
                Ok(Outcome { version: Some(version), problems, unchanged: false })
            }
            Err(store::Error::Conflict) => self.lost(read.head.stable, draft.idempotency_key, problems).await,
            Err(error) => Err(error.into()),
        }
    }

    /// Somebody else changed the head since it was read: perhaps the same call, sent twice.
    async fn lost(
        &self,
        expected: u64,
        idempotency_key: &str,
        problems: Vec<Problem>,
    ) -> Result<Outcome, Error> {
        match self.head().await?.head.made_by(idempotency_key) {
            Some(made) => self.existing(made, problems, false).await,
            None => Err(self.conflict(expected).await?),
        }
    }

    async fn existing(
        &self,
        version: u64,
        problems: Vec<Problem>,
        unchanged: bool,
    ) -> Result<Outcome, Error> {
        let record = self.record(version).await?.ok_or(Error::Missing { version })?;
        Ok(Outcome { version: Some(record.version), problems, unchanged })
    }

    async fn conflict(&self, expected: u64) -> Result<Error, Error> {
        let stable = self.head().await?.head.stable;
        let winner = self.record(stable).await?;
        let author = winner.map(|record| record.version.author).filter(|author| !author.is_empty());
        Ok(Error::Conflict { expected, stable, author: author.unwrap_or_else(|| "somebody".to_owned()) })
    }

    /// The head, with no version when there is none yet.
    pub(super) async fn head(&self) -> Result<HeadEntry, Error> {
        let key = keys::head(&self.name);
        Ok(match self.store.get(&key).await? {
            Some(entry) => {
                HeadEntry { head: query::parse(&key, &entry.value)?, revision: Some(entry.revision) }
            }
            None => HeadEntry { head: Head::default(), revision: None },
        })
    }

    pub(super) async fn record(&self, version: u64) -> Result<Option<VersionRecord>, Error> {
        let key = keys::version(&self.name, version);
        let entry = self.store.get(&key).await?;
        entry.map(|entry| query::parse(&key, &entry.value)).transpose()
    }
}

/// Checks a document as a proxy does, away from the threads that serve others: a large one takes a while.
pub(crate) async fn validate(document: String) -> (String, Vec<Problem>) {
    let checked = tokio::task::spawn_blocking(move || {
        let problems = penstock_model::load(&document).problems;
        (document, problems)
    });
    checked.await.expect("loading a document does not panic")
}

/// Is the document to be refused?
pub(crate) fn has_errors(problems: &[Problem]) -> bool {
    problems.iter().any(|problem| problem.severity == Severity::Error)
}

/// The document as text, if it can be stored at all.
pub(crate) fn text(document: Vec<u8>) -> Result<String, Error> {
    if document.len() > DOCUMENT_LIMIT {
        return Err(Error::TooLarge { bytes: document.len(), limit: DOCUMENT_LIMIT });
    }
    String::from_utf8(document).map_err(|error| Error::Invalid {
        field: "document",
        problem: format!("is not UTF-8 text: byte {} is wrong", error.utf8_error().valid_up_to()),
    })
}

pub(super) fn check_texts(author: &str, message: &str, idempotency_key: &str) -> Result<(), Error> {
    for (field, text, limit) in [
        ("author", author, NAME_LIMIT),
        ("message", message, MESSAGE_LIMIT),
        ("idempotency key", idempotency_key, NAME_LIMIT),
    ] {
        if text.len() > limit {
            let problem = format!("has {} bytes; at most {limit} are possible", text.len());
            return Err(Error::Invalid { field, problem });
        }
    }
    Ok(())
}

pub(super) fn json(value: &impl serde::Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("records have string keys only")
}
