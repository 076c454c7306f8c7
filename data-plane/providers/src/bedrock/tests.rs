//! The cases of this dialect, by name.

mod reading;
mod writing;
