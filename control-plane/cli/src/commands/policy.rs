//! `penstock policy`.

mod apply;
mod list;
mod rollback;
mod show;
pub(crate) mod validate;

use clap::Subcommand;
use penstock_proto::admin::v1::PolicyVersion;

use crate::client::{Client, ServerArgs};
use crate::failure::{Failure, plural};
use crate::output;
use crate::run::Context;

/// Check, change and undo policies
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Validate(validate::Args),
    Apply(apply::Args),
    List(list::Args),
    Show(show::Args),
    Rollback(rollback::Args),
}

impl Command {
    pub(super) fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::Validate(args) => validate::run(&args, context),
            Self::Apply(args) => apply::run(&args, context),
            Self::List(args) => list::run(&args, context),
            Self::Show(args) => show::run(&args, context),
            Self::Rollback(args) => rollback::run(&args, context),
        }
    }
}

/// Which policy of which control plane.
#[derive(Debug, clap::Args)]
pub(crate) struct PolicyArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// The policy's name; one control plane can hold several
    #[arg(long, env = "PENSTOCK_POLICY_NAME", value_name = "NAME", default_value = "default")]
    policy_name: String,
}

/// Who changes what, and how long to wait for it.
#[derive(Debug, clap::Args)]
pub(crate) struct ChangeArgs {
    /// Why, for the history
    #[arg(short, long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    message: String,
    /// Who, for the history
    #[arg(long, env = "PENSTOCK_AUTHOR", value_name = "NAME", default_value_t, hide_default_value = true)]
    author: String,
    /// A change that is repeated with the same key makes one version
    #[arg(long, value_name = "KEY", default_value = "", hide_default_value = true)]
    idempotency_key: String,
    /// How long to wait until every connected proxy serves the new version; 0s does not wait
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = humantime::parse_duration)]
    wait: std::time::Duration,
}

impl ChangeArgs {
    /// The flag's, else the user's name on this machine.
    fn author(&self, context: &Context) -> String {
        context.author(&self.author)
    }

    /// Waits until the version is served, and says how it went.
    async fn report(
        &self,
        client: &Client,
        version: &PolicyVersion,
        done: &str,
        context: &Context,
    ) -> Result<(), Failure> {
        let number = version.version;
        output::print(&format!("{done}\n"))?;
        if self.wait.is_zero() {
            return Ok(());
        }
        let served = client.wait_served(number, 0, self.wait).await?;
        for (node, problems) in &served.refused {
            for problem in problems {
                context.say(&format!(
                    "{node} {}:{} {}: {}",
                    problem.line, problem.column, problem.path, problem.message
                ));
            }
        }
        if !served.refused.is_empty() {
            let nodes = served.refused.into_iter().map(|(node, _)| node).collect();
            return Err(Failure::Nacked { version: number, nodes });
        }
        if served.served < served.nodes {
            let waited = self.wait;
            return Err(Failure::Unserved {
                version: number,
                served: served.served,
                nodes: served.nodes,
                waited,
            });
        }
        output::print(&match served.nodes {
            0 => format!("version {number} waits for proxies: none is connected\n"),
            nodes => format!(
                "version {number} is served by {} of {nodes} {} after {} ms\n",
                served.served,
                plural(nodes, "node", "nodes"),
                served.after.as_millis()
            ),
        })
    }
}
