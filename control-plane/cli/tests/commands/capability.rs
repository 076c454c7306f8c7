//! `penstock capability …`.

use penstock_proto::admin::v1::{GetPolicyVersionResponse, PolicyVersion};
use serde_json::Value;

use crate::penstock;
use crate::server::{Control, Script};

const POLICY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/capabilities/policy.yaml");
const HELD_OUT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/capabilities/held-out.jsonl");

fn test(more: &[&str], variables: &[(&str, &str)]) -> crate::Ended {
    penstock(&[&["capability", "test", "-f", HELD_OUT, "--policy", POLICY], more].concat(), variables)
}

#[test]
fn the_shipped_capabilities_meet_what_is_promised_of_them() {
    let ended = test(&["-o", "json"], &[]);
    assert_eq!(ended.code, 0, "{ended:?}");
    let report: Value = serde_json::from_str(&ended.out).unwrap();
    assert!(report["accuracy"].as_f64().unwrap() >= 0.90, "{report:#}");
    assert!(report["calibration_error"].as_f64().unwrap() < 0.08, "{report:#}");
    assert_eq!(report["capabilities"].as_array().unwrap().len(), 7);
    let confusion = report["confusion"].as_array().unwrap();
    let counted: u64 =
        confusion.iter().flat_map(|row| row.as_array().unwrap()).map(|count| count.as_u64().unwrap()).sum();
    assert_eq!(counted, report["texts"].as_u64().unwrap());
    let languages: Vec<_> =
        report["languages"].as_array().unwrap().iter().map(|part| &part["name"]).collect();
    assert_eq!(languages, ["en", "zh"]);
    assert_eq!(report["wrong"], Value::Array(Vec::new()));
}

#[test]
fn the_report_for_people_is_in_their_language() {
    let english = test(&["--wrong"], &[]);
    for part in ["accuracy     0.9", "confusion: a row is what it is", "by language", "CONFIDENCE", "wrong\n"]
    {
        assert!(english.out.contains(part), "{part}: {}", english.out);
    }
    let chinese = test(&[], &[("LANG", "zh_CN.UTF-8")]);
    for part in ["准确率       0.9", "混淆矩阵", "按语言", "校准"] {
        assert!(chinese.out.contains(part), "{part}: {}", chinese.out);
    }
    assert!(!chinese.out.contains("判错的文本"), "only with --wrong");
}

#[test]
fn without_a_file_the_policy_is_the_control_planes() {
    let control = Control::start(Script {
        version: GetPolicyVersionResponse {
            version: Some(PolicyVersion { version: 3, ..PolicyVersion::default() }),
            document: std::fs::read(POLICY).unwrap(),
        },
        ..Script::default()
    });
    let served =
        penstock(&["capability", "test", "-f", HELD_OUT, "-o", "json", "--server", &control.url], &[]);
    let (served, local): (Value, Value) = (
        serde_json::from_str(&served.out).unwrap(),
        serde_json::from_str(&test(&["-o", "json"], &[]).out).unwrap(),
    );
    assert_eq!(served["policy"], "default version 3");
    assert_eq!((&served["model"], &served["accuracy"]), (&local["model"], &local["accuracy"]));
    assert_eq!(served["model"].as_str().unwrap().len(), 64);
}

#[test]
fn a_label_that_the_policy_has_not_is_named_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("labelled.jsonl");
    for (lines, what) in [
        (
            "{\"text\": \"hi\", \"capability\": \"chat\"}\n\n{\"text\": \"x\", \"capability\": \"art\"}\n",
            "labelled.jsonl:3: ",
        ),
        ("{\"text\": \"hi\"}\n", "labelled.jsonl:1: "),
        ("\n", "has no texts"),
    ] {
        std::fs::write(&file, lines).unwrap();
        let ended = penstock(&["capability", "test", "-f", file.to_str().unwrap(), "--policy", POLICY], &[]);
        assert_eq!(ended.code, 1);
        assert!(ended.err.contains(what) && ended.err.contains("hint:"), "{ended:?}");
    }
}

#[test]
fn an_explanation_names_keywords_guesses_and_pieces() {
    let explain = |text: &str, more: &[&str]| {
        penstock(&[&["capability", "explain", text, "--policy", POLICY], more].concat(), &[])
    };
    let table = explain("解方程 x² - 4 = 0，并说明每一步", &[]);
    assert_eq!(table.code, 0, "{table:?}");
    for part in ["capability   math (from keyword", "keywords     解方程 (math)", "what speaks for", "math"]
    {
        assert!(table.out.contains(part), "{part}: {}", table.out);
    }
    let json = explain("Which of these two novels would you recommend to a friend?", &["-o", "json"]);
    let json: Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!((&json["keywords"], &json["source"]), (&Value::Array(Vec::new()), &Value::from("model")));
    let sum: f64 =
        json["guesses"].as_array().unwrap().iter().map(|guess| guess["probability"].as_f64().unwrap()).sum();
    assert!((sum - 1.0).abs() < 1e-5);
    assert_eq!(json["pieces"].as_array().unwrap().len(), 12);
}
