//! A proxy as far as choosing goes: its breakers, its last seconds, what it has in flight.

use std::collections::{HashMap, VecDeque};

use penstock_decision::breaker::{self, Admission, Availability, Breaker, Ending, ProbeToken, WindowCounts};
use penstock_decision::fleet::RowSums;
use penstock_decision::local::{Recent, Slot, WINDOW_SECONDS};
use penstock_decision::pick::{LocalSignal, LocalView, Question, Standing, pick};
use penstock_decision::plan::Plans;
use penstock_model::Policy;
use penstock_model::outcome::Outcome;
use penstock_model::policy::{BreakerSettings, PoolId};
use penstock_stats::SecondRing;
use rand::RngExt;

use super::Timer;
use crate::policy::{Ask, Context};
use crate::world::Attempt;

/// By when a probe that was never heard of again is lost.
const PROBE_MS: u64 = 10_000;
/// A proxy uses what it has sent something to in the last so many seconds.
const USING: f64 = 10.0;

/// What a proxy says once a second.
pub(crate) struct Report {
    /// Of the targets at which something ended.
    pub(crate) sums: Vec<(usize, RowSums<'static>)>,
    /// Of all targets.
    pub(crate) states: Vec<State>,
}

/// How a target stands at a proxy.
#[derive(Debug, Clone, Copy)]
pub(crate) struct State {
    pub(crate) in_flight: u32,
    pub(crate) waiting: u32,
    pub(crate) oldest_wait: u64,
    pub(crate) open: bool,
    pub(crate) used: bool,
}

#[derive(Default)]
struct Target {
    breaker: Breaker,
    slots: SecondRing<Slot, 16>,
    in_flight: u32,
    waiting: Waiting,
    last_used: Option<f64>,
    sums: RowSums<'static>,
}

/// How many wait for their first token, by the second in which they began to.
#[derive(Default)]
struct Waiting(VecDeque<(u64, u32)>);

impl Waiting {
    fn begin(&mut self, second: u64) {
        match self.0.back_mut().filter(|(last, _)| *last == second) {
            Some((_, count)) => *count += 1,
            None => self.0.push_back((second, 1)),
        }
    }

    fn end(&mut self, second: u64) {
        if let Some((_, count)) = self.0.iter_mut().find(|(since, _)| *since == second) {
            *count -= 1;
        }
        while self.0.front().is_some_and(|(_, count)| *count == 0) {
            self.0.pop_front();
        }
    }

    fn count(&self) -> u32 {
        self.0.iter().map(|(_, count)| count).sum()
    }

    /// Seconds for which the oldest has waited, as proxies know it: by full seconds.
    fn oldest(&self, now: f64) -> u64 {
        self.0.front().map_or(0, |(since, _)| now as u64 - since)
    }
}

pub(crate) struct Proxy {
    targets: Vec<Target>,
    /// Probes under way, by attempt.
    tokens: HashMap<usize, ProbeToken>,
}

struct View<'a> {
    proxy: &'a Proxy,
    plans: &'a Plans,
    settings: &'a BreakerSettings,
    now: f64,
}

impl LocalView for View<'_> {
    fn standing(&self, index: usize) -> Standing {
        let breaker = &self.proxy.targets[index].breaker;
        match breaker.availability(millis(self.now), self.settings) {
            Availability::Usable => {
                Standing::Usable { ramp: breaker.ramp_factor(millis(self.now), self.settings) }
            }
            Availability::Probe => Standing::Probe,
            Availability::Ejected => Standing::Ejected,
        }
    }

    fn signal(&self, index: usize) -> LocalSignal {
        let target = &self.proxy.targets[index];
        let second = self.now as u64;
        let since = target.breaker.since_ms() / 1_000;
        let slots = target.slots.last(second, WINDOW_SECONDS).filter(|(age, _)| second - age >= since);
        let recent = Recent::new(slots.map(|(age, slot)| (age, *slot)));
        let plan = &self.plans.pool(PoolId(0))[index];
        LocalSignal {
            in_flight: target.in_flight,
            cost_ratio: recent.cost_ratio(plan, target.waiting.oldest(self.now) as f64),
        }
    }
}

impl Proxy {
    pub(crate) fn new(targets: usize) -> Self {
        Self { targets: (0..targets).map(|_| Target::default()).collect(), tokens: HashMap::new() }
    }

    pub(crate) fn choose(
        &mut self,
        ask: &Ask,
        policy: &Policy,
        plans: &Plans,
        context: &mut Context<'_, Timer>,
    ) -> usize {
        let now = context.now;
        let question = Question {
            plan: plans.pool(PoolId(0)),
            tried: ask.tried,
            in_flight: self.targets.iter().map(|target| target.in_flight).sum(),
            max_ejected: policy.breaker.max_ejected,
        };
        let view = View { proxy: self, plans, settings: &policy.breaker, now };
        let pick = pick(&question, &view, || context.random.random()).expect("nobody is excluded");
        let target = &mut self.targets[pick.index];
        match target.breaker.try_admit(millis(now), PROBE_MS, &policy.breaker) {
            Admission::Probe(token) => {
                self.tokens.insert(ask.attempt, token);
            }
            Admission::Yes => {}
            Admission::No => assert!(pick.panic, "the breaker admits what was picked, but for a panic"),
        }
        target.in_flight += 1;
        target.waiting.begin(now as u64);
        target.last_used = Some(now);
        pick.index
    }

    pub(crate) fn on_first_token(&mut self, attempt: &Attempt) {
        self.targets[attempt.server].waiting.end(attempt.sent as u64);
    }

    pub(crate) fn on_end(&mut self, id: usize, attempt: &Attempt, policy: &Policy, now: f64, chance: f64) {
        let Some((_, outcome)) = attempt.ended else { return };
        let target = &mut self.targets[attempt.server];
        target.in_flight -= 1;
        if attempt.first_token.is_none() {
            target.waiting.end(attempt.sent as u64);
        }
        target.count(attempt, outcome, now);
        let Target { breaker, slots, .. } = target;
        let second = now as u64;
        let window = |since: u64| {
            let slots = slots.last(second, WINDOW_SECONDS);
            slots.filter(|(age, _)| (second - age) * 1_000 + 999 >= since).fold(
                WindowCounts::default(),
                |sum, (_, slot)| WindowCounts {
                    calls: sum.calls + slot.ok + slot.failed,
                    failures: sum.failures + slot.failed,
                },
            )
        };
        let token = self.tokens.remove(&id);
        let ending = Ending { outcome, token, retry_after_ms: None, chance };
        breaker.on_outcome(millis(now), &ending, &policy.breaker, window);
    }

    pub(crate) fn report(&mut self, policy: &Policy, now: f64) -> Report {
        let mut report = Report { sums: Vec::new(), states: Vec::with_capacity(self.targets.len()) };
        for (index, target) in self.targets.iter_mut().enumerate() {
            let sums = std::mem::take(&mut target.sums);
            if sums.ended > 0 {
                report.sums.push((index, sums));
            }
            report.states.push(target.state(&policy.breaker, now));
        }
        report
    }
}

impl Target {
    /// Like a proxy, which counts the time to the first token when the answer has ended.
    fn count(&mut self, attempt: &Attempt, outcome: Outcome, now: f64) {
        let latency = now - attempt.sent;
        let slot = self.slots.slot(now as u64).expect("time does not go back");
        self.sums.ended += 1;
        if outcome == Outcome::Ok {
            slot.ok += 1;
            slot.latency_sum_us += (latency * 1e6) as u64;
            self.sums.ok += 1;
            self.sums.latency_sum += latency;
            self.sums.latency_square_sum += latency * latency;
            self.sums.first_token_sum += attempt.to_first_token().unwrap_or(latency);
            self.sums.first_token_count += 1;
        } else {
            slot.failed += 1;
            self.sums.failed += 1;
        }
    }

    fn state(&self, settings: &BreakerSettings, now: f64) -> State {
        let state = self.breaker.state(millis(now), settings);
        State {
            in_flight: self.in_flight,
            waiting: self.waiting.count(),
            oldest_wait: self.waiting.oldest(now),
            open: matches!(state, breaker::State::Open { .. } | breaker::State::HalfOpen),
            used: self.in_flight > 0 || self.last_used.is_some_and(|at| now - at < USING),
        }
    }
}

fn millis(seconds: f64) -> u64 {
    (seconds * 1e3) as u64
}
