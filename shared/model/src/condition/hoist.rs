//! The parts of a condition that are as good as matchers.
//!
//! Of a condition that is a conjunction, each part that compares one field with constants becomes a [`Constraint`]; what
//! is left stays CEL. A part that is false makes the whole false, whatever the others are, errors included: taking
//! parts out changes nothing but how fast it is known.

use std::net::IpAddr;

use cel::common::ast::{CallExpr, Expr, LiteralValue, operators};
use cel::parser::Expression;
use http::HeaderName;

use crate::constraint::{Constraint, Field, NumberField, TextField, address_number};
use crate::pattern::Pattern;

/// Splits a condition into what an index can look up and the rest, in order.
pub(super) fn hoist(condition: &Expression) -> (Vec<Constraint>, Vec<Expression>) {
    let mut parts = Vec::new();
    split(condition, &mut parts);
    let (mut constraints, mut rest) = (Vec::new(), Vec::new());
    for part in parts {
        match constraint(&part.expr) {
            Some(constraint) => constraints.push(constraint),
            None => rest.push(part.clone()),
        }
    }
    (constraints, rest)
}

fn split<'a>(expression: &'a Expression, parts: &mut Vec<&'a Expression>) {
    match &expression.expr {
        Expr::Call(call) if call.func_name == operators::LOGICAL_AND => {
            call.args.iter().for_each(|part| split(part, parts));
        }
        _ => parts.push(expression),
    }
}

fn constraint(part: &Expr) -> Option<Constraint> {
    match part {
        Expr::Ident(_) => flag(part, 1),
        Expr::Call(call) => match (call.func_name.as_str(), call.target.as_deref(), call.args.as_slice()) {
            (operators::LOGICAL_NOT, None, [operand]) => flag(&operand.expr, 0),
            ("startsWith", Some(target), [prefix]) => starts_with(&target.expr, &prefix.expr),
            _ => comparison(call),
        },
        _ => None,
    }
}

fn flag(field: &Expr, value: u128) -> Option<Constraint> {
    match field_of(field)? {
        Field::Number(number) if is_flag(number) => {
            Some(Constraint::numbers(Field::Number(number), vec![value..=value]))
        }
        _ => None,
    }
}

fn is_flag(field: NumberField) -> bool {
    use NumberField::{Audio, Images, JsonSchema, Stream, SystemPrompt};
    matches!(field, Stream | SystemPrompt | Images | Audio | JsonSchema)
}

fn starts_with(field: &Expr, prefix: &Expr) -> Option<Constraint> {
    let field = field_of(field).filter(is_text)?;
    let prefix = text(prefix)?;
    Some(Constraint::texts(field, vec![Pattern::Glob(vec![prefix.to_owned(), String::new()])]))
}

fn is_text(field: &Field) -> bool {
    matches!(field, Field::Text(_) | Field::Header(_))
}

/// `field == constant`, `constant < field`, `field in [constants]` and the like.
fn comparison(call: &CallExpr) -> Option<Constraint> {
    let [left, right] = call.args.as_slice() else { return None };
    let operator = call.func_name.as_str();
    if operator == operators::IN {
        let Expr::List(list) = &right.expr else { return None };
        let field = field_of(&left.expr)?;
        let equal: Option<Vec<Constraint>> =
            list.elements.iter().map(|element| compared(&field, operators::EQUALS, &element.expr)).collect();
        return union(field, equal?);
    }
    match field_of(&left.expr) {
        Some(field) => compared(&field, operator, &right.expr),
        None => compared(&field_of(&right.expr)?, mirrored(operator), &left.expr),
    }
}

/// `a < b` is `b > a`.
fn mirrored(operator: &str) -> &str {
    match operator {
        operators::LESS => operators::GREATER,
        operators::LESS_EQUALS => operators::GREATER_EQUALS,
        operators::GREATER => operators::LESS,
        operators::GREATER_EQUALS => operators::LESS_EQUALS,
        other => other,
    }
}

fn compared(field: &Field, operator: &str, constant: &Expr) -> Option<Constraint> {
    let is_equal = operator == operators::EQUALS;
    match field {
        Field::Text(_) | Field::Header(_) if is_equal => {
            let exact = Pattern::Exact(text(constant)?.to_owned());
            Some(Constraint::texts(field.clone(), vec![exact]))
        }
        Field::Number(NumberField::ClientIp) if is_equal => {
            // Conditions compare the text of the address, which is that of its shortest form.
            let address: IpAddr = text(constant)?.parse().ok()?;
            let same = address.to_string() == text(constant)? && address.to_canonical() == address;
            let number = address_number(address);
            same.then(|| Constraint::numbers(field.clone(), vec![number..=number]))
        }
        Field::Number(flag) if is_flag(*flag) && is_equal => match constant {
            Expr::Literal(LiteralValue::Boolean(value)) => {
                let value = u128::from(*value.inner());
                Some(Constraint::numbers(field.clone(), vec![value..=value]))
            }
            _ => None,
        },
        Field::Number(number) if !is_flag(*number) && *number != NumberField::ClientIp => {
            Some(Constraint::numbers(field.clone(), range(operator, whole(constant)?)?))
        }
        _ => None,
    }
}

fn range(operator: &str, number: u128) -> Option<Vec<std::ops::RangeInclusive<u128>>> {
    Some(match operator {
        operators::EQUALS => vec![number..=number],
        operators::GREATER_EQUALS => vec![number..=u128::MAX],
        operators::GREATER => vec![number + 1..=u128::MAX],
        operators::LESS_EQUALS => vec![0..=number],
        // Nothing is less than nothing.
        operators::LESS => number.checked_sub(1).map(|most| 0..=most).into_iter().collect(),
        _ => return None,
    })
}

/// All that any of `constraints` accepts.
fn union(field: Field, constraints: Vec<Constraint>) -> Option<Constraint> {
    use crate::constraint::Accepts::{Numbers, Texts};
    let mut all = if is_text(&field) { Texts(Vec::new()) } else { Numbers(Vec::new()) };
    for constraint in constraints {
        match (&mut all, constraint.accepts) {
            (Texts(all), Texts(patterns)) => all.extend(patterns),
            (Numbers(all), Numbers(ranges)) => all.extend(ranges),
            _ => return None,
        }
    }
    Some(Constraint { field, accepts: all })
}

/// The field that an expression is: its name, or one header.
fn field_of(expression: &Expr) -> Option<Field> {
    match expression {
        Expr::Ident(name) => {
            let text = TextField::ALL.iter().find(|field| field.as_str() == name).copied();
            let number = NumberField::ALL.iter().find(|field| field.as_str() == name).copied();
            text.map(Field::Text).or(number.map(Field::Number))
        }
        Expr::Select(select) if !select.test && is_headers(&select.operand.expr) => header(&select.field),
        Expr::Call(call) if call.func_name == operators::INDEX => match call.args.as_slice() {
            [map, name] if is_headers(&map.expr) => header(text(&name.expr)?),
            _ => None,
        },
        _ => None,
    }
}

fn is_headers(expression: &Expr) -> bool {
    matches!(expression, Expr::Ident(name) if name == "headers")
}

/// The names of headers are in lower case in `headers`: by any other spelling, none is found.
fn header(name: &str) -> Option<Field> {
    HeaderName::from_lowercase(name.as_bytes()).ok().map(Field::Header)
}

fn text(constant: &Expr) -> Option<&str> {
    match constant {
        Expr::Literal(LiteralValue::String(text)) => Some(text.inner()),
        _ => None,
    }
}

fn whole(constant: &Expr) -> Option<u128> {
    match constant {
        Expr::Literal(LiteralValue::Int(number)) => u128::try_from(*number.inner()).ok(),
        _ => None,
    }
}
