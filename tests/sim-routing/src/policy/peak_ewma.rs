//! The better of two random services by a peak-sensitive moving average, as Finagle, linkerd and tower have it.
//!
//! cost = EWMA · (pending + 1). The average jumps to peaks and decays towards what is seen, and towards 0 while nothing
//! is, with a time constant of 10 s. Each proxy for itself.

use rand::RngExt;

use super::{Ask, Context, Policy};
use crate::scenario::Scenario;
use crate::world::Attempt;

const DECAY: f64 = 10.0;

#[derive(Clone, Copy)]
struct Average {
    value: f64,
    at: f64,
    pending: u32,
}

impl Average {
    fn see(&mut self, now: f64, seconds: f64) {
        if seconds > self.value {
            self.value = seconds;
        } else {
            let kept = penstock_stats::decay(now - self.at, DECAY);
            self.value = self.value * kept + seconds * (1.0 - kept);
        }
        self.at = now;
    }

    fn cost(&mut self, now: f64) -> f64 {
        self.see(now, 0.0);
        self.value * f64::from(self.pending + 1)
    }
}

pub(crate) struct PeakEwma {
    first_byte: bool,
    /// By proxy and server.
    averages: Vec<Vec<Average>>,
}

impl PeakEwma {
    /// Pending until the first byte, as linkerd does it.
    pub(crate) fn by_first_byte(scenario: &Scenario) -> Self {
        Self::new(scenario, true, 0.3)
    }

    /// Pending until the end.
    pub(crate) fn by_latency(scenario: &Scenario) -> Self {
        Self::new(scenario, false, 1.0)
    }

    fn new(scenario: &Scenario, first_byte: bool, unknown: f64) -> Self {
        let average = Average { value: unknown, at: 0.0, pending: 0 };
        Self { first_byte, averages: vec![vec![average; scenario.servers.len()]; scenario.proxies] }
    }

    fn note(&mut self, now: f64, attempt: &Attempt) {
        let average = &mut self.averages[attempt.proxy][attempt.server];
        average.pending -= 1;
        average.see(now, now - attempt.sent);
    }
}

impl Policy for PeakEwma {
    type Timer = ();

    fn choose(&mut self, ask: &Ask, context: &mut Context<'_, ()>) -> usize {
        let averages = &mut self.averages[ask.proxy];
        let one = context.random.random_range(0..averages.len());
        let other = (one + context.random.random_range(1..averages.len())) % averages.len();
        let better = averages[one].cost(context.now) <= averages[other].cost(context.now);
        let chosen = if better { one } else { other };
        averages[chosen].pending += 1;
        chosen
    }

    fn on_first_token(&mut self, _: usize, attempt: &Attempt, context: &mut Context<'_, ()>) {
        if self.first_byte {
            self.note(context.now, attempt);
        }
    }

    fn on_end(&mut self, _: usize, attempt: &Attempt, context: &mut Context<'_, ()>) {
        if !self.first_byte || attempt.first_token.is_none() {
            self.note(context.now, attempt);
        }
    }
}
