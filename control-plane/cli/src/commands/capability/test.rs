//! `penstock capability test`.

use std::path::{Path, PathBuf};

use penstock_model::Policy;
use serde::Deserialize;

use super::report::{Labelled, Report};
use super::{SourceArgs, validate};
use crate::failure::Failure;
use crate::output::{self, Format};
use crate::render;
use crate::run::Context;

/// Classify labelled texts and print how many are taken for what they are
///
/// Prints accuracy, the confusion matrix, precision and recall of each capability, and whether confidence means what it says
/// (expected calibration error over 15 bins). Each line of the file is a JSON object with text, capability and, if you like,
/// language. Take texts that are not among the policy's examples, or the numbers say nothing.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  penstock capability test -f labelled.jsonl\n  \
                        penstock capability test -f examples/capabilities/held-out.jsonl --policy examples/capabilities/policy.yaml")]
pub(crate) struct Args {
    /// Labelled texts, a JSON object per line: {"text": "...", "capability": "code", "language": "en"}; - reads standard input
    #[arg(short, long, value_name = "FILE")]
    file: PathBuf,
    /// Print the texts that were taken for something else as well
    #[arg(long)]
    wrong: bool,
    #[command(flatten)]
    source: SourceArgs,
    /// How to print it
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<(), Failure> {
    let lines = validate::read(&args.file)?;
    let subject = args.source.subject(context)?;
    let texts = parse(&args.file, &lines, &subject.policy)?;
    let mut report = Report::new(&subject, &texts);
    if !args.wrong {
        report.wrong.clear();
    }
    output::listing(args.output, &report, |report| render::capabilities::report(report, context.language))
}

#[derive(Deserialize)]
struct Line {
    text: String,
    capability: String,
    #[serde(default)]
    language: String,
}

fn parse(file: &Path, lines: &str, policy: &Policy) -> Result<Vec<Labelled>, Failure> {
    let mut texts = Vec::new();
    for (index, line) in lines.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let at = |what: String| format!("{}:{}: {what}", file.display(), index + 1);
        let line: Line = serde_json::from_str(line).map_err(|error| Failure::Setting {
            what: at(error.to_string()),
            advice: "write one object a line, like {\"text\": \"Fix this code\", \"capability\": \"code\"}"
                .to_owned(),
        })?;
        let capability = policy.find_capability(&line.capability).ok_or_else(|| {
            let names: Vec<_> =
                policy.capabilities.iter().map(|capability| capability.name.as_str()).collect();
            Failure::Setting {
                what: at(format!("the policy has no capability {:?}", line.capability)),
                advice: format!("it has {}", names.join(", ")),
            }
        })?;
        texts.push(Labelled { text: line.text, capability, language: line.language });
    }
    if texts.is_empty() {
        return Err(Failure::Setting {
            what: format!("{} has no texts", file.display()),
            advice: "write one object a line, like {\"text\": \"Fix this code\", \"capability\": \"code\"}"
                .to_owned(),
        });
    }
    Ok(texts)
}
