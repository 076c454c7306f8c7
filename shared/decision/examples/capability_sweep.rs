//! How well texts of the shipped set are told apart, by what the model sees and how it is trained: the table of ADR 11.
//!
//! `cargo run --release -p penstock-decision --example capability_sweep` uses the development part. The held-out part is
//! for `penstock capability test` alone: what is chosen by looking at it, it cannot judge any more.

#![expect(clippy::print_stdout, reason = "a table for people")]

use std::error::Error;
use std::time::Instant;

use penstock_decision::capability::measure::{Judged, Tally, calibration_error, covered};
use penstock_decision::capability::{Classification, Classifier};
use penstock_decision::classifier::{Examples, Recipe, Settings, train};
use penstock_model::Policy;
use penstock_model::policy::CapabilityId;
use serde::Deserialize;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/capabilities");

#[derive(Deserialize)]
struct Labelled {
    capability: String,
    language: String,
    text: String,
}

fn main() -> Result<(), Box<dyn Error>> {
    let policy = penstock_model::load(&std::fs::read_to_string(format!("{FOLDER}/policy.yaml"))?).policy;
    let mut policy = policy.ok_or("the shipped policy is not valid")?;
    let texts = std::fs::read_to_string(format!("{FOLDER}/development.jsonl"))?;
    let texts: Vec<Labelled> = texts.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;

    println!(
        "| settings | all | en | zh | calibration error | covered | of these right | bytes | training |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|--:|--:|");
    report("keywords and model", &policy, &texts, &Settings::default())?;
    policy.capabilities.iter_mut().for_each(|capability| capability.keywords.clear());
    for (name, settings) in variants() {
        report(&name, &policy, &texts, &settings)?;
    }
    Ok(())
}

fn variants() -> Vec<(String, Settings)> {
    let chosen = Settings::default();
    let recipe = |recipe: Recipe| Settings { recipe, ..chosen };
    let mut variants = vec![("the model alone".to_owned(), chosen)];
    for order in 1..=5 {
        for words in [false, true] {
            let name = format!("n-grams to {order}{}", if words { " and words" } else { "" });
            variants.push((name, recipe(Recipe { order, words, ..chosen.recipe })));
        }
    }
    for bits in 11..=16 {
        variants.push((format!("2^{bits} buckets"), recipe(Recipe { bits, ..chosen.recipe })));
    }
    for common in 1..=3 {
        variants.push((format!("features of {common} examples or more"), Settings { common, ..chosen }));
    }
    for rate in [1.0, 2.0, 8.0] {
        variants.push((format!("rate {rate}"), Settings { rate, ..chosen }));
    }
    for seed in 2..=4 {
        variants.push((format!("seed {seed}"), Settings { seed, ..chosen }));
    }
    variants
}

fn report(
    name: &str,
    policy: &Policy,
    texts: &[Labelled],
    settings: &Settings,
) -> Result<(), Box<dyn Error>> {
    let examples = Examples::of(policy).ok_or("the shipped policy has examples")?;
    let started = Instant::now();
    let model = train(&examples, settings);
    let took = started.elapsed().as_millis();
    let bytes = model.encode().len();
    let classifier = Classifier::new(policy, Some(model));
    let judge = |text: &Labelled| {
        let truth = policy.find_capability(&text.capability).ok_or("a label that the policy has not")?;
        Ok(Judged { truth, found: classifier.classify([text.text.as_str()]) })
    };
    let judged: Vec<Judged> = texts.iter().map(judge).collect::<Result<_, &str>>()?;
    let of = |language: &str| -> Vec<Judged> {
        let both = texts.iter().zip(&judged).filter(|(text, _)| text.language == language);
        both.map(|(_, judged)| *judged).collect()
    };
    let accuracy = |judged: &[Judged]| Tally::of(judged, |_| true).accuracy().unwrap_or_default();
    let covered = covered(&judged);
    println!(
        "| {name} | {:.3} | {:.3} | {:.3} | {:.3} | {:.2} | {:.3} | {bytes} | {took} ms |",
        accuracy(&judged),
        accuracy(&of("en")),
        accuracy(&of("zh")),
        calibration_error(&judged),
        covered.texts as f64 / judged.len() as f64,
        covered.accuracy().unwrap_or_default(),
    );
    if std::env::args().any(|argument| argument == "--errors") && name == "keywords and model" {
        let name = |capability: CapabilityId| policy.capabilities[capability.index()].name.as_str();
        for (text, Judged { found: Classification { capability, confidence, source }, .. }) in
            texts.iter().zip(&judged).filter(|(_, one)| one.truth != one.found.capability)
        {
            println!(
                "{} → {} {} {confidence:.2}: {}",
                text.capability,
                name(*capability),
                source.as_str(),
                text.text
            );
        }
    }
    Ok(())
}
