//! A small world: services that get sick and well again, proxies, a control plane, and the time that telemetry takes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use penstock_decision::fleet::Fleet;
use penstock_decision::pick::Mask;
use penstock_model::Policy;
use penstock_model::live::LiveState;
use penstock_model::outcome::Outcome;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use crate::proxy::{Proxy, Report, Sent, gauges};

/// What is wrong with a service.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Fault {
    /// Answers take so many times as long.
    Slow(f64),
    /// No answer ever comes.
    Hang,
    /// This share of the calls fails after 30 ms.
    Fail(f64),
}

/// What happens in a run. Times in seconds.
#[derive(Debug, Clone)]
pub(crate) struct Scenario {
    pub(crate) policy: Arc<Policy>,
    pub(crate) proxies: usize,
    /// Requests per second, all proxies together.
    pub(crate) rate: f64,
    /// From 60 s to 90 s there are so many times as many.
    pub(crate) surge: f64,
    /// Mean latency of each service, and standard deviation over mean.
    pub(crate) latency: Vec<f64>,
    pub(crate) variation: f64,
    /// Requests that a service answers at once without getting slower.
    pub(crate) capacity: Vec<f64>,
    pub(crate) first_token_timeout: f64,
    /// From a report, or a live state, to its arrival.
    pub(crate) delay: f64,
    /// The control plane dies then.
    pub(crate) control_ends: f64,
    /// The first service has this ...
    pub(crate) fault: Option<Fault>,
    /// ... from here ...
    pub(crate) onset: f64,
    /// ... to here.
    pub(crate) recovery: f64,
    pub(crate) end: f64,
}

/// An attempt.
#[derive(Debug, Clone, Copy)]
struct Attempt {
    at: f64,
    target: usize,
}

/// What a run has seen.
#[derive(Debug, Default)]
pub(crate) struct Log {
    attempts: Vec<Attempt>,
    /// Requests whose every attempt failed.
    pub(crate) lost: usize,
    /// The weights of each tick.
    pub(crate) weights: Vec<(f64, Vec<f64>)>,
}

impl Log {
    /// Share of the attempts made in an interval that went to a target.
    pub(crate) fn share(&self, target: usize, from: f64, to: f64) -> f64 {
        let start = self.attempts.partition_point(|attempt| attempt.at < from);
        let end = self.attempts.partition_point(|attempt| attempt.at < to);
        let there = self.attempts[start..end].iter().filter(|attempt| attempt.target == target).count();
        there as f64 / (end - start).max(1) as f64
    }
}

enum Event {
    Arrival,
    End { proxy: usize, request: Request, sent: Sent, outcome: Outcome },
    Report { proxy: usize },
    Delivered { proxy: usize, reports: Vec<Report> },
    Tick,
    Live { proxy: usize, live: LiveState },
}

#[derive(Debug, Clone, Copy)]
struct Request {
    tried: Mask,
    attempts: u32,
}

struct World<'a> {
    scenario: &'a Scenario,
    random: Pcg64,
    now: f64,
    queue: BinaryHeap<Reverse<(u64, u64)>>,
    events: std::collections::HashMap<u64, Event>,
    next_event: u64,
    proxies: Vec<Proxy>,
    /// By proxy and target.
    newest: Vec<Vec<Report>>,
    fleet: Fleet,
    in_service: Vec<f64>,
    log: Log,
}

/// Runs a scenario.
pub(crate) fn run(scenario: &Scenario, seed: u64) -> Log {
    let policy = &scenario.policy;
    let mut world = World {
        scenario,
        random: Pcg64::seed_from_u64(seed),
        now: 0.0,
        queue: BinaryHeap::new(),
        events: std::collections::HashMap::new(),
        next_event: 0,
        proxies: (0..scenario.proxies).map(|_| Proxy::new(policy)).collect(),
        newest: vec![Vec::new(); scenario.proxies],
        fleet: Fleet::new(Arc::clone(policy)),
        in_service: vec![0.0; scenario.latency.len()],
        log: Log::default(),
    };
    world.after(0.0, Event::Arrival);
    let phase = world.random.random::<f64>();
    world.after(phase, Event::Tick);
    for proxy in 0..scenario.proxies {
        let phase = world.random.random::<f64>();
        world.after(phase, Event::Report { proxy });
    }
    while let Some(Reverse((at, id))) = world.queue.pop() {
        world.now = at as f64 / 1e6;
        if world.now > scenario.end {
            break;
        }
        let event = world.events.remove(&id).expect("each event comes once");
        world.handle(event);
    }
    world.log
}

impl World<'_> {
    fn after(&mut self, delay: f64, event: Event) {
        let at = ((self.now + delay) * 1e6) as u64;
        self.queue.push(Reverse((at, self.next_event)));
        self.events.insert(self.next_event, event);
        self.next_event += 1;
    }

    fn handle(&mut self, event: Event) {
        let scenario = self.scenario;
        let policy = &scenario.policy;
        match event {
            Event::Arrival => {
                let surge = if (60.0..90.0).contains(&self.now) { scenario.surge } else { 1.0 };
                let gap = -(1.0 - self.random.random::<f64>()).ln() / (scenario.rate * surge);
                self.after(gap, Event::Arrival);
                let proxy = self.random.random_range(0..scenario.proxies);
                self.send(proxy, Request { tried: Mask::default(), attempts: 0 });
            }
            Event::End { proxy, mut request, sent, outcome } => {
                self.in_service[sent.target] -= 1.0;
                let chance = self.random.random();
                self.proxies[proxy].settle(policy, self.now, sent, outcome, chance);
                request.tried.insert(sent.target);
                if outcome != Outcome::Ok {
                    if request.attempts < 2 {
                        self.send(proxy, request);
                    } else {
                        self.log.lost += 1;
                    }
                }
            }
            Event::Report { proxy } => {
                let reports = self.proxies[proxy].report(policy, self.now);
                self.proxies[proxy].replan(policy, self.now);
                self.after(scenario.delay, Event::Delivered { proxy, reports });
                let next = self.random.random_range(0.9..1.1);
                self.after(next, Event::Report { proxy });
            }
            Event::Delivered { proxy, reports } => {
                for (candidate, report) in policy.pools[0].candidates.iter().zip(&reports) {
                    self.fleet.absorb(candidate.target, &report.sums.row());
                }
                self.newest[proxy] = reports;
            }
            Event::Tick if self.now >= scenario.control_ends => {}
            Event::Tick => {
                let newest = &self.newest;
                let candidates = &policy.pools[0].candidates;
                let live = self.fleet.tick(1.0, 1, newest.len() as u32, |target| {
                    let place = candidates.iter().position(|candidate| candidate.target == target);
                    gauges(newest.iter().filter_map(|reports| reports.get(place?).copied()))
                });
                let weights = live.pools[0].weights.iter().map(|(_, weight, _)| *weight).collect();
                self.log.weights.push((self.now, weights));
                for proxy in 0..scenario.proxies {
                    self.after(scenario.delay, Event::Live { proxy, live: live.clone() });
                }
                self.after(1.0, Event::Tick);
            }
            Event::Live { proxy, live } => self.proxies[proxy].take(policy, live, self.now),
        }
    }

    fn send(&mut self, proxy: usize, mut request: Request) {
        let scenario = self.scenario;
        let Self { proxies, random, .. } = self;
        let (sent, _) =
            proxies[proxy].send(&scenario.policy, self.now, request.tried, || random.random::<f64>());
        request.attempts += 1;
        self.log.attempts.push(Attempt { at: self.now, target: sent.target });
        self.in_service[sent.target] += 1.0;
        let (latency, outcome) = self.serve(sent.target);
        self.after(latency, Event::End { proxy, request, sent, outcome });
    }

    /// How long the service takes, and what comes of it.
    fn serve(&mut self, target: usize) -> (f64, Outcome) {
        let scenario = self.scenario;
        let sigma2 = (1.0 + scenario.variation.powi(2)).ln();
        let normal = {
            let (one, other) = (1.0 - self.random.random::<f64>(), self.random.random::<f64>());
            (-2.0 * one.ln()).sqrt() * (std::f64::consts::TAU * other).cos()
        };
        let crowd = (self.in_service[target] / scenario.capacity[target]).max(1.0);
        let mut latency = scenario.latency[target] * crowd * (normal * sigma2.sqrt() - sigma2 / 2.0).exp();
        let sick = target == 0 && self.now >= scenario.onset && self.now < scenario.recovery;
        match scenario.fault.filter(|_| sick) {
            Some(Fault::Slow(times)) => latency *= times,
            Some(Fault::Hang) => latency = f64::INFINITY,
            Some(Fault::Fail(share)) if self.random.random::<f64>() < share => {
                return (0.03, Outcome::ServerError);
            }
            _ => {}
        }
        if latency > scenario.first_token_timeout {
            return (scenario.first_token_timeout, Outcome::FirstTokenTimeout);
        }
        (latency, Outcome::Ok)
    }
}
