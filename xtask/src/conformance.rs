//! Kubernetes' own conformance tests, run against the embedded server or a real one.
//!
//! `tools/conformance/must-pass.txt` lists the specs that must pass: those that a bare kube-apiserver with etcd passes
//! without kubelets. `docs/conformance.md` says what is left out, and why.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use lifeboat_reference::{Binaries, ControlPlane, Process};

use crate::embedded::{Embedded, Profile};
use crate::ginkgo::{self, Outcome, Spec};
use crate::{shell, tools};

/// Specs that change things for the whole cluster run after the others, alone.
const SERIAL: &str = "[Serial]";

/// Test processes side by side: specs mostly wait, so more of them than there are cores.
const PROCESSES: usize = 4;

/// What controllers of a bare control plane do for every namespace; the embedded server does the same by itself.
const CONTROLLERS: [&str; 5] = [
    "namespace-controller",
    "serviceaccount-controller",
    "serviceaccount-token-controller",
    "garbage-collector-controller",
    "root-ca-certificate-publisher-controller",
];

/// A node that is ready, with room for nothing to run on it: the tests want to see one.
const NODE: &str = r#"{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1", "labels": {
    "kubernetes.io/hostname": "node-1", "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}}}"#;
const NODE_STATUS: &str = r#"{"status": {
    "capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"},
    "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"},
    "addresses": [{"type": "InternalIP", "address": "192.0.2.1"}, {"type": "Hostname", "address": "node-1"}],
    "conditions": [{"type": "Ready", "status": "True", "reason": "Declared", "message": "there is no kubelet"}]}}"#;

/// Options of `cargo xtask conformance`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Which server to test.
    #[arg(long, value_enum, default_value_t = Server::Embedded)]
    on: Server,
    /// Run the specs that match this regular expression (Go's syntax) instead of the list of those that must pass.
    #[arg(long)]
    focus: Option<String>,
    /// Leave out the specs that match this regular expression.
    #[arg(long, requires = "focus")]
    skip: Option<String>,
    /// Test the server of this kubeconfig; it needs a node that is ready.
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
    /// How many test processes run side by side.
    #[arg(long, default_value_t = PROCESSES)]
    processes: usize,
}

/// A server to test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Server {
    /// `lifeboat up`.
    Embedded,
    /// kube-apiserver and etcd.
    Real,
}

/// A running server of either kind.
pub(crate) enum Running {
    Embedded(Embedded),
    Real(Box<ControlPlane>),
}

/// `cargo xtask conformance`.
pub(crate) fn run(args: &Args) -> Result<()> {
    if Binaries::in_cache().e2e_test().is_err() {
        tools::ready_go()?;
    }
    tools::build_all()?;
    let begin = Instant::now();
    let wanted = match &args.focus {
        Some(_) => BTreeSet::new(),
        None => must_pass()?,
    };
    let running = match args.kubeconfig {
        Some(_) => None,
        None => Some(start(args.on)?),
    };
    let kubeconfig = match (&args.kubeconfig, &running) {
        (Some(path), _) => path.clone(),
        (None, Some(running)) => running.kubeconfig().to_owned(),
        (None, None) => bail!("invariant: there is a server or a kubeconfig"),
    };
    let specs = match &args.focus {
        Some(focus) => run_one(&kubeconfig, "focus", focus, args.skip.as_deref())?,
        None => run_all(&kubeconfig, &wanted, args.processes)?,
    };
    print_table(&specs, &wanted);
    println!("\n{} specs in {} s", specs.len(), begin.elapsed().as_secs());
    let bad = shortfalls(&specs, &wanted);
    if !bad.is_empty() {
        if let Some(running) = &running {
            eprintln!("the server's last words:\n{}", running.log_tail());
        }
        bail!("{} specs that must pass did not", bad.len());
    }
    Ok(())
}

/// Runs the specs that must pass on a server of this kind; gives each with its outcome.
pub(crate) fn judge(on: Server) -> Result<BTreeMap<String, Result<(), String>>> {
    let wanted = must_pass()?;
    let running = start(on)?;
    let specs = run_all(running.kubeconfig(), &wanted, PROCESSES)?;
    print_table(&specs, &wanted);
    let bad = shortfalls(&specs, &wanted);
    if !bad.is_empty() {
        eprintln!("the server's last words:\n{}", running.log_tail());
    }
    let good = wanted.iter().filter(|name| !bad.contains_key(*name)).map(|name| (name.clone(), Ok(())));
    Ok(good.chain(bad.iter().map(|(name, why)| (name.clone(), Err(why.clone())))).collect())
}

/// Why the tests cannot run here, if so.
pub(crate) fn lacks() -> Option<String> {
    let binaries = Binaries::in_cache();
    binaries.e2e_test().and_then(|_| binaries.kubectl()).err().map(|missing| missing.to_string())
}

/// Starts a server and declares a node that is ready.
pub(crate) fn start(on: Server) -> Result<Running> {
    let running = match on {
        Server::Embedded => Running::Embedded(Embedded::start(Profile::Debug)?),
        Server::Real => Running::Real(Box::new(ControlPlane::builder().controllers(CONTROLLERS).start()?)),
    };
    let kubeconfig = running.kubeconfig();
    kubectl(kubeconfig, &["create", "-f", "-"], NODE)?;
    kubectl(kubeconfig, &["patch", "node", "node-1", "--subresource=status", "-p", NODE_STATUS], "")?;
    // Kubernetes taints every new node until a controller, which does not run here, has seen it ready.
    kubectl(
        kubeconfig,
        &["patch", "node", "node-1", "--type=merge", "-p", r#"{"spec": {"taints": null}}"#],
        "",
    )?;
    Ok(running)
}

impl Running {
    pub(crate) fn kubeconfig(&self) -> &Path {
        match self {
            Self::Embedded(server) => server.kubeconfig(),
            Self::Real(server) => server.kubeconfig(),
        }
    }

    pub(crate) fn log_tail(&self) -> String {
        match self {
            Self::Embedded(server) => server.log_tail(),
            Self::Real(server) => format!("see {}", server.folder().display()),
        }
    }
}

fn kubectl(kubeconfig: &Path, args: &[&str], input: &str) -> Result<()> {
    let mut command = Command::new(Binaries::in_cache().kubectl()?);
    command.arg("--kubeconfig").arg(kubeconfig).args(args).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = command.spawn().context("starting kubectl")?;
    let mut stdin = child.stdin.take().expect("invariant: standard input is piped");
    // kubectl may end without reading it; then its status tells.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    if !child.wait()?.success() {
        bail!("kubectl {} failed", args.join(" "));
    }
    Ok(())
}

/// The specs that must pass.
fn must_pass() -> Result<BTreeSet<String>> {
    let path = shell::root().join("tools/conformance/must-pass.txt");
    let text = std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    Ok(lines.map(str::to_owned).collect())
}

/// Runs these specs, spread over processes; serial ones last, alone.
fn run_all(kubeconfig: &Path, wanted: &BTreeSet<String>, processes: usize) -> Result<BTreeMap<String, Spec>> {
    let (serial, free): (Vec<&str>, Vec<&str>) =
        wanted.iter().map(String::as_str).partition(|n| n.contains(SERIAL));
    let mut shards: Vec<Vec<&str>> = vec![Vec::new(); processes.max(1)];
    // Neighbours in the list are of one kind and cost about the same, so they are dealt out one by one.
    for (number, name) in free.into_iter().enumerate() {
        let shard = number % processes.max(1);
        shards[shard].push(name);
    }
    let outcomes: Vec<Result<BTreeMap<String, Spec>>> = thread::scope(|scope| {
        let running: Vec<_> = shards
            .iter()
            .enumerate()
            .filter(|(_, shard)| !shard.is_empty())
            .map(|(number, shard)| {
                let focus = ginkgo::focus(shard.iter().copied());
                scope.spawn(move || run_one(kubeconfig, &format!("part-{number}"), &focus, None))
            })
            .collect();
        running.into_iter().map(|thread| thread.join().expect("invariant: run_one does not panic")).collect()
    });
    let mut specs = BTreeMap::new();
    for outcome in outcomes {
        specs.extend(outcome?);
    }
    if !serial.is_empty() {
        specs.extend(run_one(kubeconfig, "serial", &ginkgo::focus(serial), None)?);
    }
    Ok(specs)
}

/// One run of the test program; its log and report stay in the target folder.
fn run_one(kubeconfig: &Path, name: &str, focus: &str, skip: Option<&str>) -> Result<BTreeMap<String, Spec>> {
    let folder = shell::target().join("conformance");
    std::fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    let report = folder.join(format!("{name}.json"));
    let log = folder.join(format!("{name}.log"));
    // One of an earlier run must not be taken for this one's.
    if report.exists() {
        std::fs::remove_file(&report).with_context(|| format!("removing {}", report.display()))?;
    }
    let binaries = Binaries::in_cache();
    let mut args = [
        "--provider=skeleton",
        "--allowed-not-ready-nodes=-1",
        "--ginkgo.no-color",
        "--ginkgo.silence-skips",
        "--ginkgo.timeout=40m",
    ]
    .map(str::to_owned)
    .to_vec();
    args.push(format!("--kubeconfig={}", kubeconfig.display()));
    args.push(format!("--kubectl-path={}", binaries.kubectl()?.display()));
    args.push(format!("--ginkgo.focus={focus}"));
    args.push(format!("--ginkgo.json-report={}", report.display()));
    args.extend(skip.map(|skip| format!("--ginkgo.skip={skip}")));
    let mut tests = Process::start(&binaries.e2e_test()?, &args, &log).context("starting e2e.test")?;
    // Its status says that some spec failed, which the report says better.
    tests.wait().context("waiting for e2e.test")?;
    ginkgo::read(&report).with_context(|| {
        format!("the tests left no report; the end of {}:\n{}", log.display(), tests.log_tail())
    })
}

/// Specs that must pass and did not, with the reason.
fn shortfalls(specs: &BTreeMap<String, Spec>, wanted: &BTreeSet<String>) -> BTreeMap<String, String> {
    let mut bad = BTreeMap::new();
    for name in wanted {
        let why = match specs.get(name).map(|spec| &spec.outcome) {
            Some(Outcome::Passed) => continue,
            Some(Outcome::Failed(why)) => why.clone(),
            Some(Outcome::Skipped(why)) => format!("skipped itself: {why}"),
            None => "it did not run".to_owned(),
        };
        bad.insert(name.clone(), why);
    }
    for (name, spec) in
        specs.iter().filter(|(name, _)| name.starts_with("[Synchronized") || name.starts_with("[Before"))
    {
        if let Outcome::Failed(why) = &spec.outcome {
            bad.insert(name.clone(), why.clone());
        }
    }
    bad
}

fn print_table(specs: &BTreeMap<String, Spec>, wanted: &BTreeSet<String>) {
    let all: BTreeSet<&String> = specs.keys().chain(wanted).collect();
    for name in all {
        let (word, seconds, why) = match specs.get(name) {
            None => ("none", 0, ""),
            Some(Spec { outcome: Outcome::Passed, seconds }) => ("pass", *seconds, ""),
            Some(Spec { outcome: Outcome::Failed(why), seconds }) => ("FAIL", *seconds, why.as_str()),
            Some(Spec { outcome: Outcome::Skipped(why), seconds }) => ("skip", *seconds, why.as_str()),
        };
        println!(
            "{word}  {seconds:>4} s  {name}{}{why}",
            if why.is_empty() { "" } else { "\n               " }
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_pass_is_a_pass() {
        let spec = |outcome| Spec { outcome, seconds: 0 };
        let specs = BTreeMap::from([
            ("good".to_owned(), spec(Outcome::Passed)),
            ("bad".to_owned(), spec(Outcome::Failed("broken".to_owned()))),
            ("shy".to_owned(), spec(Outcome::Skipped("no node".to_owned()))),
            ("extra".to_owned(), spec(Outcome::Failed("nobody asked".to_owned()))),
        ]);
        let wanted = ["good", "bad", "shy", "absent"].map(str::to_owned).into();
        let bad = shortfalls(&specs, &wanted);
        let expected = [("absent", "it did not run"), ("bad", "broken"), ("shy", "skipped itself: no node")];
        let expected: BTreeMap<String, String> =
            expected.into_iter().map(|(name, why)| (name.to_owned(), why.to_owned())).collect();
        assert_eq!(bad, expected);
    }

    #[test]
    fn a_failed_preparation_fails_the_run() {
        let failed = Spec { outcome: Outcome::Failed("no node".to_owned()), seconds: 0 };
        let specs = BTreeMap::from([("[SynchronizedBeforeSuite]".to_owned(), failed)]);
        assert_eq!(shortfalls(&specs, &BTreeSet::new()).len(), 1);
    }

    #[test]
    fn the_list_names_what_the_project_promises() {
        let list = must_pass().unwrap();
        let check = |part: &str| assert!(list.iter().any(|name| name.contains(part)), "no spec of {part}");
        check("AggregatedDiscovery");
        check("Discovery should");
        check("CustomResourceDefinition resources");
        check("CustomResourceDefinition Watch");
        check("CustomResourcePublishOpenAPI");
        check("FieldValidation");
        check("Garbage collector");
        check("Namespaces");
        check("API chunking");
        check("Table transformation");
        check("Watchers");
        check("server version");
        check("CSIStorageCapacity");
        check("PersistentVolumes");
        check("VolumeAttachment");
        check("SelfSubjectReview");
    }
}
