//! Templates: JSON with expressions in its strings.

use serde::Serialize;
use serde_json::Value;

use super::expression::{Expression, Name, NoValue};
use super::{MAX_DEPTH, MAX_NODES, MAX_WRITTEN, Scope, value};
use crate::exchange::Field;

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
enum Token<'a> {
    Text(&'a str),
    Expression { source: &'a str, optional: bool },
}

impl Template {
    /// Compiles `source`, whose place is `root`. What is wrong goes to `problems`.
    pub(super) fn compile(root: &str, source: &Value, allowed: &[Name], problems: &mut Vec<Field>) -> Self {
        let mut compiler = Compiler { allowed, nodes: 0, problems };
        compiler.template(root, source, 1)
    }

    /// Writes the value as JSON behind what is in `out`. `false` when it is to be left out: then nothing was written.
    pub(super) fn write(&self, scope: &Scope<'_>, out: &mut Vec<u8>) -> Result<bool, Field> {
        match self {
            Self::Plain(value) => push(value, out),
            Self::Value { place, expression, optional } => match expression.evaluate(scope) {
                Err(NoValue::Missing(_)) if *optional => return Ok(false),
                Ok(value) if *optional && value.is_null() => return Ok(false),
                Ok(value) => {
                    push(value.as_ref(), out);
                    check_length(place, out.len())?;
                }
                Err(none) => return Err(problem(place, none)),
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
    mut write: impl FnMut(&T, &mut Vec<u8>) -> Result<bool, Field>,
) -> Result<(), Field> {
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

fn text(place: &str, pieces: &[Piece], scope: &Scope<'_>) -> Result<String, Field> {
    let mut text = String::new();
    for piece in pieces {
        match piece {
            Piece::Text(part) => text.push_str(part),
            Piece::Expression(expression) => {
                let found = expression.evaluate(scope).map_err(|none| problem(place, none))?;
                value::push_text(&mut text, &found);
                check_length(place, text.len())?;
            }
        }
    }
    Ok(text)
}

fn check_length(place: &str, bytes: usize) -> Result<(), Field> {
    if bytes > MAX_WRITTEN {
        return Err(Field::new(place, format!("here the body grows beyond {MAX_WRITTEN} bytes")));
    }
    Ok(())
}

fn problem(place: &str, none: NoValue) -> Field {
    match none {
        NoValue::Missing(reason) | NoValue::Failed(reason) => Field::new(place, reason),
        NoValue::Body(field) => field,
    }
}

struct Compiler<'a> {
    allowed: &'a [Name],
    nodes: usize,
    problems: &'a mut Vec<Field>,
}

impl Compiler<'_> {
    fn template(&mut self, place: &str, source: &Value, depth: usize) -> Template {
        self.nodes += 1;
        if self.nodes > MAX_NODES || depth > MAX_DEPTH {
            // Said once, for all that is beyond it.
            if self.nodes == MAX_NODES + 1 || depth == MAX_DEPTH + 1 {
                let reason = format!("a template has at most {MAX_NODES} values and {MAX_DEPTH} levels");
                self.problems.push(Field::new(place, reason));
            }
            return Template::Plain(Value::Null);
        }
        match source {
            Value::String(text) => self.string(place, text),
            Value::Array(items) => {
                let items = items.iter().enumerate();
                Template::List(
                    items
                        .map(|(index, item)| self.template(&format!("{place}[{index}]"), item, depth + 1))
                        .collect(),
                )
            }
            Value::Object(members) => {
                let member = |(name, value): (&String, &Value)| {
                    let place = format!("{place}.{name}");
                    if name.contains("${") {
                        self.problems.push(Field::new(&place, "names of members cannot be computed"));
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
            Err(reason) => return self.wrong(place, reason),
        };
        let place = place.to_owned();
        if let [Token::Expression { source, optional }] = tokens.as_slice() {
            return match Expression::compile(source, self.allowed) {
                Ok(expression) => Template::Value { place, expression, optional: *optional },
                Err(reason) => self.wrong(&place, reason),
            };
        }
        let mut pieces = Vec::with_capacity(tokens.len());
        for token in tokens {
            let piece = match token {
                Token::Text(text) => Ok(Piece::Text(text.to_owned())),
                Token::Expression { optional: true, .. } => {
                    Err("only a whole string can be left out with `${?`".to_owned())
                }
                Token::Expression { source, .. } => {
                    Expression::compile(source, self.allowed).map(Piece::Expression)
                }
            };
            match piece {
                Ok(piece) => pieces.push(piece),
                Err(reason) => return self.wrong(&place, reason),
            }
        }
        match pieces
            .iter()
            .map(|piece| if let Piece::Text(text) = piece { Some(text.as_str()) } else { None })
            .collect()
        {
            Some(plain) => Template::Plain(Value::String(plain)),
            None => Template::Text { place, pieces },
        }
    }

    fn wrong(&mut self, place: &str, reason: String) -> Template {
        self.problems.push(Field::new(place, reason));
        Template::Plain(Value::Null)
    }
}

/// Splits a string at its expressions.
fn tokens(text: &str) -> Result<Vec<Token<'_>>, String> {
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
        let end = end_of_expression(after).ok_or("`${` has no `}`")?;
        let source = &after[..end];
        tokens.push(match source.strip_prefix('?') {
            Some(source) => Token::Expression { source, optional: true },
            None => Token::Expression { source, optional: false },
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
