//! `penstock policy list`.

use penstock_proto::admin::v1::ListPolicyVersionsRequest;

use super::PolicyArgs;
use crate::client::Client;
use crate::failure::Failure;
use crate::output::{self, Format};
use crate::render;
use crate::run::Context;

/// List policy versions, newest first
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  penstock policy list\n  penstock policy list --limit 5 -o yaml")]
pub(crate) struct Args {
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: u32,
    #[command(flatten)]
    policy: PolicyArgs,
    /// How to print it
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<(), Failure> {
    let request = ListPolicyVersionsRequest { policy: args.policy.policy_name.clone(), limit: args.limit };
    let response = context.block_on(async {
        let client = Client::connect(&args.policy.server.server).await?;
        let response = client.policies().list_policy_versions(request).await;
        response.map_err(|status| client.failure(&status))
    })?;
    output::listing(args.output, response.get_ref(), render::policies::versions)
}
