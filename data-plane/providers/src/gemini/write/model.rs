//! What differs between generations of models: how thinking is set, and whether calls must be signed.
//!
//! | asked for | Gemini 2 | Gemini 3 and later |
//! |---|---|---|
//! | off, effort `none` | `thinkingBudget: 0` | `thinkingLevel: MINIMAL`; `LOW` for Pro models, which have no less |
//! | effort `minimal` | 1,024 tokens | as above |
//! | effort `low` | 1,024 | `LOW` |
//! | effort `medium` | 8,192 | `MEDIUM` |
//! | effort `high` and above | 24,576 | `HIGH` |
//! | a budget | `thinkingBudget` | `thinkingBudget`, which is still taken |
//! | on | `thinkingBudget: -1` | `thinkingBudget: -1` |
//!
//! The numbers are Google's own, from its OpenAI-compatible interface. A model whose name says no generation is taken for
//! a new one.

use penstock_model::vendor::Wire;
use serde_json::{Map, Value, json};

use crate::exchange::{ReasoningRequest, Request};

/// Stands for the signature of a call that another vendor's model made: models from Gemini 3 on refuse a call without
/// one, and Google's guide on thought signatures gives this value for histories from elsewhere.
pub(super) const FOREIGN_CALL: &str = "skip_thought_signature_validator";

/// Is it of a generation before Gemini 3?
pub(super) fn is_old(model: &str) -> bool {
    let generation = model.split("gemini-").nth(1).and_then(|rest| rest.bytes().next());
    matches!(generation, Some(b'1' | b'2'))
}

/// Must calls be signed?
pub(super) fn signs_calls(model: &str) -> bool {
    !is_old(model)
}

/// Can results of functions hold pictures?
pub(super) fn takes_media_in_results(model: &str) -> bool {
    !is_old(model)
}

/// `thinkingConfig`; `None` when there is nothing to say.
pub(super) fn thinking(request: &Request, asked: &ReasoningRequest, model: &str) -> Option<Value> {
    let mut config = Map::new();
    let effort = asked.effort.as_deref();
    let off = asked.enabled == Some(false) || effort == Some("none");
    if off {
        if is_old(model) {
            config.insert("thinkingBudget".to_owned(), 0.into());
        } else {
            config.insert("thinkingLevel".to_owned(), least(model).into());
        }
    } else if let Some(budget) = asked.budget_tokens {
        config.insert("thinkingBudget".to_owned(), budget.into());
    } else if let Some(effort) = effort {
        if is_old(model) {
            config.insert("thinkingBudget".to_owned(), budget(effort).into());
        } else {
            config.insert("thinkingLevel".to_owned(), level(effort, model).into());
        }
    } else if asked.enabled == Some(true) {
        config.insert("thinkingBudget".to_owned(), json!(-1));
    }
    // Other protocols show thoughts unasked.
    let unasked = request.wire != Wire::Gemini && !off && !config.is_empty();
    if let Some(visible) = asked.visible.or(unasked.then_some(true)) {
        config.insert("includeThoughts".to_owned(), visible.into());
    }
    (!config.is_empty()).then(|| config.into())
}

fn least(model: &str) -> &'static str {
    if model.contains("pro") { "LOW" } else { "MINIMAL" }
}

fn level(effort: &str, model: &str) -> &'static str {
    match effort {
        "minimal" => least(model),
        "low" => "LOW",
        "medium" => "MEDIUM",
        _ => "HIGH",
    }
}

fn budget(effort: &str) -> u32 {
    match effort {
        "minimal" | "low" => 1024,
        "medium" => 8192,
        _ => 24_576,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_generation_is_told_in_its_own_words() {
        let asked = |effort: &str| ReasoningRequest {
            effort: Some(effort.to_owned()),
            ..ReasoningRequest::default()
        };
        let request = Request::new(Wire::Openai);
        let thinking = |effort: &str, model: &str| thinking(&request, &asked(effort), model).unwrap();
        assert_eq!(
            thinking("medium", "gemini-2.5-pro"),
            json!({"thinkingBudget": 8192, "includeThoughts": true})
        );
        assert_eq!(
            thinking("medium", "gemini-3.8-flash"),
            json!({"thinkingLevel": "MEDIUM", "includeThoughts": true})
        );
        assert_eq!(
            thinking("xhigh", "models/gemini-3-pro"),
            json!({"thinkingLevel": "HIGH", "includeThoughts": true})
        );
        assert_eq!(thinking("none", "gemini-2.5-flash"), json!({"thinkingBudget": 0}));
        assert_eq!(thinking("none", "gemini-3-flash"), json!({"thinkingLevel": "MINIMAL"}));
        assert_eq!(
            thinking("minimal", "gemini-3-pro"),
            json!({"thinkingLevel": "LOW", "includeThoughts": true})
        );
    }

    #[test]
    fn a_budget_and_visibility_go_as_they_are() {
        let asked = ReasoningRequest {
            enabled: Some(true),
            budget_tokens: Some(500),
            visible: Some(false),
            effort: None,
        };
        let request = Request::new(Wire::Gemini);
        let config = thinking(&request, &asked, "gemini-3-pro");
        assert_eq!(config, Some(json!({"thinkingBudget": 500, "includeThoughts": false})));
        assert_eq!(thinking(&request, &ReasoningRequest::default(), "x"), None);
    }
}
