//! `penstock policy apply`.

use std::path::PathBuf;

use penstock_proto::admin::v1::ApplyPolicyRequest;

use super::{ChangeArgs, PolicyArgs, validate};
use crate::client::{self, Client};
use crate::failure::Failure;
use crate::output;
use crate::run::Context;

/// Store a policy document as a new version and have every proxy serve it
///
/// A document with errors changes nothing. Without --expected-version the change is made from whatever is stable when it
/// arrives; with it, the command fails when someone else was faster.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  penstock policy apply policy.yaml -m \"add a second chat service\"\n  \
                        penstock policy apply policy.yaml --expected-version 7")]
pub(crate) struct Args {
    /// The document, YAML or JSON; - reads standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    change: ChangeArgs,
    /// Only when this version is still the stable one
    #[arg(long, value_name = "N")]
    expected_version: Option<u64>,
    /// Check on the control plane, change nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    policy: PolicyArgs,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<(), Failure> {
    let document = validate::read(&args.file)?;
    validate::check(&args.file, &document, context)?;
    context.block_on(apply(args, &document, context))
}

async fn apply(args: &Args, document: &str, context: &Context) -> Result<(), Failure> {
    let client = Client::connect(&args.policy.server.server).await?;
    let request = ApplyPolicyRequest {
        policy: args.policy.policy_name.clone(),
        document: document.as_bytes().to_vec(),
        message: args.change.message.clone(),
        author: args.change.author(context),
        expected_version: args.expected_version,
        idempotency_key: args.change.idempotency_key.clone(),
        dry_run: args.dry_run,
    };
    let answer = client.policies().apply_policy(request).await.map(tonic::Response::into_inner);
    // The control plane may be newer or older than this program, and see what it did not.
    let problems = match &answer {
        Ok(response) if response.version.is_none() => client::problems(&response.problems),
        Err(status) => client::problems_of(status),
        Ok(_) => Vec::new(),
    };
    validate::refuse(&args.file.display().to_string(), document, &problems, context)?;
    let response = answer.map_err(|status| client.failure(&status))?;
    if args.dry_run {
        return output::print("the control plane would take it; nothing was changed\n");
    }
    let version = response.version.unwrap_or_default();
    let done = if response.unchanged {
        format!("version {} has this content already; no new version was made", version.version)
    } else {
        format!("version {} is stored", version.version)
    };
    args.change.report(&client, &version, &done, context).await
}
