//! How a simulated service behaves when nothing is wrong with it.

use std::f64::consts::TAU;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use rand::{Rng, RngExt};

use crate::dialect::Dialect;

/// One simulated service.
#[derive(Debug, Clone, PartialEq)]
pub struct ServiceConfig {
    /// Its name; every answer begins with it.
    pub name: String,
    /// What it speaks.
    pub dialect: Dialect,
    /// Where it listens. Port 0 takes a free one.
    pub listen: SocketAddr,
    /// All its draws follow from this and the number of the request.
    pub seed: u64,
    /// Models that it has. Any other is 404.
    pub models: Vec<String>,
    /// The key it wants, in whichever header its dialect has for it; for Bedrock an API key, or `ACCESS_KEY_ID:SECRET` to
    /// verify signatures with. Without one it takes any, and those that are shaped like OpenAI take a call with none.
    /// Ollama never wants one.
    pub api_key: Option<String>,
    /// Wait before the answer begins, besides `first_token`.
    pub latency: Latency,
    /// Work on the prompt: wait before the first token.
    pub first_token: Duration,
    /// Speed of the answer; 0 is without limit.
    pub tokens_per_second: f64,
    /// Length of an answer, unless the request asks for less.
    pub answer_tokens: u32,
    /// How much it does at a time; without one all comes at once.
    pub capacity: Option<Capacity>,
    /// Share of the calls that fail with 500, from 0 to 1.
    pub error_rate: f64,
    /// Largest request body in bytes; more is 413.
    pub max_body: usize,
    /// Keep the last request, credential and body included, to be read from the statistics.
    pub capture: bool,
}

impl ServiceConfig {
    /// A service on a free port of this machine that answers at once, with one model of its own name.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        let name = name.into();
        Self {
            models: vec![name.clone()],
            name,
            dialect: Dialect::default(),
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            seed: 0,
            api_key: None,
            latency: Latency::Fixed(Duration::ZERO),
            first_token: Duration::ZERO,
            tokens_per_second: 0.0,
            answer_tokens: 16,
            capacity: None,
            error_rate: 0.0,
            max_body: 32 << 20,
            capture: false,
        }
    }
}

impl Default for ServiceConfig {
    /// One of the name `sim`.
    fn default() -> Self {
        Self::new("sim")
    }
}

/// Slots, and places to wait for one. When all are taken, a call is refused with 503.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capacity {
    /// Calls answered at the same time.
    pub concurrent: usize,
    /// Calls that wait for a slot.
    pub queue: usize,
}

/// A distribution of waits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Latency {
    /// Always the same.
    Fixed(Duration),
    /// Log-normal, as measured latencies of model services are, near enough.
    LogNormal {
        /// Half of the waits are longer.
        median: Duration,
        /// Standard deviation of the logarithm; 0.5 puts the 99th percentile at 3.2 medians.
        sigma: f64,
    },
}

impl Latency {
    pub(crate) fn draw(self, rng: &mut impl Rng) -> Duration {
        match self {
            Self::Fixed(wait) => wait,
            Self::LogNormal { median, sigma } => {
                // Box-Muller; 1 − u keeps the logarithm's argument above zero.
                let (u, v): (f64, f64) = (rng.random(), rng.random());
                let normal = (-2.0 * (1.0 - u).ln()).sqrt() * (TAU * v).cos();
                median.mul_f64((sigma * normal).exp().min(1_000.0))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_pcg::Pcg64Mcg;

    use super::*;

    #[test]
    fn half_of_log_normal_waits_exceed_the_median_and_a_hundredth_its_tail() {
        let median = Duration::from_millis(100);
        let mut rng = Pcg64Mcg::seed_from_u64(1);
        let latency = Latency::LogNormal { median, sigma: 0.5 };
        let mut draws: Vec<Duration> = (0..10_000).map(|_| latency.draw(&mut rng)).collect();
        draws.sort_unstable();
        let of = |quantile: usize| draws[quantile].as_secs_f64() / median.as_secs_f64();
        assert!((0.97..1.03).contains(&of(5_000)), "{}", of(5_000));
        assert!((2.9..3.5).contains(&of(9_900)), "{}", of(9_900));
    }

    #[test]
    fn the_same_seed_draws_the_same_waits() {
        let latency = Latency::LogNormal { median: Duration::from_secs(1), sigma: 1.0 };
        let draw = |seed| latency.draw(&mut Pcg64Mcg::seed_from_u64(seed));
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }
}
