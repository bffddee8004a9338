//! `lifeboat status`: how applications are doing, one line each, from the hub; or how one group is doing, from its own cluster. Reads and
//! prints; what is told is in `rows` and `group`.

pub mod account;
pub mod group;
pub mod rows;

use crate::cluster::Target;
use anyhow::Context as _;
use kube::api::{Api, ListParams};
use lifeboat_api::ramen::config::HUB_CONFIG_MAP;
use lifeboat_api::ramen::{DRPolicy, VolumeReplicationGroup};
use lifeboat_engine::Clock;
use std::io::Write as _;
use std::process::ExitCode;

/// Options of `lifeboat status`.
#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Exit code: 0 all is well, 1 the cluster could not be read, 2 wrong usage, \
                  3 something is not protected or not ready, 5 there is no such application or group."
)]
pub struct Args {
    #[command(subcommand)]
    subject: Option<Subject>,
    #[command(flatten)]
    applications: Applications,
}

#[derive(clap::Args)]
struct Applications {
    /// Name of a DRPlacementControl; all of them when not given.
    name: Option<String>,
    #[command(flatten)]
    common: Common,
}

#[derive(clap::Subcommand)]
enum Subject {
    /// How a VolumeReplicationGroup is doing on this cluster: its claims, its lag, and what it waits for since when.
    #[command(alias = "volumereplicationgroup")]
    Vrg {
        /// Name of the group.
        name: String,
        #[command(flatten)]
        common: Common,
    },
}

/// What every look has in common.
#[derive(clap::Args)]
pub struct Common {
    /// Namespace; for applications all of them when not given, for a VRG that of the kubeconfig's context.
    #[arg(long, short, value_name = "NAME")]
    pub namespace: Option<String>,
    /// How to print it.
    #[arg(long, short, value_name = "FORMAT", default_value = "text")]
    pub output: Format,
    #[command(flatten)]
    pub target: Target,
}

/// How something is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// Prints, and gives the exit code that says the same.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("starting the runtime")?;
    match &args.subject {
        Some(Subject::Vrg { name, common }) => runtime.block_on(one_group(name, common)),
        None => runtime.block_on(applications(&args.applications)),
    }
}

/// Says something to whoever ran the command.
pub fn say(text: &str) -> anyhow::Result<()> {
    std::io::stdout().write_all(text.as_bytes()).context("writing to the terminal")
}

/// Ends with a sentence where programs that read our output do not look for it.
pub fn ends(sentence: &str, code: u8) -> anyhow::Result<ExitCode> {
    writeln!(std::io::stderr(), "{sentence}").context("writing to the terminal")?;
    Ok(ExitCode::from(code))
}

/// Says that what was asked for can never be.
pub fn misused(why: &str) -> anyhow::Result<ExitCode> {
    ends(&format!("error: {why}"), 2)
}

/// Says that nothing was begun.
pub fn refused(why: &str) -> anyhow::Result<ExitCode> {
    ends(why, 4)
}

/// Says that something is not there.
pub fn missing(what: &str) -> anyhow::Result<ExitCode> {
    ends(&format!("there is no {what}"), 5)
}

/// Says that something is not there, and that it could not be where the cluster is not the hub.
pub async fn missing_on_hub(client: &kube::Client, what: &str) -> anyhow::Result<ExitCode> {
    if is_hub(client).await? { missing(what) } else { missing(&format!("{what} here: {NOT_THE_HUB}")) }
}

const NOT_THE_HUB: &str = "this cluster is not the hub. Name the hub with --context; `lifeboat status vrg NAME` tells about a VRG of this cluster";

async fn applications(args: &Applications) -> anyhow::Result<ExitCode> {
    let client = crate::process::client(&args.common.target).await?;
    let worlds = crate::plan::look::worlds(&client).await?;
    let now = Clock::system().now();
    let namespace = args.common.namespace.as_deref();
    let asked = worlds.iter().filter(|world| {
        let meta = &world.drpc.metadata;
        (args.name.is_none() || meta.name == args.name)
            && namespace.is_none_or(|namespace| meta.namespace.as_deref() == Some(namespace))
    });
    let rows: Vec<rows::Row> = asked
        .map(|world| {
            let policy = world.policy.as_deref();
            rows::row(&world.drpc, policy, &crate::plan::words::could_fail_over(world, now), now)
        })
        .collect();
    if let (true, Some(name)) = (rows.is_empty(), &args.name) {
        return missing_on_hub(&client, &format!("DRPlacementControl {name}")).await;
    }
    if worlds.is_empty() && !is_hub(&client).await? {
        return missing(&format!("DRPolicy here: {NOT_THE_HUB}"));
    }
    match args.common.output {
        Format::Json => say(&(serde_json::to_string_pretty(&rows).context("writing JSON")? + "\n"))?,
        Format::Text if rows.is_empty() => say("no application is protected; `lifeboat protect` begins\n")?,
        Format::Text => say(&table(&rows::HEADING, &rows.iter().map(rows::cells).collect::<Vec<_>>()))?,
    }
    Ok(if rows.iter().all(rows::Row::is_fine) { ExitCode::SUCCESS } else { ExitCode::from(3) })
}

/// A hub has policies, or at least its configuration; a managed cluster may have the same definitions and has neither.
async fn is_hub(client: &kube::Client) -> anyhow::Result<bool> {
    let policies: Api<DRPolicy> = Api::all(client.clone());
    match policies.list(&ListParams::default().limit(1)).await {
        Ok(one) if !one.items.is_empty() => return Ok(true),
        Ok(_) => {}
        Err(kube::Error::Api(status)) if status.code == 404 => return Ok(false),
        Err(error) => return Err(error).context("reading DRPolicies"),
    }
    // Who may not look into ConfigMaps is told what is missing, and no more.
    Ok(crate::doctor::has_config(client, HUB_CONFIG_MAP).await.unwrap_or(true))
}

async fn one_group(name: &str, common: &Common) -> anyhow::Result<ExitCode> {
    let config = common.target.config().await?;
    let namespace = common.namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
    let client = kube::Client::try_from(config).context("making a client of the cluster")?;
    let groups: Api<VolumeReplicationGroup> = Api::namespaced(client, &namespace);
    let found = groups.get_opt(name).await.context("reading VolumeReplicationGroups")?;
    let Some(found) = found else {
        return missing(&format!("VolumeReplicationGroup {namespace}/{name}"));
    };
    let told = group::group(&found, Clock::system().now());
    match common.output {
        Format::Json => say(&(serde_json::to_string_pretty(&told).context("writing JSON")? + "\n"))?,
        Format::Text => say(&group::text(&told))?,
    }
    Ok(if told.is_fine() { ExitCode::SUCCESS } else { ExitCode::from(3) })
}

/// Lines under a heading, as wide as they need to be; the last column may be as long as it likes.
pub fn table(heading: &[&str], lines: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = lines.iter().filter_map(|line| line.get(column)).map(|cell| cell.chars().count());
        cells.chain([heading[column].chars().count()]).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..heading.len()).map(width).collect();
    let print = |cells: &[String]| {
        let padded: Vec<String> =
            cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        padded.join("  ").trim_end().to_owned() + "\n"
    };
    let heading: Vec<String> = heading.iter().map(ToString::to_string).collect();
    std::iter::once(print(&heading)).chain(lines.iter().map(|line| print(line))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::embedded;
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::api::PostParams;
    use serde_json::json;

    #[tokio::test]
    async fn a_hub_is_told_from_a_managed_cluster() {
        let server = embedded::server();
        let client = embedded::client(&server);
        assert!(!is_hub(&client).await.unwrap(), "it has the definitions and nothing else");
        let config = serde_json::from_value(json!({"metadata": {"name": HUB_CONFIG_MAP}})).unwrap();
        let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
        maps.create(&PostParams::default(), &config).await.unwrap();
        assert!(is_hub(&client).await.unwrap(), "a hub without a policy yet");

        let server = embedded::server();
        let client = embedded::client(&server);
        let policy = json!({
            "apiVersion": "ramendr.openshift.io/v1alpha1", "kind": "DRPolicy", "metadata": {"name": "p"},
            "spec": {"schedulingInterval": "1m", "drClusters": ["east", "west"]},
        });
        let policies: Api<DRPolicy> = Api::all(client.clone());
        policies.create(&PostParams::default(), &serde_json::from_value(policy).unwrap()).await.unwrap();
        assert!(is_hub(&client).await.unwrap(), "a hub by its policy");
    }
}
