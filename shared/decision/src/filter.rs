//! Who can take a request at all, and why the others cannot.
//!
//! What a request needs is a hard condition, never a penalty in a score: a target that cannot do it is not chosen, not as a
//! fallback, and not when everything else is out. The policy's facts are the same for everybody ([`Needs`] against a
//! candidate); what only a proxy knows of a target comes in as [`Now`].

use penstock_model::Policy;
use penstock_model::policy::{Candidate, Feature, Features};

/// What a request needs besides its capability.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Needs {
    /// Prompt and answer, as estimated.
    pub tokens: u64,
    /// Of the model.
    pub features: Features,
}

/// What is known of a target at this moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Now {
    /// An operator has taken it out of service.
    pub drained: bool,
    /// Its key cannot be found.
    pub credential_missing: bool,
    /// Its key is not to be used yet.
    pub cooling: bool,
}

/// Why a candidate is not chosen. The names are stable: records and explanations show them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exclusion {
    /// It calls no tools.
    NoTools,
    /// It sees no images.
    NoVision,
    /// It neither hears nor speaks.
    NoAudio,
    /// It does not answer by a JSON Schema.
    NoJsonSchema,
    /// It does not stream.
    NoStreaming,
    /// The request is larger than its context window.
    ContextWindow,
    /// The route's data may not go there.
    Residency,
    /// Its dialect cannot carry the request.
    Unsupported,
    /// An operator has taken it out of service.
    Drained,
    /// Its key cannot be found.
    CredentialMissing,
    /// Its key is not to be used yet.
    Cooldown,
    /// Its breaker is open. Set aside when too much of the pool is out.
    BreakerOpen,
    /// Its breaker is half-open, and it was not this request's turn to probe.
    BreakerHalfOpen,
}

impl Exclusion {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::NoTools,
        Self::NoVision,
        Self::NoAudio,
        Self::NoJsonSchema,
        Self::NoStreaming,
        Self::ContextWindow,
        Self::Residency,
        Self::Unsupported,
        Self::Drained,
        Self::CredentialMissing,
        Self::Cooldown,
        Self::BreakerOpen,
        Self::BreakerHalfOpen,
    ];

    /// Its stable name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoTools => "no_tools",
            Self::NoVision => "no_vision",
            Self::NoAudio => "no_audio",
            Self::NoJsonSchema => "no_json_schema",
            Self::NoStreaming => "no_streaming",
            Self::ContextWindow => "context_window",
            Self::Residency => "residency",
            Self::Unsupported => "unsupported",
            Self::Drained => "drained",
            Self::CredentialMissing => "credential_missing",
            Self::Cooldown => "cooldown",
            Self::BreakerOpen => "breaker_open",
            Self::BreakerHalfOpen => "breaker_half_open",
        }
    }

    /// Would the same request be excluded for ever, however long one waits?
    #[must_use]
    pub fn is_lasting(self) -> bool {
        self as u8 <= Self::Unsupported as u8
    }

    /// The feature that is missing.
    #[must_use]
    pub fn lacking(self) -> Option<Feature> {
        Feature::ALL.into_iter().find(|&feature| Self::from(feature) == self)
    }
}

impl From<Feature> for Exclusion {
    fn from(feature: Feature) -> Self {
        match feature {
            Feature::Tools => Self::NoTools,
            Feature::Vision => Self::NoVision,
            Feature::Audio => Self::NoAudio,
            Feature::JsonSchema => Self::NoJsonSchema,
            Feature::Streaming => Self::NoStreaming,
        }
    }
}

/// Why `candidate` cannot take the request; `None` when it can. Breakers are not asked: they may be set aside.
///
/// # Panics
/// When the candidate is of another policy.
#[must_use]
pub fn exclusion(policy: &Policy, candidate: &Candidate, needs: &Needs, now: Now) -> Option<Exclusion> {
    let target = &policy.targets[candidate.target.index()];
    if let Some(feature) = needs.features.first_in(target.lacks) {
        return Some(feature.into());
    }
    if target.context_window.is_some_and(|window| needs.tokens > u64::from(window)) {
        return Some(Exclusion::ContextWindow);
    }
    let others = [
        (!candidate.resident, Exclusion::Residency),
        (now.drained, Exclusion::Drained),
        (now.credential_missing, Exclusion::CredentialMissing),
        (now.cooling, Exclusion::Cooldown),
    ];
    others.into_iter().find(|(holds, _)| *holds).map(|(_, exclusion)| exclusion)
}

/// What is in the way of all of them; `None` when one is not excluded, or waiting may help. Where they lack different things
/// it is the one that comes first in [`Exclusion::ALL`].
#[must_use]
pub fn all_lack(exclusions: impl IntoIterator<Item = Option<Exclusion>>) -> Option<Exclusion> {
    let mut first = None;
    for exclusion in exclusions {
        let exclusion = exclusion.filter(|exclusion| exclusion.is_lasting())?;
        first = first.filter(|first: &Exclusion| *first as u8 <= exclusion as u8).or(Some(exclusion));
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::policy;

    /// One pool: `plain` knows nothing of itself, `small` is known to lack much, `eu` is the only resident.
    fn pool() -> Policy {
        policy(
            "version: 1\ncapabilities: {chat: {default: true}}\nbackends:\n  \
             a-plain: {provider: openai, base_url: \"http://127.0.0.1:1/v1\", capabilities: [chat], models: [{name: m}]}\n  \
             b-small: {provider: openai, base_url: \"http://127.0.0.1:2/v1\", capabilities: [chat], residency: us, models: [{name: m, \
             context_window: 1000, supports: {tools: false, vision: false, audio: false, json_schema: false, streaming: false}}]}\n  \
             c-eu: {provider: deepseek, region: eu-west-1, capabilities: [chat], models: [{name: m}]}\n\
             routes: [{name: eu, match: {models: [eu]}, residency: [\"eu-*\"]}, {name: rest}]\n",
        )
    }

    fn why(policy: &Policy, route: usize, needs: &Needs, now: Now) -> Vec<&'static str> {
        let pool = &policy.pools[route];
        let why = |candidate| exclusion(policy, candidate, needs, now).map_or("", Exclusion::as_str);
        pool.candidates.iter().map(why).collect()
    }

    #[test]
    fn a_target_is_out_for_what_it_is_known_to_lack_and_for_nothing_else() {
        let policy = pool();
        for feature in Feature::ALL {
            let needs = Needs { tokens: 10, features: Features::default().with(feature, true) };
            let lacks = Exclusion::from(feature).as_str();
            // DeepSeek's own models answer with JSON, but by no schema.
            let deepseek = if feature == Feature::JsonSchema { lacks } else { "" };
            assert_eq!(why(&policy, 1, &needs, Now::default()), ["", lacks, deepseek]);
            assert_eq!(Exclusion::from(feature).lacking(), Some(feature));
        }
        let long = Needs { tokens: 1_001, ..Needs::default() };
        assert_eq!(why(&policy, 1, &long, Now::default()), ["", "context_window", ""]);
        let fits = Needs { tokens: 1_000, ..Needs::default() };
        assert_eq!(why(&policy, 1, &fits, Now::default()), ["", "", ""]);
    }

    /// SEC-09, the restriction on where data may go: unknown is not good enough.
    #[test]
    fn data_goes_only_where_the_route_allows_it() {
        let policy = pool();
        assert_eq!(why(&policy, 0, &Needs::default(), Now::default()), ["residency", "residency", ""]);
    }

    #[test]
    fn what_is_true_only_now_is_told_apart_from_what_lasts() {
        let policy = pool();
        let at = |now| why(&policy, 1, &Needs::default(), now);
        assert_eq!(at(Now { drained: true, cooling: true, ..Now::default() }), ["drained"; 3]);
        assert_eq!(at(Now { credential_missing: true, ..Now::default() }), ["credential_missing"; 3]);
        assert_eq!(at(Now { cooling: true, ..Now::default() }), ["cooldown"; 3]);
        let lasting: Vec<&str> =
            Exclusion::ALL.into_iter().filter(|why| why.is_lasting()).map(Exclusion::as_str).collect();
        assert_eq!(lasting.len(), 8, "{lasting:?}");
        assert!(!lasting.contains(&"drained") && !lasting.contains(&"breaker_open"));
    }

    #[test]
    fn a_lack_is_common_only_when_nobody_is_left_to_wait_for() {
        use Exclusion::{ContextWindow, Cooldown, NoTools, NoVision};
        assert_eq!(all_lack([Some(NoVision), Some(NoVision)]), Some(NoVision));
        assert_eq!(all_lack([Some(ContextWindow), Some(NoVision), Some(NoTools)]), Some(NoTools));
        assert_eq!(all_lack([Some(NoVision), Some(Cooldown)]), None);
        assert_eq!(all_lack([Some(NoVision), None]), None);
        assert_eq!(all_lack([]), None);
    }

    #[test]
    fn the_order_of_the_list_is_that_of_the_declaration() {
        assert!(Exclusion::ALL.iter().enumerate().all(|(at, exclusion)| *exclusion as usize == at));
    }
}
