//! The shipped capabilities: how well the held-out texts are told apart, and that training repeats itself.

use std::fs;

use penstock_decision::capability::Classifier;
use penstock_decision::capability::measure::{Judged, Tally, calibration_error, precision_and_recall};
use penstock_decision::classifier::{Examples, Model, Settings, train};
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

fn read(file: &str) -> String {
    fs::read_to_string(format!("{FOLDER}/{file}")).expect("a shipped file")
}

fn policy() -> Policy {
    let loaded = penstock_model::load(&read("policy.yaml"));
    loaded.policy.unwrap_or_else(|| panic!("{:#?}", loaded.problems))
}

fn labelled(file: &str) -> Vec<Labelled> {
    read(file).lines().map(|line| serde_json::from_str(line).expect("a labelled text")).collect()
}

fn trained(policy: &Policy) -> Model {
    train(&Examples::of(policy).expect("there are examples"), &Settings::default())
}

fn judge(policy: &Policy, classifier: &Classifier, texts: &[Labelled]) -> Vec<Judged> {
    let judge = |text: &Labelled| Judged {
        truth: policy.find_capability(&text.capability).expect("a label of the policy"),
        found: classifier.classify([text.text.as_str()]),
    };
    texts.iter().map(judge).collect()
}

fn accuracy(judged: &[Judged]) -> f64 {
    Tally::of(judged, |_| true).accuracy().expect("there are texts")
}

#[test]
fn held_out_texts_are_told_apart_and_confidence_means_what_it_says() {
    let policy = policy();
    let texts = labelled("held-out.jsonl");
    let judged = judge(&policy, &Classifier::new(&policy, Some(trained(&policy))), &texts);
    assert!(accuracy(&judged) >= 0.90, "{}", accuracy(&judged));
    assert!(calibration_error(&judged) < 0.08, "{}", calibration_error(&judged));
    for language in ["en", "zh"] {
        let of_language = judged.iter().zip(&texts).filter(|(_, text)| text.language == language);
        let of_language: Vec<Judged> = of_language.map(|(judged, _)| *judged).collect();
        assert!(accuracy(&of_language) >= 0.85, "{language}: {}", accuracy(&of_language));
    }
    for capability in 0..policy.capabilities.len() {
        let (precision, recall) = precision_and_recall(&judged, CapabilityId(capability as u32));
        assert!(
            precision.unwrap() >= 0.75 && recall.unwrap() >= 0.75,
            "{capability}: {precision:?} {recall:?}"
        );
    }
}

#[test]
fn the_same_examples_and_settings_give_the_same_bytes_and_other_ones_do_not() {
    let policy = policy();
    let examples = Examples::of(&policy).unwrap();
    let train = |settings: &Settings| train(&examples, settings).encode();
    let chosen = Settings::default();
    assert_eq!(train(&chosen), train(&chosen));
    let other = Settings { seed: 2, ..chosen };
    assert_ne!(train(&chosen), train(&other));
    assert_ne!(examples.hash(&chosen), examples.hash(&other));
}

#[test]
fn a_model_that_was_sent_decides_like_the_one_that_was_trained() {
    let policy = policy();
    let model = trained(&policy);
    let bytes = model.encode();
    assert!(bytes.len() < 200 << 10, "{} bytes", bytes.len());
    let received = Model::decode(&bytes).unwrap();
    let texts = labelled("development.jsonl");
    let here = judge(&policy, &Classifier::new(&policy, Some(model)), &texts);
    assert_eq!(here, judge(&policy, &Classifier::new(&policy, Some(received)), &texts));
}

/// The parts were written apart from each other; a text in two of them would make them say the same.
#[test]
fn no_text_is_in_two_parts_of_the_set() {
    let policy = policy();
    let examples = policy.capabilities.iter().flat_map(|capability| capability.examples.clone());
    let mut seen: std::collections::HashSet<String> = examples.collect();
    for file in ["development.jsonl", "held-out.jsonl"] {
        for text in labelled(file) {
            assert!(seen.insert(text.text.clone()), "{file}: {}", text.text);
        }
    }
    let (held_out, development) = (labelled("held-out.jsonl"), labelled("development.jsonl"));
    for capability in &policy.capabilities {
        let count = |texts: &[Labelled], language: &str| {
            texts
                .iter()
                .filter(|text| text.capability == capability.name && text.language == language)
                .count()
        };
        assert!(capability.examples.len() >= 120, "{}", capability.name);
        assert!(count(&held_out, "en") >= 15 && count(&held_out, "zh") >= 15, "{}", capability.name);
        assert!(count(&development, "en") >= 10 && count(&development, "zh") >= 10, "{}", capability.name);
    }
}
