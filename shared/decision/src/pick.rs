//! Which candidate of a pool gets this request: the better of two weighted draws.
//!
//! The control plane's weights are the plan. A proxy corrects it with what only it knows: its own requests in flight and
//! its own last seconds. It draws two candidates by weight and takes the one whose load is less than planned:
//!
//! ```text
//! n*  = n · w·C / Σ w·C             what the plan implies of this proxy's n requests in flight (Little's law)
//! J   = (in flight + 1)/(n* + 1) · Ĉ/C      1 = as planned
//! a, b drawn by w;  b only if 1.15·J_b < J_a
//! ```
//!
//! Nobody is chosen without being drawn, so a candidate gets at most 1 − (1 − w)² ≤ 2w of the requests, whatever the
//! local numbers say: no herd. But nobody is spared who is drawn twice either, and of two candidates a hung one with half
//! the weight would keep a quarter of the requests until the weights move. Hence a third draw, from those not drawn
//! yet, when the load of the better one is bad (J > 2). It costs the bound exactly then, and only towards candidates
//! whose own load is lower.

mod odds;

use crate::plan::Planned;

pub use odds::{Odds, odds};

/// Candidates beyond this many are not seen.
pub const MAX_CANDIDATES: usize = 128;
/// How much better the second draw must be to be preferred: the local numbers are noisy.
const MARGIN: f64 = 1.15;
/// Twice the planned load: reason enough to look further.
const BAD_LOAD: f64 = 2.0;
/// Of the first attempts made while a candidate awaits a probe, this many are its probe.
const PROBE_SHARE: f64 = 0.2;
/// When too much of a pool is out, even a candidate that never succeeds keeps this factor of its weight.
const LEAST_SUCCESS: f64 = 0.05;

/// A set of candidates.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Mask(u128);

impl Mask {
    /// Is the candidate in it?
    #[must_use]
    pub fn contains(self, index: usize) -> bool {
        index < MAX_CANDIDATES && self.0 & (1 << index) != 0
    }

    /// Adds a candidate.
    pub fn insert(&mut self, index: usize) {
        if index < MAX_CANDIDATES {
            self.0 |= 1 << index;
        }
    }

    /// Is nobody in it?
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// How many are in it.
    #[must_use]
    pub fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Those that are not in `other`.
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Those that are in either.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Their indices, ascending.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let index = (rest != 0).then(|| rest.trailing_zeros() as usize)?;
            rest &= rest - 1;
            Some(index)
        })
    }
}

/// How a candidate stands for this request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Standing {
    /// Can be chosen.
    Usable {
        /// 1, or less while it comes back ([`crate::breaker::Breaker::ramp_factor`]).
        ramp: f64,
    },
    /// Half-open: one request may go, as a probe.
    Probe,
    /// Its breaker is open. Chosen only when too much of the pool is out.
    Ejected,
    /// Cannot serve this request at all: cooldown, key, context window.
    Excluded,
}

/// What only this proxy knows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LocalSignal {
    /// Own requests in flight at the candidate.
    pub in_flight: u32,
    /// Ĉ/C ([`crate::local::Recent::cost_ratio`]).
    pub cost_ratio: f64,
}

/// A proxy's view of the candidates of a pool.
pub trait LocalView {
    /// How the candidate stands. Asked of each, and again of those that ramp.
    fn standing(&self, index: usize) -> Standing;
    /// What is known locally. Asked only of those that are drawn.
    fn signal(&self, index: usize) -> LocalSignal;
}

/// One draw.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Draw {
    /// Which candidate.
    pub index: usize,
    /// J: its load over the planned.
    pub load: f64,
}

/// A choice, and how it came about.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pick {
    /// The chosen candidate.
    pub index: usize,
    /// Two or three draws in their order; none when it is a probe. The same candidate can be drawn twice.
    pub draws: [Option<Draw>; 3],
    /// It is half-open: the request goes as its probe. If another one was faster and the breaker does not admit it, pick
    /// again with it among the tried.
    pub probe: bool,
    /// So much of the pool is out that breakers were set aside: send it even if the breaker does not admit it.
    pub panic: bool,
}

/// A pool and what is asked of it.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The candidates.
    pub plan: &'a [Planned],
    /// Targets that this request has tried already. They are tried again only when there is no other.
    pub tried: Mask,
    /// Own requests in flight, all candidates together.
    pub in_flight: u32,
    /// Largest share of the configured weight that breakers may take out.
    pub max_ejected: f64,
}

/// Chooses. `chance` gives uniform numbers in 0..1. `None` when every candidate is excluded.
pub fn pick(
    question: &Question<'_>,
    local: &impl LocalView,
    mut chance: impl FnMut() -> f64,
) -> Option<Pick> {
    let urn = Urn::new(question, local);
    let in_turn = match urn.probe_share {
        0.0 => false,
        1.0 => true,
        share => chance() < share,
    };
    if in_turn {
        let nth = (chance() * urn.probing.len() as f64) as usize;
        let index = urn.probing.iter().nth(nth.min(urn.probing.len() - 1))?;
        return Some(Pick { index, draws: [None; 3], probe: true, panic: false });
    }
    let (index, draws) = urn.choose(&mut chance)?;
    Some(Pick { index, draws, probe: urn.field.half_open.contains(index), panic: urn.panic })
}

/// A pool as one request meets it: who can be drawn, and by what weights.
struct Urn<'a, L> {
    question: &'a Question<'a>,
    local: &'a L,
    field: Field,
    candidates: Mask,
    /// Half-open ones whose turn may be now.
    probing: Mask,
    /// How likely it is the turn of one of them.
    probe_share: f64,
    panic: bool,
    /// Σ w·C over the candidates.
    planned_work: f64,
}

impl<'a, L: LocalView> Urn<'a, L> {
    fn new(question: &'a Question<'a>, local: &'a L) -> Self {
        let field = Field::new(question, local);
        let fresh = |mask: Mask| mask.without(question.tried);
        let (usable, probing) = (fresh(field.usable), fresh(field.probing));
        let probe_share = match (probing.is_empty(), usable.is_empty()) {
            (true, _) => 0.0,
            (false, true) => 1.0,
            // Only a first attempt probes: it has a retry left.
            (false, false) if question.tried.is_empty() => PROBE_SHARE,
            (false, false) => 0.0,
        };
        let everyone = field.usable.union(field.probing).union(field.ejected);
        let panic = field.usable.is_empty() || field.ejected_share > question.max_ejected;
        let candidates = match (panic, usable.is_empty()) {
            (false, false) => usable,
            (false, true) => field.usable,
            (true, _) if fresh(everyone).is_empty() => everyone,
            (true, _) => fresh(everyone),
        };
        let mut urn =
            Self { question, local, field, candidates, probing, probe_share, panic, planned_work: 0.0 };
        urn.planned_work = candidates.iter().map(|index| urn.weight(index) * question.plan[index].cost).sum();
        urn
    }

    fn weight(&self, index: usize) -> f64 {
        let planned = &self.question.plan[index];
        let caution = if self.panic { planned.success.max(LEAST_SUCCESS) } else { 1.0 };
        planned.weight * self.field.ramp(index, self.local) * caution
    }

    /// J.
    fn load(&self, index: usize) -> f64 {
        let signal = self.local.signal(index);
        let share = self.weight(index) * self.question.plan[index].cost / self.planned_work;
        let planned = f64::from(self.question.in_flight) * if share.is_finite() { share } else { 0.0 };
        (f64::from(signal.in_flight) + 1.0) / (planned + 1.0) * signal.cost_ratio
    }

    fn draw(&self, from: Mask, chance: f64) -> Option<Draw> {
        draw(from, &|index| self.weight(index), chance).map(|index| Draw { index, load: self.load(index) })
    }

    /// Draws two of the candidates, or three, and takes the best.
    fn choose(&self, chance: &mut impl FnMut() -> f64) -> Option<(usize, [Option<Draw>; 3])> {
        let first = self.draw(self.candidates, chance())?;
        let mut draws = [Some(first), None, None];
        if self.candidates.len() == 1 {
            return Some((first.index, draws));
        }
        let second = self.draw(self.candidates, chance())?;
        draws[1] = Some(second);
        let mut best = better(first, second);
        if best.load > BAD_LOAD {
            let mut drawn = Mask::default();
            drawn.insert(first.index);
            drawn.insert(second.index);
            draws[2] = self.draw(self.candidates.without(drawn), chance());
            best = draws[2].map_or(best, |third| better(best, third));
        }
        Some((best.index, draws))
    }
}

/// The later of two draws, if it is better by the margin.
fn better(best: Draw, other: Draw) -> Draw {
    if MARGIN * other.load < best.load { other } else { best }
}

/// The candidates sorted by how they stand.
#[derive(Default)]
struct Field {
    usable: Mask,
    /// Half-open, and to be probed in turn.
    probing: Mask,
    /// Half-open, whether in `probing` or, when the fleet rations the probes, in `usable`.
    half_open: Mask,
    ejected: Mask,
    /// Usable, but growing back.
    ramping: Mask,
    /// Share of the configured weight that breakers have taken out.
    ejected_share: f64,
}

impl Field {
    fn new(question: &Question<'_>, local: &impl LocalView) -> Self {
        let mut field = Self::default();
        let (mut out, mut all) = (0.0, 0.0);
        for (index, planned) in question.plan.iter().take(MAX_CANDIDATES).enumerate() {
            let standing = local.standing(index);
            all += if standing == Standing::Excluded { 0.0 } else { planned.configured };
            match standing {
                Standing::Usable { ramp } => {
                    field.usable.insert(index);
                    if ramp < 1.0 {
                        field.ramping.insert(index);
                    }
                }
                Standing::Probe => {
                    field.half_open.insert(index);
                    out += planned.configured;
                    // With many proxies, each probing in its turn would be a storm. While the fleet's breaker is open,
                    // the target's tiny weight sees to it that only a few do.
                    let place = if planned.fleet_open { &mut field.usable } else { &mut field.probing };
                    place.insert(index);
                }
                Standing::Ejected => {
                    out += planned.configured;
                    field.ejected.insert(index);
                }
                Standing::Excluded => {}
            }
        }
        field.ejected_share = if all > 0.0 { out / all } else { 0.0 };
        field
    }

    fn ramp(&self, index: usize, local: &impl LocalView) -> f64 {
        match self.ramping.contains(index).then(|| local.standing(index)) {
            Some(Standing::Usable { ramp }) => ramp,
            _ => 1.0,
        }
    }
}

/// One of `from`, by weight; by equal weights when there are none.
fn draw(from: Mask, weight: &impl Fn(usize) -> f64, chance: f64) -> Option<usize> {
    let total: f64 = from.iter().map(weight).sum();
    if total <= 0.0 || !total.is_finite() {
        let nth = (chance * from.len() as f64) as usize;
        return from.iter().nth(nth).or_else(|| from.iter().last());
    }
    let mut rest = chance * total;
    let mut last = None;
    for index in from.iter() {
        rest -= weight(index);
        last = Some(index);
        if rest < 0.0 {
            break;
        }
    }
    last
}

#[cfg(test)]
mod tests;
