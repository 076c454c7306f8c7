//! Who chooses a service for each request.

mod peak_ewma;
mod round_robin;

pub(crate) use peak_ewma::PeakEwma;
pub(crate) use round_robin::RoundRobin;

use penstock_decision::pick::Mask;
use rand_pcg::Pcg64;

use crate::penstock::Penstock;
use crate::scenario::Scenario;
use crate::server::Server;
use crate::world::{Attempt, Log, run};

/// A request that needs a service.
#[derive(Debug, Clone, Copy)]
pub struct Ask {
    /// The attempt that will be made.
    pub attempt: usize,
    /// Where it came in.
    pub proxy: usize,
    /// Services that failed it already.
    pub tried: Mask,
}

/// What a policy has at hand beside its own state.
pub struct Context<'a, T> {
    /// Seconds since the start.
    pub now: f64,
    /// Its dice.
    pub random: &'a mut Pcg64,
    /// The services as they are. Only a policy that could really know looks there.
    pub servers: &'a [Server],
    pub(crate) timers: &'a mut Vec<(f64, T)>,
}

impl<T> Context<'_, T> {
    /// Has [`Policy::on_timer`] called in so many seconds.
    pub fn after(&mut self, seconds: f64, timer: T) {
        self.timers.push((self.now + seconds, timer));
    }
}

/// All proxies' choosing, and the control plane's part in it.
pub trait Policy {
    /// What it wants to be woken for.
    type Timer;
    /// Before the first request.
    fn start(&mut self, _context: &mut Context<'_, Self::Timer>) {}
    /// Chooses a service.
    fn choose(&mut self, ask: &Ask, context: &mut Context<'_, Self::Timer>) -> usize;
    /// The first token has come.
    fn on_first_token(&mut self, _id: usize, _attempt: &Attempt, _context: &mut Context<'_, Self::Timer>) {}
    /// The attempt has ended, well or not.
    fn on_end(&mut self, _id: usize, _attempt: &Attempt, _context: &mut Context<'_, Self::Timer>) {}
    /// A timer it has set is due.
    fn on_timer(&mut self, _timer: Self::Timer, _context: &mut Context<'_, Self::Timer>) {}
}

/// The policies that are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contender {
    /// Each proxy takes the services in turn.
    RoundRobin,
    /// The better of two random ones by time to the first byte and requests waiting for it.
    FirstByteP2c,
    /// The better of two random ones by total latency and requests in flight.
    LatencyP2c,
    /// The decision crate as it is.
    Penstock,
}

impl Contender {
    /// All of them, in the order of the tables.
    pub const ALL: [Self; 4] = [Self::RoundRobin, Self::FirstByteP2c, Self::LatencyP2c, Self::Penstock];

    /// As the tables name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::RoundRobin => "round robin",
            Self::FirstByteP2c => "P2C peak EWMA, first byte",
            Self::LatencyP2c => "P2C peak EWMA, whole answer",
            Self::Penstock => "Penstock",
        }
    }

    /// Runs a scenario.
    #[must_use]
    pub fn run(self, scenario: &Scenario, seed: u64) -> Log {
        match self {
            Self::RoundRobin => run(scenario, seed, RoundRobin::new(scenario)),
            Self::FirstByteP2c => run(scenario, seed, PeakEwma::by_first_byte(scenario)),
            Self::LatencyP2c => run(scenario, seed, PeakEwma::by_latency(scenario)),
            Self::Penstock => run(scenario, seed, Penstock::new(scenario)),
        }
    }
}
