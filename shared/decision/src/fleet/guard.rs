//! The gain guard: when weights swing, it lowers the sharpness β that makes them swing.
//!
//! Swinging is what a log weight does that turns by at least [`AMPLITUDE`] three times within a minute. Targets that fail
//! are left out: they swing because they flap, not because β is too large.

/// A turn counts from this change of the log weight on.
const AMPLITUDE: f64 = 0.5;
/// Turns within a minute that are too many.
const MOST_TURNS: usize = 3;
const WITHIN: f64 = 60.0;
/// What is left of the gain after each alarm, and what it gains back per quiet half minute.
const LOWER: f64 = 0.7;
const RAISE: f64 = 1.1;
const QUIET: f64 = 30.0;
/// β is not lowered further: a flatter plan would overload slow targets.
const LEAST_BETA: f64 = 1.0;
/// A target with less success than this in the last half minute does not count.
const UNWELL: f64 = 0.9;

/// See the module.
#[derive(Debug)]
pub(super) struct Guard {
    configured: f64,
    gain: f64,
    last_change: f64,
    tracks: Vec<Track>,
}

/// Where a log weight last turned.
#[derive(Debug, Default)]
struct Track {
    extreme: Option<f64>,
    rising: Option<bool>,
    turns: Vec<f64>,
    unwell_until: f64,
}

impl Guard {
    pub(super) fn new(beta: f64, candidates: usize) -> Self {
        let tracks = (0..candidates).map(|_| Track::default()).collect();
        Self { configured: beta, gain: 1.0, last_change: 0.0, tracks }
    }

    /// The sharpness in force.
    pub(super) fn beta(&self) -> f64 {
        self.configured * self.gain
    }

    /// Looks at the log weights of a tick, each with the target's success rate; `None` for one that is out.
    pub(super) fn tick(&mut self, now: f64, log_weights: impl Iterator<Item = Option<(f64, f64)>>) {
        for (track, weight) in self.tracks.iter_mut().zip(log_weights) {
            track.follow(now, weight);
        }
        if self.tracks.iter().any(|track| track.turns.len() >= MOST_TURNS) {
            self.gain = (self.gain * LOWER).max((LEAST_BETA / self.configured).min(1.0));
            self.last_change = now;
            self.tracks.iter_mut().for_each(|track| track.turns.clear());
        } else if now - self.last_change >= QUIET {
            self.gain = (self.gain * RAISE).min(1.0);
            self.last_change = now;
        }
    }
}

impl Track {
    fn follow(&mut self, now: f64, weight: Option<(f64, f64)>) {
        if weight.is_none_or(|(_, success)| success < UNWELL) {
            self.unwell_until = now + QUIET;
        }
        let Some((weight, _)) = weight.filter(|_| now >= self.unwell_until) else {
            *self = Self { unwell_until: self.unwell_until, ..Self::default() };
            return;
        };
        self.turns.retain(|at| now - at <= WITHIN);
        let extreme = *self.extreme.get_or_insert(weight);
        let (rose, fell) = (weight - extreme >= AMPLITUDE, extreme - weight >= AMPLITUDE);
        match self.rising {
            Some(true) if fell => self.turn(now, weight, false),
            Some(false) if rose => self.turn(now, weight, true),
            Some(rising) if (weight > extreme) == rising => self.extreme = Some(weight),
            None if rose || fell => {
                self.rising = Some(rose);
                self.extreme = Some(weight);
            }
            _ => {}
        }
    }

    fn turn(&mut self, now: f64, weight: f64, rising: bool) {
        self.turns.push(now);
        self.rising = Some(rising);
        self.extreme = Some(weight);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(guard: &mut Guard, from: u32, seconds: u32, weight: impl Fn(u32) -> Option<(f64, f64)>) {
        for second in from..from + seconds {
            guard.tick(f64::from(second), std::iter::once(weight(second)));
        }
    }

    /// A square wave with a period of ten seconds.
    fn wave(second: u32) -> f64 {
        if second % 10 < 5 { 0.0 } else { -0.8 }
    }

    #[test]
    fn swinging_lowers_beta_and_quiet_brings_it_back() {
        let mut guard = Guard::new(2.0, 1);
        run(&mut guard, 0, 30, |second| Some((wave(second), 1.0)));
        assert!((guard.beta() - 1.4).abs() < 1e-9, "{}", guard.beta());
        run(&mut guard, 30, 300, |second| Some((wave(second), 1.0)));
        assert_eq!(guard.beta(), 1.0, "and no further");
        run(&mut guard, 330, 300, |_| Some((0.0, 1.0)));
        assert_eq!(guard.beta(), 2.0);
    }

    #[test]
    fn noise_and_a_single_move_are_no_swinging() {
        let mut guard = Guard::new(2.0, 1);
        run(&mut guard, 0, 200, |second| Some((if second % 2 == 0 { 0.2 } else { -0.2 }, 1.0)));
        run(&mut guard, 200, 200, |second| Some((-f64::from(second - 200) * 0.01, 1.0)));
        assert_eq!(guard.beta(), 2.0);
    }

    #[test]
    fn a_target_that_fails_or_is_out_does_not_count() {
        let mut guard = Guard::new(2.0, 1);
        run(&mut guard, 0, 100, |second| Some((wave(second), 0.5)));
        run(&mut guard, 100, 100, |second| (second % 10 < 5).then_some((wave(second + 5), 1.0)));
        assert_eq!(guard.beta(), 2.0);
    }

    #[test]
    fn a_configured_beta_below_the_least_stays_what_it_is() {
        let mut guard = Guard::new(0.5, 1);
        run(&mut guard, 0, 100, |second| Some((wave(second), 1.0)));
        assert_eq!(guard.beta(), 0.5);
    }
}
