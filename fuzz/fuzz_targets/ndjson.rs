//! Ollama's streams: a JSON object a line.
#![no_main]

use libfuzzer_sys::fuzz_target;
use penstock_fuzz::{check_stream, cut};
use penstock_providers::ollama::Ollama;

fuzz_target!(|data: &[u8]| {
    let Some((bytes, size)) = cut(data) else { return };
    check_stream(&Ollama, bytes, size);
});
