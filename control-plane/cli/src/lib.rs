//! The `penstock` command line: [`run`] is the whole program, [`reference()`] its documentation.
//!
//! Commands only talk to the planes: `up`, `proxy` and `control` start them, everything else calls the control plane's
//! admin API. What a plane knows how to do is never done here.
//!
//! Settings come from defaults, then the file that `--config` names, then `PENSTOCK_…` variables, then flags; the later
//! wins.

mod client;
mod commands;
mod config_file;
mod data_dir;
mod demo;
mod failure;
mod language;
mod output;
mod reference;
mod render;
mod run;
mod serve;

pub use reference::reference;
pub use run::{command, run};
