//! Providers, their addresses and what they need.

use super::*;
use crate::policy::{Backend, Host};
use crate::vendor::{Call, MaxTokens};

/// `SMALL` with other fields in place of the provider and the address of backend `two`.
fn with(fields: &str) -> String {
    small("    provider: openai\n    base_url: https://two.example.com/v1\n", &format!("    {fields}\n"))
}

fn backend(fields: &str) -> Backend {
    policy(&with(fields)).backends[1].clone()
}

fn host(backend: &Backend) -> &str {
    match &backend.address.host {
        Host::Name(name) => name,
        Host::Ip(_) => "an address",
    }
}

#[test]
fn a_provider_that_is_unknown_is_answered_with_the_nearest_and_the_list() {
    let problem = error(&with("provider: anthropc"));
    assert_eq!(problem.path, "/backends/two/provider");
    assert!(problem.message.contains("`openai`") && problem.message.contains("`bedrock`"), "{problem}");
    assert_eq!(problem.hint, "did you mean `anthropic`?");
}

#[test]
fn without_a_base_url_it_is_the_providers_own_service() {
    let backend = backend("provider: anthropic");
    assert_eq!((host(&backend), backend.address.tls), ("api.anthropic.com", true));
    assert_eq!(backend.path(Call::Messages, "claude").as_deref(), Some("/v1/messages"));
    assert_eq!(backend.path(Call::ChatCompletions, "claude"), None);
    let problem = error(&with("provider: openai-compatible"));
    assert_eq!(
        (&*problem.path, &*problem.message),
        ("/backends/two/base_url", "`openai-compatible` has no address of its own")
    );
}

#[test]
fn settings_fill_the_address_and_the_paths() {
    let azure = backend("provider: azure-openai\n    resource: acme\n    api_version: 2024-10-21");
    assert_eq!(host(&azure), "acme.openai.azure.com");
    assert_eq!(
        azure.path(Call::ChatCompletions, "gpt 4/o").as_deref(),
        Some("/openai/deployments/gpt%204%2Fo/chat/completions?api-version=2024-10-21")
    );
    let bedrock = backend("provider: bedrock\n    region: eu-west-1");
    assert_eq!(host(&bedrock), "bedrock-runtime.eu-west-1.amazonaws.com");
    assert_eq!(
        bedrock.path(Call::Converse, "arn:aws:bedrock:x/y").as_deref(),
        Some("/model/arn%3Aaws%3Abedrock%3Ax%2Fy/converse")
    );
    let own = backend(
        "provider: bedrock\n    region: eu-west-1\n    base_url: 'https://vpce.{region}.example.com/x/'",
    );
    assert_eq!(host(&own), "vpce.eu-west-1.example.com");
    assert_eq!(own.path(Call::Converse, "m").as_deref(), Some("/x/model/m/converse"));
}

#[test]
fn a_region_may_have_an_address_of_its_own() {
    let vertex = |region: &str| backend(&format!("provider: vertex\n    project: p\n    region: {region}"));
    assert_eq!(host(&vertex("europe-west4")), "europe-west4-aiplatform.googleapis.com");
    let global = vertex("global");
    assert_eq!(host(&global), "aiplatform.googleapis.com");
    assert_eq!(
        global.path(Call::GenerateContent, "gemini").as_deref(),
        Some("/v1/projects/p/locations/global/publishers/google/models/gemini:generateContent")
    );
}

#[test]
fn what_a_provider_needs_is_named() {
    for (fields, missing) in [
        ("provider: bedrock", "region"),
        ("provider: bedrock\n    base_url: https://h", "region"),
        ("provider: vertex\n    region: global", "project"),
        ("provider: azure-openai\n    api_version: v1", "resource"),
        ("provider: azure-openai\n    resource: acme", "api_version"),
        ("provider: openai\n    base_url: 'https://{region}.h'", "region"),
    ] {
        let problem = error(&with(fields));
        assert_eq!(problem.path, format!("/backends/two/{missing}"), "{fields}");
        assert!(problem.message.contains(&format!("needs the field `{missing}`")), "{problem}");
    }
}

#[test]
fn what_a_provider_does_not_use_is_worth_a_warning() {
    for field in ["region", "resource", "project", "api_version"] {
        let problem = warning(&with(&format!("provider: openai\n    {field}: x")));
        assert_eq!(problem.path, format!("/backends/two/{field}"));
    }
    let unused = "provider: azure-openai\n    api_version: v\n    resource: r\n    base_url: https://h";
    assert_eq!(warning(&with(unused)).path, "/backends/two/resource");
}

#[test]
fn settings_cannot_smuggle_anything_into_an_address() {
    for (fields, path) in [
        ("provider: bedrock\n    region: evil.com/x", "region"),
        ("provider: bedrock\n    region: ''", "region"),
        ("provider: azure-openai\n    api_version: a&b=c\n    resource: r", "api_version"),
        ("provider: openai\n    base_url: 'https://{model}.h'", "base_url"),
    ] {
        let problems = problems(&with(fields));
        assert!(
            problems.iter().any(|problem| problem.path == format!("/backends/two/{path}")),
            "{problems:?}"
        );
    }
}

#[test]
fn a_model_may_differ_from_its_provider_in_the_name_of_the_limit_tr_05() {
    let targets = |model: &str| policy(&small("{name: small}", model)).targets;
    let usual = targets("{name: small}");
    assert_eq!((usual[1].max_tokens_name, usual[1].default_max_tokens), (MaxTokens::AsGiven, 4096));
    let own = targets("{name: small, max_tokens_name: max_completion_tokens, default_max_tokens: 100}");
    assert_eq!((own[1].max_tokens_name, own[1].default_max_tokens), (MaxTokens::MaxCompletionTokens, 100));
    let anthropic = policy(&with("provider: anthropic")).targets;
    assert_eq!(anthropic[2].max_tokens_name, MaxTokens::MaxTokens);
}

#[test]
fn translation_is_lenient_unless_told_otherwise() {
    assert!(!policy(SMALL).routes[0].strict);
    assert!(policy(&small("name: default", "{name: default, translation: {strict: true}}")).routes[0].strict);
}
