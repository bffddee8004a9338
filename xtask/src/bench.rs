//! `cargo xtask bench NAME`: runs a benchmark program, prints its table and keeps its figures.
//!
//! The programs live in `crates/bench`, are built in release mode and write their findings themselves; here they are
//! given what they need: the binaries of both sides, and where to write.

use std::collections::BTreeMap;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::embedded::{self, Profile};
use crate::{packages, shell, tools};

/// Options of `cargo xtask bench`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Which benchmark; a wrong name lists those that are there.
    name: String,
    /// Passed on to the benchmark.
    #[arg(last = true)]
    rest: Vec<String>,
}

/// A benchmark that can be asked for.
struct Benchmark {
    name: &'static str,
    about: &'static str,
    /// Needs the real control plane.
    real: bool,
}

const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        name: "apiserver",
        about: "the embedded API server against kube-apiserver with etcd",
        real: true,
    },
    Benchmark { name: "backup", about: "backup and restore against restic", real: true },
    Benchmark { name: "binder", about: "the binder against kube-controller-manager's", real: true },
    Benchmark {
        name: "failover",
        about: "failover of one application and of a thousand, source dead",
        real: false,
    },
    Benchmark { name: "sync", about: "the stream to a peer against rsync through stunnel", real: false },
];

/// What a benchmark found.
#[derive(Debug, Deserialize)]
struct Findings {
    ratios: BTreeMap<String, f64>,
    figures: BTreeMap<String, f64>,
}

/// `cargo xtask bench`.
pub(crate) fn run(args: &Args) -> Result<()> {
    let Some(benchmark) = BENCHMARKS.iter().find(|benchmark| benchmark.name == args.name) else {
        let known: Vec<String> =
            BENCHMARKS.iter().map(|benchmark| format!("{}: {}", benchmark.name, benchmark.about)).collect();
        bail!("no benchmark {}; there are:\n  {}", args.name, known.join("\n  "));
    };
    if benchmark.real {
        tools::ready_go()?;
        tools::build_all()?;
    }
    if benchmark.name == "sync" {
        for (program, package) in [("rsync", "rsync"), ("stunnel4", "stunnel4")] {
            if Command::new(program).arg("-version").output().is_err() {
                packages::install(package, |_| true)?;
            }
        }
    }
    let lifeboat = embedded::build(Profile::Release)?;
    let output = shell::target().join("bench").join(format!("{}.json", benchmark.name));
    let folder = output.parent().expect("invariant: the path has a folder");
    std::fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    let mut command =
        shell::cargo(&["run", "--release", "-p", "lifeboat-bench", "--bin", benchmark.name, "--"]);
    command.arg("--lifeboat").arg(lifeboat).arg("--output").arg(&output).args(&args.rest);
    shell::run(&mut command)?;
    let text = std::fs::read_to_string(&output).with_context(|| format!("reading {}", output.display()))?;
    let findings: Findings =
        serde_json::from_str(&text).with_context(|| format!("reading {}", output.display()))?;
    println!("\n{:<52} {:>12}", "ratio", "");
    findings.ratios.iter().for_each(|(name, value)| println!("{name:<52} {value:>12.3}"));
    println!("\n{:<52} {:>12}", "figure", "");
    findings.figures.iter().for_each(|(name, value)| println!("{name:<52} {value:>12.1}"));
    println!("\nwritten to {}", output.display());
    Ok(())
}
