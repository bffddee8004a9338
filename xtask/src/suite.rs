//! `cargo xtask test`: everything that must hold before a change goes in, and one line of counts at the end.

use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::conformance::{self, Server};
use crate::embedded;
use crate::tally::{Strictness, Tally, Verdict};
use crate::{clientgo, dependencies, programs, shell, tidy, tools, transcript};

/// Runs everything.
pub(crate) fn run() -> Verdict {
    let mut tally = Tally::default();
    timed("Go programs", || build_tools(&mut tally));
    timed("parts of the test machine", || fetch_machine(&mut tally));
    timed("format", || tally.step("format", shell::run(&mut shell::cargo(&["fmt", "--all", "--check"]))));
    timed("tidy", || tally.step("tidy", tidy::check()));
    timed("dependencies", || tally.step("dependencies", dependencies::check()));
    let clippy = &["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"];
    timed("clippy", || tally.step("clippy", shell::run(&mut shell::cargo(clippy))));
    timed("tests", || {
        if let Err(error) = tests(&mut tally) {
            tally.fail(format!("tests: {error:#}"));
        }
    });
    timed("client-go", || clients(&mut tally));
    timed("kubectl", || transcripts(&mut tally));
    timed("conformance", || conformance_specs(&mut tally));
    let strictness = match std::env::var("CI").as_deref() {
        Ok("true" | "1") => Strictness::SkipsFail,
        _ => Strictness::SkipsAreTold,
    };
    tally.close(strictness)
}

fn timed(name: &str, part: impl FnOnce()) {
    eprintln!("== {name}");
    let begin = Instant::now();
    part();
    eprintln!("== {name}: {} s", begin.elapsed().as_secs());
}

/// Where the programs cannot be had, every test that needs them skips itself; this is told once more, with the cause.
fn build_tools(tally: &mut Tally) {
    match tools::ready_go() {
        Err(reason) => tally.skip("building the Go programs", &format!("{reason:#}")),
        Ok(()) => tally.step("building the Go programs", tools::build_all()),
    }
}

/// The same for the machine with real LVM2.
fn fetch_machine(tally: &mut Tally) {
    match tools::fetch_machine() {
        Err(reason) => tally.skip("fetching the parts of the test machine", &format!("{reason:#}")),
        Ok(()) => tally.pass(),
    }
}

/// Every suite of libtest; doc tests included.
fn tests(tally: &mut Tally) -> Result<()> {
    let folder = tempfile::tempdir().context("making a folder for the list of skips")?;
    let skips = folder.path().join("skips");
    let built = programs::build()?;
    let variable = "LIFEBOAT_SKIP_FILE";
    programs::run(built, &shell::target().join("test-logs"), (variable, &skips), |ended| {
        println!("     Running {}", ended.name);
        let before = tally.failed();
        for line in ended.output.lines() {
            println!("{line}");
            tally.libtest_line(line);
        }
        println!("     {} took {} s", ended.name, ended.took.as_secs());
        if !ended.status.success() && tally.failed() == before {
            tally.fail(format!("{} died without a failed test: {}", ended.name, ended.status));
        }
    })?;
    let before = tally.failed();
    let mut docs = shell::cargo(&["test", "--workspace", "--doc", "--no-fail-fast", "--locked"]);
    docs.env(variable, &skips);
    let status = shell::stream(&mut docs, |line| tally.libtest_line(line))?;
    tally.read_skips(&skips)?;
    if !status.success() && tally.failed() == before {
        bail!("the tests in the documentation failed without a failed test: something does not build");
    }
    Ok(())
}

/// The client-go program against both servers.
fn clients(tally: &mut Tally) {
    for on in [Server::Real, Server::Embedded] {
        let name = format!("client-go on {on:?}");
        match lacking(on, clientgo::lacks) {
            Some(reason) => tally.skip(&name, &reason),
            None => tally.step(&name, clientgo::run(on)),
        }
    }
}

/// The transcripts of kubectl on both servers.
fn transcripts(tally: &mut Tally) {
    for on in [Server::Real, Server::Embedded] {
        let name = format!("kubectl on {on:?}");
        if let Some(reason) = lacking(on, transcript::lacks) {
            tally.skip(&name, &reason);
            continue;
        }
        match transcript::play_all(on) {
            Err(error) => tally.fail(format!("{name}: {error:#}")),
            Ok(outcomes) => {
                for (command, outcome) in outcomes {
                    match outcome {
                        Ok(()) => tally.pass(),
                        Err(why) => tally.fail(format!("{name}: {command}\n{why}")),
                    }
                }
            }
        }
    }
}

fn conformance_specs(tally: &mut Tally) {
    if let Some(reason) = lacking(Server::Embedded, conformance::lacks) {
        return tally.skip("conformance", &reason);
    }
    match conformance::judge(Server::Embedded) {
        Err(error) => tally.fail(format!("conformance: {error:#}")),
        Ok(specs) => {
            for (name, outcome) in specs {
                match outcome {
                    Ok(()) => tally.pass(),
                    Err(why) => tally.fail(format!("{name}: {why}")),
                }
            }
        }
    }
}

/// Why a check on this server cannot run here.
fn lacking(on: Server, programs: impl FnOnce() -> Option<String>) -> Option<String> {
    programs().or_else(|| match on {
        Server::Real => None,
        Server::Embedded => embedded::lacks(),
    })
}
