//! The benchmark's load: keep-alive connections that send chat completions and measure what comes back.
//!
//! Everything runs on one thread, so that it can be pinned to one core. Standard output says `begin` and `end` when the
//! measured time begins and ends, and then the result as one line of JSON. `tests/bench/bench.py` is what calls it.

mod connection;
mod hold;
mod rate;
mod saturate;
mod stream;
mod summary;
mod upstream;

use std::io::Write;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Result;
use clap::{Parser, Subcommand};
use serde_json::Value;

#[derive(Debug, Parser)]
#[command(about = "Sends chat completions and measures what comes back")]
struct Cli {
    #[command(subcommand)]
    mode: Mode,
}

#[derive(Debug, Subcommand)]
enum Mode {
    /// As many calls as the connections carry.
    Saturate {
        #[command(flatten)]
        load: Load,
    },
    /// Calls at a fixed rate, whatever the answers do; latency counts from the instant a call was due.
    Rate {
        #[command(flatten)]
        load: Load,
        /// Calls per second over all connections.
        #[arg(long)]
        per_second: u32,
    },
    /// Streams, one after the other on each connection; counts their events.
    Streams {
        #[command(flatten)]
        load: Load,
    },
    /// Opens a stream on each connection, says `ready` when all flow, and holds them for the seconds given.
    Hold {
        #[command(flatten)]
        load: Load,
    },
    /// Is the service behind the gateway: simulated streams at an even pace.
    Upstream {
        /// Where to listen.
        #[arg(long)]
        listen: SocketAddr,
        /// Events per second of each stream.
        #[arg(long, default_value_t = 50.0)]
        tokens_per_second: f64,
        /// Events of each stream.
        #[arg(long, default_value_t = 100)]
        tokens: u32,
    },
}

/// What all kinds of load share.
#[derive(Debug, Clone, Copy, clap::Args)]
struct Load {
    /// The gateway, or the service itself.
    #[arg(long)]
    target: SocketAddr,
    /// How many connections.
    #[arg(long, default_value_t = 32)]
    connections: usize,
    /// How long to measure.
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,
    /// Call as Anthropic's clients do: the gateway has to translate.
    #[arg(long)]
    messages: bool,
    /// How long to send before that, uncounted.
    #[arg(long, default_value_t = 2.0)]
    warm_up: f64,
}

impl Load {
    fn warm_up(&self) -> Duration {
        Duration::from_secs_f64(self.warm_up)
    }

    fn measured(&self) -> Duration {
        Duration::from_secs_f64(self.seconds)
    }
}

fn main() -> Result<()> {
    let mode = Cli::parse().mode;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let result = runtime.block_on(async {
        match mode {
            Mode::Saturate { load } => announced(load, saturate::run(load)).await,
            Mode::Rate { load, per_second } => announced(load, rate::run(load, per_second)).await,
            Mode::Streams { load } => announced(load, stream::run(load)).await,
            Mode::Hold { load } => hold::run(load).await,
            Mode::Upstream { listen, tokens_per_second, tokens } => {
                upstream::run(listen, tokens_per_second, tokens).await
            }
        }
    })?;
    say(&result.to_string())
}

/// Runs `measurement` and says when the measured time begins and ends.
async fn announced(load: Load, measurement: impl Future<Output = Result<Value>>) -> Result<Value> {
    let announce = async {
        tokio::time::sleep(load.warm_up()).await;
        say("begin")?;
        tokio::time::sleep(load.measured()).await;
        say("end")
    };
    let (result, announced) = tokio::join!(measurement, announce);
    announced?;
    result
}

/// A line on standard output, at once.
fn say(line: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()?;
    Ok(())
}
