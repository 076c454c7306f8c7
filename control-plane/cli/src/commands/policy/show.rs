//! `penstock policy show`.

use penstock_proto::admin::v1::GetPolicyVersionRequest;
use serde_json::json;

use super::PolicyArgs;
use crate::client::Client;
use crate::failure::Failure;
use crate::output::{self, Format};
use crate::run::Context;

/// Print a policy version's document as it was applied, comments included
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  penstock policy show > policy.yaml\n  penstock policy show 3 -o json")]
pub(crate) struct Args {
    /// The version; the stable one when it is not given
    #[arg(value_name = "VERSION", default_value_t = 0, hide_default_value = true)]
    version: u64,
    #[command(flatten)]
    policy: PolicyArgs,
    /// table prints the document alone; json and yaml add number, author, time and message
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<(), Failure> {
    let request = GetPolicyVersionRequest { policy: args.policy.policy_name.clone(), version: args.version };
    let response = context.block_on(async {
        let client = Client::connect(&args.policy.server.server).await?;
        let response = client.policies().get_policy_version(request).await;
        response.map_err(|status| client.failure(&status))
    })?;
    let response = response.into_inner();
    let document = String::from_utf8_lossy(&response.document).into_owned();
    if args.output == Format::Table {
        return output::print(&document);
    }
    // The message's own JSON form would print the document as a list of numbers.
    let value = json!({"version": response.version, "document": document});
    output::listing(args.output, &value, |_| document.clone())
}
