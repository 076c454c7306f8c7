//! Why a request went where it went.

use penstock_proto::fleet::v1::{Attempt, Candidate, Decision};

use super::table::table;
use super::units::{instant, micros};

/// A whole decision record: what was asked, what was known about each candidate, what was drawn, and what came of it.
pub(crate) fn decision(decision: &Decision) -> String {
    let mut text = head(decision);
    text.push_str("\ncandidates\n");
    text.push_str(&indent(&candidates(&decision.candidates)));
    text.push_str(&format!("\npick        {}\n", pick(&decision.candidates)));
    text.push_str("\nattempts\n");
    text.push_str(&indent(&attempts(&decision.attempts)));
    let error =
        if decision.error_code.is_empty() { String::new() } else { format!(", {}", decision.error_code) };
    text.push_str(&format!(
        "\nanswer      {}{error}, after {}\n",
        decision.status,
        micros(decision.duration_us)
    ));
    text
}

fn head(decision: &Decision) -> String {
    let mut asked = vec![decision.protocol.clone()];
    if !decision.requested_model.is_empty() {
        asked.push(format!("model {}", decision.requested_model));
    }
    asked.push(if decision.stream { "streamed" } else { "not streamed" }.to_owned());
    let lines = [
        ("decision", format!("{} (kept because {})", decision.id, decision.kept)),
        ("request", decision.request_id.clone()),
        ("when", format!("{} on node {}", instant(decision.unix_ms), decision.node_id)),
        ("policy", format!("{} version {}", decision.policy, decision.policy_version)),
        ("asked", asked.join(", ")),
        ("route", decision.route.clone()),
        (
            "capability",
            format!(
                "{} (from {}, confidence {:.2})",
                decision.capability, decision.capability_source, decision.capability_confidence
            ),
        ),
        ("scoring", decision.preset.clone()),
    ];
    lines.iter().map(|(name, value)| format!("{name:<12}{value}\n")).collect()
}

fn name(backend: &str, model: &str) -> String {
    format!("{backend}/{model}")
}

/// One line per candidate, a column per term of the score.
fn candidates(candidates: &[Candidate]) -> String {
    let mut terms: Vec<(&str, f64)> = Vec::new();
    for term in candidates.iter().flat_map(|candidate| &candidate.terms) {
        if !terms.iter().any(|(name, _)| *name == term.name) {
            terms.push((&term.name, term.weight));
        }
    }
    let mut header: Vec<String> = ["", "TARGET", "WEIGHT", "SCORE"].map(str::to_owned).to_vec();
    header.extend(terms.iter().map(|&(name, weight)| {
        let name = name.to_uppercase();
        if weight == 0.0 { name } else { format!("{name} ×{weight}") }
    }));
    header.extend(["DRAWN", "LOAD J", "EXCLUDED"].map(str::to_owned));
    let row = |candidate: &Candidate| {
        let out = !candidate.excluded.is_empty();
        let number = |value: f64| if out { "-".to_owned() } else { format!("{value:.3}") };
        let mut cells = vec![
            if candidate.chosen { "→" } else { "" }.to_owned(),
            name(&candidate.backend, &candidate.model),
            number(candidate.weight),
            number(candidate.score),
        ];
        cells.extend(terms.iter().map(|(name, _)| {
            let term = candidate.terms.iter().find(|term| term.name == *name);
            term.map_or_else(|| "-".to_owned(), |term| format!("{:.3}", term.value))
        }));
        cells.push(candidate.draws.to_string());
        cells.push(if candidate.draws == 0 { "-".to_owned() } else { format!("{:.3}", candidate.load) });
        cells.push(candidate.excluded.clone());
        cells
    };
    table(header, candidates.iter().map(row).collect())
}

/// How the chosen one was found among those that could be.
fn pick(candidates: &[Candidate]) -> String {
    let drawn: Vec<_> = candidates.iter().filter(|candidate| candidate.draws > 0).collect();
    let describe = |candidate: &Candidate| {
        format!("{} (J {:.3})", name(&candidate.backend, &candidate.model), candidate.load)
    };
    match (drawn.as_slice(), candidates.iter().find(|candidate| candidate.chosen)) {
        ([one], Some(_)) if one.draws > 1 => format!("both draws by weight gave {}", describe(one)),
        ([one], Some(_)) => format!("the draw by weight gave {}", describe(one)),
        ([], Some(chosen)) => {
            format!("{} without a draw: there was no other", name(&chosen.backend, &chosen.model))
        }
        (_, None) => "none: no candidate could be used".to_owned(),
        (several, Some(chosen)) => format!(
            "two draws by weight gave {}; {} has the lower load",
            several.iter().map(|candidate| describe(candidate)).collect::<Vec<_>>().join(" and "),
            name(&chosen.backend, &chosen.model)
        ),
    }
}

fn attempts(attempts: &[Attempt]) -> String {
    if attempts.is_empty() {
        return "none\n".to_owned();
    }
    let header =
        vec!["#", "TARGET", "OUTCOME", "STATUS", "STARTED AFTER", "TOOK", "FIRST TOKEN", "CONNECTION"];
    let row = |attempt: &Attempt| {
        let dash = |absent: bool, text: String| if absent { "-".to_owned() } else { text };
        vec![
            attempt.number.to_string(),
            name(&attempt.backend, &attempt.model),
            attempt.outcome.clone(),
            dash(attempt.status == 0, attempt.status.to_string()),
            micros(attempt.started_after_us),
            micros(attempt.duration_us),
            dash(attempt.first_token_us == 0, micros(attempt.first_token_us)),
            if attempt.reused_connection { "reused" } else { "new" }.to_owned(),
        ]
    };
    table(header, attempts.iter().map(row).collect())
}

fn indent(text: &str) -> String {
    text.lines().map(|line| format!("  {line}\n")).collect()
}
