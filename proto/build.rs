//! Compiles the contracts with protox, so that no system `protoc` is needed for Penstock's own messages.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=penstock");
    let files = protox::compile(
        ["penstock/fleet/v1/fleet.proto", "penstock/admin/v1/policy.proto", "penstock/admin/v1/state.proto"],
        ["."],
    )?;
    // Serde gives the JSON mapping of the admin API: camelCase names, 64-bit numbers as numbers, bytes as arrays.
    tonic_prost_build::configure()
        .message_attribute(".", "#[derive(serde::Serialize, serde::Deserialize)]")
        .message_attribute(".", "#[serde(rename_all = \"camelCase\", default)]")
        .enum_attribute(".", "#[derive(serde::Serialize, serde::Deserialize)]")
        .enum_attribute(".", "#[serde(rename_all = \"camelCase\")]")
        .compile_fds(files)?;
    Ok(())
}
