//! What the operating system says of this process. Linux only; elsewhere everything is 0.

use std::fs;

/// Clock ticks per second of `/proc`, which Linux has fixed for programs at 100.
const TICKS: f64 = 100.0;
const PAGE: u64 = 4_096;

/// User and system time.
pub(crate) fn cpu_seconds() -> f64 {
    let read = || {
        let stat = fs::read_to_string("/proc/self/stat").ok()?;
        // The name may hold spaces and brackets; what follows its last bracket does not.
        let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(11);
        let user: f64 = fields.next()?.parse().ok()?;
        let system: f64 = fields.next()?.parse().ok()?;
        Some((user + system) / TICKS)
    };
    read().unwrap_or(0.0)
}

/// Resident memory.
pub(crate) fn resident_bytes() -> u64 {
    let read = || -> Option<u64> {
        let statm = fs::read_to_string("/proc/self/statm").ok()?;
        Some(statm.split_ascii_whitespace().nth(1)?.parse::<u64>().ok()? * PAGE)
    };
    read().unwrap_or(0)
}
