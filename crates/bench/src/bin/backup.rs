//! Backup and restore against restic: a first backup of large files and of many small ones, another after a small change, and a
//! restore. Each in a process of its own, one after the other, on the same files and the same file system.
//!
//! What counts is the work: bytes and files per second of processor time, and the highest memory.
#![expect(clippy::print_stdout, reason = "it tells what it is doing")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Parser;
use lifeboat_bench::backup::{Cost, Side, change, make_large, make_small, measure, restic};
use lifeboat_bench::findings::Findings;
use lifeboat_mover::{Backup, Content, Limits, Mover, Progress, Repository, Restore, Rustic, Secret, Store};

/// The same allocator as in the `lifeboat` binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Parser)]
struct Args {
    /// The lifeboat binary; not used, since this program is the mover itself.
    #[arg(long)]
    lifeboat: Option<PathBuf>,
    /// Where the findings go, as JSON; files and repositories go next to it.
    #[arg(long, required_unless_present = "work")]
    output: Option<PathBuf>,
    /// Mebibytes of large files.
    #[arg(long, default_value_t = 1024)]
    mebibytes: u64,
    /// How many small files.
    #[arg(long, default_value_t = 50_000)]
    small: u64,
    /// Runs of each program; the cheapest counts.
    #[arg(long, default_value_t = 1)]
    runs: u32,
    /// Leave restic out: only our own figures.
    #[arg(long)]
    only_ours: bool,
    /// What this process is to do for the one that measures: backup or restore.
    #[arg(long, hide = true, requires_all = ["repository", "path"])]
    work: Option<String>,
    #[arg(long, hide = true)]
    repository: Option<PathBuf>,
    #[arg(long, hide = true)]
    path: Option<PathBuf>,
}

fn main() -> Result<()> {
    let args = Args::parse();
    if let (Some(work), Some(repository), Some(path)) = (&args.work, &args.repository, &args.path) {
        return ours(work, repository, path);
    }
    let output = args.output.as_deref().context("--output is missing")?;
    let folder = output.parent().context("the output has no folder")?.join("backup-data");
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("removing {}", folder.display()))?;
    }
    let findings = compare(&args, &folder);
    // Gigabytes of files are in nobody's interest afterwards.
    let _ = fs::remove_dir_all(&folder);
    findings?.write(output)
}

/// What one side needed for each part.
type Costs = BTreeMap<&'static str, Cost>;

fn compare(args: &Args, folder: &Path) -> Result<Findings> {
    let (large, small) = (folder.join("large"), folder.join("small"));
    println!("making {} MiB of large files and {} small ones", args.mebibytes, args.small);
    make_large(&large, args.mebibytes)?;
    let small_bytes = make_small(&small, args.small)?;
    let mut sides = vec![("lifeboat", Side::Ours)];
    if !args.only_ours {
        sides.push(("restic", Side::Restic(restic()?)));
    }
    let mut all: BTreeMap<&str, Costs> = BTreeMap::new();
    for run in 0..args.runs {
        for (name, side) in &sides {
            println!("{name}, run {}", run + 1);
            let place = folder.join(name);
            let first = |costs: &mut Costs, what, cost: Cost| {
                println!(
                    "  {what:<20} {:>7.2} s of processor time, {:>6.1} MiB",
                    cost.seconds, cost.mebibytes
                );
                let entry = costs.entry(what).or_insert(cost);
                entry.seconds = entry.seconds.min(cost.seconds);
                entry.mebibytes = entry.mebibytes.min(cost.mebibytes);
            };
            let costs = all.entry(name).or_default();
            let (one, many, target) = (place.join("one"), place.join("many"), place.join("target"));
            side.prepare(&one)?;
            side.prepare(&many)?;
            first(costs, "first_backup", measure(side.backup(&one, &large)?)?);
            first(costs, "small_files", measure(side.backup(&many, &small)?)?);
            change(&large, &small, u64::from(run) * 2 + u64::from(*name == "restic"))?;
            let again = measure(side.backup(&one, &large)?)?;
            first(costs, "incremental", again.and(measure(side.backup(&many, &small)?)?));
            fs::create_dir_all(&target)?;
            first(costs, "restore", measure(side.restore(&one, &target)?)?);
            fs::remove_dir_all(&place)?;
        }
    }
    let mut findings = Findings::default();
    let mebibytes = args.mebibytes as f64;
    let files = args.small as f64;
    for (name, costs) in &all {
        for (what, amount, unit) in [
            ("first_backup", mebibytes, "mib_per_cpu_second"),
            ("small_files", files, "files_per_cpu_second"),
            ("incremental", mebibytes + small_bytes as f64 / f64::from(1 << 20), "mib_per_cpu_second"),
            ("restore", mebibytes, "mib_per_cpu_second"),
        ] {
            findings.figure(&format!("{name}_{what}_{unit}"), amount / costs[what].seconds);
            findings.figure(&format!("{name}_{what}_memory_mib"), costs[what].mebibytes);
        }
    }
    if let (Some(ours), Some(theirs)) = (all.get("lifeboat"), all.get("restic")) {
        for what in ["first_backup", "small_files", "incremental", "restore"] {
            findings.ratio(&format!("{what}_vs_restic"), theirs[what].seconds, ours[what].seconds);
        }
        let highest = |costs: &Costs| costs.values().map(|cost| cost.mebibytes).fold(0.0, f64::max);
        findings.ratio("memory_vs_restic", highest(ours), highest(theirs));
    }
    Ok(findings)
}

/// Does one piece of work with our mover, in this process.
fn ours(work: &str, repository: &Path, path: &Path) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let repository =
        Repository { store: Store::Local(repository.to_owned()), password: Secret::new("benchmark") };
    let progress = tokio::sync::watch::Sender::new(Progress::default());
    let mover = Rustic::new();
    runtime.block_on(async {
        match work {
            "backup" => {
                let backup = Backup {
                    content: Content::Files(path.to_owned()),
                    path: "/bench/data".into(),
                    host: "bench".into(),
                    tags: BTreeMap::new(),
                    limits: Limits::default(),
                };
                mover.backup(&repository, backup, progress).await?;
            }
            "restore" => {
                let snapshots = mover.find(&repository, &BTreeMap::new()).await?;
                let snapshot = snapshots.last().context("the repository has no snapshot")?.id.clone();
                let content = Content::Files(path.to_owned());
                let restore = Restore { snapshot, content, special_files: false, limits: Limits::default() };
                mover.restore(&repository, restore, progress).await?;
            }
            other => bail!("no work is called {other}"),
        }
        Ok(())
    })
}
