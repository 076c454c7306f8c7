//! `penstock completions`.

use clap_complete::Shell;

use crate::failure::Failure;
use crate::output;
use crate::run::command;

/// Print a completion script for a shell
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  penstock completions bash > ~/.local/share/bash-completion/completions/penstock"
)]
pub(crate) struct Args {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command(), "penstock", &mut script);
    output::print(&String::from_utf8_lossy(&script))
}
