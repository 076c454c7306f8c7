//! `penstock policy validate`.

use std::path::{Path, PathBuf};

use penstock_model::{Problem, Severity};
use serde::Serialize;

use crate::failure::Failure;
use crate::output::{self, Format};
use crate::render;
use crate::run::Context;

/// Check a policy document without a control plane
///
/// Runs the same code that the planes run, and reports every problem at once. Exit code 1 when there is an error;
/// warnings alone are no failure.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  penstock policy validate policy.yaml\n  penstock policy validate policy.yaml -o json"
)]
pub(crate) struct Args {
    /// The document, YAML or JSON; - reads standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// How to print problems
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<(), Failure> {
    let document = read(&args.file)?;
    let problems = penstock_model::load(&document).problems;
    let file = args.file.display().to_string();
    let errors = errors(&problems);
    let report = Report::new(&file, &problems);
    output::listing(args.output, &report, |_| {
        let mut text = render::problems::problems(&file, &document, &problems, context.color);
        if errors == 0 {
            let warnings = problems.len();
            text.push_str(&match warnings {
                0 => format!("{file} is valid\n"),
                1 => format!("{file} is valid, with 1 warning\n"),
                _ => format!("{file} is valid, with {warnings} warnings\n"),
            });
        }
        text
    })?;
    if errors == 0 { Ok(()) } else { Err(Failure::InvalidPolicy { file, errors }) }
}

/// Reads a document from a file, or from standard input for `-`.
pub(crate) fn read(path: &Path) -> Result<String, Failure> {
    let text = if path == Path::new("-") {
        std::io::read_to_string(std::io::stdin())
    } else {
        std::fs::read_to_string(path)
    };
    text.map_err(|source| Failure::File { path: path.to_owned(), source })
}

/// Checks a document before anything is started or sent: problems are printed, errors fail.
pub(crate) fn check(file: &Path, document: &str, context: &Context) -> Result<(), Failure> {
    let problems = penstock_model::load(document).problems;
    let file = file.display().to_string();
    refuse(&file, document, &problems, context)
}

/// Prints problems to standard error, and fails when one of them is an error.
pub(crate) fn refuse(
    file: &str,
    document: &str,
    problems: &[Problem],
    context: &Context,
) -> Result<(), Failure> {
    if !problems.is_empty() {
        context.say(render::problems::problems(file, document, problems, false).trim_end());
    }
    match errors(problems) {
        0 => Ok(()),
        errors => Err(Failure::InvalidPolicy { file: file.to_owned(), errors }),
    }
}

fn errors(problems: &[Problem]) -> usize {
    problems.iter().filter(|problem| problem.severity == Severity::Error).count()
}

/// What programs get.
#[derive(Debug, Serialize)]
struct Report<'a> {
    file: &'a str,
    valid: bool,
    problems: Vec<Item<'a>>,
}

#[derive(Debug, Serialize)]
struct Item<'a> {
    severity: &'static str,
    path: &'a str,
    line: u32,
    column: u32,
    message: &'a str,
    hint: &'a str,
}

impl<'a> Report<'a> {
    fn new(file: &'a str, problems: &'a [Problem]) -> Self {
        let item = |problem: &'a Problem| Item {
            severity: match problem.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
            },
            path: &problem.path,
            line: problem.line,
            column: problem.column,
            message: &problem.message,
            hint: &problem.hint,
        };
        Self { file, valid: errors(problems) == 0, problems: problems.iter().map(item).collect() }
    }
}
