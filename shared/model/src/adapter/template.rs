//! Templates: JSON with expressions in its strings.

use serde::Serialize;
use serde_json::Value;

use super::expression::{Expression, Mistake, Name, NoValue};
use super::{Fault, MAX_DEPTH, MAX_NODES, MAX_WRITTEN, Scope, Unfit, value};
use crate::load::escape;

/// A compiled template, or part of one.
#[derive(Debug)]
pub(super) enum Template {
    /// As it stands.
    Plain(Value),
    /// One expression: its value.
    Value {
        place: String,
        expression: Expression,
        optional: bool,
    },
    /// Text with expressions in it.
    Text {
        place: String,
        pieces: Vec<Piece>,
    },
    Object(Vec<(String, Template)>),
    List(Vec<Template>),
}

#[derive(Debug)]
pub(super) enum Piece {
    Text(String),
    Expression(Expression),
}

/// What stands in a string.
pub(super) enum Token<'a> {
    Text(&'a str),
    /// `offset`: where `source` begins in the string, in bytes.
    Expression {
        source: &'a str,
        optional: bool,
        offset: usize,
    },
}

impl Template {
    /// Compiles `source`, whose place is `root`. What is wrong goes to `faults`.
    pub(super) fn compile(root: &str, source: &Value, allowed: &[Name], faults: &mut Vec<Fault>) -> Self {
        let mut compiler = Compiler { allowed, nodes: 0, faults };
        compiler.template(root, source, 1)
    }

    /// Writes the value as JSON behind what is in `out`. `false` when it is to be left out: then nothing was written.
    pub(super) fn write(&self, scope: &Scope<'_>, out: &mut Vec<u8>) -> Result<bool, Unfit> {
        match self {
            Self::Plain(value) => push(value, out),
            Self::Value { place, expression, optional } => match expression.evaluate(scope) {
                Err(NoValue::Missing(_)) if *optional => return Ok(false),
                Ok(value) if *optional && value.is_null() => return Ok(false),
                Ok(value) => {
                    push(value.as_ref(), out);
                    check_length(place, out.len())?;
                }
                Err(none) => return Err(unfit(place, none)),
            },
            Self::Text { place, pieces } => push(&text(place, pieces, scope)?, out),
            Self::Object(members) => write_all(members, out, b"{}", |(name, template), out| {
                push(name, out);
                out.push(b':');
                template.write(scope, out)
            })?,
            Self::List(items) => write_all(items, out, b"[]", |item, out| item.write(scope, out))?,
        }
        Ok(true)
    }
}

fn push(value: &(impl Serialize + ?Sized), out: &mut Vec<u8>) {
    serde_json::to_writer(out, value).expect("JSON always serialises, and a Vec takes all");
}

/// Writes those of `items` that are not left out, with commas between and `brackets` around them.
fn write_all<T>(
    items: &[T],
    out: &mut Vec<u8>,
    brackets: &[u8; 2],
    mut write: impl FnMut(&T, &mut Vec<u8>) -> Result<bool, Unfit>,
) -> Result<(), Unfit> {
    out.push(brackets[0]);
    let start = out.len();
    for item in items {
        let before = out.len();
        if before > start {
            out.push(b',');
        }
        if !write(item, out)? {
            out.truncate(before);
        }
    }
    out.push(brackets[1]);
    Ok(())
}

fn text(place: &str, pieces: &[Piece], scope: &Scope<'_>) -> Result<String, Unfit> {
    join(place, pieces, scope, value::push_text)
}

/// The pieces in a row, each value as `push` writes it.
pub(super) fn join(
    place: &str,
    pieces: &[Piece],
    scope: &Scope<'_>,
    push: impl Fn(&mut String, &Value),
) -> Result<String, Unfit> {
    let mut text = String::new();
    for piece in pieces {
        match piece {
            Piece::Text(part) => text.push_str(part),
            Piece::Expression(expression) => {
                let found = expression.evaluate(scope).map_err(|none| unfit(place, none))?;
                push(&mut text, &found);
                check_length(place, text.len())?;
            }
        }
    }
    Ok(text)
}

fn check_length(place: &str, bytes: usize) -> Result<(), Unfit> {
    if bytes > MAX_WRITTEN {
        let reason = format!("here the body grows beyond {MAX_WRITTEN} bytes");
        return Err(Unfit::Template { place: place.to_owned(), reason });
    }
    Ok(())
}

fn unfit(place: &str, none: NoValue) -> Unfit {
    match none {
        NoValue::Missing(reason) | NoValue::Failed(reason) => {
            Unfit::Template { place: place.to_owned(), reason }
        }
        NoValue::Body(reason) => Unfit::Body(reason),
    }
}

struct Compiler<'a> {
    allowed: &'a [Name],
    nodes: usize,
    faults: &'a mut Vec<Fault>,
}

impl Compiler<'_> {
    fn template(&mut self, place: &str, source: &Value, depth: usize) -> Template {
        self.nodes += 1;
        if self.nodes > MAX_NODES || depth > MAX_DEPTH {
            // Said once, for all that is beyond it.
            if self.nodes == MAX_NODES + 1 || depth == MAX_DEPTH + 1 {
                let reason = format!("a template has at most {MAX_NODES} values and {MAX_DEPTH} levels");
                self.faults.push(Fault { place: place.to_owned(), offset: 0, reason });
            }
            return Template::Plain(Value::Null);
        }
        match source {
            Value::String(text) => self.string(place, text),
            Value::Array(items) => {
                let items = items.iter().enumerate();
                Template::List(
                    items
                        .map(|(index, item)| self.template(&format!("{place}/{index}"), item, depth + 1))
                        .collect(),
                )
            }
            Value::Object(members) => {
                let member = |(name, value): (&String, &Value)| {
                    let place = format!("{place}/{}", escape(name));
                    if name.contains("${") {
                        let reason = "names of members cannot be computed".to_owned();
                        self.faults.push(Fault { place: place.clone(), offset: 0, reason });
                    }
                    (name.clone(), self.template(&place, value, depth + 1))
                };
                Template::Object(members.iter().map(member).collect())
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => Template::Plain(source.clone()),
        }
    }

    fn string(&mut self, place: &str, text: &str) -> Template {
        let tokens = match tokens(text) {
            Ok(tokens) => tokens,
            Err(mistake) => return self.wrong(place, mistake),
        };
        if let [Token::Expression { source, optional, offset }] = tokens.as_slice() {
            return match compile(source, *offset, self.allowed) {
                Ok(expression) => {
                    Template::Value { place: place.to_owned(), expression, optional: *optional }
                }
                Err(mistake) => self.wrong(place, mistake),
            };
        }
        match pieces(tokens, self.allowed) {
            Ok(pieces) => match plain(&pieces) {
                Some(plain) => Template::Plain(Value::String(plain)),
                None => Template::Text { place: place.to_owned(), pieces },
            },
            Err(mistake) => self.wrong(place, mistake),
        }
    }

    fn wrong(&mut self, place: &str, mistake: Mistake) -> Template {
        let Mistake { offset, reason } = mistake;
        self.faults.push(Fault { place: place.to_owned(), offset, reason });
        Template::Plain(Value::Null)
    }
}

/// Compiles an expression that begins `offset` bytes into its string.
fn compile(source: &str, offset: usize, allowed: &[Name]) -> Result<Expression, Mistake> {
    Expression::compile(source, allowed)
        .map_err(|mistake| Mistake { offset: offset + mistake.offset, ..mistake })
}

/// The pieces of a string that is text as a whole.
pub(super) fn pieces(tokens: Vec<Token<'_>>, allowed: &[Name]) -> Result<Vec<Piece>, Mistake> {
    let piece = |token| match token {
        Token::Text(text) => Ok(Piece::Text(text.to_owned())),
        Token::Expression { optional: true, offset, .. } => {
            Err(Mistake::at(offset, "only a whole string can be left out with `${?`"))
        }
        Token::Expression { source, offset, .. } => compile(source, offset, allowed).map(Piece::Expression),
    };
    tokens.into_iter().map(piece).collect()
}

/// The text, when there is no expression in it.
fn plain(pieces: &[Piece]) -> Option<String> {
    let text = |piece: &Piece| match piece {
        Piece::Text(text) => Some(text.clone()),
        Piece::Expression(_) => None,
    };
    pieces.iter().map(text).collect()
}

/// Splits a string at its expressions.
pub(super) fn tokens(text: &str) -> Result<Vec<Token<'_>>, Mistake> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, after) = (&rest[..at], &rest[at + 2..]);
        if let Some(before) = before.strip_suffix('$') {
            tokens.push(Token::Text(before));
            tokens.push(Token::Text("${"));
            rest = after;
            continue;
        }
        if !before.is_empty() {
            tokens.push(Token::Text(before));
        }
        let start = text.len() - after.len();
        let end = end_of_expression(after).ok_or_else(|| Mistake::at(start, "`${` has no `}`"))?;
        let source = &after[..end];
        tokens.push(match source.strip_prefix('?') {
            Some(source) => Token::Expression { source, optional: true, offset: start + 1 },
            None => Token::Expression { source, optional: false, offset: start },
        });
        rest = &after[end + 1..];
    }
    if !rest.is_empty() {
        tokens.push(Token::Text(rest));
    }
    Ok(tokens)
}

/// Where the brace is that ends an expression: not one of a map, nor one in a string.
fn end_of_expression(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let (mut at, mut depth) = (0, 0_usize);
    while at < bytes.len() {
        match bytes[at] {
            quote @ (b'"' | b'\'') => {
                at += 1;
                while *bytes.get(at)? != quote {
                    at += 1 + usize::from(bytes[at] == b'\\');
                }
            }
            b'{' => depth += 1,
            b'}' if depth == 0 => return Some(at),
            b'}' => depth -= 1,
            _ => {}
        }
        at += 1;
    }
    None
}
