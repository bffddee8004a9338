//! Tasks of the repository: what people run and what CI runs are the same commands.
//!
//! `cargo xtask test` does everything: it gets what is missing, checks form, rules and dependencies, runs every suite
//! and closes with one line of counts. The other tasks are its parts, and the benchmarks.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool talks to its user")]

mod bench;
mod clientgo;
mod conformance;
mod dependencies;
mod embedded;
mod ginkgo;
mod packages;
mod programs;
mod shell;
mod suite;
mod tally;
mod tidy;
mod tools;
mod transcript;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::tally::Verdict;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Builds, tests and measures Lifeboat")]
struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Run everything: format, lints, tidy, dependencies, every suite; closes with counts.
    Test,
    /// Run a benchmark, print its ratios and write target/bench/NAME.json.
    Bench(bench::Args),
    /// Run Kubernetes' own conformance tests and print the table of specs.
    Conformance(conformance::Args),
    /// Do what Go controllers do, with client-go.
    ClientGo(clientgo::Args),
    /// Play the transcripts of kubectl.
    Kubectl(transcript::Args),
    /// Build the Go programs that tests compare with, into the cache.
    Tools,
    /// Check the rules that clippy cannot see.
    Tidy,
}

fn main() -> ExitCode {
    let outcome = match Args::parse().task {
        // It has said everything itself, and its last word is the line of counts.
        Task::Test => match suite::run() {
            Verdict::Good => return ExitCode::SUCCESS,
            Verdict::Bad => return ExitCode::FAILURE,
        },
        Task::Bench(args) => bench::run(&args),
        Task::Conformance(args) => conformance::run(&args),
        Task::ClientGo(args) => clientgo::run(args.on),
        Task::Kubectl(args) => transcript::run(&args),
        Task::Tools => tools::run(),
        Task::Tidy => tidy::run(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
