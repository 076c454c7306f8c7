//! What the tests of this crate share.

use std::borrow::Cow;
use std::net::Ipv4Addr;

use http::HeaderMap;
use penstock_model::Policy;
use penstock_model::condition::NoFacts;
use penstock_model::policy::TargetId;

use crate::capability::Classifier;
use crate::context::RequestContext;
use crate::facts::Facts;
use crate::plan::Planned;
use crate::score::Term;

/// A policy from its document.
pub(crate) fn policy(document: &str) -> Policy {
    let loaded = penstock_model::load(document);
    loaded.policy.unwrap_or_else(|| panic!("{:#?}", loaded.problems))
}

/// A streamed chat completion at 13:05 on Tuesday, 1 December 2026.
pub(crate) fn request(headers: &HeaderMap) -> RequestContext<'_> {
    RequestContext {
        method: "POST",
        path: "/v1/chat/completions",
        host: "ai.example",
        headers,
        client_ip: Ipv4Addr::LOCALHOST.into(),
        protocol: "openai-chat",
        model: "gpt-4o",
        stream: true,
        message_count: 2,
        system_prompt: true,
        prompt_tokens: 1_200,
        max_tokens: 256,
        temperature: None,
        tools: 1,
        images: false,
        audio: false,
        json_schema: false,
        user: "u-1",
        session: "",
        request_id: "req-1",
        unix_seconds: 1_796_130_300,
        zone: "zone-a",
        region: "eu",
        node: "node-1",
    }
}

/// What can be known of `request`, whose user said `texts` last.
pub(crate) fn facts<T>(
    policy: &Policy,
    request: RequestContext<'_>,
    texts: &[&str],
    then: impl FnOnce(&Facts<'_>) -> T,
) -> T {
    let classifier = Classifier::new(policy, None);
    let texts = || texts.iter().map(|text| Cow::Borrowed(*text)).collect();
    then(&Facts::new(request, policy, &classifier, None, &texts, &NoFacts))
}

/// Candidates with these weights and costs, in perfect health.
pub(crate) fn planned(weights_and_costs: &[(f64, f64)]) -> Vec<Planned> {
    let total: f64 = weights_and_costs.iter().map(|(weight, _)| weight).sum();
    let candidate = |(index, &(weight, cost)): (usize, &(f64, f64))| Planned {
        target: TargetId(index as u32),
        weight: weight / total,
        configured: 1.0,
        cost,
        latency: cost,
        first_token: cost,
        success: 1.0,
        fleet_open: false,
        drained: false,
        log_score: 0.0,
        terms: [Term { name: "", value: 0.0, weight: 0.0 }; 6],
    };
    weights_and_costs.iter().enumerate().map(candidate).collect()
}
