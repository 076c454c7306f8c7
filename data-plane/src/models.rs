//! `GET /v1/models`, in the shape that the client knows.

use std::collections::BTreeSet;

use bytes::Bytes;
use http::HeaderMap;
use penstock_model::Policy;
use penstock_model::policy::{Accepts, Constraint, Field, Pattern, Target, TextField};
use penstock_model::vendor::Wire;
use serde_json::{Value, json};

/// Whose list is wanted. OpenAI's and Anthropic's have the same path; only Anthropic's clients name a version.
pub(crate) fn shape(wire: Wire, headers: &HeaderMap) -> Wire {
    if wire == Wire::Openai && headers.contains_key("anthropic-version") { Wire::Anthropic } else { wire }
}

/// The models a client can name: `auto`, which leaves the choice to the policy, those that routes ask for by their whole
/// name, and those that backends serve.
pub(crate) fn list(policy: &Policy, wire: Wire) -> Bytes {
    let models: Vec<Value> = names(policy).into_iter().map(|name| model(name, wire)).collect();
    let body = match wire {
        Wire::Gemini => json!({"models": models}),
        Wire::Anthropic => {
            let id = |model: Option<&Value>| model.map(|model| model["id"].clone());
            json!({"first_id": id(models.first()), "last_id": id(models.last()), "has_more": false, "data": models})
        }
        _ => json!({"object": "list", "data": models}),
    };
    body.to_string().into()
}

/// One of them.
pub(crate) fn one(policy: &Policy, name: &str, wire: Wire) -> Option<Bytes> {
    names(policy).contains(name).then(|| model(name, wire).to_string().into())
}

fn names(policy: &Policy) -> BTreeSet<&str> {
    let in_routes =
        policy.routes.iter().flat_map(|route| &route.constraints).filter(is_of_model).flat_map(exact);
    // What generic services call their models is no name that a conversation could ask for.
    let talks = |target: &&Target| !policy.backends[target.backend.index()].vendor.wire.is_generic();
    let served = policy.targets.iter().filter(talks).map(|target| target.model.as_str());
    ["auto"].into_iter().chain(in_routes).chain(served).collect()
}

fn is_of_model(constraint: &&Constraint) -> bool {
    constraint.field == Field::Text(TextField::Model)
}

/// The texts that a constraint names in full.
fn exact(constraint: &Constraint) -> impl Iterator<Item = &str> {
    let patterns = match &constraint.accepts {
        Accepts::Texts(patterns) => patterns.as_slice(),
        Accepts::Numbers(_) => &[],
    };
    patterns.iter().filter_map(|pattern| match pattern {
        Pattern::Exact(name) => Some(name.as_str()),
        Pattern::Glob(_) => None,
    })
}

fn model(name: &str, wire: Wire) -> Value {
    match wire {
        Wire::Gemini => json!({
            "name": format!("models/{name}"),
            "displayName": name,
            "supportedGenerationMethods": ["generateContent", "countTokens"],
        }),
        Wire::Anthropic => json!({
            "type": "model", "id": name, "display_name": name, "created_at": "1970-01-01T00:00:00Z",
        }),
        _ => json!({"id": name, "object": "model", "created": 0, "owned_by": "penstock"}),
    }
}
