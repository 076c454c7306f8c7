//! What a service must be able to do for a request.

use penstock_decision::filter::Needs;
use penstock_model::policy::{Feature, Features};
use penstock_model::vendor::Call;
use penstock_providers::view::View;

/// What a call needs whose prompt is of so many tokens.
#[must_use]
pub fn needs(call: Call, view: &View<'_>, prompt_tokens: u64) -> Needs {
    let sound = matches!(call, Call::AudioSpeech | Call::AudioTranscriptions | Call::AudioTranslations);
    let features = Features::default()
        .with(Feature::Tools, view.tools > 0)
        .with(Feature::Vision, view.images)
        .with(Feature::Audio, view.audio || sound)
        .with(Feature::JsonSchema, view.json_schema)
        .with(Feature::Streaming, view.stream);
    Needs { tokens: prompt_tokens.saturating_add(view.max_tokens.unwrap_or(0)), features }
}
