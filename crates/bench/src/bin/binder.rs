//! The binder against kube-controller-manager's: binds per second, processor time and memory, each on a fresh kube-apiserver
//! with etcd, and beside them a client that only sends the four writes.
#![expect(clippy::print_stdout, reason = "it tells what it is doing")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use clap::Parser;
use lifeboat_bench::binds::{Bound, Pairs, Watch, bare_writes, requests};
use lifeboat_bench::client::Access;
use lifeboat_bench::findings::Findings;
use lifeboat_bench::server::{Server, peak_memory, processor_time};
use lifeboat_binder::decide::matching;
use lifeboat_binder::lean::{PersistentVolume, PersistentVolumeClaim};
use lifeboat_engine::Cache;
use lifeboat_reference::{Binaries, ControlPlane, Durability, Process};
use serde_json::json;

#[derive(Parser)]
struct Args {
    /// The lifeboat binary, built for release.
    #[arg(long)]
    lifeboat: PathBuf,
    /// Where the findings go, as JSON; data of the servers goes next to it.
    #[arg(long)]
    output: PathBuf,
    /// The smaller number of pairs.
    #[arg(long, default_value_t = 2000)]
    few: usize,
    /// The larger number of pairs.
    #[arg(long, default_value_t = 5000)]
    many: usize,
    /// Leave out kube-controller-manager with its default limits, which takes minutes.
    #[arg(long)]
    quick: bool,
    /// Only look at our own binder, for work on it.
    #[arg(long)]
    ours: bool,
    /// Only look at the embedded cluster, for work on it.
    #[arg(long)]
    embedded: bool,
}

/// Degrees of concurrency of the bare client.
const AT_ONCE: [usize; TRIES] = [16, 32, 64];
const TRIES: usize = 3;

/// Who binds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    Ours,
    KcmRaised,
    KcmDefault,
}

/// What one of them achieved.
struct Achieved {
    bound: Bound,
    processor: Duration,
    memory: u64,
    /// Requests for each bind, where the server counts them.
    asked: Option<f64>,
}

impl Who {
    fn name(self) -> &'static str {
        match self {
            Self::Ours => "lifeboat",
            Self::KcmRaised => "kcm_raised",
            Self::KcmDefault => "kcm_default",
        }
    }

    fn start(self, args: &Args, kubeconfig: &Path, folder: &Path) -> Result<Process> {
        let kubeconfig = kubeconfig.display();
        let (program, arguments) = match self {
            Self::Ours => {
                let arguments =
                    vec!["binder".to_owned(), "--alone".to_owned(), format!("--kubeconfig={kubeconfig}")];
                (args.lifeboat.clone(), arguments)
            }
            Self::KcmRaised | Self::KcmDefault => {
                let mut arguments = vec![
                    format!("--kubeconfig={kubeconfig}"),
                    "--controllers=persistentvolume-binder-controller".to_owned(),
                    "--leader-elect=false".to_owned(),
                    "--secure-port=0".to_owned(),
                ];
                if self == Self::KcmRaised {
                    arguments
                        .extend(["--kube-api-qps=100000".to_owned(), "--kube-api-burst=100000".to_owned()]);
                }
                (Binaries::in_cache().kube_controller_manager()?, arguments)
            }
        };
        Process::start(&program, &arguments, &folder.join("binder.log")).context("starting the binder")
    }
}

fn main() -> Result<()> {
    let args = Args::parse();
    let mut findings = Findings::default();
    matching_times(&mut findings);
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?
        .block_on(compare(&args, &mut findings))?;
    findings.write(&args.output)
}

async fn compare(args: &Args, findings: &mut Findings) -> Result<()> {
    let few = Pairs { count: args.few, sizes: 1 };
    let loads = [
        ("few", few),
        ("many", Pairs { count: args.many, sizes: 1 }),
        ("many_50_sizes", Pairs { count: args.many, sizes: 50 }),
    ];
    if args.embedded {
        return embedded(args, findings).await;
    }
    if args.ours {
        for (name, pairs) in loads {
            note(findings, &format!("{name}_lifeboat"), &on_real(args, Who::Ours, pairs).await?);
        }
        return embedded(args, findings).await;
    }
    let mut worst = [f64::INFINITY, 0.0, 0.0, f64::INFINITY];
    let mut few_rate = 0.0;
    for (name, pairs) in loads {
        let theirs = on_real(args, Who::KcmRaised, pairs).await?;
        let ours = on_real(args, Who::Ours, pairs).await?;
        let bare = bare_rate(args, pairs).await?;
        // The bare client has three tries, one for each degree of concurrency, and its best counts; so has the binder.
        let mut best = ours.bound.rate();
        for _ in 1..TRIES {
            best = best.max(on_real(args, Who::Ours, pairs).await?.bound.rate());
        }
        note(findings, &format!("{name}_kcm_raised"), &theirs);
        findings
            .figure(&format!("{name}_kcm_raised_left_unbound"), (pairs.count - theirs.bound.count) as f64);
        findings.figure(&format!("{name}_lifeboat_left_unbound"), (pairs.count - ours.bound.count) as f64);
        note(findings, &format!("{name}_lifeboat"), &ours);
        findings.figure(&format!("{name}_bare_writes_binds_per_second"), bare);
        let ratios = [
            ours.bound.rate() / theirs.bound.rate(),
            ours.processor.as_secs_f64() / theirs.processor.as_secs_f64(),
            ours.memory as f64 / theirs.memory as f64,
            best / bare,
        ];
        let names = ["binds_vs_kcm_raised", "cpu_vs_kcm_raised", "memory_vs_kcm", "binds_vs_bare_writes"];
        for ((worst, ratio), what) in worst.iter_mut().zip(ratios).zip(names) {
            findings.ratio(&format!("{name}_{what}"), ratio, 1.0);
            // What is claimed is the worst of all loads.
            *worst = if what.starts_with("binds") { worst.min(ratio) } else { worst.max(ratio) };
        }
        if pairs == few {
            few_rate = ours.bound.rate();
        }
    }
    for (what, worst) in ["binds_vs_kcm_raised", "cpu_vs_kcm_raised", "memory_vs_kcm", "binds_vs_bare_writes"]
        .iter()
        .zip(worst)
    {
        findings.ratio(what, worst, 1.0);
    }
    if !args.quick {
        let theirs = on_real(args, Who::KcmDefault, few).await?;
        note(findings, "few_kcm_default", &theirs);
        findings.ratio("binds_vs_kcm_default", few_rate, theirs.bound.rate());
    }
    embedded(args, findings).await
}

async fn embedded(args: &Args, findings: &mut Findings) -> Result<()> {
    let pairs = Pairs { count: args.many, sizes: 1 };
    note(findings, "embedded_lifeboat", &inside_embedded(args, pairs).await?);
    note(findings, "embedded_lifeboat_apart", &on_embedded(args, pairs).await?);
    Ok(())
}

fn note(findings: &mut Findings, prefix: &str, achieved: &Achieved) {
    findings.figure(&format!("{prefix}_binds_per_second"), achieved.bound.rate());
    findings.figure(&format!("{prefix}_processor_s"), achieved.processor.as_secs_f64());
    findings.figure(&format!("{prefix}_peak_memory_mb"), achieved.memory as f64 / 1e6);
    if let Some(asked) = achieved.asked {
        findings.figure(&format!("{prefix}_requests_per_bind"), asked);
    }
}

fn folder(args: &Args) -> &Path {
    args.output.parent().unwrap_or(Path::new("."))
}

async fn plane(args: &Args) -> Result<ControlPlane> {
    let parent = folder(args).to_owned();
    let start = move || ControlPlane::builder().durability(Durability::Synced).data_below(&parent).start();
    Ok(tokio::task::spawn_blocking(start).await??)
}

async fn on_real(args: &Args, who: Who, pairs: Pairs) -> Result<Achieved> {
    let plane = plane(args).await?;
    let access = Access::read(plane.kubeconfig())?;
    bind_all(args, who, pairs, &access, plane.kubeconfig()).await
}

async fn on_embedded(args: &Args, pairs: Pairs) -> Result<Achieved> {
    let server = Server::embedded(&args.lifeboat, folder(args)).await?;
    bind_all(args, Who::Ours, pairs, &server.access, &server.kubeconfig()).await
}

/// The embedded cluster with its own binder, as `lifeboat up` runs it: one process, no network between the two. Processor time
/// and memory are those of both.
async fn inside_embedded(args: &Args, pairs: Pairs) -> Result<Achieved> {
    let server = Server::embedded(&args.lifeboat, folder(args)).await?;
    pairs.make(&server.access).await?;
    let server = server.with_its_binder(&args.lifeboat).await?;
    let (mut watch, already) = Watch::join(&server.access).await?;
    let bound = watch.wait(pairs.count - already).await.context("the embedded cluster's own binder")?;
    let (_, pid) = server.pids()[0];
    let (processor, memory) = (processor_time(&pid.to_string())?, peak_memory(pid)?);
    println!(
        "{:<12} {pairs:?}: {:>8.0} binds/s, {:>6.2} s of processor, {:>6.1} MB, {already} bound before the first look",
        "lifeboat up",
        bound.rate(),
        processor.as_secs_f64(),
        memory as f64 / 1e6,
    );
    Ok(Achieved { bound, processor, memory, asked: None })
}

async fn bind_all(
    args: &Args,
    who: Who,
    pairs: Pairs,
    access: &Access,
    kubeconfig: &Path,
) -> Result<Achieved> {
    pairs.make(access).await?;
    let asked = requests(access).await?;
    let mut watch = Watch::begin(access).await?;
    let process = who.start(args, kubeconfig, folder(args))?;
    let bound = watch
        .wait(pairs.count)
        .await
        .with_context(|| format!("{} said:\n{}", who.name(), process.log_tail()))?;
    let (processor, memory) = (processor_time(&process.pid().to_string())?, peak_memory(process.pid())?);
    let asked =
        requests(access).await?.zip(asked).map(|(after, before)| (after - before) / bound.count as f64);
    println!(
        "{:<12} {pairs:?}: {:>8.0} binds/s, {:>6.2} s of processor, {:>6.1} MB, {:.2} requests a bind",
        who.name(),
        bound.rate(),
        processor.as_secs_f64(),
        memory as f64 / 1e6,
        asked.unwrap_or(f64::NAN),
    );
    Ok(Achieved { bound, processor, memory, asked })
}

/// The best of three degrees of concurrency, each with a third of the pairs.
async fn bare_rate(args: &Args, pairs: Pairs) -> Result<f64> {
    let plane = plane(args).await?;
    let access = Access::read(plane.kubeconfig())?;
    pairs.make(&access).await?;
    let third = pairs.count / TRIES;
    let mut best: f64 = 0.0;
    for (part, at_once) in AT_ONCE.into_iter().enumerate() {
        let time = bare_writes(&access, part * third..(part + 1) * third, at_once).await?;
        let rate = third as f64 / time.as_secs_f64();
        println!("bare writes  {pairs:?}, {at_once} at once: {rate:>8.0} binds/s");
        best = best.max(rate);
    }
    Ok(best)
}

/// How long it takes to find the best of so many free volumes.
fn matching_times(findings: &mut Findings) {
    for count in [100_usize, 10_000, 100_000] {
        let cache = Arc::new(Cache::<PersistentVolume>::default());
        let free = cache.index(matching::place);
        for number in 0..count {
            let volume = json!({
                "metadata": {"name": format!("v{number}"), "uid": format!("u{number}"), "resourceVersion": format!("{}", number + 1), "creationTimestamp": "2026-01-01T00:00:00Z"},
                "spec": {"capacity": {"storage": format!("{}Mi", 1 + number * 7919 % count)}, "accessModes": ["ReadWriteOnce"], "storageClassName": "static"},
                "status": {"phase": "Available"},
            });
            cache.saw(serde_json::from_value(volume).expect("invariant: it is a volume"));
        }
        let claims: Vec<PersistentVolumeClaim> = (0..1000).map(|number| {
            let request = format!("{}Mi", 1 + number * 31 % count);
            serde_json::from_value(json!({
                "metadata": {"name": "c", "namespace": "default"},
                "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "static", "resources": {"requests": {"storage": request}}},
            })).expect("invariant: it is a claim")
        }).collect();
        let begin = Instant::now();
        let found = claims.iter().filter(|claim| matching::best(&free, claim, |_| true).is_some()).count();
        assert_eq!(found, claims.len(), "every claim has a volume that fits");
        let each = begin.elapsed().as_secs_f64() * 1e6 / claims.len() as f64;
        println!("matching     {count:>7} free volumes: {each:.2} µs");
        findings.figure(&format!("match_among_{count}_us"), each);
    }
}
