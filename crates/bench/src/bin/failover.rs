//! Failover with the source dead: from the user's wish to the placement on the target, for one application and for many at once, and what a
//! fleet at rest writes. Three API servers over HTTPS, each a process of its own, and the hub, two agents and two protectors as theirs.
#![expect(clippy::print_stdout, reason = "it tells what it is doing")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use clap::Parser;
use futures::{StreamExt as _, TryStreamExt as _};
use kube::api::{Api, ApiResource, DynamicObject, ListParams, Patch, PatchParams, PostParams, WatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::{GroupVersionKind, WatchEvent};
use lifeboat_bench::findings::{Findings, median, percentile};
use lifeboat_bench::server::{Server, own_processor_time, processor_time};
use lifeboat_reference::Process;
use serde_json::{Value, json};

/// Namespace of the configuration.
const NAMESPACE: &str = "ramen-system";
/// How long any step may take.
const PATIENCE: Duration = Duration::from_secs(600);

#[derive(Parser)]
struct Args {
    /// The lifeboat binary, built for release.
    #[arg(long)]
    lifeboat: PathBuf,
    /// Where the findings go, as JSON; data of the servers goes next to it.
    #[arg(long)]
    output: PathBuf,
    /// Applications that fail over one after the other.
    #[arg(long, default_value_t = 30)]
    single: usize,
    /// Applications that fail over at once.
    #[arg(long, default_value_t = 1000)]
    many: usize,
}

/// One cluster: its server and what works for it.
struct Site {
    server: Server,
    client: kube::Client,
    parts: Vec<(String, Process)>,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let mut findings = Findings::default();
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?
        .block_on(measure(&args, &mut findings))?;
    findings.write(&args.output)
}

async fn measure(args: &Args, findings: &mut Findings) -> Result<()> {
    let folder = args.output.parent().unwrap_or(Path::new(".")).to_owned();
    let records = tempfile::Builder::new().prefix("lifeboat-records-").tempdir_in(&folder)?;
    let (stores, _serving) = stores(records.path()).await?;
    let mut hub = Site::start(args, &folder).await?;
    let mut east = Site::start(args, &folder).await?;
    let mut west = Site::start(args, &folder).await?;
    furnish(&hub.client, stores).await?;
    hub.run(args, &folder, "hub", &["hub", "--alone", "--namespace", NAMESPACE])?;
    let hub_kubeconfig = hub.server.kubeconfig().display().to_string();
    for (name, site) in [("east", &mut east), ("west", &mut west)] {
        let agent = ["agent", "--alone", "--name", name, "--hub-kubeconfig", &hub_kubeconfig];
        site.run(args, &folder, &format!("agent-{name}"), &agent)?;
        let protector = ["protector", "--alone", "--namespace", NAMESPACE];
        site.run(args, &folder, &format!("protector-{name}"), &protector)?;
    }
    let total = args.single + args.many;
    let began = Instant::now();
    deploy(&hub.client, total).await?;
    println!(
        "{total} applications are deployed and their peers ready after {:.1} s",
        began.elapsed().as_secs_f64()
    );
    let writes = idle(&hub.client).await?;
    println!("a fleet at rest writes {writes} times in a minute, leases aside");
    findings.figure("idle_writes_per_minute", writes as f64);
    drop(east);
    println!("east is dead");
    let mut times = Vec::new();
    for number in 0..args.single {
        times.push(fail_over(&hub.client, &[number]).await?);
    }
    let (p50, p99) = (median(&mut times.clone()), percentile(&mut times, 0.99));
    println!("one application: p50 {} ms, p99 {} ms", p50.as_millis(), p99.as_millis());
    findings.figure("failover_p50_ms", p50.as_secs_f64() * 1e3);
    findings.figure("failover_p99_ms", p99.as_secs_f64() * 1e3);
    let rest: Vec<usize> = (args.single..total).collect();
    let (before, writes) = (spent(&hub, &west)?, written(&hub, &west).await?);
    let all = fail_over(&hub.client, &rest).await?;
    let (after, writes_after) = (spent(&hub, &west)?, written(&hub, &west).await?);
    println!("{} applications at once: {:.1} s", rest.len(), all.as_secs_f64());
    findings.figure("thousand_apps_s", all.as_secs_f64());
    let each = |time: Duration| time.as_secs_f64() * 1e3 / rest.len().max(1) as f64;
    for ((name, before), (_, after)) in before.iter().zip(&after) {
        println!("    {name}: {:.1} ms of processor time for each", each(after.saturating_sub(*before)));
    }
    for (name, before, after) in [("hub", writes.0, writes_after.0), ("west", writes.1, writes_after.1)] {
        println!("    {name}: {:.1} writes for each", (after - before) as f64 / rest.len().max(1) as f64);
    }
    let total = |all: &[(String, Duration)]| all.iter().map(|(_, time)| *time).sum::<Duration>();
    findings.figure("cpu_ms_per_app", each(total(&after).saturating_sub(total(&before))));
    drop(west);
    Ok(())
}

impl Site {
    async fn start(args: &Args, folder: &Path) -> Result<Self> {
        let server = Server::embedded(&args.lifeboat, folder).await?;
        let kubeconfig = Kubeconfig::read_from(server.kubeconfig())?;
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        let client = kube::Client::try_from(config)?;
        Ok(Self { server, client, parts: Vec::new() })
    }

    fn run(&mut self, args: &Args, folder: &Path, name: &str, arguments: &[&str]) -> Result<()> {
        let mut all: Vec<String> = arguments.iter().map(|&text| text.to_owned()).collect();
        all.push(format!("--kubeconfig={}", self.server.kubeconfig().display()));
        let process = Process::start(&args.lifeboat, &all, &folder.join(format!("failover-{name}.log")))?;
        self.parts.push((name.to_owned(), process));
        Ok(())
    }
}

/// Processor time that everything has used so far which has a part in a failover. The stores are in this process.
fn spent(hub: &Site, west: &Site) -> Result<Vec<(String, Duration)>> {
    let mut all = vec![
        ("stores and user".to_owned(), own_processor_time()?),
        ("API server of the hub".to_owned(), hub.server.processor_time()?),
        ("API server of west".to_owned(), west.server.processor_time()?),
    ];
    for (name, process) in hub.parts.iter().chain(&west.parts) {
        all.push((name.clone(), processor_time(&process.pid().to_string())?));
    }
    Ok(all)
}

/// How often anything was written so far, to the hub and to west: that is what versions count.
async fn written(hub: &Site, west: &Site) -> Result<(u64, u64)> {
    let leases = |site: &Site| api(&site.client, "coordination.k8s.io/v1", "Lease", None);
    let (hub, west) = (leases(hub)?, leases(west)?);
    let all = ListParams::default();
    Ok((version(&hub.list(&all).await?)?, version(&west.list(&all).await?)?))
}

fn version(list: &kube::core::ObjectList<DynamicObject>) -> Result<u64> {
    Ok(list.metadata.resource_version.as_ref().context("a list has a version")?.parse()?)
}

/// Two buckets, served until the second value is dropped.
async fn stores(folder: &Path) -> Result<(Vec<Value>, tokio::task::JoinSet<()>)> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let credentials =
        lifeboat_s3::Credentials { access_key: "bench".to_owned(), secret_key: "bench".to_owned() };
    let mut buckets: BTreeMap<String, Arc<dyn lifeboat_s3::Content>> = BTreeMap::new();
    let mut profiles = Vec::new();
    for name in ["east", "west"] {
        let bucket = folder.join(name);
        std::fs::create_dir_all(&bucket)?;
        buckets.insert(name.to_owned(), Arc::new(lifeboat_store::Directory::new(bucket)));
        profiles.push(json!({
            "s3ProfileName": name, "s3Bucket": name, "s3Region": "here",
            "s3CompatibleEndpoint": format!("http://{address}"),
            "s3SecretRef": {"name": "store", "namespace": NAMESPACE},
        }));
    }
    let mut serving = tokio::task::JoinSet::new();
    serving.spawn(lifeboat_s3::serve(listener, lifeboat_s3::service(buckets, &credentials)));
    Ok((profiles, serving))
}

fn api(
    client: &kube::Client,
    version: &str,
    kind: &str,
    namespace: Option<&str>,
) -> Result<Api<DynamicObject>> {
    let (group, version) = version.rsplit_once('/').unwrap_or(("", version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    Ok(match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    })
}

async fn create(client: &kube::Client, object: Value) -> Result<()> {
    let (version, kind) = (object["apiVersion"].as_str(), object["kind"].as_str());
    let (version, kind) = version.zip(kind).context("an object names its kind")?;
    let namespace = object["metadata"]["namespace"].as_str().map(str::to_owned);
    let api = api(client, version, kind, namespace.as_deref())?;
    let object: DynamicObject = serde_json::from_value(object.clone())?;
    api.create(&PostParams::default(), &object).await?;
    Ok(())
}

const RAMEN: &str = "ramendr.openshift.io/v1alpha1";

async fn furnish(hub: &kube::Client, profiles: Vec<Value>) -> Result<()> {
    create(hub, json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})).await?;
    let keys = json!({"AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": "bench"});
    let metadata = json!({"name": "store", "namespace": NAMESPACE});
    create(hub, json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": keys}))
        .await?;
    let config = json!({
        "apiVersion": RAMEN, "kind": "RamenConfig", "ramenControllerType": "dr-hub", "s3StoreProfiles": profiles,
    });
    let metadata = json!({"name": "ramen-hub-operator-config", "namespace": NAMESPACE});
    let data = json!({"ramen_manager_config.yaml": config.to_string()});
    create(hub, json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})).await?;
    for name in ["east", "west"] {
        let spec = json!({"hubAcceptsClient": true, "leaseDurationSeconds": 10});
        let version = "cluster.open-cluster-management.io/v1";
        create(hub, json!({"apiVersion": version, "kind": "ManagedCluster", "metadata": {"name": name}, "spec": spec}))
            .await?;
        let spec = json!({"region": name, "s3ProfileName": name});
        create(
            hub,
            json!({"apiVersion": RAMEN, "kind": "DRCluster", "metadata": {"name": name}, "spec": spec}),
        )
        .await?;
    }
    let spec = json!({"schedulingInterval": "1m", "drClusters": ["east", "west"]});
    create(
        hub,
        json!({"apiVersion": RAMEN, "kind": "DRPolicy", "metadata": {"name": "policy"}, "spec": spec}),
    )
    .await
}

fn space(number: usize) -> String {
    format!("app-{number:04}")
}

/// Places applications on east and protects them, until every peer is ready. They have no volumes: what is measured is who decides what, when.
async fn deploy(hub: &kube::Client, count: usize) -> Result<()> {
    let one = |number: usize| async move {
        let space = space(number);
        create(hub, json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space}})).await?;
        let notes = json!({"cluster.open-cluster-management.io/experimental-scheduling-disable": "true"});
        create(hub, json!({
            "apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement",
            "metadata": {"name": "app", "namespace": space, "annotations": notes}, "spec": {"numberOfClusters": 1},
        }))
        .await?;
        create(hub, json!({
            "apiVersion": RAMEN, "kind": "DRPlacementControl", "metadata": {"name": "app", "namespace": space},
            "spec": {
                "preferredCluster": "east", "drPolicyRef": {"name": "policy"},
                "placementRef": {"kind": "Placement", "name": "app"}, "pvcSelector": {"matchLabels": {"app": "app"}},
            },
        }))
        .await
    };
    futures::stream::iter(0..count).map(one).buffer_unordered(16).try_collect::<()>().await?;
    let drpcs = api(hub, RAMEN, "DRPlacementControl", None)?;
    let deadline = Instant::now() + PATIENCE;
    loop {
        let all = drpcs.list(&ListParams::default()).await?.items;
        let ready = |one: &&DynamicObject| {
            let conditions = one.data["status"]["conditions"].as_array();
            let mut conditions = conditions.into_iter().flatten();
            one.data["status"]["phase"] == "Deployed"
                && conditions.any(|one| {
                    one["type"] == "PeerReady" && one["status"] == "True" && one["reason"] != "Initiating"
                })
        };
        let done = all.iter().filter(ready).count();
        if done == count {
            return Ok(());
        }
        if Instant::now() > deadline {
            let late = all.iter().find(|one| !ready(one)).map(|one| one.data["status"].to_string());
            bail!("only {done} of {count} applications are ready; one says {late:?}");
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// Writes to the hub in a minute, but for renewals of leases.
async fn idle(hub: &kube::Client) -> Result<u64> {
    // What the last deployment set off comes to its end first.
    tokio::time::sleep(Duration::from_secs(20)).await;
    let leases = api(hub, "coordination.k8s.io/v1", "Lease", None)?;
    let before = version(&leases.list(&ListParams::default()).await?)?;
    let mut renewals = leases.watch(&WatchParams::default(), &before.to_string()).await?.boxed();
    let end = tokio::time::Instant::now() + Duration::from_secs(60);
    let mut renewed = 0;
    while let Ok(Some(event)) = tokio::time::timeout_at(end, renewals.next()).await {
        renewed += u64::from(matches!(event?, WatchEvent::Modified(_)));
    }
    let after = version(&leases.list(&ListParams::default()).await?)?;
    Ok((after - before).saturating_sub(renewed))
}

/// From the wish for all of them until the last one is placed on west.
async fn fail_over(hub: &kube::Client, numbers: &[usize]) -> Result<Duration> {
    let decisions = api(hub, "cluster.open-cluster-management.io/v1beta1", "PlacementDecision", None)?;
    let version = decisions.list(&ListParams::default().limit(1)).await?.metadata.resource_version;
    let mut changes = decisions.watch(&WatchParams::default(), &version.unwrap_or_default()).await?.boxed();
    let mut waiting: std::collections::BTreeSet<String> =
        numbers.iter().map(|number| space(*number)).collect();
    let began = Instant::now();
    let wish = Patch::Merge(json!({"spec": {"action": "Failover", "failoverCluster": "west"}}));
    let wish = &wish;
    let asking = futures::stream::iter(waiting.clone())
        .map(|space| async move {
            let drpcs = api(hub, RAMEN, "DRPlacementControl", Some(&space))?;
            drpcs.patch("app", &PatchParams::default(), wish).await?;
            anyhow::Ok(())
        })
        .buffer_unordered(32)
        .try_collect::<()>();
    let hearing = async {
        while !waiting.is_empty() {
            let event = tokio::time::timeout(PATIENCE, changes.next()).await;
            let event = event.with_context(|| format!("{} are not placed", waiting.len()))?;
            let (WatchEvent::Added(one) | WatchEvent::Modified(one)) = event.context("the watch ended")??
            else {
                continue;
            };
            let chosen = one.data["status"]["decisions"].as_array().into_iter().flatten();
            let at_west = chosen.into_iter().any(|one| one["clusterName"] == "west");
            if at_west && let Some(space) = &one.metadata.namespace {
                waiting.remove(space);
            }
        }
        anyhow::Ok(began.elapsed())
    };
    let (_, took) = tokio::try_join!(asking, hearing)?;
    Ok(took)
}
