//! The events of a run, in their order.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use penstock_decision::pick::Mask;
use penstock_model::outcome::Outcome;
use rand::RngExt;
use rand_pcg::Pcg64;

use crate::policy::{Ask, Context, Policy};
use crate::scenario::{Fault, Scenario, Spread};
use crate::server::{Server, Stage};

/// How long a failing service takes to fail.
const FAILS_AFTER: f64 = 0.03;
/// What a failed attempt costs, for the judgement of a choice.
const FAILURE_COSTS: f64 = 3.0;

/// One try of a request at one service. Times in seconds since the start.
#[derive(Debug, Clone, Copy)]
pub struct Attempt {
    /// Where the request came in.
    pub proxy: usize,
    /// The service.
    pub server: usize,
    /// When it was sent.
    pub sent: f64,
    /// When its first token came.
    pub first_token: Option<f64>,
    /// When and how it ended.
    pub ended: Option<(f64, Outcome)>,
    /// How many times longer it would take there than at the best service, as things stood when it was sent.
    pub regret: f64,
    request: Request,
    stage: Stage,
}

impl Attempt {
    /// Seconds to the first token of an answer that came.
    #[must_use]
    pub fn to_first_token(&self) -> Option<f64> {
        self.latency()?;
        Some(self.first_token? - self.sent)
    }

    /// Seconds to the end of an answer that came.
    #[must_use]
    pub fn latency(&self) -> Option<f64> {
        self.ended.filter(|(_, outcome)| *outcome == Outcome::Ok).map(|(at, _)| at - self.sent)
    }
}

/// Every attempt of a run, in the order of sending.
#[derive(Debug, Default)]
pub struct Log {
    /// See the type.
    pub attempts: Vec<Attempt>,
}

#[derive(Debug, Clone, Copy)]
struct Request {
    prefill: f64,
    decode: f64,
}

enum Event<T> {
    Arrival,
    /// Of a server, unless something has changed since.
    StageDone {
        server: usize,
        version: u64,
    },
    Failed {
        attempt: usize,
    },
    Onset,
    Recovery,
    Timer(T),
}

struct Timed<T> {
    at: f64,
    order: u64,
    event: Event<T>,
}

impl<T> Ord for Timed<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.at.total_cmp(&other.at).then(self.order.cmp(&other.order))
    }
}

impl<T> PartialOrd for Timed<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Timed<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<T> Eq for Timed<T> {}

struct World<'a, P: Policy> {
    scenario: &'a Scenario,
    policy: P,
    /// What comes in, what fails, and the policy's dice: apart, so that all policies meet the same requests.
    requests: Pcg64,
    failures: Pcg64,
    dice: Pcg64,
    now: f64,
    queue: BinaryHeap<Reverse<Timed<P::Timer>>>,
    events: u64,
    servers: Vec<Server>,
    /// Of each server: how often its next event has changed.
    versions: Vec<u64>,
    log: Log,
}

/// Runs a scenario with a policy.
pub fn run<P: Policy>(scenario: &Scenario, seed: u64, policy: P) -> Log {
    let random = |stream| Pcg64::new(u128::from(seed), stream);
    let mut world = World {
        scenario,
        policy,
        requests: random(1),
        failures: random(2),
        dice: random(3),
        now: 0.0,
        queue: BinaryHeap::new(),
        events: 0,
        servers: scenario.servers.iter().map(|capacity| Server::new(*capacity)).collect(),
        versions: vec![0; scenario.servers.len()],
        log: Log::default(),
    };
    world.ask_policy(|policy, context| policy.start(context));
    world.schedule(0.0, Event::Arrival);
    world.schedule(scenario.onset, Event::Onset);
    world.schedule(scenario.recovery, Event::Recovery);
    while let Some(Reverse(Timed { at, event, .. })) = world.queue.pop() {
        if at > scenario.end {
            break;
        }
        world.now = at;
        world.handle(event);
    }
    world.log
}

impl<P: Policy> World<'_, P> {
    fn schedule(&mut self, at: f64, event: Event<P::Timer>) {
        self.queue.push(Reverse(Timed { at, order: self.events, event }));
        self.events += 1;
    }

    fn handle(&mut self, event: Event<P::Timer>) {
        match event {
            Event::Arrival => self.arrive(),
            Event::StageDone { server, version } if version == self.versions[server] => {
                while let Some(attempt) = self.servers[server].take_done(self.now) {
                    self.stage_done(attempt);
                }
                self.reschedule(server);
            }
            Event::StageDone { .. } => {}
            Event::Failed { attempt } => self.end(attempt, Outcome::ServerError),
            Event::Onset => match self.scenario.incident.map(|incident| incident.fault) {
                Some(Fault::Slow(times)) => self.set_health(1.0 / times, 0.0),
                Some(Fault::Hang) => self.set_health(0.0, 0.0),
                Some(Fault::Fail(share)) => self.set_health(1.0, share),
                None => {}
            },
            Event::Recovery => self.set_health(1.0, 0.0),
            Event::Timer(timer) => self.ask_policy(|policy, context| policy.on_timer(timer, context)),
        }
    }

    fn arrive(&mut self) {
        let gap = -(1.0 - self.requests.random::<f64>()).ln() / self.scenario.rate;
        self.schedule(self.now + gap, Event::Arrival);
        let proxy = self.requests.random_range(0..self.scenario.proxies);
        let request = Request {
            prefill: sample(self.scenario.prefill, &mut self.requests),
            decode: sample(self.scenario.decode, &mut self.requests),
        };
        self.send(proxy, request);
    }

    fn send(&mut self, proxy: usize, request: Request) {
        let id = self.log.attempts.len();
        let ask = Ask { attempt: id, proxy, tried: Mask::default() };
        let server = self.ask_policy(|policy, context| policy.choose(&ask, context));
        let regret = regret(&self.servers, server);
        let fails = self.failures.random::<f64>() < self.servers[server].failing();
        let stage = if fails {
            self.schedule(self.now + FAILS_AFTER, Event::Failed { attempt: id });
            Stage::default()
        } else {
            let stage = self.servers[server].start(self.now, id, request.prefill);
            self.reschedule(server);
            stage
        };
        let sent = self.now;
        let attempt = Attempt { proxy, server, sent, first_token: None, ended: None, regret, request, stage };
        self.log.attempts.push(attempt);
    }

    fn stage_done(&mut self, id: usize) {
        let attempt = &mut self.log.attempts[id];
        if attempt.first_token.is_some() {
            return self.end(id, Outcome::Ok);
        }
        attempt.first_token = Some(self.now);
        attempt.stage = self.servers[attempt.server].go_on(id, attempt.stage, attempt.request.decode);
        let attempt = *attempt;
        self.ask_policy(|policy, context| policy.on_first_token(id, &attempt, context));
    }

    fn end(&mut self, id: usize, outcome: Outcome) {
        self.log.attempts[id].ended = Some((self.now, outcome));
        let attempt = self.log.attempts[id];
        self.ask_policy(|policy, context| policy.on_end(id, &attempt, context));
    }

    fn set_health(&mut self, health: f64, failing: f64) {
        let Some(incident) = self.scenario.incident else { return };
        self.servers[incident.server].set_health(self.now, health, failing);
        self.reschedule(incident.server);
    }

    fn reschedule(&mut self, server: usize) {
        self.versions[server] += 1;
        if let Some(at) = self.servers[server].next_done() {
            self.schedule(at, Event::StageDone { server, version: self.versions[server] });
        }
    }

    fn ask_policy<R>(&mut self, ask: impl FnOnce(&mut P, &mut Context<'_, P::Timer>) -> R) -> R {
        let mut timers = Vec::new();
        let mut context =
            Context { now: self.now, random: &mut self.dice, servers: &self.servers, timers: &mut timers };
        let answer = ask(&mut self.policy, &mut context);
        for (at, timer) in timers {
            self.schedule(at, Event::Timer(timer));
        }
        answer
    }
}

/// How many times longer a request would take at `chosen` than at the best server, with another one on each.
fn regret(servers: &[Server], chosen: usize) -> f64 {
    let seconds = |server: &Server| {
        let failures = server.failing() / (1.0 - server.failing());
        server.stretch(server.in_flight() + 1) + FAILURE_COSTS * failures
    };
    let best = servers.iter().map(seconds).fold(f64::INFINITY, f64::min);
    seconds(&servers[chosen]) / best
}

fn sample(spread: Spread, random: &mut Pcg64) -> f64 {
    let variance = (1.0 + spread.variation.powi(2)).ln();
    let (one, other) = (1.0 - random.random::<f64>(), random.random::<f64>());
    let normal = (-2.0 * one.ln()).sqrt() * (std::f64::consts::TAU * other).cos();
    spread.mean * (normal * variance.sqrt() - variance / 2.0).exp()
}
