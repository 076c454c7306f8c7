//! `penstock node`.

use std::time::{SystemTime, UNIX_EPOCH};

use clap::Subcommand;
use penstock_proto::admin::v1::ListNodesRequest;

use crate::client::{Client, ServerArgs};
use crate::failure::Failure;
use crate::output::{self, Format};
use crate::render;
use crate::run::Context;

/// See the proxies
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    List(ListArgs),
}

/// List every proxy: which version it serves, since when, how busy it is
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  penstock node list\n  penstock node list -o json")]
pub(crate) struct ListArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// How to print it
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

impl Command {
    pub(super) fn run(self, context: &Context) -> Result<(), Failure> {
        let Self::List(args) = self;
        let response = context.block_on(async {
            let client = Client::connect(&args.server.server).await?;
            let response = client.state().list_nodes(ListNodesRequest {}).await;
            response.map_err(|status| client.failure(&status))
        })?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64);
        output::listing(args.output, response.get_ref(), |nodes| render::nodes::nodes(nodes, now))
    }
}
