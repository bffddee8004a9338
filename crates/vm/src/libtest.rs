//! Test binaries of Rust in the machine: what they were asked to do, and what they say at the end.

use std::time::Duration;

use crate::{Error, Machine, Output};

/// Set in the machine; its value is the step that the test is to do there.
pub(crate) const IN_MACHINE: &str = "LIFEBOAT_IN_VM";
/// Variables of the host that tests in the machine see as well, by how they begin.
const HANDED_ON: [&str; 3] = ["LIFEBOAT_", "RUST_LOG", "PROPTEST_"];
/// But for these, which name places on the host.
const KEPT_BACK: [&str; 2] = ["LIFEBOAT_SKIP_FILE", "LIFEBOAT_CACHE"];

/// How a test binary ended in the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestRun {
    /// How many tests passed; those that skipped themselves are among them.
    pub passed: usize,
    /// How many failed.
    pub failed: usize,
    /// Tests that skipped themselves, with the reason.
    pub skipped: Vec<(String, String)>,
    /// Everything that the binary wrote, each line marked as the machine's.
    pub output: String,
}

impl Machine {
    /// Runs a test binary with these arguments (a filter, `--exact`); `path` is where the machine has it.
    ///
    /// # Errors
    /// When a test failed, when none ran at all, or when the binary died: each with everything that it wrote.
    pub fn run_test_binary(&self, path: &str, args: &[&str], deadline: Duration) -> Result<TestRun, Error> {
        self.run_step(path, args, "all", deadline)
    }

    /// Runs one test of the binary that runs now ([`crate::Builder::this_test_binary`]) in the machine, where
    /// [`crate::step`] then gives `step`.
    ///
    /// # Errors
    /// As [`Machine::run_test_binary`].
    pub fn run_this_test(&self, test: &str, step: &str, deadline: Duration) -> Result<TestRun, Error> {
        self.run_step(crate::THIS, &[test, "--exact"], step, deadline)
    }

    fn run_step(&self, path: &str, args: &[&str], step: &str, deadline: Duration) -> Result<TestRun, Error> {
        let argv = [&[path], args, &["--nocapture", "--test-threads=1"]].concat();
        let handed_on: Vec<(String, String)> =
            std::env::vars().filter(|(name, _)| is_handed_on(name)).collect();
        let mut env: Vec<(&str, &str)> =
            handed_on.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        env.push((IN_MACHINE, step));
        let mut running = self.spawn_with(&argv, &env, &[])?;
        running.wait_for_end(deadline)?;
        // What a test leaves running (above all when it fails) would hold its outputs open.
        running.kill_group()?;
        let output = running.wait(deadline)?;
        let failed = |what: &str, output: &Output| {
            let output = format!("{what}, {}:\n{}", output.status, quoted(output));
            Err(Error::Failed { program: argv.join(" "), output })
        };
        match read(&output) {
            None => failed("the test binary died", &output),
            Some(run) if run.failed > 0 || !output.success() => failed("a test failed", &output),
            Some(run) if run.passed == 0 => failed("no test ran, the filter fits none", &output),
            Some(run) => Ok(run),
        }
    }
}

fn is_handed_on(name: &str) -> bool {
    HANDED_ON.iter().any(|begin| name.starts_with(begin)) && !KEPT_BACK.contains(&name)
}

/// Reads the output of libtest; nothing where its last line is missing, because then the binary did not get there.
fn read(output: &Output) -> Option<TestRun> {
    let mut counts = None;
    let mut skipped = Vec::new();
    for line in output.stdout.lines() {
        if let Some((_, rest)) = line.split_once("test result: ") {
            counts = Some((count(rest, "passed")?, count(rest, "failed")?));
        }
        // Without captured output the skip may stand behind `test NAME ... `.
        if let Some((test, reason)) = line.split_once("SKIPPED ").and_then(|(_, rest)| rest.split_once(": "))
        {
            skipped.push((test.to_owned(), reason.to_owned()));
        }
    }
    let (passed, failed) = counts?;
    Some(TestRun { passed, failed, skipped, output: quoted(output) })
}

/// What was written in the machine, as a quotation: whoever counts the result lines of the host's own tests must not count
/// these with them.
fn quoted(output: &Output) -> String {
    [&output.stdout, &output.stderr]
        .into_iter()
        .flat_map(|text| text.lines())
        .filter(|line| !line.is_empty())
        .map(|line| format!("  vm| {line}\n"))
        .collect()
}

/// The number before a word in `ok. 1 passed; 0 failed; ...`.
fn count(text: &str, word: &str) -> Option<usize> {
    let words: Vec<&str> = text.split([' ', ';']).filter(|word| !word.is_empty()).collect();
    words.windows(2).find(|pair| pair[1] == word)?[0].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status;

    fn output(stdout: &str) -> Output {
        Output {
            program: String::new(),
            status: Status::Code(0),
            stdout: stdout.to_owned(),
            stderr: String::new(),
        }
    }

    #[test]
    fn the_last_line_of_libtest_counts() {
        let check = |text: &str, expected: Option<(usize, usize)>| {
            let run = read(&output(text));
            assert_eq!(run.map(|run| (run.passed, run.failed)), expected, "{text}");
        };
        check(
            "running 2 tests\ntest result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 7 filtered out; finished in 0.01s\n",
            Some((2, 0)),
        );
        check(
            "test result: FAILED. 1 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out\n",
            Some((1, 3)),
        );
        check("test a ... and then nothing\n", None);
        check("", None);
    }

    #[test]
    fn a_skip_in_the_machine_is_seen() {
        let text = "test a::b ... SKIPPED a::b: no disks: none\nok\n\ntest result: ok. 1 passed; 0 failed;\n";
        let expected = [("a::b".to_owned(), "no disks: none".to_owned())];
        assert_eq!(read(&output(text)).unwrap().skipped, expected);
    }

    #[test]
    fn settings_are_handed_on_and_places_are_not() {
        let check = |name, expected| assert_eq!(is_handed_on(name), expected, "{name}");
        check("LIFEBOAT_SEED", true);
        check("RUST_LOG", true);
        check("LIFEBOAT_SKIP_FILE", false);
        check("LD_LIBRARY_PATH", false);
    }
}
