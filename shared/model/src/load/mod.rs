//! From text to policy.

use crate::{Policy, Problem};

/// What [`load`] found.
#[derive(Debug)]
pub struct Loaded {
    /// Present when no problem is an error.
    pub policy: Option<Policy>,
    /// Errors and warnings, in document order.
    pub problems: Vec<Problem>,
}

/// Decodes, validates and compiles a document. Reports every problem at once.
#[must_use]
pub fn load(_document: &str) -> Loaded {
    Loaded { policy: None, problems: Vec::new() }
}
