//! Counts what passed, failed and was skipped, over suites of different kinds.
//!
//! libtest's own lines are read as they stream by. A test that skipped itself counts as passed there; the file of skips
//! (see `lifeboat_reference::skip`) says which those are, and they are moved from one count to the other.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail};

/// Counts and the stories behind them.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    passed: usize,
    failures: Vec<String>,
    skips: BTreeMap<String, Skip>,
}

#[derive(Debug, PartialEq, Eq)]
struct Skip {
    reason: String,
    /// Test data that a clone may lack: no fault of the machine.
    data: bool,
}

impl Tally {
    /// One check that is not a test of libtest.
    pub(crate) fn step(&mut self, name: &str, outcome: Result<()>) {
        match outcome {
            Ok(()) => self.passed += 1,
            Err(error) => self.fail(format!("{name}: {error:#}")),
        }
    }

    pub(crate) fn pass(&mut self) {
        self.passed += 1;
    }

    pub(crate) fn fail(&mut self, what: String) {
        eprintln!("FAILED {what}");
        self.failures.push(what);
    }

    /// Something that could not run, and is not in any other count.
    pub(crate) fn skip(&mut self, what: &str, reason: &str) {
        self.skips.insert(what.to_owned(), Skip { reason: reason.to_owned(), data: false });
    }

    /// Reads one line of a libtest run.
    pub(crate) fn libtest_line(&mut self, line: &str) {
        if let Some((passed, failed, ignored)) = summary(line) {
            self.passed += passed;
            if ignored > 0 {
                self.fail(format!("{ignored} ignored tests: a test that cannot run says so by skip()"));
            }
            let named = self.failures.iter().filter(|name| name.starts_with(PENDING)).count();
            // A failed test was named before; an unnamed one must be counted all the same.
            for _ in named..failed {
                self.failures.push("a test without a name".to_owned());
            }
            for name in &mut self.failures {
                if let Some(rest) = name.strip_prefix(PENDING) {
                    *name = rest.to_owned();
                }
            }
        } else if let Some(name) =
            line.strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... FAILED"))
        {
            self.failures.push(format!("{PENDING}{name}"));
        }
    }

    /// How many have failed so far.
    pub(crate) fn failed(&self) -> usize {
        self.failures.len()
    }

    /// Moves the tests that skipped themselves from passed to skipped.
    pub(crate) fn read_skips(&mut self, file: &Path) -> Result<()> {
        let text = match std::fs::read_to_string(file) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            other => other.with_context(|| format!("reading {}", file.display()))?,
        };
        for line in text.lines() {
            let mut parts = line.splitn(3, '\t');
            let (Some(kind), Some(test), Some(reason)) = (parts.next(), parts.next(), parts.next()) else {
                bail!("{} has a line that is no skip: {line}", file.display());
            };
            let skip = Skip { reason: reason.to_owned(), data: kind == "data" };
            if self.skips.insert(test.to_owned(), skip).is_none() {
                self.passed = self.passed.saturating_sub(1);
            }
        }
        Ok(())
    }

    /// Prints failures and skips, then the counts alone on the last line; says whether the run was good.
    pub(crate) fn close(&self, strictness: Strictness) -> Verdict {
        if !self.failures.is_empty() {
            println!("\nFailed:");
            self.failures.iter().for_each(|failure| println!("  {failure}"));
        }
        if !self.skips.is_empty() {
            println!("\nSkipped:");
            for (test, skip) in &self.skips {
                let kind = if skip.data { " (test data)" } else { "" };
                println!("  SKIPPED {test}: {}{kind}", skip.reason);
            }
        }
        let unexcused = self.skips.values().filter(|skip| !skip.data).count();
        if strictness == Strictness::SkipsFail && unexcused > 0 {
            println!("\n{unexcused} skipped for want of a program or a right: in CI that is a failure");
        }
        println!("\n{}", self.counts());
        match (self.failed(), strictness, unexcused) {
            (0, Strictness::SkipsAreTold, _) | (0, Strictness::SkipsFail, 0) => Verdict::Good,
            _ => Verdict::Bad,
        }
    }

    fn counts(&self) -> String {
        format!("{} passed, {} failed, {} skipped", self.passed, self.failed(), self.skips.len())
    }
}

/// Whether a run was good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Good,
    Bad,
}

/// What a skip means for the whole run: in CI it fails it, but for missing test data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strictness {
    /// It is told.
    SkipsAreTold,
    /// It fails the run.
    SkipsFail,
}

/// Marks a failed test until the summary line of its binary confirms it.
const PENDING: &str = "\u{1}";

/// Passed, failed and ignored of a line `test result: ...`.
fn summary(line: &str) -> Option<(usize, usize, usize)> {
    let counts = line.strip_prefix("test result: ")?.split_once(". ")?.1;
    let count = |word: &str| {
        counts.split("; ").find_map(|part| part.trim().strip_suffix(word)?.trim().parse::<usize>().ok())
    };
    Some((count("passed")?, count("failed")?, count("ignored")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(lines: &[&str]) -> Tally {
        let mut tally = Tally::default();
        lines.iter().for_each(|line| tally.libtest_line(line));
        tally
    }

    #[test]
    fn lines_of_libtest_are_counted() {
        let check = |lines: &[&str], expected: &str| assert_eq!(after(lines).counts(), expected, "{lines:?}");
        check(&[], "0 passed, 0 failed, 0 skipped");
        check(&["running 2 tests", "test a ... ok"], "0 passed, 0 failed, 0 skipped");
        let fine =
            "test result: ok. 5 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s";
        check(&[fine, fine], "10 passed, 0 failed, 0 skipped");
        let bad =
            "test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0s";
        check(&["test a::b ... FAILED", "test c ... FAILED", bad], "1 passed, 2 failed, 0 skipped");
        check(&[bad, fine], "6 passed, 2 failed, 0 skipped");
        let ignored =
            "test result: ok. 1 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0s";
        check(&[ignored], "1 passed, 1 failed, 0 skipped");
    }

    #[test]
    fn a_skipped_test_is_not_a_passed_one() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("skips");
        std::fs::write(&file, "tool\ta::b\tno Go\ndata\tc\tno cases here\ntool\ta::b\tno Go\n").unwrap();
        let mut tally = after(&[
            "test result: ok. 5 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0s",
        ]);
        tally.read_skips(&file).unwrap();
        assert_eq!(tally.counts(), "3 passed, 0 failed, 2 skipped");
        assert_eq!(tally.close(Strictness::SkipsAreTold), Verdict::Good);
        assert_eq!(tally.close(Strictness::SkipsFail), Verdict::Bad);
    }

    #[test]
    fn missing_test_data_is_forgiven_in_ci() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("skips");
        std::fs::write(&file, "data\tc\tno cases here\n").unwrap();
        let mut tally = Tally::default();
        tally.pass();
        tally.read_skips(&file).unwrap();
        assert_eq!(tally.close(Strictness::SkipsFail), Verdict::Good);
    }

    #[test]
    fn a_broken_file_of_skips_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("skips");
        assert!(Tally::default().read_skips(&file).is_ok(), "no skips, no file");
        std::fs::write(&file, "nonsense\n").unwrap();
        assert!(Tally::default().read_skips(&file).is_err());
    }
}
