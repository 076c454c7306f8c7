//! `penstock policy rollback`.

use penstock_proto::admin::v1::RollbackPolicyRequest;

use super::{ChangeArgs, PolicyArgs};
use crate::client::Client;
use crate::failure::Failure;
use crate::run::Context;

/// Go back to an earlier version's content
///
/// Makes a new version with that content, so that numbers only grow and history stays as it was.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  penstock policy rollback\n  penstock policy rollback 3 -m \"too slow\"")]
pub(crate) struct Args {
    /// The version to go back to; the one before the stable one when it is not given
    #[arg(value_name = "VERSION", default_value_t = 0, hide_default_value = true)]
    version: u64,
    #[command(flatten)]
    change: ChangeArgs,
    #[command(flatten)]
    policy: PolicyArgs,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<(), Failure> {
    let request = RollbackPolicyRequest {
        policy: args.policy.policy_name.clone(),
        to_version: args.version,
        author: args.change.author(context),
        message: args.change.message.clone(),
        idempotency_key: args.change.idempotency_key.clone(),
    };
    context.block_on(async {
        let client = Client::connect(&args.policy.server.server).await?;
        let response = client.policies().rollback_policy(request).await;
        let response = response.map_err(|status| client.failure(&status))?.into_inner();
        let version = response.version.unwrap_or_default();
        let done = if response.unchanged {
            format!("version {} has that content already; no new version was made", version.version)
        } else {
            format!(
                "version {} is stored, with the content of version {}",
                version.version, version.restored_from
            )
        };
        args.change.report(&client, &version, &done, context).await
    })
}
