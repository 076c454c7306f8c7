//! Penstock's own choosing, by the real crate: proxies report, the control plane ticks, live states come back.

mod control;
mod proxy;

use std::sync::Arc;
use std::time::Duration;

use penstock_decision::plan::Plans;
use penstock_model::Policy as Document;
use penstock_model::live::LiveState;
use rand::RngExt;

use crate::policy::{Ask, Context, Policy};
use crate::scenario::Scenario;
use crate::world::Attempt;
use control::Control;
use proxy::{Proxy, Report};

/// What happens between the planes.
pub(crate) enum Timer {
    /// A proxy reports.
    Report(usize),
    /// Its report arrives.
    Reported { proxy: usize, report: Report },
    /// The control plane ticks; proxies let their plan age.
    Tick,
    /// A live state arrives, at all proxies at once: nothing is more likely to make a herd of them.
    Live(LiveState),
}

pub(crate) struct Penstock {
    document: Arc<Document>,
    proxies: Vec<Proxy>,
    control: Control,
    plans: Plans,
    live: Option<(LiveState, f64)>,
    /// From a report, or a live state, to its arrival.
    delay: f64,
    control_ends: f64,
}

impl Penstock {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        let document = document(scenario.servers.len());
        Self {
            proxies: (0..scenario.proxies).map(|_| Proxy::new(scenario.servers.len())).collect(),
            control: Control::new(&document, scenario.proxies),
            plans: Plans::new(&document, None),
            document,
            live: None,
            delay: scenario.delay / 2.0,
            control_ends: scenario.control_ends,
        }
    }

    fn replan(&mut self, now: f64) {
        let live = self.live.as_ref().map(|(live, at)| (live, Duration::from_secs_f64(now - at)));
        self.plans = Plans::new(&self.document, live);
    }
}

impl Policy for Penstock {
    type Timer = Timer;

    fn start(&mut self, context: &mut Context<'_, Timer>) {
        // Nobody's clock is anybody else's.
        let phase = context.random.random();
        context.after(phase, Timer::Tick);
        for proxy in 0..self.proxies.len() {
            let phase = context.random.random();
            context.after(phase, Timer::Report(proxy));
        }
    }

    fn choose(&mut self, ask: &Ask, context: &mut Context<'_, Timer>) -> usize {
        self.proxies[ask.proxy].choose(ask, &self.document, &self.plans, context)
    }

    fn on_first_token(&mut self, _: usize, attempt: &Attempt, _: &mut Context<'_, Timer>) {
        self.proxies[attempt.proxy].on_first_token(attempt);
    }

    fn on_end(&mut self, id: usize, attempt: &Attempt, context: &mut Context<'_, Timer>) {
        let chance = context.random.random();
        self.proxies[attempt.proxy].on_end(id, attempt, &self.document, context.now, chance);
    }

    fn on_timer(&mut self, timer: Timer, context: &mut Context<'_, Timer>) {
        match timer {
            Timer::Report(proxy) => {
                let report = self.proxies[proxy].report(&self.document, context.now);
                context.after(self.delay, Timer::Reported { proxy, report });
                let next = context.random.random_range(0.9..1.1);
                context.after(next, Timer::Report(proxy));
            }
            Timer::Reported { proxy, report } => self.control.absorb(proxy, report),
            Timer::Tick => {
                if context.now < self.control_ends {
                    context.after(self.delay, Timer::Live(self.control.tick()));
                }
                self.replan(context.now);
                context.after(1.0, Timer::Tick);
            }
            Timer::Live(live) => {
                self.live = Some((live, context.now));
                self.replan(context.now);
            }
        }
    }
}

/// A policy of one pool with everything at its default, its services in the order of the scenario.
fn document(servers: usize) -> Arc<Document> {
    let mut text =
        "version: 1\ncapabilities: {chat: {default: true}}\nroutes: [{name: default}]\nbackends:\n"
            .to_owned();
    for server in 0..servers {
        text.push_str(&format!(
            "  s{server:03}: {{provider: openai, base_url: \"http://127.0.0.1:1/v1\", capabilities: [chat], models: \
             [{{name: m}}]}}\n"
        ));
    }
    let loaded = penstock_model::load(&text);
    let policy = loaded.policy.unwrap_or_else(|| panic!("{:?}", loaded.problems));
    let targets = policy.pools[0].candidates.iter().map(|candidate| candidate.target.index());
    assert!(targets.eq(0..servers), "targets are in the order of the services");
    Arc::new(policy)
}
