//! What a target is worth: from observations to a log score, by one of the policy's formulas.
//!
//! **classic**, "weight over normalised latency, less a penalty for errors, plus a reward for capability", in one unit,
//! seconds, so that nothing depends on how latency happens to be scaled:
//!
//! ```text
//! C = T·(1 + 0.25·min(CV, 2)) + Π·(1−s)/s          generalised cost of one answer, seconds
//! S = ln(weight) − β·ln(C/C_min) + 1.5·match       exp(S) = weight · (C_min/C)^β · e^(1.5·match)
//! ```
//!
//! (1−s)/s is the expected number of failed attempts before a good one, Π what each of them costs.
//!
//! **quality**, a mean of four terms in 0..1:
//!
//! ```text
//! Q = 0.4·s + 0.3·T_min/T + 0.2·price_min/price + 0.1/(1+CV)
//! S = ln(weight) + 4β·ln(Q/Q_max) + 1.5·match
//! ```
//!
//! Q moves in a narrow band: a target three times as slow has 0.8 of the best's Q. The factor 4 makes that count: with
//! β = 2 such a target gets a sixth of the best's share, and at 0.76 a ninth.

use penstock_model::Usage;
use penstock_model::policy::{Candidate, Policy, Preset, Scoring};

/// a_v: what variation adds to the cost.
const VARIATION_COST: f64 = 0.25;
/// A standard request, for comparing prices: uncached input and output tokens.
const STANDARD_INPUT: u64 = 500;
const STANDARD_OUTPUT: u64 = 250;
/// Log reward of a full capability match: e^1.5 = 4.5 times the share of no match.
pub(crate) const MATCH_REWARD: f64 = 1.5;
/// How much sharper the quality formula must be to tell targets apart like the classic one.
const QUALITY_SHARPNESS: f64 = 4.0;
/// Success below this is taken for this, so that costs stay finite.
const LEAST_SUCCESS: f64 = 0.05;

/// What is assumed of a target that nothing is known about.
pub(crate) const UNKNOWN: Observed = Observed { latency: 1.0, success: 0.95, variation: 0.0 };

/// What is known about a target.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Observed {
    /// T: seconds an answer takes.
    pub latency: f64,
    /// s: 0..1.
    pub success: f64,
    /// CV: standard deviation of the latency over its mean.
    pub variation: f64,
}

/// One term of a score. Unitless, 0..1, higher is better.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Term {
    /// Its name.
    pub name: &'static str,
    /// Its value.
    pub value: f64,
    /// What the formula multiplies it, or its logarithm, with; 0 for a term that is only shown.
    pub weight: f64,
}

/// A target's worth within a pool.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Score {
    /// C, seconds.
    pub cost: f64,
    /// T_min/T.
    pub latency_term: f64,
    /// price_min/price.
    pub cost_term: f64,
    /// 1/(1+CV).
    pub stability_term: f64,
    /// Q.
    pub quality: f64,
    /// S.
    pub log_score: f64,
    /// Everything above and the rest, to be shown.
    pub terms: [Term; 6],
}

/// Π: what a failed attempt costs at a target whose answers take `latency` seconds; at least 5 seconds, and about the
/// 95th percentile of exponential latencies.
#[must_use]
pub fn failure_penalty(latency: f64) -> f64 {
    (3.0 * latency).max(5.0)
}

/// The seconds that failures add to each answer.
#[must_use]
pub fn failure_cost(success: f64, penalty: f64) -> f64 {
    penalty * (1.0 - success) / success.max(LEAST_SUCCESS)
}

/// C: the generalised cost of an answer, in seconds.
#[must_use]
pub fn generalised_cost(observed: &Observed, penalty: f64) -> f64 {
    observed.latency * (1.0 + VARIATION_COST * observed.variation.min(2.0))
        + failure_cost(observed.success, penalty)
}

/// Scores the candidates of one pool. `beta` is the sharpness in force; `observed` is in the order of `candidates`.
#[must_use]
pub fn score_pool(
    policy: &Policy,
    candidates: &[Candidate],
    observed: &[Observed],
    scoring: &Scoring,
    beta: f64,
) -> Vec<Score> {
    let least = |values: &mut dyn Iterator<Item = f64>| values.fold(f64::INFINITY, f64::min);
    let fastest = least(&mut observed.iter().map(|target| target.latency));
    let penalty = failure_penalty(fastest);
    let cheapest = least(&mut observed.iter().map(|target| generalised_cost(target, penalty)));
    let cost_terms = cost_terms(policy, candidates);
    let quality_of = |(target, cost_term): (&Observed, &f64)| {
        0.4 * target.success
            + 0.3 * fastest / target.latency
            + 0.2 * cost_term
            + 0.1 / (1.0 + target.variation)
    };
    let qualities: Vec<f64> = observed.iter().zip(&cost_terms).map(quality_of).collect();
    let best = qualities.iter().copied().fold(0.0, f64::max);

    let score = |index: usize| {
        let (candidate, target) = (&candidates[index], &observed[index]);
        let cost = generalised_cost(target, penalty);
        let efficiency = cheapest / cost;
        let (latency_term, cost_term) = (fastest / target.latency, cost_terms[index]);
        let stability_term = 1.0 / (1.0 + target.variation);
        let quality = qualities[index];
        let earned = match scoring.preset {
            Preset::Classic => beta * efficiency.ln(),
            Preset::Quality => QUALITY_SHARPNESS * beta * (quality / best).ln(),
        };
        let log_score = candidate.weight.ln() + earned + MATCH_REWARD * candidate.capability_match;
        let classic = if scoring.preset == Preset::Classic { 1.0 } else { 0.0 };
        let term = |name, value, weight| Term { name, value, weight };
        let terms = [
            term("efficiency", efficiency, classic * beta),
            term("success", target.success, (1.0 - classic) * 0.4),
            term("latency", latency_term, (1.0 - classic) * 0.3),
            term("cost", cost_term, (1.0 - classic) * 0.2),
            term("stability", stability_term, (1.0 - classic) * 0.1),
            term("capability", candidate.capability_match, MATCH_REWARD),
        ];
        Score { cost, latency_term, cost_term, stability_term, quality, log_score, terms }
    };
    (0..candidates.len()).map(score).collect()
}

/// price_min/price for a standard request; a policy has one currency. A target of unknown price gets the mean of the
/// others: its price neither attracts nor repels. 1 for all when no price is known.
fn cost_terms(policy: &Policy, candidates: &[Candidate]) -> Vec<f64> {
    let cost = |candidate: &Candidate| {
        let price = policy.targets[candidate.target.index()].price.as_ref()?;
        let standard = Usage {
            input_tokens: Some(STANDARD_INPUT),
            output_tokens: Some(STANDARD_OUTPUT),
            ..Usage::default()
        };
        Some(price.cost(&standard)? as f64)
    };
    let costs: Vec<Option<f64>> = candidates.iter().map(cost).collect();
    let least = costs.iter().flatten().copied().fold(f64::INFINITY, f64::min);
    // What costs nothing is the cheapest, and by no factor.
    let term = |cost: f64| if cost <= least { 1.0 } else { least / cost };
    let known: Vec<f64> = costs.iter().flatten().map(|&cost| term(cost)).collect();
    let neutral = if known.is_empty() { 1.0 } else { known.iter().sum::<f64>() / known.len() as f64 };
    costs.iter().map(|cost| cost.map_or(neutral, term)).collect()
}

#[cfg(test)]
mod tests;
