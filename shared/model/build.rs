//! Lists the vendor files, so that adding a vendor is adding a file.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

#[expect(clippy::disallowed_methods, reason = "what cargo tells build scripts is in the environment")]
fn main() {
    let folder = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("vendors");
    println!("cargo::rerun-if-changed={}", folder.display());
    let entries = fs::read_dir(&folder).expect("the folder is part of the crate");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("readable").path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "yaml"));
    files.sort_by(|a, b| a.file_stem().cmp(&b.file_stem()));
    let mut list = "static FILES: &[(&str, &str)] = &[\n".to_owned();
    for file in &files {
        let name = file.file_stem().and_then(|stem| stem.to_str()).expect("vendor names are ASCII");
        writeln!(list, "    ({name:?}, include_str!({:?})),", file.display().to_string())
            .expect("a string grows");
    }
    list.push_str("];\n");
    let out = Path::new(&env::var("OUT_DIR").expect("cargo sets it")).join("vendors.rs");
    fs::write(out, list).expect("the build folder can be written to");
}
