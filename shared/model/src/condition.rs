//! CEL conditions of routes: compiled, and checked as far as this can be done without a request.
//!
//! CEL reports an unknown name or a wrong type only when it evaluates the expression, and `&&` and `||` hide what they
//! do not reach. A condition is therefore tried out when it is compiled: every part of it is evaluated by itself,
//! innermost first, in a context in which each field has a sample value of its type.

use std::collections::HashMap;
use std::sync::Arc;

use cel::common::ast::{EntryExpr, Expr, operators};
use cel::parser::Expression;
use cel::{Context, ExecutionError, Program, Value};

use crate::problem::Finding;

/// The longest condition, in bytes.
const MAX_BYTES: usize = 2_048;
/// The deepest condition, in nested operations. Evaluation recurses.
const MAX_DEPTH: usize = 64;
/// Loops within loops. Each multiplies the work.
const MAX_LOOPS: usize = 2;

/// A compiled CEL condition.
#[derive(Debug)]
pub struct Condition {
    /// As written.
    pub source: String,
    /// Checked: it only refers to [`CONTEXT_FIELDS`].
    pub program: Program,
}

/// The names a condition may use, each with its CEL type and what it is.
pub const CONTEXT_FIELDS: &[(&str, &str, &str)] = &[
    ("method", "string", "HTTP method"),
    ("path", "string", "request path without the query"),
    ("host", "string", "the Host header or :authority"),
    ("headers", "map(string, string)", "request headers, lower-case names"),
    ("client_ip", "string", "address of the peer"),
    ("protocol", "string", PROTOCOLS),
    ("model", "string", "the model the client asked for"),
    ("stream", "bool", "does the client want a stream?"),
    ("message_count", "int", "how many messages the conversation has"),
    ("system_prompt", "bool", "is there a system or developer message?"),
    ("prompt_tokens", "int", "estimate of the prompt's tokens"),
    ("max_tokens", "int", "the client's limit, 0 when not given"),
    ("tools", "int", "how many tools the request declares"),
    ("images", "bool", "does a message hold an image?"),
    ("user", "string", "the request's user field, empty when absent"),
    ("biz_type", "string", "the x-biz-type header, empty when absent"),
    ("hour", "int", "0 to 23, UTC"),
    ("weekday", "int", "1 = Monday to 7 = Sunday, UTC"),
    ("zone", "string", "the proxy's zone"),
    ("region", "string", "the proxy's region"),
    ("node", "string", "the proxy's id"),
];

/// What `protocol` can be: each protocol that clients speak.
const PROTOCOLS: &str = "openai-chat, openai-responses, openai-completions, openai-embeddings, openai-rerank, \
    openai-moderations, openai-images, openai-audio, anthropic-messages, gemini, invoke, grpc, or http for any other call";

/// Type names that CEL resolves like variables, as in `type(model) == string`.
pub const TYPE_NAMES: &[&str] =
    &["bool", "bytes", "double", "int", "list", "map", "null_type", "string", "type", "uint"];

/// What is wrong within a condition.
#[derive(Debug)]
pub(crate) struct ConditionFinding {
    /// Byte offset in the source.
    pub(crate) offset: usize,
    pub(crate) finding: Finding,
}

impl Condition {
    /// Compiles and checks `source`.
    pub(crate) fn compile(source: &str) -> Result<Self, Vec<ConditionFinding>> {
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
        let program = Program::compile(source).map_err(|errors| syntax_findings(source, &errors))?;
        let (depth, loops) = nesting(program.expression());
        if depth > MAX_DEPTH || loops > MAX_LOOPS {
            return Err(at_start(
                format!("the condition nests more than {MAX_DEPTH} operations or {MAX_LOOPS} loops"),
                "split it over several routes",
            ));
        }
        let findings = Trial::run(&program);
        if findings.is_empty() { Ok(Self { source: source.to_owned(), program }) } else { Err(findings) }
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

/// Tries a program out, part by part.
struct Trial<'a> {
    program: &'a Program,
    context: Context<'static, 'static>,
    findings: Vec<ConditionFinding>,
}

impl<'a> Trial<'a> {
    fn run(program: &'a Program) -> Vec<ConditionFinding> {
        let mut trial = Self { program, context: sample_context(), findings: Vec::new() };
        let root = program.expression();
        trial.check_names(root);
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
            let hint = crate::problem::did_you_mean(name, fields)
                .unwrap_or_else(|| "the reference page lists the fields of the routing context".to_owned());
            self.report(expression, format!("there is no field `{name}`"), hint);
        }
    }

    /// Evaluates every part by itself, innermost first; stops going outwards at the first that cannot work. Returns
    /// whether nothing was found.
    fn check_types(&mut self, expression: &Expression) -> bool {
        let mut sound = true;
        for part in parts(expression) {
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

/// One value of the right type for each of [`CONTEXT_FIELDS`].
fn sample_context() -> Context<'static, 'static> {
    let mut context = Context::default();
    for (name, kind, _) in CONTEXT_FIELDS {
        let value = match *kind {
            "bool" => Value::Bool(true),
            "int" => Value::Int(1),
            "string" => Value::String(Arc::new("1".to_owned())),
            _ => Value::from(HashMap::from([("x-sample".to_owned(), "1".to_owned())])),
        };
        context.add_variable_from_value(*name, value);
    }
    context
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn findings(source: &str) -> Vec<(usize, String, String)> {
        let findings = Condition::compile(source).expect_err("the condition should be refused");
        findings.into_iter().map(|at| (at.offset, at.finding.message, at.finding.hint)).collect()
    }

    #[test]
    fn what_the_reference_page_promises_compiles() {
        for good in [
            "stream && headers[\"x-tenant\"] == \"acme\"",
            "has(headers.authorization) || model.startsWith('gpt-')",
            "hour >= 9 && hour < 18 && weekday <= 5",
            "headers.exists(name, name.startsWith(\"x-beta-\") && headers[name] == \"on\")",
            "biz_type in [\"risk\", \"ocr\"]",
            "prompt_tokens + max_tokens > 32000 && !images",
            "model.matches(\"^gpt-4(o|\\\\.1)\") && size(user) > 0",
            "string(hour) == '7' || prompt_tokens > 1.5",
            "type(model) == string",
            "headers['x-count'] == '3' && int(headers['x-count']) > 2",
            "user == '张三' || message_count == 1",
        ] {
            assert!(Condition::compile(good).is_ok(), "{good}: {:?}", findings(good));
        }
    }

    #[test]
    fn an_unknown_field_is_found_with_its_place_and_the_likely_name() {
        let found = findings("user == '张三' && modle == 'x' && tenant == 'y'");
        assert_eq!(
            found[0],
            (20, "there is no field `modle`".to_owned(), "did you mean `model`?".to_owned())
        );
        assert_eq!(found[1].1, "there is no field `tenant`");
    }

    #[test]
    fn a_loop_variable_is_no_unknown_field_but_ends_with_its_loop() {
        assert!(Condition::compile("[1, 2].exists(n, n == tools)").is_ok());
        assert_eq!(findings("[1, 2].exists(n, n == tools) && n == 1")[0].1, "there is no field `n`");
    }

    #[test]
    fn a_syntax_error_is_found_with_its_place() {
        let found = findings("model == \"a\" &&\n  stream y");
        assert_eq!((found[0].0, found.len()), (25, 1));
        assert!(found[0].1.starts_with("not a CEL expression: "), "{}", found[0].1);
        assert!(!findings("model ==")[0].1.contains("NUM_FLOAT"));
        assert_eq!(findings("user == '张三' == y z")[0].0, 22);
    }

    #[test]
    fn wrong_types_are_found_even_where_evaluation_would_not_reach() {
        for (bad, message) in [
            ("model", "the condition gives string, not bool"),
            ("message_count + 1", "the condition gives int, not bool"),
            ("!stream && message_count > '1'", "`>` does not work on int and string"),
            ("stream || !model", "`!` does not work on string"),
            ("stream == 'yes'", "bool never equals string"),
            ("model + 1 == 'x'", "cannot add string and int"),
            ("!stream && lower(model) == 'x'", "there is no function `lower`"),
            ("!stream && model.matches('(')", "`matches` fails: unclosed group"),
            ("model.startsWith(1)", "`startsWith` does not take string and int"),
        ] {
            assert_eq!(findings(bad)[0].1, message, "{bad}");
        }
    }

    #[test]
    fn conditions_are_bounded() {
        assert!(findings(" ")[0].1.contains("empty"));
        assert!(findings(&vec!["stream"; 400].join(" && "))[0].1.contains("at most 2048 bytes"));
        assert!(findings(&format!("{}1 == 1", "1+".repeat(100)))[0].1.contains("nests more than"));
        assert!(Condition::compile(&format!("{}stream{}", "(".repeat(500), ")".repeat(500))).is_err());
        let loops = |depth: usize| format!("{}stream{}", "[1].all(n, ".repeat(depth), ")".repeat(depth));
        assert!(Condition::compile(&loops(2)).is_ok());
        assert!(findings(&loops(3))[0].1.contains("2 loops"));
        assert!(Condition::compile(&vec!["stream"; 100].join(" && ")).is_ok(), "a long chain is not deep");
    }

    proptest! {
        #[test]
        fn compiling_never_panics(source in "[a-z0-9 .,&|!=<>+*/%?:()\\[\\]{}'\"\\\\长-]{0,40}") {
            let _ = Condition::compile(&source);
        }
    }
}
