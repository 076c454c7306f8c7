//! `penstock capability explain`.

use penstock_decision::capability::Explanation;
use serde::Serialize;

use super::{SourceArgs, Subject};
use crate::failure::Failure;
use crate::output::{self, Format};
use crate::render;
use crate::run::Context;

/// Pieces of the text that are named.
const GRAMS: usize = 12;

/// Say what a text is taken for, and what in it speaks for that
///
/// Shows the keywords in it, the model's probability for each capability, and the pieces of the text that count most for the
/// likeliest one, or against it.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  penstock capability explain \"Write a Python function that reverses a list\"\n  \
                        penstock capability explain 帮我写一个快速排序算法 --policy policy.yaml"
)]
pub(crate) struct Args {
    /// The text, as a user would write it
    #[arg(value_name = "TEXT")]
    text: String,
    #[command(flatten)]
    source: SourceArgs,
    /// How to print it
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<(), Failure> {
    let subject = args.source.subject(context)?;
    let view = Explained::new(&subject, &subject.classifier.explain(&args.text, GRAMS));
    output::listing(args.output, &view, |view| render::capabilities::explained(view, context.language))
}

/// An explanation with names in the place of indices.
#[derive(Debug, Serialize)]
pub(crate) struct Explained {
    pub(crate) capability: String,
    pub(crate) confidence: f64,
    pub(crate) source: &'static str,
    pub(crate) keywords: Vec<Keyword>,
    pub(crate) guesses: Vec<Guess>,
    pub(crate) pieces: Vec<Piece>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Keyword {
    pub(crate) text: String,
    pub(crate) capability: String,
}

#[derive(Debug, Serialize)]
pub(crate) struct Guess {
    pub(crate) capability: String,
    pub(crate) probability: f64,
    pub(crate) threshold: f64,
}

#[derive(Debug, Serialize)]
pub(crate) struct Piece {
    pub(crate) text: String,
    pub(crate) weight: f64,
}

impl Explained {
    fn new(subject: &Subject, explanation: &Explanation) -> Self {
        let name =
            |id: penstock_model::policy::CapabilityId| subject.policy.capabilities[id.index()].name.clone();
        let found = explanation.classification;
        Self {
            capability: name(found.capability),
            confidence: found.confidence,
            source: found.source.as_str(),
            keywords: explanation
                .keywords
                .iter()
                .map(|(text, id)| Keyword { text: text.clone(), capability: name(*id) })
                .collect(),
            guesses: explanation
                .guesses
                .iter()
                .map(|guess| Guess {
                    capability: name(guess.capability),
                    probability: guess.probability,
                    threshold: guess.threshold,
                })
                .collect(),
            pieces: explanation
                .grams
                .iter()
                .map(|gram| Piece { text: gram.text.clone(), weight: gram.weight })
                .collect(),
        }
    }
}
