//! One JSON line per request, written by a thread of its own.
//!
//! A worker gathers lines in its own buffer and hands blocks over; when the writer cannot keep up, blocks are dropped and
//! counted. Lines hold no prompts, answers or keys.

use std::fs::File;
use std::io::{self, Write};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};

use serde::Serialize;

use crate::config::AccessLog;

/// A buffer this full is handed over at once.
const BLOCK: usize = 64 * 1024;
/// Blocks on their way to the writer.
const BLOCKS: usize = 64;

/// The way to the writer.
#[derive(Debug)]
pub(crate) struct Log {
    writer: Option<SyncSender<Vec<u8>>>,
}

/// Lines that are not handed over yet.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    bytes: Vec<u8>,
    lines: u64,
}

/// One line.
#[derive(Debug, Serialize)]
pub(crate) struct Line<'a> {
    pub(crate) time: String,
    pub(crate) request_id: &'a str,
    pub(crate) decision: &'a str,
    pub(crate) client: String,
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) protocol: &'a str,
    pub(crate) route: &'a str,
    pub(crate) capability: &'a str,
    pub(crate) model: &'a str,
    pub(crate) backend: &'a str,
    pub(crate) target_model: &'a str,
    pub(crate) policy: u64,
    pub(crate) status: u16,
    pub(crate) error_code: &'a str,
    pub(crate) stream: bool,
    pub(crate) attempts: usize,
    pub(crate) cache: &'a str,
    pub(crate) outcome: &'a str,
    pub(crate) duration_us: u64,
    pub(crate) first_token_us: Option<u64>,
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
    pub(crate) input_tokens: Option<u64>,
    pub(crate) output_tokens: Option<u64>,
    pub(crate) cost_nanos: Option<u64>,
    pub(crate) currency: &'a str,
}

impl Log {
    /// Opens the log and starts its writer.
    pub(crate) fn open(config: &AccessLog) -> io::Result<Self> {
        let output: Box<dyn Write + Send> = match config {
            AccessLog::Off => return Ok(Self { writer: None }),
            AccessLog::Stdout => Box::new(io::stdout()),
            AccessLog::File(path) => Box::new(File::options().create(true).append(true).open(path)?),
        };
        let (writer, blocks) = sync_channel::<Vec<u8>>(BLOCKS);
        std::thread::Builder::new().name("access-log".to_owned()).spawn(move || {
            let mut output = output;
            for block in blocks {
                // A full disk must not stop traffic; the next block may fit again.
                let _ = output.write_all(&block).and_then(|()| output.flush());
            }
        })?;
        Ok(Self { writer: Some(writer) })
    }

    pub(crate) fn is_on(&self) -> bool {
        self.writer.is_some()
    }

    /// Hands over what `buffer` holds; returns how many lines were lost.
    pub(crate) fn write(&self, buffer: &mut Buffer) -> u64 {
        let lines = std::mem::take(&mut buffer.lines);
        let Some(writer) = self.writer.as_ref().filter(|_| lines > 0) else { return 0 };
        match writer.try_send(std::mem::take(&mut buffer.bytes)) {
            Ok(()) => 0,
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => lines,
        }
    }
}

impl Buffer {
    /// Adds a line; true when it is time to hand over.
    pub(crate) fn add(&mut self, line: &Line<'_>) -> bool {
        if serde_json::to_writer(&mut self.bytes, line).is_ok() {
            self.bytes.push(b'\n');
            self.lines += 1;
        }
        self.bytes.len() >= BLOCK
    }
}
