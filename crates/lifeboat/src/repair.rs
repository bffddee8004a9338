//! `lifeboat repair`: what stands in an application's way, and the safe remedies in order. It changes nothing unless one of them is asked for.

use crate::cluster::{Target, is_lost_race, patched};
use crate::plan::{confirmed, look, words};
use crate::status::{Format, missing_on_hub, refused, say};
use anyhow::{Context as _, bail};
use jiff::Timestamp;
use kube::api::{Api, Patch};
use lifeboat_api::annotations;
use lifeboat_api::conditions::vrg::REASON_ORPHANED;
use lifeboat_api::ramen::{Blocker, DRPlacementControl, DRState};
use lifeboat_engine::{Clock, ObjectKey};
use lifeboat_hub::drpc::decide::orphan;
use lifeboat_hub::drpc::world::World;
use serde::Serialize;
use serde_json::json;
use std::process::ExitCode;
use std::time::Duration;

/// Options of `lifeboat repair`.
#[derive(clap::Args)]
#[command(
    after_help = "Exit code: 0 nothing stands in the way, or it was repaired, 1 the hub could not be reached, 2 wrong usage, \
                        3 something stands in the way, 4 nothing was begun, 5 there is no such application."
)]
pub struct Args {
    /// Name of the application's DRPlacementControl.
    name: String,
    /// Its namespace; that of the kubeconfig's context when not given.
    #[arg(long, short, value_name = "NAME")]
    namespace: Option<String>,
    /// Use the volumes again that were kept when the VRG or its namespace was deleted by accident. Nothing is lost.
    #[arg(long)]
    restore_here: bool,
    /// Do not ask.
    #[arg(long, short)]
    yes: bool,
    /// How long to follow it, such as 90s, 10m or 1h30m; a bare number is seconds.
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = words::duration)]
    timeout: Duration,
    /// How to print it.
    #[arg(long, short, value_name = "FORMAT", default_value = "text")]
    output: Format,
    #[command(flatten)]
    target: Target,
}

/// A remedy, the safest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Remedy {
    /// What it does, and what it costs.
    pub what: String,
    /// The command.
    pub command: String,
}

/// What is in the way, and what helps.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Diagnosis {
    /// What the hub waits for.
    pub blockers: Vec<Blocker>,
    /// What helps, in the order in which it should be tried.
    pub remedies: Vec<Remedy>,
}

/// Looks at an application.
pub fn diagnose(world: &World, now: Timestamp) -> Diagnosis {
    let status = world.drpc.status.clone().unwrap_or_default();
    let name = world.drpc.metadata.name.as_deref().unwrap_or_default();
    let space = world.drpc.metadata.namespace.as_deref().unwrap_or_default();
    let holder = world.commission().map(|known| known.holder);
    let other = words::other(world);
    let mut remedies = Vec::new();
    let mut offer = |what: String, command: String| {
        remedies.push(Remedy { what, command: format!("lifeboat {command} -n {space}") });
    };
    let orphaned = is_orphaned(&status.blockers);
    if orphaned {
        let on = holder.as_deref().unwrap_or("the same cluster");
        offer(
            format!("use the volumes that were kept on {on} again; nothing is lost"),
            format!("repair {name} --restore-here"),
        );
    }
    let known = world.commission();
    let lost = orphaned || known.is_some_and(|known| orphan::loss(world, now, &known).is_some());
    let rests =
        matches!(status.phase, Some(DRState::Deployed | DRState::FailedOver | DRState::Relocated) | None);
    if !rests && !lost && status.phase != Some(DRState::Deleting) {
        offer(
            "take the action back, where its point of no return is not passed".to_owned(),
            format!("abort {name}"),
        );
    }
    let silent = holder.as_deref().and_then(|name| world.site(name)).is_some_and(|site| !site.is_fresh(now));
    if let Some(other) = other.filter(|_| lost || silent)
        && words::could_fail_over(world, now).is_ok()
    {
        offer(
            format!(
                "start the application on {other} from its newest copy; `lifeboat plan failover` says what is lost"
            ),
            format!("failover {name} --to {other}"),
        );
    }
    if orphaned {
        remedies.push(Remedy {
            what: "give up the volumes that were kept; what is only on them is lost".to_owned(),
            command: format!("lifeboat forget --of {space}/{name} --context CLUSTER"),
        });
    }
    Diagnosis { blockers: status.blockers, remedies }
}

fn is_orphaned(blockers: &[Blocker]) -> bool {
    blockers.iter().any(|blocker| blocker.reason == REASON_ORPHANED)
}

/// Looks, and does what is asked for.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("starting the runtime")?.block_on(repair(args))
}

async fn repair(args: &Args) -> anyhow::Result<ExitCode> {
    let config = args.target.config().await?;
    let namespace = args.namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
    let client = kube::Client::try_from(config).context("making a client of the hub")?;
    let key = ObjectKey::new(namespace.as_str(), args.name.as_str());
    let Some(world) = look::world(&client, &key).await? else {
        return missing_on_hub(&client, &format!("DRPlacementControl {key}")).await;
    };
    let found = diagnose(&world, Clock::system().now());
    if args.restore_here {
        if !is_orphaned(&found.blockers) {
            bail!(
                "the VRG of {key} is not orphaned: there is nothing to restore; `lifeboat repair {}` says what is in the way",
                args.name
            );
        }
        let on = world.commission().map(|known| format!(" on cluster {}", known.holder)).unwrap_or_default();
        if !args.yes && !confirmed(&format!("Use the volumes of {key} again that were kept{on}?"))? {
            say("nothing was changed\n")?;
            return Ok(ExitCode::from(4));
        }
        let api: Api<DRPlacementControl> = Api::namespaced(client, &namespace);
        return restore(&api, &world, args).await;
    }
    match args.output {
        Format::Json => say(&(serde_json::to_string_pretty(&found).context("writing JSON")? + "\n"))?,
        Format::Text => say(&text(&found))?,
    }
    Ok(if found.blockers.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(3) })
}

fn text(found: &Diagnosis) -> String {
    if found.blockers.is_empty() && found.remedies.is_empty() {
        return "nothing stands in the way\n".to_owned();
    }
    let mut text = String::new();
    for blocker in &found.blockers {
        text.push_str(&format!("in the way: {}: {}\n", blocker.reason, blocker.message));
    }
    if found.remedies.is_empty() {
        text.push_str("each line above says what helps; nothing else is needed once it is done\n");
    }
    for (number, remedy) in (1..).zip(&found.remedies) {
        text.push_str(&format!("{number}. {}\n     {}\n", remedy.what, remedy.command));
    }
    text
}

/// How following a repair ends.
enum Restored {
    /// The application uses its volumes again.
    Done,
    /// The object is gone.
    Deleted,
}

async fn restore(api: &Api<DRPlacementControl>, world: &World, args: &Args) -> anyhow::Result<ExitCode> {
    let known = world.commission().context("the application was never deployed")?;
    let patch = json!({"metadata": {
        "uid": world.drpc.metadata.uid,
        "annotations": {annotations::RESTORE_ORPHANS: known.epoch.to_string()},
    }});
    match api.patch(&args.name, &patched(), &Patch::Merge(patch)).await {
        Err(error) if is_lost_race(&error) => {
            return refused(
                "nothing was begun: somebody deleted the DRPlacementControl meanwhile; look and ask again",
            );
        }
        asked => drop(asked.context("asking the hub for it")?),
    }
    let restored = async {
        loop {
            // A hub that does not answer is asked again.
            let Ok(now) = api.get_opt(&args.name).await else {
                tokio::time::sleep(Duration::from_secs(1)).await;
                continue;
            };
            let Some(now) = now.filter(|now| now.metadata.uid == world.drpc.metadata.uid) else {
                return Restored::Deleted;
            };
            let status = now.status.unwrap_or_default();
            let placed = world.drpc.metadata.generation <= status.observed_generation
                && matches!(status.phase, Some(DRState::Deployed | DRState::FailedOver | DRState::Relocated));
            let available =
                status.conditions.iter().any(|one| one.type_ == "Available" && one.status == "True");
            if placed && available && !is_orphaned(&status.blockers) {
                return Restored::Done;
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    };
    match tokio::time::timeout(args.timeout, restored).await {
        Ok(Restored::Done) => {
            // The hub takes the order back: it was meant for this accident.
            say(&format!("the application uses its volumes on {} again\n", known.holder))?;
            return Ok(ExitCode::SUCCESS);
        }
        Ok(Restored::Deleted) => say(words::DELETED)?,
        Err(_) => {
            let now = api.get(&args.name).await.context("reading the application")?;
            say("it is not done yet; the hub goes on with it\n")?;
            for blocker in &now.status.unwrap_or_default().blockers {
                say(&format!("in the way: {}: {}\n", blocker.reason, blocker.message))?;
            }
        }
    }
    Ok(ExitCode::from(3))
}
