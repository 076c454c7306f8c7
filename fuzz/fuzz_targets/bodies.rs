//! Whole bodies: every view, every request read and written for every service, every answer read and written for every
//! client, and what errors say.
#![no_main]

use libfuzzer_sys::fuzz_target;
use penstock_fuzz::{asked, dialects, protocols, target};
use penstock_model::vendor::Wire;
use penstock_providers::exchange::json_tool;
use penstock_providers::openai::error_body::VendorError;
use penstock_providers::{anthropic, gemini, openai, responses};
use serde_json::Value;

fn is_object(body: &[u8]) -> bool {
    serde_json::from_slice::<Value>(body).is_ok_and(|value| value.is_object())
}

fn views(body: &[u8]) {
    let views = [
        openai::view::chat(body),
        openai::view::embeddings(body),
        anthropic::view(body),
        gemini::view(body, "m", false),
        gemini::count_tokens_view(body, "m"),
        responses::view(body),
    ];
    for view in views.into_iter().flatten() {
        let _ = (view.texts().count(), view.last_user_texts().count(), view.estimated_prompt_tokens());
        let spans = [&view.model_span, &view.stream_options_span].into_iter().chain(&view.limit_spans);
        assert!(spans.flatten().all(|span| span.start < span.end && span.end <= body.len()));
    }
    let _ = openai::invoke::view(body);
}

/// Requests come in after their view was made: one that no view accepts is not read.
fn requests(body: &[u8]) {
    for (from, protocol) in protocols() {
        let seen = match from {
            Wire::Openai => openai::view::chat(body).is_ok(),
            Wire::OpenaiResponses => responses::view(body).is_ok(),
            Wire::Anthropic => anthropic::view(body).is_ok(),
            _ => gemini::view(body, "m", false).is_ok(),
        };
        let Ok(request) = protocol.read_request(body, Some("m"), false) else { continue };
        if !seen {
            continue;
        }
        for (to, dialect) in dialects() {
            if let Ok(written) = dialect.write_request(&request, &target(to)) {
                let shown = String::from_utf8_lossy(&written.body);
                assert!(is_object(&written.body), "{from:?} to {to:?}: {shown}");
                assert!(written.dropped.to_string().is_ascii());
            }
        }
    }
}

fn answers(body: &[u8]) {
    for (from, dialect) in dialects() {
        let _ = dialect.find_usage(body);
        let Ok(mut answer) = dialect.read_answer(body, "req-1") else { continue };
        assert!(!answer.choices.is_empty(), "{from:?} reads no choice");
        for folded in [false, true] {
            for (to, protocol) in protocols() {
                let written = protocol.write_answer(&answer, &asked());
                assert!(is_object(&written), "{from:?} to {to:?}: {}", String::from_utf8_lossy(&written));
            }
            if !folded {
                json_tool::fold_answer(&mut answer, "json_answer");
            }
        }
    }
}

fuzz_target!(|body: &[u8]| {
    views(body);
    requests(body);
    answers(body);
    let error = VendorError::read(body);
    assert!(error.message.is_none_or(|message| !message.is_empty()));
});
