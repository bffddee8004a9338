//! A small Debian machine in which tests use real LVM2.
//!
//! The machine is emulated in software (no KVM, no rights needed), has a kernel of Debian with device-mapper, LVM2, the
//! thin-provisioning tools, ext4, xfs and btrfs, disks that are sparse files, and no network but loopback. Its parts
//! are Debian packages that `cargo xtask tools` unpacks into the cache; where they are not there, tests that need the
//! machine are counted as skipped. It knows nothing of Lifeboat, and decides nothing.
//!
//! # A test that runs in the machine
//!
//! One line at the beginning. On the host it copies the test binary into the machine, runs this one test there, and
//! fails with all that it wrote if it fails there. What stands below the line runs in the machine only, as root:
//!
//! ```no_run
//! # use std::process::Command;
//! #[test]
//! fn a_volume_group_is_made() {
//!     lifeboat_vm::in_machine!();
//!     // /dev/vda, /dev/vdb and /dev/vdc are empty disks of 4 GiB.
//!     assert!(Command::new("vgcreate").args(["vg", "/dev/vda"]).status().unwrap().success());
//! }
//! ```
//!
//! It works in `#[tokio::test]` as well. Tests of one binary share one machine and take turns; each finds it like new
//! (see [`Shared`]). Other equipment, such as a program that is not in the machine, makes a machine of its own:
//!
//! ```no_run
//! use lifeboat_vm::{Machine, Shared};
//!
//! static WITH_RESTIC: Shared =
//!     Shared::new(|| Machine::builder().disk(8 << 30).program("/usr/bin/restic", "/bin/restic"));
//!
//! #[test]
//! fn restic_reads_what_we_wrote() {
//!     lifeboat_vm::in_machine!(WITH_RESTIC);
//! }
//! ```
//!
//! Files of the repository are not in the machine: use `include_str!`. Variables that begin with `LIFEBOAT_`, `PROPTEST_` or
//! `RUST_LOG` are handed on. A skip inside is counted outside.
//!
//! # A story with power cuts
//!
//! The host tells the story, and the same test runs in the machine for every step:
//!
//! ```no_run
//! use std::time::Duration;
//! use lifeboat_vm::{Machine, step, test_name};
//!
//! #[test]
//! fn a_power_cut_loses_nothing() {
//!     match step().as_deref() {
//!         Some("write") => { /* in the machine */ return; }
//!         Some("check") => { /* in the machine, after the power cut */ return; }
//!         _ => {}
//!     }
//!     let deadline = Duration::from_secs(60);
//!     let builder = Machine::builder().disk(1 << 30).this_test_binary();
//!     let Some(mut machine) = builder.boot_or_skip(test_name!()) else { return };
//!     machine.run(&["vgcreate", "vg", "/dev/vda"], deadline).unwrap().ok().unwrap();
//!     machine.run_this_test(test_name!(), "write", deadline).unwrap();
//!     machine.power_cut();
//!     machine.power_on().unwrap();
//!     machine.run_this_test(test_name!(), "check", deadline).unwrap();
//! }
//! ```
//!
//! To cut the power in the midst of a step, start it with [`Machine::spawn`], wait for a line that it writes
//! ([`Running::line_with`]), and cut. `machine.run(["vgchange", "-ay"], ..)` makes volumes available after a boot: nothing
//! in the machine does that by itself.
//!
//! # What a power cut proves
//!
//! [`Machine::power_cut`] kills the emulator. All memory of the machine is gone: what programs wrote and the kernel had not
//! yet written out is lost, and so is every process and every mapped device. Every write that a disk had confirmed is
//! kept, in flight ones may or may not be. The disks announce a volatile cache (the guest's kernel sends its flushes and
//! FUA writes as in production), but the files lie in the host's page cache, which outlives the emulator; flushing it to
//! the host's disk would add nothing but time, so the emulator does not (`cache.no-flush`). So this is a power cut of a
//! machine whose disks keep what they confirmed. It does not find a missing flush between two writes that both reached
//! the disk. [`Machine::power_cut_forgetting`] does: there, writes that were not flushed are kept or lost by chance.
//!
//! # Deadlines and leftovers
//!
//! Everything has a deadline, and what fails carries the end of the program's output and of the kernel's log. Nothing outlives
//! the test: the emulator ends with the [`Machine`] or with the test's process, whichever is first.

mod builder;
mod cargo;
mod cpio;
mod error;
mod fetch;
mod here;
mod initramfs;
pub mod inside;
mod kit;
mod libraries;
mod libtest;
mod link;
mod machine;
mod modules;
mod program;
mod qemu;
mod volatile;
#[cfg_attr(not(test), expect(dead_code, reason = "half of it is the agent's, which is compiled on its own"))]
mod wire;

pub use builder::Builder;
pub use error::Error;
pub use fetch::fetch;
pub use here::{STANDARD, Shared, name_of, step};
pub use kit::{Kit, Missing};
pub use libtest::TestRun;
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
