//! `penstock backend drain` and `penstock backend undrain`.

use penstock_proto::admin::v1::{DrainBackendRequest, DrainedTarget};

use crate::client::{Client, ServerArgs};
use crate::failure::Failure;
use crate::output;
use crate::run::Context;

/// Take a backend, or one of its models, out of service
///
/// Proxies stop sending requests there within a second and finish what is running. It holds until it is undone, whatever
/// policy is applied and whatever is restarted.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  penstock backend drain chat-a -m \"new GPUs\"\n  penstock backend drain chat-a --model large"
)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(super) change: ChangeArgs,
}

/// Bring a drained backend back
///
/// Its share grows back step by step, like that of a service that has recovered.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  penstock backend undrain chat-a\n  penstock backend undrain chat-a --model large"
)]
pub(crate) struct BackArgs {
    #[command(flatten)]
    pub(super) change: ChangeArgs,
}

/// What both take.
#[derive(Debug, clap::Args)]
pub(super) struct ChangeArgs {
    /// The backend's name in the policy
    #[arg(value_name = "BACKEND")]
    backend: String,
    /// One of its models; all of them when it is not given
    #[arg(long, value_name = "MODEL", default_value = "", hide_default_value = true)]
    model: String,
    /// Why, for the audit trail
    #[arg(short, long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    message: String,
    /// Who, for the audit trail; your user name when it is not given
    #[arg(long, env = "PENSTOCK_AUTHOR", value_name = "NAME", default_value_t, hide_default_value = true)]
    author: String,
    #[command(flatten)]
    server: ServerArgs,
}

pub(super) fn run(args: &ChangeArgs, drain: bool, context: &Context) -> Result<(), Failure> {
    let request = DrainBackendRequest {
        backend: args.backend.clone(),
        model: args.model.clone(),
        author: context.author(&args.author),
        message: args.message.clone(),
    };
    let response = context.block_on(async {
        let client = Client::connect(&args.server.server).await?;
        let mut state = client.state();
        let call =
            if drain { state.drain_backend(request).await } else { state.undrain_backend(request).await };
        call.map(tonic::Response::into_inner).map_err(|status| client.failure(&status))
    })?;
    let what = name(&args.backend, &args.model);
    let done = match (drain, response.unchanged) {
        (true, false) => format!("{what} is drained: it gets no new requests"),
        (true, true) => format!("{what} was drained already"),
        (false, false) => format!("{what} is back: its share grows step by step"),
        (false, true) => format!("{what} was not drained"),
    };
    let drained: Vec<String> =
        response.drained.iter().map(|DrainedTarget { backend, model }| name(backend, model)).collect();
    let all = if drained.is_empty() { "nothing".to_owned() } else { drained.join(", ") };
    output::print(&format!("{done}\ndrained now: {all}\n"))
}

fn name(backend: &str, model: &str) -> String {
    if model.is_empty() { backend.to_owned() } else { format!("{backend}/{model}") }
}
