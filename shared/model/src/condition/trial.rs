//! Trying a condition out on samples.

use std::collections::HashMap;
use std::sync::Arc;

use cel::common::ast::{Expr, LiteralValue, operators};
use cel::parser::Expression;
use cel::{Context, ExecutionError, Program, Value};
use chrono::DateTime;

use super::backends::{BackendFacts, Backends, Fact, FactValue};
use super::fields::{CONTEXT_FIELDS, TYPE_NAMES};
use super::library::library;
use super::{BackendCheck, ConditionFinding, free_names, loop_body, parts};
use crate::problem::{Finding, did_you_mean};

/// Tries a program out, part by part.
pub(super) struct Trial<'a> {
    program: &'a Program,
    context: Context<'static, 'static>,
    backends: &'a BackendCheck<'a>,
    findings: Vec<ConditionFinding>,
}

impl<'a> Trial<'a> {
    /// What is wrong with `program`. `backends` says whether there is a backend, or a model of one, of this name.
    pub(super) fn run(program: &'a Program, backends: &'a BackendCheck<'_>) -> Vec<ConditionFinding> {
        let mut trial = Self { program, context: sample_context(), backends, findings: Vec::new() };
        let root = program.expression();
        trial.check_names(root);
        trial.check_backends(root);
        if trial.findings.is_empty() {
            trial.check_types(root);
        }
        if trial.findings.is_empty()
            && let Ok(value) = trial.context.resolve(root)
            && !matches!(value, Value::Bool(_))
        {
            let message = format!("the condition gives {}, not bool", value.type_of());
            trial.findings.push(ConditionFinding {
                offset: 0,
                finding: Finding::new(message, "compare it with something, for example model == \"gpt-4o\""),
            });
        }
        trial.findings
    }

    fn report(&mut self, expression: &Expression, message: String, hint: String) {
        let offset =
            self.program.source_info().offset_for(expression.id).map_or(0, |(start, _)| start as usize);
        self.findings.push(ConditionFinding { offset, finding: Finding::new(message, hint) });
    }

    /// Reports names that are neither context fields nor variables of an enclosing loop.
    fn check_names(&mut self, root: &'a Expression) {
        for (expression, name) in free_names(root) {
            if TYPE_NAMES.contains(&name) || CONTEXT_FIELDS.iter().any(|(field, _, _)| *field == name) {
                continue;
            }
            let fields = CONTEXT_FIELDS.iter().map(|(field, _, _)| *field);
            let hint = did_you_mean(name, fields)
                .unwrap_or_else(|| "the reference page lists the fields of the routing context".to_owned());
            self.report(expression, format!("there is no field `{name}`"), hint);
        }
    }

    /// Reports backends and facts that there are not. What is no plain `backends["name"].fact` is refused: whether it
    /// means anything would be known only when it is too late.
    fn check_backends(&mut self, expression: &'a Expression) {
        match fact(expression) {
            Some((backend, name)) => {
                if let Err(finding) = (self.backends)(backend) {
                    self.report(expression, finding.message, finding.hint);
                }
                if Fact::find(name).is_none() {
                    let known = Fact::ALL.iter().map(|fact| fact.describe().0);
                    let hint = did_you_mean(name, known)
                        .unwrap_or_else(|| "the reference page lists what is known of backends".to_owned());
                    self.report(expression, format!("nothing called `{name}` is known of a backend"), hint);
                }
            }
            None if is_backends(expression) => self.report(
                expression,
                "a backend and a fact are missing".to_owned(),
                "for example backends[\"name\"].success_rate".to_owned(),
            ),
            None => parts(expression)
                .into_iter()
                .chain(loop_body(expression))
                .for_each(|part| self.check_backends(part)),
        }
    }

    /// Evaluates every part by itself, innermost first; stops going outwards at the first that cannot work. Returns
    /// whether nothing was found.
    fn check_types(&mut self, expression: &Expression) -> bool {
        let mut sound = true;
        // A backend is no value by itself.
        let inner = if fact(expression).is_some() { Vec::new() } else { parts(expression) };
        for part in inner {
            sound &= self.check_types(part);
        }
        if !sound {
            return false;
        }
        let message = match self.context.resolve(expression) {
            Ok(_) => self.never_equal(expression),
            Err(error) => fault(&error),
        };
        let Some(message) = message else { return true };
        self.report(expression, message, "the reference page lists the fields and their types".to_owned());
        false
    }

    /// `==` and `!=` of different types is legal CEL that never means anything.
    fn never_equal(&self, expression: &Expression) -> Option<String> {
        let Expr::Call(call) = &expression.expr else { return None };
        if ![operators::EQUALS, operators::NOT_EQUALS].contains(&call.func_name.as_str()) {
            return None;
        }
        let [left, right] = call.args.as_slice() else { return None };
        let (left, right) = (self.context.resolve(left).ok()?, self.context.resolve(right).ok()?);
        let kind = |value: &Value| match value {
            Value::UInt(_) | Value::Float(_) => "int".to_owned(),
            other => other.type_of().to_string(),
        };
        let (left, right) = (kind(&left), kind(&right));
        (left != right).then(|| format!("{left} never equals {right}"))
    }
}

/// What `error` says about the expression itself; `None` when it may be owed to the sample values.
fn fault(error: &ExecutionError) -> Option<String> {
    match error {
        ExecutionError::NoSuchOverload(overload) => {
            let types = overload.argument_types().join(" and ");
            Some(match overload.function().trim_matches(['_', '@']) {
                operator if operator.bytes().all(|byte| byte.is_ascii_punctuation()) || operator == "in" => {
                    format!("`{operator}` does not work on {types}")
                }
                function => format!("`{function}` does not take {types}"),
            })
        }
        ExecutionError::UndeclaredReference(name) => Some(format!("there is no function `{name}`")),
        ExecutionError::UnexpectedType { got, want } => Some(format!("this is {got}, not {want}")),
        ExecutionError::UnsupportedBinaryOperator(operation, left, right) => {
            Some(format!("cannot {operation} {} and {}", left.type_of(), right.type_of()))
        }
        ExecutionError::ValuesNotComparable(left, right) => {
            Some(format!("cannot compare {} with {}", left.type_of(), right.type_of()))
        }
        ExecutionError::FunctionError { function, message } => {
            let message = message.lines().last().unwrap_or_default();
            Some(format!("`{function}` fails: {}", message.trim_start_matches("error: ")))
        }
        ExecutionError::InvalidArgumentCount { expected, actual } => {
            Some(format!("the function takes {expected} arguments, not {actual}"))
        }
        ExecutionError::NotSupportedAsMethod { method, .. } => {
            Some(format!("`{method}` cannot be called on this"))
        }
        ExecutionError::UnsupportedTargetType { .. }
        | ExecutionError::MissingArgumentOrTarget
        | ExecutionError::UnsupportedKeyType(_)
        | ExecutionError::UnsupportedIndex(..)
        | ExecutionError::DuplicateKey(_) => Some(error.to_string()),
        // A header that the sample lacks, a division by a sample value, an index beyond a sample.
        _ => None,
    }
}

/// The names in `backends["backend"].fact`, however it is written.
fn fact(expression: &Expression) -> Option<(&str, &str)> {
    let (backend, fact) = member(expression)?;
    let (backends, name) = member(backend)?;
    is_backends(backends).then_some((name, fact))
}

/// `whole.name` or `whole["name"]`.
fn member(expression: &Expression) -> Option<(&Expression, &str)> {
    match &expression.expr {
        Expr::Select(select) => Some((&select.operand, &select.field)),
        Expr::Call(call) if call.func_name == operators::INDEX => match call.args.as_slice() {
            [whole, Expression { expr: Expr::Literal(LiteralValue::String(name)), .. }] => {
                Some((whole, name.inner()))
            }
            _ => None,
        },
        _ => None,
    }
}

fn is_backends(expression: &Expression) -> bool {
    matches!(&expression.expr, Expr::Ident(name) if name == "backends")
}

/// Any backend, doing as well as one can.
#[derive(Debug)]
struct Sample;

impl BackendFacts for Sample {
    fn fact(&self, _: &str, fact: Fact) -> Option<FactValue> {
        Some(match fact.describe().1 {
            "int" => FactValue::Count(1),
            "string" => FactValue::Word("1"),
            _ => FactValue::Number(1.0),
        })
    }
}

/// One value of the right type for each of [`CONTEXT_FIELDS`].
fn sample_context() -> Context<'static, 'static> {
    let mut context = Context::with_env(library());
    for (name, kind, _) in CONTEXT_FIELDS {
        let value = match *kind {
            "bool" => Value::Bool(true),
            "int" => Value::Int(1),
            "double" => Value::Float(1.0),
            "timestamp" => Value::Timestamp(DateTime::UNIX_EPOCH.fixed_offset()),
            "string" => Value::String(Arc::new("1".to_owned())),
            _ => Value::from(HashMap::from([("x-sample".to_owned(), "1".to_owned())])),
        };
        context.add_variable_from_value(*name, value);
    }
    context.add_variable_as_val("backends", Box::new(Backends(&Sample)));
    context
}
