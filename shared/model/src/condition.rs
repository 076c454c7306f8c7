//! CEL conditions of routes: compiled, and checked as far as this can be done without a request.
//!
//! CEL reports an unknown name or a wrong type only when it evaluates the expression, and `&&` and `||` hide what they
//! do not reach. A condition is therefore tried out when it is compiled: every part of it is evaluated by itself,
//! innermost first, in a context in which each field has a sample value of its type.
//!
//! What is sound is split: the parts that compare a field with a constant become [`Constraint`]s, which an index can look
//! up; only the rest is ever evaluated.

mod backends;
mod fields;
mod hoist;
mod library;
#[cfg(test)]
mod tests;
mod trial;

use cel::Program;
use cel::common::ast::{EntryExpr, Expr};
use cel::parser::Expression;

pub use backends::{BackendFacts, Backends, Fact, FactValue, NoFacts};
pub use fields::{CONTEXT_FIELDS, FUNCTIONS, TYPE_NAMES};
pub use library::library;

use crate::constraint::Constraint;
use crate::problem::Finding;

/// The longest condition, in bytes.
const MAX_BYTES: usize = 2_048;
/// The deepest condition, in nested operations. Evaluation recurses.
const MAX_DEPTH: usize = 64;
/// Loops within loops. Each multiplies the work.
const MAX_LOOPS: usize = 2;

/// A compiled CEL condition. It is true when all `constraints` and all of `rest` hold.
#[derive(Debug)]
pub struct Condition {
    /// As written.
    pub source: String,
    /// The whole of it. Checked: it only refers to [`CONTEXT_FIELDS`].
    pub program: Program,
    /// Its parts that are as good as matchers.
    pub constraints: Vec<Constraint>,
    /// Its other parts, in order.
    pub rest: Vec<Expression>,
}

/// Says what is wrong with the name of a backend, or of one of its models as `backend/model`.
pub(crate) type BackendCheck<'a> = dyn Fn(&str) -> Result<(), Finding> + 'a;

/// What is wrong within a condition.
#[derive(Debug)]
pub(crate) struct ConditionFinding {
    /// Byte offset in the source.
    pub(crate) offset: usize,
    pub(crate) finding: Finding,
}

impl Condition {
    /// Compiles and checks `source`.
    pub(crate) fn compile(source: &str, backends: &BackendCheck<'_>) -> Result<Self, Vec<ConditionFinding>> {
        let at_start = |message: String, hint: &str| {
            vec![ConditionFinding { offset: 0, finding: Finding::new(message, hint) }]
        };
        if source.trim().is_empty() {
            return Err(at_start(
                "the condition is empty".to_owned(),
                "leave the field out to match everything",
            ));
        }
        if source.len() > MAX_BYTES {
            return Err(at_start(
                format!("a condition has at most {MAX_BYTES} bytes, this one has {}", source.len()),
                "split it over several routes",
            ));
        }
        let program = library().compile(source).map_err(|errors| syntax_findings(source, &errors))?;
        let (depth, loops) = nesting(program.expression());
        if depth > MAX_DEPTH || loops > MAX_LOOPS {
            return Err(at_start(
                format!("the condition nests more than {MAX_DEPTH} operations or {MAX_LOOPS} loops"),
                "split it over several routes",
            ));
        }
        let findings = trial::Trial::run(&program, backends);
        if !findings.is_empty() {
            return Err(findings);
        }
        let (constraints, rest) = hoist::hoist(program.expression());
        Ok(Self { source: source.to_owned(), program, constraints, rest })
    }
}

fn syntax_findings(source: &str, errors: &cel::ParseErrors) -> Vec<ConditionFinding> {
    let (offset, message) = syntax_error(source, errors);
    vec![ConditionFinding { offset, finding: Finding::new(message, "see https://cel.dev for the language") }]
}

/// Where the first syntax error is, in bytes, and what it is; those that follow it are mostly its echo.
pub(crate) fn syntax_error(source: &str, errors: &cel::ParseErrors) -> (usize, String) {
    let (place, message) =
        errors.errors.first().map_or(((1, 1), ""), |error| (error.pos, error.msg.as_str()));
    let message = message.trim_start_matches("Syntax error: ");
    // The list of every token that could come next helps nobody.
    let message = message.split(" expecting {").next().unwrap_or(message);
    let message = message.replace("'<EOF>'", "<EOF>").replace("<EOF>", "the end of the expression");
    (offset_of(source, place), format!("not a CEL expression: {message}"))
}

/// The byte offset of a 1-based line and column, the column counted in characters.
fn offset_of(source: &str, (line, column): (isize, isize)) -> usize {
    let lines_before = usize::try_from(line - 1).unwrap_or(0);
    let characters_before = usize::try_from(column - 1).unwrap_or(0);
    let line_start: usize = source.split_inclusive('\n').take(lines_before).map(str::len).sum();
    let within = source[line_start..].char_indices().nth(characters_before).map(|(offset, _)| offset);
    within.map_or(source.len(), |within| line_start + within)
}

/// The direct parts of an expression that are evaluated in the same scope, loops' bodies left out.
fn parts(expression: &Expression) -> Vec<&Expression> {
    match &expression.expr {
        Expr::Call(call) => call.target.as_deref().into_iter().chain(&call.args).collect(),
        Expr::Comprehension(loop_) => vec![&loop_.iter_range],
        Expr::List(list) => list.elements.iter().collect(),
        Expr::Select(select) => vec![&select.operand],
        Expr::Map(map) => map.entries.iter().flat_map(|entry| entry_parts(&entry.expr)).collect(),
        Expr::Struct(structure) => {
            structure.entries.iter().flat_map(|entry| entry_parts(&entry.expr)).collect()
        }
        Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => Vec::new(),
    }
}

fn entry_parts(entry: &EntryExpr) -> Vec<&Expression> {
    match entry {
        EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
        EntryExpr::StructField(field) => vec![&field.value],
    }
}

/// The parts of a loop that see its variables.
fn loop_body(expression: &Expression) -> Vec<&Expression> {
    match &expression.expr {
        Expr::Comprehension(loop_) => {
            vec![&loop_.accu_init, &loop_.loop_cond, &loop_.loop_step, &loop_.result]
        }
        _ => Vec::new(),
    }
}

/// How deep operations nest, and how deep loops nest.
#[must_use]
pub fn nesting(expression: &Expression) -> (usize, usize) {
    let deepest = |parts: Vec<&Expression>| {
        parts.into_iter().map(nesting).fold((0, 0), |a, b| (a.0.max(b.0), a.1.max(b.1)))
    };
    let (parts, body) = (deepest(parts(expression)), deepest(loop_body(expression)));
    let own_loop = usize::from(matches!(expression.expr, Expr::Comprehension(_)));
    (1 + parts.0.max(body.0), parts.1.max(body.1 + own_loop))
}

/// The names in an expression that are not variables of a loop around them, each with its place.
#[must_use]
pub fn free_names(expression: &Expression) -> Vec<(&Expression, &str)> {
    let mut found = Vec::new();
    collect_free_names(expression, &mut Vec::new(), &mut found);
    found
}

fn collect_free_names<'a>(
    expression: &'a Expression,
    scope: &mut Vec<&'a str>,
    found: &mut Vec<(&'a Expression, &'a str)>,
) {
    if let Expr::Ident(name) = &expression.expr
        && !name.starts_with('@')
        && !scope.contains(&name.as_str())
    {
        found.push((expression, name));
    }
    for part in parts(expression) {
        collect_free_names(part, scope, found);
    }
    if let Expr::Comprehension(loop_) = &expression.expr {
        let depth = scope.len();
        scope.extend([loop_.iter_var.as_str(), loop_.accu_var.as_str()]);
        scope.extend(loop_.iter_var2.as_deref());
        for part in loop_body(expression) {
            collect_free_names(part, scope, found);
        }
        scope.truncate(depth);
    }
}
