//! One after the other, each proxy for itself.

use super::{Ask, Context, Policy};
use crate::scenario::Scenario;

pub(crate) struct RoundRobin {
    servers: usize,
    /// By proxy.
    next: Vec<usize>,
}

impl RoundRobin {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        let servers = scenario.servers.len();
        Self { servers, next: (0..scenario.proxies).map(|proxy| proxy % servers).collect() }
    }
}

impl Policy for RoundRobin {
    type Timer = ();

    fn choose(&mut self, ask: &Ask, _: &mut Context<'_, ()>) -> usize {
        let next = &mut self.next[ask.proxy];
        *next = (*next + 1) % self.servers;
        *next
    }
}
