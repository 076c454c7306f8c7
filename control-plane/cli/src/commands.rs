//! One file per command.

mod backend;
pub(crate) mod capability;
mod completions;
mod control;
mod demo;
mod explain;
mod node;
mod policy;
mod proxy;
mod up;

use clap::Subcommand;

use crate::failure::Failure;
use crate::run::Context;

/// Every command.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Up(Box<up::Args>),
    Proxy(Box<proxy::Args>),
    Control(Box<control::Args>),
    #[command(subcommand)]
    Policy(policy::Command),
    #[command(subcommand)]
    Backend(backend::Command),
    #[command(subcommand)]
    Node(node::Command),
    #[command(subcommand)]
    Capability(capability::Command),
    Explain(explain::Args),
    #[command(subcommand)]
    Demo(demo::Command),
    Completions(completions::Args),
}

impl Command {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::Up(args) => up::run(&args, context),
            Self::Proxy(args) => proxy::run(&args, context),
            Self::Control(args) => control::run(&args, context),
            Self::Policy(command) => command.run(context),
            Self::Backend(command) => command.run(context),
            Self::Node(command) => command.run(context),
            Self::Capability(command) => command.run(context),
            Self::Explain(args) => explain::run(&args, context),
            Self::Demo(command) => command.run(context),
            Self::Completions(args) => completions::run(&args),
        }
    }
}
