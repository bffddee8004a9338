//! Writes `crates/lvm/src/lvmd/pb` from `crates/lvm/proto`: `cargo run --manifest-path tools/lvmd/codegen/Cargo.toml`.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let room = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../crates/lvm");
    let files = protox::compile(["lvmd.proto", "lifeboat_lvm.proto"], [room.join("proto")])?;
    tonic_prost_build::configure().out_dir(room.join("src/lvmd/pb")).compile_fds(files)?;
    Ok(())
}
