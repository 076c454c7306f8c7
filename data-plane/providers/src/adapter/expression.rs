//! One expression of a template.

use std::borrow::Cow;

use cel::common::ast::{Expr, LiteralValue, operators};
use cel::parser::Expression as Ast;
use cel::{Context, ExecutionError, Program};
use penstock_model::condition::{TYPE_NAMES, free_names, nesting};
use serde_json::Value;

use super::{MAX_EXPRESSION, Scope, value};
use crate::exchange::Field;

/// The deepest expression, in nested operations: evaluation recurses.
const MAX_NESTING: usize = 64;
/// Loops within loops: each multiplies the work.
const MAX_LOOPS: usize = 2;

/// What expressions may refer to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Name {
    Request,
    Model,
    Headers,
    Response,
}

impl Name {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Model => "model",
            Self::Headers => "headers",
            Self::Response => "response",
        }
    }
}

/// A compiled expression.
#[derive(Debug)]
pub(super) enum Expression {
    /// `request.items[0].name`: looked up.
    Path { root: Name, steps: Vec<Step> },
    /// Anything else, and the names that it needs.
    Cel { program: Program, names: Vec<Name> },
}

/// One step of a path.
#[derive(Debug, PartialEq)]
pub(super) enum Step {
    Member(String),
    Element(usize),
}

/// Why there is no value.
pub(super) enum NoValue {
    /// What the expression looks for is not there.
    Missing(String),
    /// It cannot be evaluated.
    Failed(String),
    /// A body is no JSON.
    Body(Field),
}

impl Expression {
    /// Compiles `source`, which may use the names in `allowed`.
    pub(super) fn compile(source: &str, allowed: &[Name]) -> Result<Self, String> {
        if source.trim().is_empty() {
            return Err("the expression is empty".to_owned());
        }
        if source.len() > MAX_EXPRESSION {
            return Err(format!("an expression has at most {MAX_EXPRESSION} bytes"));
        }
        let program = Program::compile(source).map_err(|errors| {
            let message = errors.errors.first().map_or("", |error| error.msg.as_str());
            let message = message.trim_start_matches("Syntax error: ");
            format!("not a CEL expression: {}", message.split(" expecting {").next().unwrap_or(message))
        })?;
        let (depth, loops) = nesting(program.expression());
        if depth > MAX_NESTING || loops > MAX_LOOPS {
            return Err(format!("nests more than {MAX_NESTING} operations or {MAX_LOOPS} loops"));
        }
        let names = names(&program, allowed)?;
        check_functions(&program)?;
        Ok(match path(program.expression()) {
            Some((root, steps)) => Self::Path { root, steps },
            None => Self::Cel { program, names },
        })
    }

    pub(super) fn evaluate<'s>(&self, scope: &'s Scope<'_>) -> Result<Cow<'s, Value>, NoValue> {
        match self {
            Self::Path { root, steps } => {
                let mut value = scope.json(*root).map_err(NoValue::Body)?;
                for step in steps {
                    value =
                        step.take(value).ok_or_else(|| NoValue::Missing(format!("there is no {step}")))?;
                }
                Ok(Cow::Borrowed(value))
            }
            Self::Cel { program, names } => {
                let context = scope.context(names).map_err(NoValue::Body)?;
                let found = program.execute(&context).map_err(|error| match error {
                    ExecutionError::NoSuchKey(_) | ExecutionError::IndexOutOfBounds(_) => {
                        NoValue::Missing(short(&error))
                    }
                    other => NoValue::Failed(short(&other)),
                })?;
                let found = value::to_json(&found);
                found.map(Cow::Owned).map_err(|what| NoValue::Failed(format!("JSON cannot hold {what}")))
            }
        }
    }
}

impl Step {
    fn take<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        match self {
            Self::Member(name) => value.as_object()?.get(name),
            Self::Element(index) => value.as_array()?.get(*index),
        }
    }
}

impl std::fmt::Display for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Member(name) => write!(f, "`{name}`"),
            Self::Element(index) => write!(f, "element {index}"),
        }
    }
}

/// CEL's errors quote values, which may be large.
fn short(error: &ExecutionError) -> String {
    crate::json::clip(&error.to_string(), 200).to_owned()
}

/// The names that the program uses, each once.
fn names(program: &Program, allowed: &[Name]) -> Result<Vec<Name>, String> {
    let mut names = Vec::new();
    for (_, used) in free_names(program.expression()) {
        match allowed.iter().find(|name| name.as_str() == used) {
            Some(name) if !names.contains(name) => names.push(*name),
            Some(_) => {}
            None if TYPE_NAMES.contains(&used) => {}
            None => {
                let known: Vec<_> = allowed.iter().map(|name| name.as_str()).collect();
                return Err(format!("there is no `{used}` here; there are {}", known.join(", ")));
            }
        }
    }
    Ok(names)
}

/// CEL itself reports an unknown function only when it gets there.
fn check_functions(program: &Program) -> Result<(), String> {
    for name in program.references().functions() {
        if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') || name.starts_with('_') {
            continue;
        }
        let call = Program::compile(&format!("{name}()")).map(|call| call.execute(&Context::default()));
        if let Ok(Err(ExecutionError::UndeclaredReference(_))) = call {
            return Err(format!("there is no function `{name}`"));
        }
    }
    Ok(())
}

/// The expression as a path into a body, if it is one.
fn path(expression: &Ast) -> Option<(Name, Vec<Step>)> {
    match &expression.expr {
        Expr::Ident(name) => {
            let root = [Name::Request, Name::Response].into_iter().find(|root| root.as_str() == name)?;
            Some((root, Vec::new()))
        }
        Expr::Select(select) if !select.test => {
            let (root, mut steps) = path(&select.operand)?;
            steps.push(Step::Member(select.field.clone()));
            Some((root, steps))
        }
        Expr::Call(call) if call.func_name == operators::INDEX => {
            let [operand, index] = call.args.as_slice() else { return None };
            let (root, mut steps) = path(operand)?;
            let Expr::Literal(index) = &index.expr else { return None };
            steps.push(match index {
                LiteralValue::String(name) => Step::Member(name.inner().to_owned()),
                LiteralValue::Int(index) => Step::Element(usize::try_from(*index.inner()).ok()?),
                _ => return None,
            });
            Some((root, steps))
        }
        _ => None,
    }
}
