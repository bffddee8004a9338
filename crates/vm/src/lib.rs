//! A small Debian machine in which tests use real LVM2.

mod builder;
mod cargo;
mod cpio;
mod error;
mod fetch;
mod folder;
mod initramfs;
mod kit;
mod libraries;
mod link;
mod machine;
mod modules;
mod program;
mod wire;

pub use builder::Builder;
pub use error::Error;
pub use fetch::fetch;
pub use kit::{Kit, Missing};
pub use machine::Machine;
pub use program::{Output, Running, Status};

/// Where a machine has the test binary that it was booted by, if that was asked for.
pub const THIS: &str = "/bin/this-test";

/// The device of a machine's disk, counted from 0.
///
/// # Panics
/// Beyond the 26th: machines do not have that many.
pub fn disk(number: usize) -> String {
    let letter = (b'a'..=b'z').nth(number).expect("invariant: a machine has at most 26 disks");
    format!("/dev/vd{}", char::from(letter))
}

/// An error with its causes, for a panic.
pub(crate) fn told(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}
