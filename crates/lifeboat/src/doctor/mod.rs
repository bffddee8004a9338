//! `lifeboat doctor`: is everything there that protection needs, on a hub or on a managed cluster? Reads and prints; what should be so is in
//! `checks`.

pub mod checks;

use crate::cluster::Target;
use crate::status::{Format, say};
use anyhow::Context as _;
use checks::{Facts, Grade};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolume};
use kube::api::{Api, ListParams};
use lifeboat_api::conditions::fleet::CLUSTER_LEASE;
use lifeboat_api::ramen::config::{CLUSTER_CONFIG_MAP, HUB_CONFIG_MAP};
use lifeboat_engine::{Clock, ObjectKey};
use serde::de::DeserializeOwned;
use std::process::ExitCode;

/// Options of `lifeboat doctor`.
#[derive(clap::Args)]
#[command(
    after_help = "Exit code: 0 all is well, 1 the cluster could not be read, 2 wrong usage, 3 somebody should look, 4 protection does not work."
)]
pub struct Args {
    /// How to print it.
    #[arg(long, short, value_name = "FORMAT", default_value = "text")]
    output: Format,
    #[command(flatten)]
    target: Target,
}

/// Looks and tells.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("starting the runtime")?.block_on(examine(args))
}

async fn examine(args: &Args) -> anyhow::Result<ExitCode> {
    let client = crate::process::client(&args.target).await?;
    let facts = facts(&client).await?;
    let found = checks::checks(&facts, Clock::system().now());
    let worst = found.iter().map(|one| one.grade).max().unwrap_or(Grade::Fine);
    match args.output {
        Format::Json => say(&(serde_json::to_string_pretty(&found).context("writing JSON")? + "\n"))?,
        Format::Text => {
            for one in &found {
                let mark = match one.grade {
                    Grade::Fine => "ok  ",
                    Grade::Warning => "look",
                    Grade::Bad => "BAD ",
                };
                say(&format!("{mark}  {}: {}\n", one.subject, one.said))?;
            }
        }
    }
    Ok(ExitCode::from(match worst {
        Grade::Fine => 0,
        Grade::Warning => 3,
        Grade::Bad => 4,
    }))
}

async fn facts(client: &kube::Client) -> anyhow::Result<Facts> {
    let mut facts = Facts::default();
    facts.managed = list(client, &mut facts.missing_kinds).await?;
    facts.drclusters = list(client, &mut facts.missing_kinds).await?;
    facts.policies = list(client, &mut facts.missing_kinds).await?;
    facts.drpcs = list(client, &mut facts.missing_kinds).await?;
    facts.groups = list(client, &mut facts.missing_kinds).await?;
    let volumes: Vec<PersistentVolume> = list(client, &mut facts.missing_kinds).await?;
    facts.kept = volumes.iter().filter_map(crate::forget::kept).collect();
    if facts.missing_kinds.is_empty() && !facts.drpcs.is_empty() {
        let now = Clock::system().now();
        for world in crate::plan::look::worlds(client).await? {
            if let Err(why) = crate::plan::words::could_fail_over(&world, now) {
                facts.cannot_fail_over.insert(ObjectKey::of(&*world.drpc), why);
            }
        }
    }
    let leases: Api<Lease> = Api::all(client.clone());
    let named = ListParams::default().fields(&format!("metadata.name={CLUSTER_LEASE}"));
    for lease in leases.list(&named).await.context("reading leases")? {
        facts.leases.insert(lease.metadata.namespace.clone().unwrap_or_default(), lease);
    }
    facts.hub_config = has_config(client, HUB_CONFIG_MAP).await?;
    facts.cluster_config = has_config(client, CLUSTER_CONFIG_MAP).await?;
    Ok(facts)
}

/// Whether a ConfigMap of this name is in some namespace.
pub async fn has_config(client: &kube::Client, name: &str) -> anyhow::Result<bool> {
    let maps: Api<ConfigMap> = Api::all(client.clone());
    let named = ListParams::default().fields(&format!("metadata.name={name}"));
    Ok(!maps.list(&named).await.context("reading ConfigMaps")?.items.is_empty())
}

async fn list<K>(client: &kube::Client, missing: &mut Vec<String>) -> anyhow::Result<Vec<K>>
where
    K: kube::Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
{
    match Api::<K>::all(client.clone()).list(&ListParams::default()).await {
        Ok(listed) => Ok(listed.items),
        Err(kube::Error::Api(status)) if status.code == 404 => {
            missing.push(K::kind(&()).into_owned());
            Ok(Vec::new())
        }
        Err(error) => Err(error).with_context(|| format!("reading {}", K::plural(&()))),
    }
}
