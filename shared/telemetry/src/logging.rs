//! Log lines on standard error, and `tracing` spans into a collector.

use opentelemetry_sdk::trace::SdkTracer;
use tracing_subscriber::filter::{LevelFilter, ParseError, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};
use tracing_subscriber::{EnvFilter, Layer, fmt};

/// What is logged when nothing else is asked for.
pub const DEFAULT_FILTER: &str = "info";

/// How a log line looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Pretty {
        /// With colours: only where standard error is a terminal.
        color: bool,
    },
    /// One JSON object per line, for programs.
    Json,
}

/// Why logging could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The filter does not parse.
    #[error(
        "the log filter {filter:?} is not valid: use a level like `info`, or `info,penstock_data_plane=debug`"
    )]
    Filter {
        /// As given.
        filter: String,
        /// What is wrong with it.
        source: ParseError,
    },
    /// Something has set up logging in this process before.
    #[error("logging is set up already")]
    Twice(#[source] TryInitError),
}

/// Sets up logging for the process: lines to standard error, and where there is a `tracer`, spans of the control plane
/// to it.
///
/// Only spans of the control plane go out: the proxy makes its spans itself when a request is settled, and those of
/// h2, hyper and tonic would export themselves for ever.
///
/// # Errors
/// When `filter` is not valid, or logging was set up before.
pub fn init(format: Format, filter: &str, tracer: Option<SdkTracer>) -> Result<(), Error> {
    let filter =
        EnvFilter::try_new(filter).map_err(|source| Error::Filter { filter: filter.to_owned(), source })?;
    let lines = fmt::layer().with_writer(std::io::stderr);
    let lines = match format {
        Format::Pretty { color } => lines.with_ansi(color).boxed(),
        Format::Json => lines.json().flatten_event(true).with_current_span(false).boxed(),
    };
    let spans = tracer.map(|tracer| {
        let ours = Targets::new().with_target("penstock_control_plane", LevelFilter::INFO);
        // Line and thread say nothing to an operator, and cost bytes on each span.
        let layer = tracing_opentelemetry::layer().with_tracer(tracer);
        layer.with_location(false).with_threads(false).with_tracked_inactivity(false).with_filter(ours)
    });
    tracing_subscriber::registry()
        .with(lines.with_filter(filter))
        .with(spans)
        .try_init()
        .map_err(Error::Twice)
}

/// Checks a filter without setting anything up.
///
/// # Errors
/// When it is not valid.
pub fn check(filter: &str) -> Result<(), Error> {
    parse(filter).map(drop)
}

fn parse(filter: &str) -> Result<EnvFilter, Error> {
    EnvFilter::try_new(filter).map_err(|source| Error::Filter { filter: filter.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_that_does_not_parse_is_refused_with_an_example() {
        let error = check("penstock=loud").unwrap_err();
        assert!(
            error.to_string().contains("penstock=loud") && error.to_string().contains("debug"),
            "{error}"
        );
    }
}
