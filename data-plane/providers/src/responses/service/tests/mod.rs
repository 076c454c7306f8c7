//! What is sent to services, and what is understood of what they send.

mod answers;
mod identity;
mod requests;
mod streams;

use penstock_model::Vendor;
use penstock_model::vendor::MaxTokens;
use serde_json::Value;

use crate::dialect::TargetFacts;
use crate::exchange::{Request, Unwritable, Written};
use crate::responses::service::write_request;

fn target() -> TargetFacts<'static> {
    TargetFacts {
        vendor: Vendor::find("openai").unwrap(),
        model: "target-model",
        max_tokens_name: MaxTokens::AsGiven,
        default_max_tokens: 4096,
    }
}

fn written(request: &Request) -> Result<Written, Unwritable> {
    write_request(request, &target())
}

/// The body that is written.
fn body(request: &Request) -> Value {
    serde_json::from_slice(&written(request).unwrap().body).unwrap()
}
