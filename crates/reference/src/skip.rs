//! How a test says that it could not run.
//!
//! libtest knows only passed and failed, and hides what a passing test prints. So a test that cannot run tells it here,
//! and `cargo xtask test` takes it off the passed ones, lists it with its reason and counts it as skipped.

use std::env;
use std::fs::OpenOptions;
use std::io::Write;

/// Names the file that collects the skips of a run; set by `cargo xtask test`.
const FILE: &str = "LIFEBOAT_SKIP_FILE";

/// What kind of thing was missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lack {
    /// A program or a right: CI has them, so there a skip is a failure.
    Tool,
    /// Test data that a clone of the repository may lack: fine everywhere.
    Data,
}

/// Reports that `test` did not run for want of a program or a right; the test then just returns.
pub fn skip(test: &str, reason: impl ToString) {
    skip_for(Lack::Tool, test, reason);
}

/// Reports that `test` did not run, and what kind of thing was missing.
///
/// # Panics
/// When the skip cannot be recorded: better a failed test than a silent skip.
#[expect(clippy::print_stdout, reason = "whoever runs the test by hand with --nocapture sees the skip")]
#[expect(clippy::needless_pass_by_value, reason = "reasons are error values made for this call")]
pub fn skip_for(lack: Lack, test: &str, reason: impl ToString) {
    let reason = reason.to_string().replace(['\n', '\t'], " ");
    println!("SKIPPED {test}: {reason}");
    let Some(path) = env::var_os(FILE) else { return };
    let kind = match lack {
        Lack::Tool => "tool",
        Lack::Data => "data",
    };
    // One write of one line in append mode: test binaries and threads do not cut each other's lines.
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(&path)
        .and_then(|mut file| file.write_all(format!("{kind}\t{test}\t{reason}\n").as_bytes()))
        .expect("invariant: the file of skips can be written");
}
