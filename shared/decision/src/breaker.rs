//! The local breaker: what one proxy does about a target that fails.
//!
//! ```text
//!  Closed ──hard failures in a row, or a failure ratio──▶ Open(k) ◀──a failure, a rate limit──┐
//!    ▲                                                      │                                 │
//!    │ after `ramp`                                         │ min(open·2^k, open_max)·U[½, 1], │
//!    │                                                      ▼ at least Retry-After            │
//!  Ramp ◀──`probes` good answers, one at a time───────── HalfOpen ────────────────────────────┘
//! ```
//!
//! A probe holds a token. It gives it back with its outcome or with [`Breaker::release_probe`], and loses it when its time
//! is up: a probe that is never heard of again cannot keep the breaker open, and what it says afterwards changes nothing.
//! What else comes back while the breaker is not closed was sent before it opened, and is ignored too.
//!
//! What clients do wrong does not move it, nor do rate limits and rejected keys: those lower the score and put the target
//! on a cooldown. Time is milliseconds of any monotonic clock; chance comes in as a number.

use penstock_model::outcome::Outcome;
use penstock_model::policy::BreakerSettings;

/// A `Retry-After` beyond this is not believed.
const LONGEST_RETRY_AFTER_MS: u64 = 300_000;
/// Without a trip for so long, the next open period is the first one again.
const FORGIVEN_AFTER_MS: u64 = 120_000;
/// A target with few calls is judged by its last so many ...
const FEW: usize = 20;
/// ... of the last two minutes.
const FEW_WITHIN_MS: u64 = 120_000;
/// Share of its traffic that a target starts with when it comes back.
const RAMP_START: f64 = 0.1;

/// A breaker's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Requests pass.
    Closed,
    /// None passes.
    Open {
        /// Until then.
        until_ms: u64,
    },
    /// One at a time passes, to see.
    HalfOpen,
    /// Requests pass; the share grows back.
    Ramp {
        /// Since then.
        since_ms: u64,
    },
}

/// A change of state, to be reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transition {
    /// Before.
    pub from: State,
    /// After.
    pub to: State,
}

/// May a request be sent?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// Yes.
    Yes,
    /// As a probe. Its outcome must come with the token, or the token be released.
    Probe(ProbeToken),
    /// No.
    No,
}

/// The right to be the one probe of a half-open breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProbeToken(u64);

/// How an attempt ended.
#[derive(Debug, Clone, Copy)]
pub struct Ending {
    /// How.
    pub outcome: Outcome,
    /// The token it was admitted with.
    pub token: Option<ProbeToken>,
    /// What the service said in `Retry-After`, milliseconds.
    pub retry_after_ms: Option<u64>,
    /// Uniform in 0..1: jitter, should the breaker open.
    pub chance: f64,
}

/// What the last ten seconds held.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WindowCounts {
    /// Attempts that ended well or in a failure that counts ([`Outcome::is_failure`]).
    pub calls: u32,
    /// The failures among them.
    pub failures: u32,
}

/// The breaker of one target in one proxy.
#[derive(Debug, Clone)]
pub struct Breaker {
    state: State,
    /// Times it opened in a row.
    trips: u32,
    last_trip_ms: u64,
    /// What happened before does not count any more.
    since_ms: u64,
    hard_failures: u32,
    /// Length of the current or last open period.
    open_ms: u64,
    good_probes: u32,
    probe: Option<Probe>,
    next_token: u64,
    few: Few,
}

#[derive(Debug, Clone, Copy)]
struct Probe {
    token: ProbeToken,
    expires_ms: u64,
}

impl Default for Breaker {
    fn default() -> Self {
        Self {
            state: State::Closed,
            trips: 0,
            last_trip_ms: 0,
            since_ms: 0,
            hard_failures: 0,
            open_ms: 0,
            good_probes: 0,
            probe: None,
            next_token: 0,
            few: Few::default(),
        }
    }
}

impl Breaker {
    /// The state at `now_ms`.
    #[must_use]
    pub fn state(&self, now_ms: u64, settings: &BreakerSettings) -> State {
        match self.state {
            State::Open { until_ms } if now_ms >= until_ms => State::HalfOpen,
            State::Ramp { since_ms } if now_ms.saturating_sub(since_ms) >= millis(settings.ramp) => {
                State::Closed
            }
            state => state,
        }
    }

    /// Could a request be sent at `now_ms`? Changes nothing; for choosing among targets.
    #[must_use]
    pub fn availability(&self, now_ms: u64, settings: &BreakerSettings) -> Availability {
        match self.state(now_ms, settings) {
            State::Closed | State::Ramp { .. } => Availability::Usable,
            State::HalfOpen if self.probe_slot_free(now_ms) => Availability::Probe,
            State::HalfOpen | State::Open { .. } => Availability::Ejected,
        }
    }

    /// Admits a request, or does not. A probe's token must come back; `probe_ms`, by when it is lost, should be the time
    /// after which the attempt would be given up anyway.
    pub fn try_admit(&mut self, now_ms: u64, probe_ms: u64, settings: &BreakerSettings) -> Admission {
        self.state = self.state(now_ms, settings);
        match self.availability(now_ms, settings) {
            Availability::Usable => Admission::Yes,
            Availability::Ejected => Admission::No,
            Availability::Probe => {
                let token = ProbeToken(self.next_token);
                self.next_token += 1;
                self.probe = Some(Probe { token, expires_ms: now_ms.saturating_add(probe_ms) });
                Admission::Probe(token)
            }
        }
    }

    /// Takes note of how an attempt ended. `window` is asked for the counts of the last ten seconds, but not from before
    /// the instant it is given, this attempt included; only a failure makes it look.
    pub fn on_outcome(
        &mut self,
        now_ms: u64,
        ending: &Ending,
        settings: &BreakerSettings,
        window: impl FnOnce(u64) -> WindowCounts,
    ) -> Option<Transition> {
        let before = self.state(now_ms, settings);
        self.state = before;
        match before {
            State::Closed | State::Ramp { .. } => self.while_passing(now_ms, ending, settings, window),
            State::HalfOpen => self.while_probing(now_ms, ending, settings),
            State::Open { .. } => {}
        }
        (self.state != before).then_some(Transition { from: before, to: self.state })
    }

    /// Frees the slot of a probe that will not tell how it ended. A token that is no longer the probe's does nothing.
    pub fn release_probe(&mut self, token: ProbeToken) {
        if self.probe.is_some_and(|probe| probe.token == token) {
            self.probe = None;
        }
    }

    /// What the target's weight is multiplied with: 1, or while it comes back 0.1 to 1.
    #[must_use]
    pub fn ramp_factor(&self, now_ms: u64, settings: &BreakerSettings) -> f64 {
        match self.state(now_ms, settings) {
            State::Ramp { since_ms } => {
                ramp_factor(now_ms.saturating_sub(since_ms) as f64, settings.ramp.as_secs_f64() * 1e3)
            }
            _ => 1.0,
        }
    }

    /// Since when outcomes count: the last return of the target, 0 at first. Local averages should look no further back.
    #[must_use]
    pub fn since_ms(&self) -> u64 {
        self.since_ms
    }

    fn probe_slot_free(&self, now_ms: u64) -> bool {
        self.probe.is_none_or(|probe| now_ms >= probe.expires_ms)
    }

    fn while_passing(
        &mut self,
        now_ms: u64,
        ending: &Ending,
        settings: &BreakerSettings,
        window: impl FnOnce(u64) -> WindowCounts,
    ) {
        let outcome = ending.outcome;
        if !outcome.is_failure() && outcome != Outcome::Ok {
            return;
        }
        self.few.add(now_ms, outcome.is_failure());
        if outcome == Outcome::Ok {
            self.hard_failures = 0;
            return;
        }
        self.hard_failures =
            if outcome.is_hard_failure() { self.hard_failures + 1 } else { self.hard_failures };
        let too_many = |counts: WindowCounts| {
            counts.calls >= settings.minimum_calls
                && f64::from(counts.failures) >= settings.failure_ratio * f64::from(counts.calls)
        };
        let recent = window(self.since_ms);
        let few = recent.calls < settings.minimum_calls;
        if self.hard_failures >= settings.consecutive_failures
            || too_many(recent)
            || few && too_many(self.few.counts(now_ms))
        {
            self.open(now_ms, ending, settings);
        }
    }

    fn while_probing(&mut self, now_ms: u64, ending: &Ending, settings: &BreakerSettings) {
        let Some(token) = ending.token else { return };
        let current = self.probe.is_some_and(|probe| probe.token == token && now_ms < probe.expires_ms);
        if !current {
            return;
        }
        self.probe = None;
        match ending.outcome {
            // A service that refuses what the client sent is alive.
            Outcome::Ok | Outcome::ClientError | Outcome::ContentFiltered => {
                self.good_probes += 1;
                if self.good_probes >= settings.probes {
                    self.come_back(now_ms, settings);
                }
            }
            // These say nothing about the service. A rejected key is the key's trouble: it ends with the cooldown of
            // the key, and the next probe may go.
            Outcome::ClientCancelled | Outcome::DeadlineExceeded | Outcome::CredentialRejected => {}
            // To come back into a rate limit would only cut the wait short.
            _ => self.open(now_ms, ending, settings),
        }
    }

    fn open(&mut self, now_ms: u64, ending: &Ending, settings: &BreakerSettings) {
        if self.trips > 0
            && now_ms.saturating_sub(self.last_trip_ms) > FORGIVEN_AFTER_MS.max(2 * self.open_ms)
        {
            self.trips = 0;
        }
        let backoff = millis(settings.open)
            .saturating_mul(1 << self.trips.min(30))
            .min(millis(settings.open_max).max(millis(settings.open)));
        let jittered = (backoff as f64 * (0.5 + 0.5 * ending.chance.clamp(0.0, 1.0))) as u64;
        let told = ending.retry_after_ms.unwrap_or(0).min(LONGEST_RETRY_AFTER_MS);
        self.open_ms = jittered.max(told);
        self.state = State::Open { until_ms: now_ms + self.open_ms };
        self.trips += 1;
        self.last_trip_ms = now_ms;
        self.hard_failures = 0;
        self.good_probes = 0;
        self.probe = None;
        self.few = Few::default();
    }

    fn come_back(&mut self, now_ms: u64, settings: &BreakerSettings) {
        self.good_probes = 0;
        self.since_ms = now_ms;
        self.state = if settings.ramp.is_zero() { State::Closed } else { State::Ramp { since_ms: now_ms } };
    }
}

/// How a target looks to whoever chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Availability {
    /// Can be chosen.
    Usable,
    /// Half-open, and nobody is probing: one request may go.
    Probe,
    /// Cannot be chosen.
    Ejected,
}

/// What a target's weight is multiplied with `elapsed` after its return, when growing back takes `ramp`.
pub(crate) fn ramp_factor(elapsed: f64, ramp: f64) -> f64 {
    if elapsed >= ramp { 1.0 } else { RAMP_START + (1.0 - RAMP_START) * (elapsed / ramp).max(0.0) }
}

fn millis(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The last calls of a target that has few.
#[derive(Debug, Clone, Default)]
struct Few {
    /// When, and whether it failed; a ring.
    calls: [Option<(u64, bool)>; FEW],
    next: usize,
}

impl Few {
    fn add(&mut self, now_ms: u64, failed: bool) {
        self.calls[self.next] = Some((now_ms, failed));
        self.next = (self.next + 1) % FEW;
    }

    fn counts(&self, now_ms: u64) -> WindowCounts {
        let mut counts = WindowCounts::default();
        for (at_ms, failed) in self.calls.iter().flatten() {
            if now_ms.saturating_sub(*at_ms) < FEW_WITHIN_MS {
                counts.calls += 1;
                counts.failures += u32::from(*failed);
            }
        }
        counts
    }
}

#[cfg(test)]
mod tests;
