//! `penstock explain`.

use penstock_proto::admin::v1::GetDecisionRequest;

use crate::client::{Client, ServerArgs};
use crate::failure::Failure;
use crate::output::{self, Format};
use crate::render;
use crate::run::Context;

/// Say why a request went where it went
///
/// Shows the route, the capability, every candidate with the terms of its score or why it was excluded, what was drawn, and
/// each attempt. Failed and slow requests are always kept for a while, others are sampled; a record arrives about a second
/// after its request.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  curl -si http://127.0.0.1:8080/api/invoke -d '{\"prompt\": \"hello\"}' | grep x-penstock\n  \
                        penstock explain 01KBMZ4T1V9Q6W2E8R7Y5X3C0A"
)]
pub(crate) struct Args {
    /// A decision id or a request id: the x-penstock-decision or x-penstock-request-id header of an answer
    #[arg(value_name = "ID")]
    id: String,
    #[command(flatten)]
    server: ServerArgs,
    /// How to print it
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<(), Failure> {
    let decision = context.block_on(async {
        let client = Client::connect(&args.server.server).await?;
        let response = client.state().get_decision(GetDecisionRequest { id: args.id.clone() }).await;
        let response = response.map_err(|status| client.failure(&status))?.into_inner();
        response
            .decision
            .ok_or_else(|| Failure::NotFound { detail: format!("there is no decision {}", args.id) })
    })?;
    output::listing(args.output, &decision, render::decision::decision)
}
