//! `penstock backend`.

mod drain;

use clap::Subcommand;
use penstock_proto::admin::v1::ListBackendsRequest;

use crate::client::{Client, ServerArgs};
use crate::failure::Failure;
use crate::output::{self, Format};
use crate::render;
use crate::run::Context;

/// See how the services are doing, and take them out of service
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    List(ListArgs),
    Drain(drain::Args),
    Undrain(drain::BackArgs),
}

/// List every backend's models: share, breaker, calls, latency, cost
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  penstock backend list\n  penstock backend list -o json")]
pub(crate) struct ListArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// How to print it
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

impl Command {
    pub(super) fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::List(args) => list(&args, context),
            Self::Drain(args) => drain::run(&args.change, true, context),
            Self::Undrain(args) => drain::run(&args.change, false, context),
        }
    }
}

fn list(args: &ListArgs, context: &Context) -> Result<(), Failure> {
    let response = context.block_on(async {
        let client = Client::connect(&args.server.server).await?;
        let response = client.state().list_backends(ListBackendsRequest {}).await;
        response.map_err(|status| client.failure(&status))
    })?;
    output::listing(args.output, response.get_ref(), render::backends::backends)
}
