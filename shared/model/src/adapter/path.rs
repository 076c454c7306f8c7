//! The path of a request to a generic service: text with expressions in it.

use percent_encoding::utf8_percent_encode;

use super::expression::{Mistake, Name};
use super::template::{Piece, join, pieces, tokens};
use super::{Fault, Scope, Unfit, value};
use crate::settings::SEGMENT;

const PLACE: &str = "/path";

/// A compiled path.
#[derive(Debug)]
pub(super) struct Path(Vec<Piece>);

impl Path {
    pub(super) fn compile(source: &str, allowed: &[Name], faults: &mut Vec<Fault>) -> Option<Self> {
        let compiled = tokens(source).and_then(|tokens| pieces(tokens, allowed)).and_then(|pieces| {
            check(&pieces)?;
            Ok(Self(pieces))
        });
        compiled
            .map_err(|Mistake { offset, reason }| {
                faults.push(Fault { place: PLACE.to_owned(), offset, reason });
            })
            .ok()
    }

    /// Each value becomes one segment, or one value of the query, whatever is in it.
    pub(super) fn write(&self, scope: &Scope<'_>) -> Result<String, Unfit> {
        join(PLACE, &self.0, scope, |path, found| {
            let mut text = String::new();
            value::push_text(&mut text, found);
            path.extend(utf8_percent_encode(&text, SEGMENT));
        })
    }
}

/// Is what stands between the expressions fit to be part of a URL?
fn check(pieces: &[Piece]) -> Result<(), Mistake> {
    let first = match pieces.first() {
        Some(Piece::Text(text)) => text.as_str(),
        _ => "",
    };
    if !first.starts_with('/') {
        return Err(Mistake::at(0, "a path begins with a slash"));
    }
    for piece in pieces {
        if let Piece::Text(text) = piece
            && let Some(bad) =
                text.chars().find(|c| !c.is_ascii_alphanumeric() && !"/-._~%:@!$&'()*+,;=?".contains(*c))
        {
            return Err(Mistake::at(0, format!("a URL must escape the character `{bad}`")));
        }
    }
    Ok(())
}
