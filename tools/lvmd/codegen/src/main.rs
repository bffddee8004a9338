//! Writes `crates/lvm/src/lvmd/pb` from `crates/lvm/proto`: `cargo run --manifest-path tools/lvmd/codegen/Cargo.toml`.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let room = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../crates/lvm");
    let files = protox::compile(["lvmd.proto", "lifeboat_lvm.proto"], [room.join("proto")])?;
    let out = room.join("src/lvmd/pb");
    tonic_prost_build::configure().out_dir(&out).compile_fds(files)?;
    // Not called `.rs`: it is included, and nobody should format, lint or read it as if a person had written it.
    for package in ["proto", "lifeboat.lvm.v1"] {
        std::fs::rename(out.join(format!("{package}.rs")), out.join(format!("{package}.rs.in")))?;
    }
    Ok(())
}
