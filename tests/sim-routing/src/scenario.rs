//! What happens in a run.

use crate::server::Capacity;

/// What is wrong with a service.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fault {
    /// It works so many times slower.
    Slow(f64),
    /// It does nothing any more.
    Hang,
    /// This share of its calls fails after 30 ms.
    Fail(f64),
}

/// A log-normal distribution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// Its mean.
    pub mean: f64,
    /// Standard deviation over mean.
    pub variation: f64,
}

/// A service is sick for a while.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Incident {
    /// Which service.
    pub server: usize,
    /// What it has.
    pub fault: Fault,
}

/// Everything but the seed. Times in seconds.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// The services.
    pub servers: Vec<Capacity>,
    /// Work of a request until its first token, at speed 1.
    pub prefill: Spread,
    /// Work after that.
    pub decode: Spread,
    /// How many proxies share the requests evenly.
    pub proxies: usize,
    /// Requests per second, all proxies together.
    pub rate: f64,
    /// From report to arrival of what follows from it, besides waiting for the control plane's next tick.
    pub delay: f64,
    /// The control plane dies then.
    pub control_ends: f64,
    /// What happens between `onset` and `recovery`.
    pub incident: Option<Incident>,
    /// When it begins.
    pub onset: f64,
    /// When it ends.
    pub recovery: f64,
    /// When the run ends.
    pub end: f64,
}

impl Scenario {
    /// Requests per second at which all of these services would be busy all the time.
    #[must_use]
    pub fn saturation(&self) -> f64 {
        let work: f64 = self.servers.iter().map(|server| server.speed * server.batch).sum();
        work / (self.prefill.mean + self.decode.mean)
    }

    /// At this share of what saturates the services.
    #[must_use]
    pub fn at_load(self, load: f64) -> Self {
        Self { rate: load * self.saturation(), ..self }
    }

    /// Language models of unequal speed, eight proxies, reports every second that arrive a second later; the second
    /// service, a fast one, is five times slower from 80 s to 140 s.
    #[must_use]
    pub fn language_models(servers: &[(f64, f64)], load: f64) -> Self {
        let servers = servers.iter().map(|&(speed, batch)| Capacity { speed, batch }).collect();
        let scenario = Self {
            servers,
            prefill: Spread { mean: 0.2, variation: 1.0 },
            decode: Spread { mean: 1.3, variation: 1.2 },
            proxies: 8,
            rate: 0.0,
            delay: 1.0,
            control_ends: f64::INFINITY,
            incident: Some(Incident { server: 1, fault: Fault::Slow(5.0) }),
            onset: 80.0,
            recovery: 140.0,
            end: 200.0,
        };
        scenario.at_load(load)
    }
}

/// Three services: speed and batch.
pub const THREE: [(f64, f64); 3] = [(1.0, 64.0), (0.8, 48.0), (0.5, 32.0)];
/// Six.
pub const SIX: [(f64, f64); 6] =
    [(1.0, 64.0), (1.0, 64.0), (0.8, 48.0), (0.7, 48.0), (0.5, 32.0), (0.4, 32.0)];
/// Ten.
pub const TEN: [(f64, f64); 10] = [
    (1.0, 64.0),
    (1.0, 64.0),
    (1.0, 64.0),
    (0.8, 48.0),
    (0.8, 48.0),
    (0.8, 48.0),
    (0.6, 32.0),
    (0.6, 32.0),
    (0.4, 32.0),
    (0.4, 32.0),
];
