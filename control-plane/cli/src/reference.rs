//! The command reference, written from the definition of the command line.

use clap::Command;

use crate::run::command;

/// Columns of the page.
const WIDTH: usize = 110;

/// `docs/reference/cli.md`.
#[must_use]
pub fn reference() -> String {
    let mut root = hide_values(command().term_width(WIDTH));
    root.build();
    let mut page = String::from(
        "# Commands\n\n<!-- Made by `make generate` from control-plane/cli/src/commands. Do not edit. -->\n\n\
         Settings of `up`, `proxy` and `control` come from defaults, then the file that `--config` names, then `PENSTOCK_…`\n\
         variables, then flags; the later wins. Exit codes: 0 done, 1 failed (one line says what happened, one what to do),\n\
         2 wrong usage. Messages to people are in Chinese where `LC_ALL`, `LC_MESSAGES` or `LANG` begins with `zh`.\n",
    );
    describe(&mut page, &mut root, "", 2);
    page
}

/// Help normally shows what a variable holds right now.
fn hide_values(command: Command) -> Command {
    let command = command.mut_args(|arg| arg.hide_env_values(true));
    command.mut_subcommands(hide_values)
}

fn describe(page: &mut String, command: &mut Command, parent: &str, level: usize) {
    let name = format!("{parent} {}", command.get_name()).trim().to_owned();
    let help = command.render_long_help().to_string();
    let help: String = help.lines().map(|line| line.trim_end().to_owned() + "\n").collect();
    page.push_str(&format!("\n{} {name}\n\n```text\n{}\n```\n", "#".repeat(level), help.trim_end()));
    for subcommand in command.get_subcommands_mut().filter(|subcommand| subcommand.get_name() != "help") {
        describe(page, subcommand, &name, level + 1);
    }
}
