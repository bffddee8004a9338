//! Compiles the agent that answers inside the machine.
//!
//! The agent is a program of its own, but a test of another crate cannot ask cargo for a program of this one. So it is
//! one file with the standard library alone, compiled here and carried inside the library.

use std::env;
use std::path::Path;
use std::process::Command;

fn main() {
    for file in ["build.rs", "src/agent/main.rs", "src/wire.rs"] {
        println!("cargo::rerun-if-changed={file}");
    }
    let variable = |name: &str| env::var(name).expect("invariant: cargo tells build scripts where they are");
    let output = Path::new(&variable("OUT_DIR")).join("agent");
    let status = Command::new(variable("RUSTC"))
        .args(["--edition", "2024", "--crate-name", "agent", "-O", "-C", "strip=symbols"])
        .args(["--target", &variable("TARGET")])
        .arg("-o")
        .arg(&output)
        .arg("src/agent/main.rs")
        .status()
        .expect("invariant: the compiler that builds this crate can be started");
    assert!(status.success(), "compiling src/agent/main.rs: {status}");
}
