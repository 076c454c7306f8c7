//! How well capabilities are told apart, and why a text was taken for one of them.

use std::fmt::Write;

use super::table::table;
use crate::commands::capability::explain::Explained;
use crate::commands::capability::report::{Part, Report};
use crate::language::Language;

/// The whole report, the numbers that matter most first.
pub(crate) fn report(report: &Report, language: Language) -> String {
    let say = |english, chinese| language.pick(english, chinese);
    let model = if report.model.is_empty() {
        say("none: examples of two capabilities are needed", "无：至少两个能力要有示例").to_owned()
    } else {
        report.model.chars().take(12).collect()
    };
    let lines = [
        (say("policy", "策略"), report.policy.clone()),
        (say("model", "模型"), model),
        (say("texts", "文本数"), report.texts.to_string()),
        (say("accuracy", "准确率"), share(report.accuracy)),
        (
            say("calibration", "校准"),
            format!("{} {:.3}", say("expected error", "期望误差 ECE"), report.calibration_error),
        ),
        (
            say("covered", "覆盖率"),
            format!(
                "{:.3}, {} {}",
                report.covered,
                say("accuracy among these", "其中准确率"),
                share(report.accuracy_covered)
            ),
        ),
    ];
    let mut text: String = lines.iter().map(|(name, value)| named(name, value)).collect();
    section(&mut text, say("by capability", "按能力"), &capabilities(report));
    section(
        &mut text,
        say("confusion: a row is what it is, a column what it was taken for", "混淆矩阵：行为真实，列为判定"),
        &confusion(report),
    );
    section(&mut text, say("by source", "按依据"), &parts(&report.sources, "SOURCE"));
    if !report.languages.is_empty() {
        section(&mut text, say("by language", "按语言"), &parts(&report.languages, "LANGUAGE"));
    }
    section(&mut text, say("calibration", "校准"), &calibration(report));
    if !report.wrong.is_empty() {
        section(&mut text, say("wrong", "判错的文本"), &wrong(report));
    }
    text
}

/// A name and a value, aligned also where the name is of wide characters.
fn named(name: &str, value: &str) -> String {
    let width: usize = name.chars().map(|character| if character.is_ascii() { 1 } else { 2 }).sum();
    format!("{name}{}{value}\n", " ".repeat(13_usize.saturating_sub(width)))
}

fn section(text: &mut String, title: &str, body: &str) {
    let _ = writeln!(text, "\n{title}");
    body.lines().for_each(|line| {
        let _ = writeln!(text, "  {line}");
    });
}

fn share(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.3}"))
}

fn capabilities(report: &Report) -> String {
    let row = |capability: &crate::commands::capability::report::Capability| {
        vec![
            capability.name.clone(),
            capability.texts.to_string(),
            share(capability.precision),
            share(capability.recall),
            share(capability.threshold),
        ]
    };
    let header = vec!["CAPABILITY", "TEXTS", "PRECISION", "RECALL", "THRESHOLD"];
    table(header, report.capabilities.iter().map(row).collect())
}

fn confusion(report: &Report) -> String {
    let names = || report.capabilities.iter().map(|capability| capability.name.clone());
    let header: Vec<String> = std::iter::once(String::new()).chain(names()).collect();
    let cell = |count: &usize| if *count == 0 { ".".to_owned() } else { count.to_string() };
    let row = |(name, counts): (String, &Vec<usize>)| {
        std::iter::once(name).chain(counts.iter().map(cell)).collect()
    };
    table(header, names().zip(&report.confusion).map(row).collect())
}

fn parts(parts: &[Part], title: &str) -> String {
    let row = |part: &Part| {
        vec![
            part.name.clone(),
            part.texts.to_string(),
            share(part.accuracy),
            format!("{:.3}", part.calibration_error),
        ]
    };
    table(vec![title, "TEXTS", "ACCURACY", "CALIBRATION ERROR"], parts.iter().map(row).collect())
}

fn calibration(report: &Report) -> String {
    let row = |bin: &crate::commands::capability::report::Bin| {
        vec![
            format!("{:.2} - {:.2}", bin.from, bin.to),
            bin.texts.to_string(),
            format!("{:.3}", bin.confidence),
            share(bin.accuracy),
        ]
    };
    let header = vec!["CONFIDENCE", "TEXTS", "MEAN", "ACCURACY"];
    table(header, report.calibration.iter().map(row).collect())
}

fn wrong(report: &Report) -> String {
    let row = |wrong: &crate::commands::capability::report::Wrong| {
        vec![
            wrong.capability.clone(),
            wrong.found.clone(),
            wrong.source.to_owned(),
            format!("{:.2}", wrong.confidence),
            one_line(&wrong.text),
        ]
    };
    let header = vec!["IS", "TAKEN FOR", "SOURCE", "CONFIDENCE", "TEXT"];
    table(header, report.wrong.iter().map(row).collect())
}

/// The beginning of a text, without line ends.
fn one_line(text: &str) -> String {
    let mut line: String =
        text.chars().take(80).map(|character| if character.is_control() { ' ' } else { character }).collect();
    if text.chars().nth(80).is_some() {
        line.push('…');
    }
    line
}

/// Why a text was taken for what it was taken for.
pub(crate) fn explained(explained: &Explained, language: Language) -> String {
    let say = |english, chinese| language.pick(english, chinese);
    let found = format!(
        "{} ({} {}, {} {:.2})",
        explained.capability,
        say("from", "依据"),
        explained.source,
        say("confidence", "置信度"),
        explained.confidence
    );
    let keywords: Vec<String> = explained
        .keywords
        .iter()
        .map(|keyword| format!("{} ({})", keyword.text, keyword.capability))
        .collect();
    let keywords =
        if keywords.is_empty() { say("none", "无").to_owned() } else { keywords.join(say(", ", "、")) };
    let mut text = named(say("capability", "能力"), &found) + &named(say("keywords", "关键词"), &keywords);
    if explained.guesses.is_empty() {
        return text + &named(say("model", "模型"), say("none", "无"));
    }
    let guess = |guess: &crate::commands::capability::explain::Guess| {
        let believed = if guess.probability >= guess.threshold { "*" } else { "" };
        vec![
            guess.capability.clone(),
            format!("{:.3}", guess.probability),
            format!("{:.3}", guess.threshold),
            believed.to_owned(),
        ]
    };
    let guesses = explained.guesses.iter().map(guess).collect();
    section(
        &mut text,
        say("model", "模型"),
        &table(vec!["CAPABILITY", "PROBABILITY", "THRESHOLD", ""], guesses),
    );
    let first = explained.guesses.first().map(|guess| guess.capability.as_str()).unwrap_or_default();
    let title =
        format!("{} {first}", say("what speaks for (+) or against (-)", "支持（+）或反对（-）的片段："));
    let piece = |piece: &crate::commands::capability::explain::Piece| {
        vec![format!("{:+.3}", piece.weight), format!("{:?}", piece.text)]
    };
    section(&mut text, &title, &table(vec!["WEIGHT", "PIECE"], explained.pieces.iter().map(piece).collect()));
    text
}
