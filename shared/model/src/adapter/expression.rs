//! One expression of a template.

use std::borrow::Cow;

use cel::common::ast::{Expr, LiteralValue, operators};
use cel::parser::Expression as Ast;
use cel::{Context, ExecutionError, Program};
use serde_json::Value;

use super::{MAX_EXPRESSION, Scope, value};
use crate::condition::{TYPE_NAMES, free_names, nesting, syntax_error};

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
    Body(String),
}

/// What is wrong with an expression, and where in it, in bytes.
#[derive(Debug)]
pub(super) struct Mistake {
    pub(super) offset: usize,
    pub(super) reason: String,
}

impl Mistake {
    pub(super) fn at(offset: usize, reason: impl Into<String>) -> Self {
        Self { offset, reason: reason.into() }
    }
}

impl Expression {
    /// Compiles `source`, which may use the names in `allowed`.
    pub(super) fn compile(source: &str, allowed: &[Name]) -> Result<Self, Mistake> {
        if source.trim().is_empty() {
            return Err(Mistake::at(0, "the expression is empty"));
        }
        if source.len() > MAX_EXPRESSION {
            return Err(Mistake::at(0, format!("an expression has at most {MAX_EXPRESSION} bytes")));
        }
        let program = Program::compile(source).map_err(|errors| {
            let (offset, reason) = syntax_error(source, &errors);
            Mistake { offset, reason }
        })?;
        let (depth, loops) = nesting(program.expression());
        if depth > MAX_NESTING || loops > MAX_LOOPS {
            let reason = format!("nests more than {MAX_NESTING} operations or {MAX_LOOPS} loops");
            return Err(Mistake::at(0, reason));
        }
        let names = names(&program, allowed)?;
        check_functions(source, &program)?;
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
    super::clip(&error.to_string()).to_owned()
}

/// The names that the program uses, each once.
fn names(program: &Program, allowed: &[Name]) -> Result<Vec<Name>, Mistake> {
    let mut names = Vec::new();
    for (expression, used) in free_names(program.expression()) {
        match allowed.iter().find(|name| name.as_str() == used) {
            Some(name) if !names.contains(name) => names.push(*name),
            Some(_) => {}
            None if TYPE_NAMES.contains(&used) => {}
            None => {
                let known: Vec<_> = allowed.iter().map(|name| name.as_str()).collect();
                let offset =
                    program.source_info().offset_for(expression.id).map_or(0, |(start, _)| start as usize);
                let reason = format!("there is no `{used}` here; there are {}", known.join(", "));
                return Err(Mistake { offset, reason });
            }
        }
    }
    Ok(names)
}

/// CEL itself reports an unknown function only when it gets there.
fn check_functions(source: &str, program: &Program) -> Result<(), Mistake> {
    for name in program.references().functions() {
        if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') || name.starts_with('_') {
            continue;
        }
        let call = Program::compile(&format!("{name}()")).map(|call| call.execute(&Context::default()));
        if let Ok(Err(ExecutionError::UndeclaredReference(_))) = call {
            let offset = source.find(name).unwrap_or(0);
            return Err(Mistake::at(offset, format!("there is no function `{name}`")));
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
