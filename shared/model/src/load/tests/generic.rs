//! Generic services and their adapters.

use super::*;
use crate::vendor::Wire;

/// `SMALL` with one more backend, `risk`.
fn with(fields: &str) -> String {
    small(
        "routes:\n",
        &format!(
            "  risk:\n    base_url: http://127.0.0.1:9000/base\n    capabilities: [chat]\n{fields}\nroutes:\n"
        ),
    )
}

#[test]
fn a_generic_service_needs_an_address_and_no_model() {
    for (provider, wire) in [("http", Wire::Http), ("grpc", Wire::Grpc)] {
        let policy = policy(&with(&format!("    provider: {provider}")));
        let id = policy.find_target("risk", "default").unwrap();
        let backend = &policy.backends[policy.targets[id.index()].backend.index()];
        assert_eq!((backend.vendor.wire, &*backend.address.path), (wire, "/base"));
        assert!(backend.adapter.is_none());
        let problem = error(
            &with(&format!("    provider: {provider}"))
                .replace("    base_url: http://127.0.0.1:9000/base\n", ""),
        );
        assert_eq!(problem.path, "/backends/risk/base_url");
    }
    let named = policy(&with("    provider: http\n    models: [{name: v3}]"));
    assert!(named.find_target("risk", "v3").is_some() && named.find_target("risk", "default").is_none());
    let problem = error(&with("    provider: openai"));
    assert_eq!((&*problem.path, &*problem.message), ("/backends/risk/models", "the backend has no model"));
}

#[test]
fn an_adapter_is_checked_with_the_place_of_the_bad_expression() {
    let document = with(
        "    provider: http
    adapter:
      method: post
      path: /score/${reqest.id}
      request:
        amount: ${request.amount}
        items: [1, \"n: ${request.n + lower(request.x)}\"]
      response: {score: \"${response.score +}\"}",
    );
    let found = problems(&document);
    let found: Vec<_> = found
        .iter()
        .map(|problem| (&*problem.path, problem.line, problem.column, &*problem.message))
        .collect();
    assert_eq!(
        found,
        [
            ("/backends/risk/adapter/method", 22, 15, "not a method: in capital letters, such as POST"),
            (
                "/backends/risk/adapter/path",
                23,
                22,
                "there is no `reqest` here; there are request, model, headers"
            ),
            ("/backends/risk/adapter/request/items/1", 26, 38, "there is no function `lower`"),
            (
                "/backends/risk/adapter/response/score",
                27,
                44,
                "not a CEL expression: mismatched input the end of the expression"
            ),
        ]
    );
}

#[test]
fn only_http_services_have_adapters() {
    for provider in ["grpc", "openai\n    models: [{name: m}]"] {
        let problem = error(&with(&format!("    provider: {provider}\n    adapter: {{path: /x}}")));
        assert_eq!(problem.path, "/backends/risk/adapter");
        assert!(problem.message.contains("has no use for an adapter"), "{problem}");
    }
    let problem = error(&with("    provider: http\n    adapter: {requset: {}}"));
    assert_eq!(
        (&*problem.path, &*problem.hint),
        ("/backends/risk/adapter/requset", "did you mean `request`?")
    );
}
