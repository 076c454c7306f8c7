//! The built binary against a control plane that answers as the test says.

#![expect(clippy::unwrap_used, reason = "a test's helpers may panic as the test itself may")]

mod capability;
mod demo;
mod explain;
mod policy;
mod server;
mod settings;
mod up;
mod usage;

use std::process::{Command, Output};

/// Runs `penstock ARGUMENTS` to its end, with these variables and no others that matter to it.
fn penstock(arguments: &[&str], variables: &[(&str, &str)]) -> Ended {
    let mut command = Command::new(env!("CARGO_BIN_EXE_penstock"));
    for name in ["LC_ALL", "LC_MESSAGES", "LANG", "PENSTOCK_SERVER", "PENSTOCK_AUTHOR"] {
        command.env_remove(name);
    }
    command.args(arguments).envs(variables.iter().copied());
    Ended::of(command.output().expect("the binary starts"))
}

/// How a command ended.
#[derive(Debug)]
struct Ended {
    code: i32,
    out: String,
    err: String,
}

impl Ended {
    fn of(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).expect("UTF-8"),
            err: String::from_utf8(output.stderr).expect("UTF-8"),
        }
    }
}
