//! `lifeboat explain`: why a claim or an application is as it is. Reads the cluster and prints; about claims, the reasoning is the binder's own.

use crate::cluster::Target;
use crate::status::account::account;
use crate::status::{Format, missing, missing_on_hub, say};
use anyhow::Context as _;
use k8s_openapi::api::core::v1::Event;
use kube::api::{Api, ListParams};
use lifeboat_api::ramen::DRPlacementControl;
use lifeboat_binder::explain::{self, Account, Snapshot, State};
use lifeboat_binder::lean::PersistentVolumeClaim;
use lifeboat_engine::{Clock, ObjectKey};
use std::process::ExitCode;

/// How many of the latest events are told.
const LATEST: usize = 5;

/// Options of `lifeboat explain`.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    subject: Subject,
}

#[derive(clap::Subcommand)]
enum Subject {
    /// Say how a claim is doing, what it waits for, which volumes nearly fit it and what can be done.
    #[command(
        alias = "persistentvolumeclaim",
        after_help = "Exit code: 0 the claim is bound, 1 the cluster could not be read, 2 wrong usage, \
                      3 the claim waits or is about to be bound, 4 it has lost its volume, 5 there is no such claim."
    )]
    Pvc(Pvc),
    /// Say how an application came to be as it is: who decided what, what it waits for since when, what is safe and what was given up.
    #[command(
        alias = "drpc",
        after_help = "Exit code: 0 it was explained, 1 the hub could not be read, 2 wrong usage, 5 there is no such application."
    )]
    App {
        /// Name of the DRPlacementControl.
        name: String,
        /// Its namespace; that of the kubeconfig's context when not given.
        #[arg(long, short, value_name = "NAME")]
        namespace: Option<String>,
        /// How to print it.
        #[arg(long, short, value_name = "FORMAT", default_value = "text")]
        output: Format,
        #[command(flatten)]
        target: Target,
    },
}

#[derive(clap::Args)]
struct Pvc {
    /// Name of the claim.
    name: String,
    /// Namespace of the claim; that of the kubeconfig's context when not given.
    #[arg(long, short, value_name = "NAME")]
    namespace: Option<String>,
    /// How to print it.
    #[arg(long, short, value_name = "FORMAT", default_value = "text")]
    output: Format,
    #[command(flatten)]
    target: Target,
}

/// Explains, and gives the exit code that says the same.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("starting the runtime")?;
    match args.subject {
        Subject::Pvc(args) => runtime.block_on(claim(&args)),
        Subject::App { name, namespace, output, target } => {
            runtime.block_on(application(&target, namespace, &name, output))
        }
    }
}

async fn application(
    target: &Target,
    namespace: Option<String>,
    name: &str,
    output: Format,
) -> anyhow::Result<ExitCode> {
    let config = target.config().await?;
    let namespace = namespace.unwrap_or_else(|| config.default_namespace.clone());
    let client = kube::Client::try_from(config).context("making a client of the hub")?;
    let drpcs: Api<DRPlacementControl> = Api::namespaced(client.clone(), &namespace);
    let found = drpcs.get_opt(name).await.with_context(|| format!("reading {namespace}/{name}"))?;
    let Some(found) = found else {
        return missing_on_hub(&client, &format!("DRPlacementControl {namespace}/{name}")).await;
    };
    let account = account(&found, Clock::system().now());
    match output {
        Format::Text => say(&account.to_string())?,
        Format::Json => say(&(serde_json::to_string_pretty(&account).context("writing JSON")? + "\n"))?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn claim(args: &Pvc) -> anyhow::Result<ExitCode> {
    let config = args.target.config().await?;
    let namespace = args.namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
    let client = kube::Client::try_from(config).context("making a client of the cluster")?;
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(client.clone(), &namespace);
    let key = ObjectKey::new(namespace.as_str(), args.name.as_str());
    let found = claims.get_opt(&args.name).await.with_context(|| format!("reading the claim {key}"))?;
    let account = match found {
        Some(found) => explain::claim(&read(&client, found).await?, &key, Clock::system().now()),
        None => None,
    };
    let Some(account) = account else {
        return missing(&format!("claim {key}"));
    };
    let text = match args.output {
        Format::Text => account.to_string(),
        Format::Json => serde_json::to_string_pretty(&account).context("writing JSON")? + "\n",
    };
    say(&text)?;
    Ok(code(&account))
}

fn code(account: &Account) -> ExitCode {
    ExitCode::from(match account.state {
        State::Bound => 0,
        State::Ready | State::Waiting => 3,
        State::Lost => 4,
    })
}

/// Everything that a decision about the claim looks at.
async fn read(client: &kube::Client, claim: PersistentVolumeClaim) -> anyhow::Result<Snapshot> {
    let namespace = claim.metadata.namespace.clone().unwrap_or_default();
    let all = ListParams::default();
    let (volumes, classes) = (Api::all(client.clone()), Api::all(client.clone()));
    let pods = Api::namespaced(client.clone(), &namespace);
    let (volumes, classes, pods, told) =
        tokio::join!(volumes.list(&all), classes.list(&all), pods.list(&all), told(client, &claim));
    Ok(Snapshot {
        volumes: volumes.context("reading volumes, which needs the right to list persistentvolumes")?.items,
        classes: classes.context("reading classes, which needs the right to list storageclasses")?.items,
        pods: pods.with_context(|| format!("reading the pods of {namespace}"))?.items,
        told: told?,
        claims: vec![claim],
    })
}

/// What was said of the claim lately, the newest last.
async fn told(client: &kube::Client, claim: &PersistentVolumeClaim) -> anyhow::Result<Vec<String>> {
    let namespace = claim.metadata.namespace.as_deref().unwrap_or_default();
    let events: Api<Event> = Api::namespaced(client.clone(), namespace);
    let uid = claim.metadata.uid.as_deref().unwrap_or_default();
    let about = ListParams::default().fields(&format!("involvedObject.uid={uid}"));
    let mut events = events.list(&about).await.context("reading events")?.items;
    let when = |event: &Event| {
        let last = event.last_timestamp.as_ref().map(|time| time.0);
        last.or(event.event_time.as_ref().map(|time| time.0)).or(event
            .metadata
            .creation_timestamp
            .as_ref()
            .map(|time| time.0))
    };
    events.sort_by_key(when);
    let from = events.len().saturating_sub(LATEST);
    let say = |event: Event| {
        let who = event.reporting_component.or(event.source.and_then(|source| source.component));
        format!(
            "{} {}: {}",
            who.unwrap_or_default(),
            event.reason.unwrap_or_default(),
            event.message.unwrap_or_default()
        )
    };
    Ok(events.split_off(from).into_iter().map(say).collect())
}
