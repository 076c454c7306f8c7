//! How likely a pick chooses each candidate, by the same rule as [`super::pick`] and without drawing: for the decision
//! records, whose readers want to know how close it was, and for judging other rules by them (inverse propensities).
//!
//! Let p be the shares of one draw, J the loads, and x → y say that y wins when drawn after x: 1.15·J_y < J_x. Of two
//! draws, i wins with
//!
//! ```text
//! Q_i = p_i² + Σ_{j≠i} p_i p_j (1[not i → j] + 1[j → i])
//! ```
//!
//! A third is drawn when the winner m is badly loaded, J_m > 2, from all but the two drawn: c comes with w_c / R, where R
//! is the weight that is left, and wins if m → c. None of the two drawn can be such a c: had m → c held, c would have won
//! the pair. So with T_m = Σ p_a p_b / R over the pairs that a badly loaded m wins,
//!
//! ```text
//! P_i = Q_i − T_i · Σ_{c: i → c} w_c + w_i · Σ_{m: m → i} T_m
//! ```
//!
//! and before all that one of the half-open candidates may be probed, each as likely as the others.

use super::{BAD_LOAD, LocalView, MARGIN, Mask, Question, Urn};

/// A candidate's prospects.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Odds {
    /// The probability that it is chosen, 0..1; over a pool they sum to 1, or to 0 when nobody can be chosen.
    pub probability: f64,
    /// The probability that one draw gives it, 0..1; 0 for those that are not drawn from.
    pub share: f64,
    /// J: its load over the planned. Known of all that are drawn from.
    pub load: Option<f64>,
}

/// The odds of every candidate, in the plan's order. What is not seen ([`super::MAX_CANDIDATES`]) has none.
#[must_use]
pub fn odds(question: &Question<'_>, local: &impl LocalView) -> Vec<Odds> {
    let urn = Urn::new(question, local);
    let mut odds = vec![Odds { probability: 0.0, share: 0.0, load: None }; question.plan.len()];
    let balls: Vec<Ball> = balls(&urn);
    for (ball, probability) in balls.iter().zip(drawn(&balls)) {
        odds[ball.index] = Odds {
            probability: probability * (1.0 - urn.probe_share),
            share: ball.share,
            load: Some(ball.load),
        };
    }
    for index in urn.probing.iter() {
        odds[index].probability += urn.probe_share / urn.probing.len() as f64;
    }
    odds
}

/// One that can be drawn.
struct Ball {
    index: usize,
    /// p: shares sum to 1.
    share: f64,
    load: f64,
}

impl Ball {
    /// self → other
    fn yields_to(&self, other: &Self) -> bool {
        MARGIN * other.load < self.load
    }
}

fn balls(urn: &Urn<'_, impl LocalView>) -> Vec<Ball> {
    let weights = shares(urn.candidates, |index| urn.weight(index));
    urn.candidates
        .iter()
        .zip(weights)
        .map(|(index, share)| Ball { index, share, load: urn.load(index) })
        .collect()
}

/// Shares by weight; equal ones when there are no weights, as [`super::draw`] has it.
fn shares(of: Mask, weight: impl Fn(usize) -> f64) -> Vec<f64> {
    let total: f64 = of.iter().map(&weight).sum();
    let equal = total <= 0.0 || !total.is_finite();
    of.iter().map(|index| if equal { 1.0 / of.len() as f64 } else { weight(index) / total }).collect()
}

/// P of each, when nobody is probed.
fn drawn(balls: &[Ball]) -> Vec<f64> {
    let mut won = vec![0.0; balls.len()];
    // T; and the pairs that leave next to no weight for a third draw.
    let mut thirds = vec![0.0; balls.len()];
    let mut weightless = Vec::new();
    for (a, first) in balls.iter().enumerate() {
        for (b, second) in balls.iter().enumerate() {
            let pair = first.share * second.share;
            let winner = if first.yields_to(second) { b } else { a };
            won[winner] += pair;
            if balls[winner].load <= BAD_LOAD || pair == 0.0 {
                continue;
            }
            let rest = 1.0 - first.share - if a == b { 0.0 } else { second.share };
            if rest > 1e-9 {
                thirds[winner] += pair / rest;
            } else {
                weightless.push((a, b, winner, pair));
            }
        }
    }
    let mut probability = won;
    for (m, winner) in balls.iter().enumerate().filter(|(m, _)| thirds[*m] > 0.0) {
        for (c, third) in balls.iter().enumerate().filter(|(_, third)| winner.yields_to(third)) {
            let moved = thirds[m] * third.share;
            probability[m] -= moved;
            probability[c] += moved;
        }
    }
    for (a, b, m, pair) in weightless {
        let rest: Vec<usize> = (0..balls.len()).filter(|&c| c != a && c != b).collect();
        let weight: f64 = rest.iter().map(|&c| balls[c].share).sum();
        for &c in rest.iter().filter(|&&c| balls[m].yields_to(&balls[c])) {
            let share = if weight > 0.0 { balls[c].share / weight } else { 1.0 / rest.len() as f64 };
            probability[m] -= pair * share;
            probability[c] += pair * share;
        }
    }
    // What cancels out leaves a rounding error behind.
    probability.iter_mut().for_each(|probability| *probability = probability.clamp(0.0, 1.0));
    probability
}

#[cfg(test)]
mod tests;
