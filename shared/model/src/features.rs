//! What a request can need of a model besides its capability.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Something that not every model can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feature {
    /// It calls tools.
    Tools,
    /// It sees images.
    Vision,
    /// It hears, or speaks.
    Audio,
    /// It answers by a JSON Schema.
    JsonSchema,
    /// It answers as a stream.
    Streaming,
}

impl Feature {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Tools, Self::Vision, Self::Audio, Self::JsonSchema, Self::Streaming];

    /// Its name in policies and records.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Vision => "vision",
            Self::Audio => "audio",
            Self::JsonSchema => "json_schema",
            Self::Streaming => "streaming",
        }
    }
}

/// A set of features.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Features(u8);

impl Features {
    /// This set, with `feature` in it when `present`.
    #[must_use]
    pub fn with(self, feature: Feature, present: bool) -> Self {
        if present { Self(self.0 | 1 << feature as u8) } else { self }
    }

    /// The first feature that is in both sets.
    #[must_use]
    pub fn first_in(self, other: Self) -> Option<Feature> {
        let both = self.0 & other.0;
        if both == 0 {
            None
        } else {
            Feature::ALL.into_iter().find(|&feature| both >> feature as u8 & 1 == 1)
        }
    }
}

/// What a model can do, `true` or `false`. Where nothing is said it is what is usual with the provider, and what is not
/// known of the provider is taken for possible.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Supports {
    /// Calling tools.
    pub tools: Option<bool>,
    /// Seeing images.
    pub vision: Option<bool>,
    /// Hearing or speaking.
    pub audio: Option<bool>,
    /// Answers that follow a JSON Schema.
    pub json_schema: Option<bool>,
    /// Answers as a stream.
    pub streaming: Option<bool>,
}

impl Supports {
    /// What it is known to lack, where `usual` is what its like lacks.
    pub(crate) fn lacks(self, usual: Features) -> Features {
        let said = |feature| match feature {
            Feature::Tools => self.tools,
            Feature::Vision => self.vision,
            Feature::Audio => self.audio,
            Feature::JsonSchema => self.json_schema,
            Feature::Streaming => self.streaming,
        };
        Feature::ALL.into_iter().fold(Features::default(), |lacks, feature| {
            let usually = usual.first_in(Features::default().with(feature, true)).is_some();
            lacks.with(feature, said(feature).map_or(usually, |supported| !supported))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_holds_what_was_put_in() {
        let set = Features::default().with(Feature::Audio, true).with(Feature::Tools, false);
        for feature in Feature::ALL {
            let alone = Features::default().with(feature, true);
            assert_eq!(set.first_in(alone), (feature == Feature::Audio).then_some(feature));
        }
    }

    #[test]
    fn what_is_said_of_a_model_wins_over_what_is_usual() {
        let usual = Features::default().with(Feature::JsonSchema, true).with(Feature::Vision, true);
        let said = Supports { json_schema: Some(true), tools: Some(false), ..Supports::default() };
        let expected = Features::default().with(Feature::Vision, true).with(Feature::Tools, true);
        assert_eq!(said.lacks(usual), expected);
        assert_eq!(Supports::default().lacks(Features::default()), Features::default());
    }
}
