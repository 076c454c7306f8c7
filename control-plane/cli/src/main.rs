//! Penstock, the AI routing gateway: both planes and every operator command in one binary.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[expect(clippy::disallowed_methods, reason = "the one place where the environment is read")]
fn main() -> ExitCode {
    penstock::run(std::env::args_os(), std::env::vars().collect())
}
