//! `penstock demo`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use clap::Subcommand;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use penstock_sim::{Fault, InvalidFault};
use tokio::net::TcpStream;

use crate::demo;
use crate::failure::{Failure, chain};
use crate::output;
use crate::run::Context;

/// How long a simulated service may take to answer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Play with the demo that `penstock up` starts
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Fault(FaultArgs),
}

/// Make a simulated service misbehave, or well again
///
/// latency=2s adds to the wait before each answer; errors=0.9 lets that share of calls fail, with status=503 and retry_after=7 if
/// you like; hang takes calls and never answers; reset breaks connections; stall sends half of a stream; stream_error reports an
/// error at the beginning of a stream, late_error half-way; garbage=body and garbage=http answer nonsense; truncate=clean and truncate=abort stop half-way; clear
/// makes it well again. Commas join several.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  penstock demo fault chat-a latency=2s\n  penstock demo fault chat-a errors=0.9\n  \
                        penstock demo fault chat-a clear"
)]
pub(crate) struct FaultArgs {
    /// One of the demo's services: chat-a, chat-b, code-a, code-b, summarize-a, summarize-b
    #[arg(value_name = "SERVICE")]
    service: String,
    /// What goes wrong
    #[arg(value_name = "FAULT", value_parser = Spec::parse)]
    fault: Spec,
    /// The data folder of the demo [default: the platform's state folder]
    #[arg(long, env = "PENSTOCK_DATA_DIR", value_name = "FOLDER")]
    data_dir: Option<PathBuf>,
}

/// A fault, and how it was written.
#[derive(Debug, Clone)]
struct Spec {
    text: String,
    fault: Fault,
}

impl Spec {
    fn parse(text: &str) -> Result<Self, InvalidFault> {
        Ok(Self { text: text.to_owned(), fault: Fault::parse(text)? })
    }
}

impl Command {
    pub(super) fn run(self, context: &Context) -> Result<(), Failure> {
        let Self::Fault(args) = self;
        let data_dir = context.data_dir(args.data_dir.as_ref());
        let addresses = demo::read(&data_dir)?;
        let address = *addresses.get(&args.service).ok_or_else(|| Failure::Setting {
            what: format!("the demo has no service {:?}", args.service),
            advice: format!("it has {}", addresses.keys().cloned().collect::<Vec<_>>().join(", ")),
        })?;
        let body = serde_json::to_vec(&args.fault.fault).expect("a fault is JSON");
        context.block_on(send(address, body))?;
        output::print(&format!("{} at {address}: {}\n", args.service, args.fault.text))
    }
}

async fn send(address: SocketAddr, body: Vec<u8>) -> Result<(), Failure> {
    let gone = |detail: String| Failure::Setting {
        what: format!("the simulated service at {address} does not answer: {detail}"),
        advice: "start the demo with `penstock up`; if it has a --data-dir, give the same here".to_owned(),
    };
    match tokio::time::timeout(TIMEOUT, post(address, body)).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(detail)) => Err(gone(detail)),
        Err(_) => Err(gone(format!("nothing came within {} s", TIMEOUT.as_secs()))),
    }
}

async fn post(address: SocketAddr, body: Vec<u8>) -> Result<(), String> {
    let stream = TcpStream::connect(address).await.map_err(|error| error.to_string())?;
    let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.map_err(|error| chain(&error))?;
    let request = http::Request::post("/sim/fault")
        .header(http::header::HOST, address.to_string())
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(Full::new(Bytes::from(body)))
        .expect("the parts are valid");
    tokio::spawn(connection);
    let response = sender.send_request(request).await.map_err(|error| chain(&error))?;
    let status = response.status();
    let body = response.into_body().collect().await.map_err(|error| chain(&error))?.to_bytes();
    if status.is_success() {
        return Ok(());
    }
    Err(format!("{status} {}", String::from_utf8_lossy(&body).trim()))
}
