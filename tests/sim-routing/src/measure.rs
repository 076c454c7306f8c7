//! The figures of a run.

use std::ops::Range;

use penstock_model::outcome::Outcome;

use crate::scenario::Scenario;
use crate::world::{Attempt, Log};

/// Figures start here: before, everything is still being learnt.
const WARM: f64 = 30.0;
/// After the recovery, so long is looked at.
const AFTERMATH: f64 = 30.0;
/// So long after the onset a share should have settled.
const SETTLED: f64 = 20.0;
/// Worse than so many times the best is misrouted.
const MISROUTED: f64 = 2.0;
/// Shares are compared over bins of so many seconds.
const BIN: f64 = 5.0;

/// What is measured of an interval. Shares are 0..1, times seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Figures {
    /// Median time to the first token.
    pub first_token_p50: f64,
    /// 99th percentile.
    pub first_token_p99: f64,
    /// Median time of a whole answer.
    pub latency_p50: f64,
    /// 99th percentile.
    pub latency_p99: f64,
    /// Share of the requests sent to a service that took more than twice as long as the best would have.
    pub misrouted: f64,
    /// Share sent to the service that is, was or will be sick.
    pub to_sick: f64,
    /// Share that failed; nothing is tried twice here.
    pub failed: f64,
    /// Mean total variation between the shares of successive seconds.
    pub movement: f64,
}

/// The figures of a run, or their means over several.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Summary {
    /// Before the incident.
    pub normal: Figures,
    /// In it.
    pub incident: Figures,
    /// The half minute after it.
    pub after: Figures,
    /// The variance of the shares of five seconds over that of independent draws, before the incident: 1 is chance.
    pub oscillation_normal: f64,
    /// The same in the incident, when the shares should have settled.
    pub oscillation_incident: f64,
}

impl Summary {
    /// Measures a run.
    #[must_use]
    pub fn new(scenario: &Scenario, log: &Log) -> Self {
        let Scenario { onset, recovery, .. } = *scenario;
        let sick = scenario.incident.map_or(0, |incident| incident.server);
        let servers = scenario.servers.len();
        let figures = |between: Range<f64>| figures(sent(log, &between), &between, servers, sick);
        let oscillation = |between: Range<f64>| oscillation(sent(log, &between), &between, servers);
        Self {
            normal: figures(WARM..onset),
            incident: figures(onset..recovery),
            after: figures(recovery..recovery + AFTERMATH),
            oscillation_normal: oscillation(WARM..onset),
            oscillation_incident: oscillation(onset + SETTLED..recovery),
        }
    }
}

/// What was sent in an interval.
#[must_use]
pub fn sent<'a>(log: &'a Log, between: &Range<f64>) -> &'a [Attempt] {
    let index = |at: f64| log.attempts.partition_point(|attempt| attempt.sent < at);
    &log.attempts[index(between.start)..index(between.end)]
}

/// A quantile of `values`, by linear interpolation; NaN without any.
#[must_use]
pub fn quantile(values: impl Iterator<Item = f64>, quantile: f64) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let place = quantile * values.len().saturating_sub(1) as f64;
    let at = |index: usize| values.get(index).copied().unwrap_or(f64::NAN);
    let (below, above) = (at(place.floor() as usize), at(place.ceil() as usize));
    below + (above - below) * place.fract()
}

fn figures(sent: &[Attempt], between: &Range<f64>, servers: usize, sick: usize) -> Figures {
    let share = |counts: &dyn Fn(&Attempt) -> bool| {
        sent.iter().filter(|attempt| counts(attempt)).count() as f64 / sent.len() as f64
    };
    let first_token = |at| quantile(sent.iter().filter_map(Attempt::to_first_token), at);
    let latency = |at| quantile(sent.iter().filter_map(Attempt::latency), at);
    let failed = |attempt: &Attempt| attempt.ended.is_some_and(|(_, outcome)| outcome != Outcome::Ok);
    Figures {
        first_token_p50: first_token(0.5),
        first_token_p99: first_token(0.99),
        latency_p50: latency(0.5),
        latency_p99: latency(0.99),
        misrouted: share(&|attempt| attempt.regret > MISROUTED),
        to_sick: share(&|attempt| attempt.server == sick),
        failed: share(&failed),
        movement: movement(&shares(sent, between, 1.0, servers)),
    }
}

/// Requests per server, for each bin of `width` seconds.
fn counts(sent: &[Attempt], between: &Range<f64>, width: f64, servers: usize) -> Vec<Vec<f64>> {
    let bins = ((between.end - between.start) / width).round() as usize;
    let mut counts = vec![vec![0.0; servers]; bins];
    for attempt in sent {
        let bin = ((attempt.sent - between.start) / width) as usize;
        counts[bin.min(bins - 1)][attempt.server] += 1.0;
    }
    counts
}

fn shares(sent: &[Attempt], between: &Range<f64>, width: f64, servers: usize) -> Vec<Vec<f64>> {
    let mut shares = counts(sent, between, width, servers);
    for bin in &mut shares {
        let total = bin.iter().sum::<f64>().max(1.0);
        bin.iter_mut().for_each(|count| *count /= total);
    }
    shares
}

fn movement(shares: &[Vec<f64>]) -> f64 {
    let moved = |pair: &[Vec<f64>]| {
        pair[0].iter().zip(&pair[1]).map(|(before, after)| (before - after).abs()).sum::<f64>() / 2.0
    };
    shares.windows(2).map(moved).sum::<f64>() / (shares.len() - 1) as f64
}

/// All servers together: Pearson's χ² of the counts over its degrees of freedom.
fn oscillation(sent: &[Attempt], between: &Range<f64>, servers: usize) -> f64 {
    let counts = counts(sent, between, BIN, servers);
    let total: f64 = counts.iter().flatten().sum();
    let mut squares = 0.0;
    let mut used = 0;
    for server in 0..servers {
        let share = counts.iter().map(|bin| bin[server]).sum::<f64>() / total;
        // Too few for the statistic: a trickle.
        if share * total < 5.0 * counts.len() as f64 {
            continue;
        }
        used += 1;
        squares += counts
            .iter()
            .map(|bin| {
                let expected = share * bin.iter().sum::<f64>();
                (bin[server] - expected).powi(2) / expected
            })
            .sum::<f64>();
    }
    squares / ((counts.len() - 1) * (used - 1)) as f64
}
