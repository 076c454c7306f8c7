//! What goes to standard output: tables for people, JSON or YAML for programs.

use std::io::{ErrorKind, Write};

use clap::ValueEnum;
use serde::Serialize;

use crate::failure::Failure;

/// How a listing is printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    #[default]
    Table,
    /// For programs
    Json,
    /// For programs, easier on the eye
    Yaml,
}

/// Prints `value` for programs, or what `table` makes of it for people.
pub(crate) fn listing<T: Serialize>(
    format: Format,
    value: &T,
    table: impl FnOnce(&T) -> String,
) -> Result<(), Failure> {
    let text = match format {
        Format::Table => table(value),
        Format::Json => json(value),
        Format::Yaml => yaml(value),
    };
    print(&text)
}

/// Writes `text`, which ends with a line feed, to standard output.
///
/// A reader that has seen enough (`penstock policy list | head -1`) is no failure.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::File { path: "standard output".into(), source: error })
        }
        _ => Ok(()),
    }
}

fn json<T: Serialize>(value: &T) -> String {
    serde_json::to_string_pretty(value).expect("messages have string keys") + "\n"
}

fn yaml<T: Serialize>(value: &T) -> String {
    serde_yaml_ng::to_string(value).expect("messages have string keys")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_and_yaml_hold_the_same() {
        let value = serde_json::json!({"nodes": [{"id": "p1", "版本": 3}]});
        assert_eq!(serde_json::from_str::<serde_json::Value>(&json(&value)).unwrap(), value);
        assert_eq!(serde_yaml_ng::from_str::<serde_json::Value>(&yaml(&value)).unwrap(), value);
    }
}
