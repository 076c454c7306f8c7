//! `GET /v1/models`.

use std::collections::BTreeSet;

use bytes::Bytes;
use penstock_model::Policy;
use penstock_model::policy::Pattern;
use serde_json::json;

/// The models a client can name: `auto`, which leaves the choice to the policy, those that routes ask for by their whole
/// name, and those that backends serve.
pub(crate) fn list(policy: &Policy) -> Bytes {
    let in_routes =
        policy.routes.iter().flat_map(|route| &route.models).filter_map(|pattern| match pattern {
            Pattern::Exact(name) => Some(name.as_str()),
            Pattern::Glob(_) => None,
        });
    let served = policy.targets.iter().map(|target| target.model.as_str());
    let names: BTreeSet<&str> = ["auto"].into_iter().chain(in_routes).chain(served).collect();
    let model = |name: &&str| json!({"id": name, "object": "model", "created": 0, "owned_by": "penstock"});
    let models: Vec<_> = names.iter().map(model).collect();
    json!({"object": "list", "data": models}).to_string().into()
}
