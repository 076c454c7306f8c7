//! A proxy as far as choosing goes: its breakers, its last seconds, what it has in flight.

use std::collections::VecDeque;
use std::time::Duration;

use penstock_decision::breaker::{Admission, Availability, Breaker, Ending, ProbeToken, State, WindowCounts};
use penstock_decision::fleet::{Gauges, RowSums};
use penstock_decision::local::{Recent, Slot, WINDOW_SECONDS};
use penstock_decision::pick::{LocalSignal, LocalView, Mask, Pick, Question, Standing, pick};
use penstock_decision::plan::Plans;
use penstock_model::Policy;
use penstock_model::live::LiveState;
use penstock_model::outcome::Outcome;
use penstock_model::policy::PoolId;
use penstock_stats::SecondRing;

/// Sums of one target since the last report.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sums {
    ended: u64,
    ok: u64,
    failed: u64,
    latency: f64,
    latency_square: f64,
}

impl Sums {
    pub(crate) fn row(&self) -> RowSums<'static> {
        RowSums {
            ended: self.ended,
            ok: self.ok,
            failed: self.failed,
            latency_sum: self.latency,
            latency_square_sum: self.latency_square,
            first_token_sum: self.latency,
            first_token_count: self.ok,
            ..RowSums::default()
        }
    }
}

/// What a proxy says about one target.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Report {
    pub(crate) sums: Sums,
    pub(crate) in_flight: u64,
    pub(crate) oldest_wait: f64,
    pub(crate) open: bool,
    pub(crate) used: bool,
}

#[derive(Default)]
struct TargetView {
    breaker: Breaker,
    slots: SecondRing<Slot, 10>,
    /// When the requests in flight were sent, oldest first.
    sent: VecDeque<f64>,
    sums: Sums,
}

pub(crate) struct Proxy {
    targets: Vec<TargetView>,
    plans: Plans,
    live: Option<(LiveState, f64)>,
}

/// A request on its way.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sent {
    pub(crate) target: usize,
    pub(crate) at: f64,
    pub(crate) token: Option<ProbeToken>,
}

struct View<'a> {
    proxy: &'a Proxy,
    policy: &'a Policy,
    now: f64,
}

impl LocalView for View<'_> {
    fn standing(&self, index: usize) -> Standing {
        let breaker = &self.proxy.targets[index].breaker;
        match breaker.availability(millis(self.now), &self.policy.breaker) {
            Availability::Usable => {
                Standing::Usable { ramp: breaker.ramp_factor(millis(self.now), &self.policy.breaker) }
            }
            Availability::Probe => Standing::Probe,
            Availability::Ejected => Standing::Ejected,
        }
    }

    fn signal(&self, index: usize) -> LocalSignal {
        let target = &self.proxy.targets[index];
        let since = target.breaker.since_ms() / 1_000;
        let second = self.now as u64;
        let slots = target
            .slots
            .last(second, WINDOW_SECONDS)
            .filter(|(age, _)| second - age >= since)
            .map(|(age, slot)| (age, *slot));
        let oldest_wait = target.sent.front().map_or(0.0, |sent| self.now - sent);
        let plan = &self.proxy.plans.pool(PoolId(0))[index];
        LocalSignal {
            in_flight: target.sent.len() as u32,
            cost_ratio: Recent::new(slots).cost_ratio(plan, oldest_wait),
        }
    }
}

impl Proxy {
    pub(crate) fn new(policy: &Policy) -> Self {
        Self {
            targets: policy.pools[0].candidates.iter().map(|_| TargetView::default()).collect(),
            plans: Plans::new(policy, None),
            live: None,
        }
    }

    pub(crate) fn take(&mut self, policy: &Policy, live: LiveState, now: f64) {
        self.live = Some((live, now));
        self.replan(policy, now);
    }

    pub(crate) fn replan(&mut self, policy: &Policy, now: f64) {
        if let Some((live, at)) = &self.live {
            self.plans = Plans::new(policy, Some((live, Duration::from_secs_f64(now - at))));
        }
    }

    /// Chooses a target and sends a request there.
    pub(crate) fn send(
        &mut self,
        policy: &Policy,
        now: f64,
        tried: Mask,
        mut chance: impl FnMut() -> f64,
    ) -> (Sent, Pick) {
        let in_flight = self.targets.iter().map(|target| target.sent.len() as u32).sum();
        let question = Question {
            plan: self.plans.pool(PoolId(0)),
            tried,
            in_flight,
            max_ejected: policy.breaker.max_ejected,
        };
        let pick =
            pick(&question, &View { proxy: self, policy, now }, &mut chance).expect("nobody is excluded");
        let target = &mut self.targets[pick.index];
        let token = match target.breaker.try_admit(millis(now), 10_000, &policy.breaker) {
            Admission::Probe(token) => Some(token),
            Admission::Yes => None,
            Admission::No => {
                assert!(pick.panic, "the breaker admits what was picked, but for a panic");
                None
            }
        };
        target.sent.push_back(now);
        (Sent { target: pick.index, at: now, token }, pick)
    }

    /// A request has ended.
    pub(crate) fn settle(&mut self, policy: &Policy, now: f64, sent: Sent, outcome: Outcome, chance: f64) {
        let target = &mut self.targets[sent.target];
        let place = target.sent.iter().position(|at| *at == sent.at).expect("it was in flight");
        target.sent.remove(place);
        let latency = now - sent.at;
        let ok = outcome == Outcome::Ok;
        let slot = target.slots.slot(now as u64).expect("time does not go back");
        target.sums.ended += 1;
        if ok {
            slot.ok += 1;
            slot.latency_sum_us += (latency * 1e6) as u64;
            target.sums.ok += 1;
            target.sums.latency += latency;
            target.sums.latency_square += latency * latency;
        } else {
            slot.failed += 1;
            target.sums.failed += 1;
        }
        let TargetView { breaker, slots, .. } = target;
        let window = |since: u64| {
            slots.last(now as u64, 10).filter(|(age, _)| now as u64 - age >= since / 1_000).fold(
                WindowCounts::default(),
                |sum, (_, slot)| WindowCounts {
                    calls: sum.calls + slot.ok + slot.failed,
                    failures: sum.failures + slot.failed,
                },
            )
        };
        let ending = Ending { outcome, token: sent.token, retry_after_ms: None, chance };
        breaker.on_outcome(millis(now), &ending, &policy.breaker, window);
    }

    /// What the proxy reports of each target.
    pub(crate) fn report(&mut self, policy: &Policy, now: f64) -> Vec<Report> {
        let report = |target: &mut TargetView| Report {
            sums: std::mem::take(&mut target.sums),
            in_flight: target.sent.len() as u64,
            oldest_wait: target.sent.front().map_or(0.0, |sent| now - sent),
            open: matches!(
                target.breaker.state(millis(now), &policy.breaker),
                State::Open { .. } | State::HalfOpen
            ),
            used: target.slots.last(now as u64, 10).next().is_some(),
        };
        self.targets.iter_mut().map(report).collect()
    }
}

/// The fleet's gauges of one target, from the newest report of each proxy.
pub(crate) fn gauges(reports: impl Iterator<Item = Report>) -> Gauges {
    reports.fold(Gauges::default(), |sum, report| Gauges {
        in_flight: sum.in_flight + report.in_flight,
        waiting: sum.waiting + report.in_flight,
        oldest_wait: sum.oldest_wait.max(report.oldest_wait),
        nodes_using: sum.nodes_using + u32::from(report.used || report.open),
        nodes_open: sum.nodes_open + u32::from(report.open),
        ..sum
    })
}

fn millis(seconds: f64) -> u64 {
    (seconds * 1e3) as u64
}
