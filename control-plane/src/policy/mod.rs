//! Policies: immutable versions, applied and rolled back.
//!
//! A change is one transaction: the new version, the head that names it, and the audit entry, on the condition that the
//! head is still the one the change was made from. Of two writers one wins and the other is told who did.
//!
//! What is drained ([`Drained`]) belongs to no version: it is a key of its own, changed and audited in the same way.
//!
//! [`Policies`] is what operators call; [`Follower`] watches the head and publishes what the fleet is to serve.

mod bootstrap;
mod drain;
mod error;
mod follower;
mod query;
mod record;
mod service;

pub(crate) use drain::{Change, Drained, DrainedTarget, Drains};
pub(crate) use error::Error;
pub(crate) use follower::{Follower, Published, StoreHealth};
pub(crate) use record::{Action, AuditRecord, Version};
pub(crate) use service::{Apply, Outcome, Policies, Rollback, has_errors, text, validate};
