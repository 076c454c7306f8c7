//! Writes the command reference: `make generate`.

fn main() -> std::io::Result<()> {
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/cli.md");
    std::fs::write(page, penstock::reference())
}
