//! Lets a test run itself in a machine: the test binary is copied in, and runs the one test there.

use std::any::type_name;
use std::sync::Mutex;
use std::time::Duration;

use lifeboat_reference::skip;

use crate::builder::Builder;
use crate::libtest::IN_MACHINE;
use crate::link::lock;
use crate::{Error, Machine, TestRun};

/// Far more than a test needs, for a machine that shares its cores with a build.
const DEADLINE: Duration = Duration::from_secs(1800);
const CLEANING: Duration = Duration::from_secs(120);

/// A machine that the tests of one binary use one after the other: it boots once, and each test finds it like new, with
/// nothing mounted, nothing mapped and empty disks. After a test that failed the next one gets another machine.
#[derive(Debug)]
pub struct Shared {
    describe: fn() -> Builder,
    deadline: Duration,
    machine: Mutex<Option<Machine>>,
}

/// The machine of [`crate::in_machine!`] without arguments: three empty disks of 4 GiB.
pub static STANDARD: Shared =
    Shared::new(|| (0..3).fold(Machine::builder(), |builder, _| builder.disk(4 << 30)));

impl Shared {
    /// A machine as described; the test binary itself need not be named. It boots when the first test needs it.
    pub const fn new(describe: fn() -> Builder) -> Self {
        Self { describe, deadline: DEADLINE, machine: Mutex::new(None) }
    }

    /// The time that one test may take; half an hour unless said.
    #[must_use]
    pub const fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Runs `test` in the machine and says true, or says false where this is the machine; use [`crate::in_machine!`].
    ///
    /// # Panics
    /// When the test fails in the machine, with all that it wrote; or when the machine does not work.
    #[expect(
        clippy::print_stdout,
        reason = "libtest captures it, and shows it with --nocapture or on failure"
    )]
    pub fn runs_elsewhere(&self, test: &str) -> bool {
        if step().is_some() {
            return false;
        }
        match self.run(test) {
            Ok(run) => {
                println!("{}", run.output);
                for (test, reason) in run.skipped {
                    skip(&test, reason);
                }
            }
            Err(Error::Missing(missing)) => skip(test, missing),
            Err(error) => panic!("{test} in the machine: {error:?}"),
        }
        true
    }

    /// The process of its emulator, while there is one.
    pub fn emulator(&self) -> Option<u32> {
        lock(&self.machine).as_ref().and_then(Machine::emulator)
    }

    fn run(&self, test: &str) -> Result<TestRun, Error> {
        let mut place = lock(&self.machine);
        let machine = match place.take() {
            Some(machine) if clean(&machine) => machine,
            _ => {
                let mut machine = (self.describe)().this_test_binary().boot()?;
                machine.unlink();
                machine
            }
        };
        let run = machine.run_this_test(test, "here", self.deadline)?;
        *place = Some(machine);
        Ok(run)
    }
}

/// Makes the machine like new; whether that worked.
fn clean(machine: &Machine) -> bool {
    let devices = machine.devices();
    let mut argv = vec!["/bin/clean"];
    argv.extend(devices.iter().map(String::as_str));
    machine.run(&argv, CLEANING).is_ok_and(|output| output.success())
}

/// What this test is to do in the machine that it runs in; `None` on the host.
pub fn step() -> Option<String> {
    std::env::var(IN_MACHINE).ok()
}

/// The name of the test whose function has this one inside; use [`crate::test_name!`].
pub fn name_of<T>(_: T) -> &'static str {
    name(type_name::<T>())
}

/// `binary::module::test::here` as libtest calls it: `module::test`.
fn name(path: &'static str) -> &'static str {
    let path = path.strip_suffix("::here").unwrap_or(path);
    let path = path.split("::{{closure}}").next().unwrap_or(path);
    path.split_once("::").map_or(path, |(_, name)| name)
}

/// The name of the test that this stands in, as libtest calls it.
#[macro_export]
macro_rules! test_name {
    () => {{
        fn here() {}
        $crate::name_of(here)
    }};
}

/// First line of a test that is to run in a machine: on the host it runs the test there and returns; in the machine it does
/// nothing. With an argument it takes that [`Shared`] machine instead of [`STANDARD`].
#[macro_export]
macro_rules! in_machine {
    () => {
        $crate::in_machine!($crate::STANDARD)
    };
    ($shared:expr) => {
        if $shared.runs_elsewhere($crate::test_name!()) {
            return;
        }
    };
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use super::*;

    #[test]
    fn tests_know_their_names() {
        let check = |path, expected| assert_eq!(name(path), expected, "{path}");
        check("it::lvm::snapshots::here", "lvm::snapshots");
        check("it::top::here", "top");
        check("it::lvm::waits::{{closure}}::here", "lvm::waits");
        assert_eq!(crate::test_name!(), "here::tests::tests_know_their_names");
        let inside = std::pin::pin!(async { crate::test_name!() });
        let found = inside.poll(&mut Context::from_waker(Waker::noop()));
        assert_eq!(found, Poll::Ready("here::tests::tests_know_their_names"));
    }
}
