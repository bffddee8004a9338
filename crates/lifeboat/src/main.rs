//! The `lifeboat` binary.
fn main() {}
