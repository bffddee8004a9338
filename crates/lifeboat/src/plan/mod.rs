//! `lifeboat plan`, `failover` and `relocate`: what would be done and lost, the question, the change of one field, and the way
//! there as it is gone. The hub's own rules make the plan; nothing is decided here.

pub mod abort;
pub mod follow;
pub mod look;
pub mod words;

use crate::cluster::{Target, is_lost_race, patched};
use crate::status::{Format, ends, missing_on_hub, misused, refused, say};
use anyhow::{Context as _, bail};
use jiff::Timestamp;
use kube::api::{Api, Patch};
use lifeboat_api::annotations;
use lifeboat_api::ramen::{DRAction, DRPlacementControl};
use lifeboat_engine::{Clock, ObjectKey};
use lifeboat_hub::drpc::commission::Act;
use lifeboat_hub::drpc::decide::Wish;
use lifeboat_hub::drpc::plan::Plan;
use serde_json::{Value, json};
use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::time::Duration;
use words::Nowhere;

/// Options of `lifeboat plan`.
#[derive(clap::Args)]
#[command(after_help = "Exit code: 0 it could be done now, 1 the hub could not be read, 2 wrong usage, \
                        3 something stands in the way, 5 there is no such application.")]
pub struct Args {
    /// What to do.
    action: Action,
    #[command(flatten)]
    subject: Subject,
    /// How to print it.
    #[arg(long, short, value_name = "FORMAT", default_value = "text")]
    output: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Action {
    /// Start on the other cluster from the newest copy, whatever became of this one.
    Failover,
    /// Move to the other cluster and lose nothing.
    Relocate,
}

/// Options of `lifeboat failover`.
#[derive(clap::Args)]
#[command(after_help = MOVED)]
pub struct FailoverArgs {
    #[command(flatten)]
    moves: MoveArgs,
    /// Restore each PVC from its newest recovery point at or before this time (RFC 3339), such as 2030-01-31T03:00:00Z. The points of several
    /// PVCs are not of one moment. Newer points are kept aside.
    #[arg(long, value_name = "TIME")]
    to_point: Option<Timestamp>,
}

const MOVED: &str = "Exit code: 0 the application runs on the other cluster, 1 the hub could not be reached, 2 wrong usage, \
                     3 it is not done yet, 4 it was not begun, 5 there is no such application.";

/// Options of `lifeboat relocate`.
#[derive(clap::Args)]
#[command(
    after_help = MOVED
)]
pub struct MoveArgs {
    #[command(flatten)]
    subject: Subject,
    #[command(flatten)]
    manner: Manner,
}

/// An application and where it should go.
#[derive(clap::Args)]
struct Subject {
    /// Name of the application's DRPlacementControl.
    name: String,
    /// Its namespace; that of the kubeconfig's context when not given.
    #[arg(long, short, value_name = "NAME")]
    namespace: Option<String>,
    /// The cluster to go to; the policy's other one when not given.
    #[arg(long, value_name = "CLUSTER")]
    to: Option<String>,
    #[command(flatten)]
    target: Target,
}

/// What goes with doing it.
#[derive(clap::Args)]
struct Manner {
    /// Do not ask.
    #[arg(long, short)]
    yes: bool,
    /// Begin though something stands in the way: the hub waits for it, and says so in status.
    #[arg(long)]
    even_if_blocked: bool,
    /// Return when it is asked for, and do not follow it.
    #[arg(long)]
    no_wait: bool,
    /// How long to follow it, such as 90s, 10m or 1h30m; a bare number is seconds.
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = words::duration)]
    timeout: Duration,
    /// How to print it.
    #[arg(long, short, value_name = "FORMAT", default_value = "text")]
    output: Format,
}

/// What comes of looking at an application.
enum Answer {
    /// There is a plan.
    Asked(Box<Asked>),
    /// What was asked for is not there, which has been said.
    Refused(ExitCode),
    /// There is no other cluster yet.
    NotYet(String),
}

/// What was found out before anything is asked.
struct Asked {
    client: kube::Client,
    drpc: DRPlacementControl,
    plan: Plan,
    act: Act,
    /// Whether a relocation to the same cluster could begin now: it would lose nothing.
    could_relocate: bool,
}

fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().context("starting the runtime")
}

/// Prints a plan.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let act = match args.action {
        Action::Failover => Act::Failover,
        Action::Relocate => Act::Relocate,
    };
    runtime()?.block_on(async {
        let asked = match ask(&args.subject, act).await? {
            Answer::Asked(asked) => asked,
            Answer::Refused(code) => return Ok(code),
            Answer::NotYet(why) => return ends(&format!("in the way: {why}"), 3),
        };
        match args.output {
            Format::Json => {
                say(&(serde_json::to_string_pretty(&asked.plan).context("writing JSON")? + "\n"))?;
            }
            Format::Text => say(&asked.text())?,
        }
        Ok(if asked.plan.blockers.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(3) })
    })
}

/// Fails over: plans, asks, does and follows.
pub fn failover(args: &FailoverArgs) -> anyhow::Result<ExitCode> {
    act(&args.moves, Act::Failover, args.to_point)
}

/// Relocates: plans, asks, does and follows.
pub fn relocate(args: &MoveArgs) -> anyhow::Result<ExitCode> {
    act(args, Act::Relocate, None)
}

fn act(args: &MoveArgs, act: Act, to_point: Option<Timestamp>) -> anyhow::Result<ExitCode> {
    runtime()?.block_on(async {
        match ask(&args.subject, act).await? {
            Answer::Asked(asked) => carry_out(*asked, &args.manner, to_point).await,
            Answer::Refused(code) => Ok(code),
            Answer::NotYet(why) => refused(&format!("nothing was begun: {why}")),
        }
    })
}

impl Asked {
    fn text(&self) -> String {
        let mut text = words::plan(&self.plan, Clock::system().now());
        if self.act == Act::Failover && self.could_relocate {
            text.push_str(
                "both clusters answer: `lifeboat relocate` would move the application and lose nothing\n",
            );
        }
        text
    }
}

async fn ask(subject: &Subject, act: Act) -> anyhow::Result<Answer> {
    let config = subject.target.config().await?;
    let namespace = subject.namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
    let client = kube::Client::try_from(config).context("making a client of the hub")?;
    let key = ObjectKey::new(namespace, subject.name.clone());
    let Some(world) = look::world(&client, &key).await? else {
        return missing_on_hub(&client, &format!("DRPlacementControl {key}")).await.map(Answer::Refused);
    };
    let now = Clock::system().now();
    let to = match words::target(&world, subject.to.as_deref()) {
        Ok(to) => to,
        Err(Nowhere::Unknown(why)) => return misused(&why).map(Answer::Refused),
        Err(Nowhere::NotYet(why)) => return Ok(Answer::NotYet(why)),
    };
    let wish = Wish { act, target: to };
    let plan = lifeboat_hub::drpc::plan(&world, &wish, now);
    let moves = plan.from.as_deref() != Some(plan.to.as_str());
    let gentle = Wish { act: Act::Relocate, ..wish };
    let could_relocate = moves && lifeboat_hub::drpc::plan(&world, &gentle, now).blockers.is_empty();
    let drpc = DRPlacementControl::clone(&world.drpc);
    Ok(Answer::Asked(Box::new(Asked { client, drpc, plan, act, could_relocate })))
}

async fn carry_out(asked: Asked, manner: &Manner, to_point: Option<Timestamp>) -> anyhow::Result<ExitCode> {
    let text = manner.output == Format::Text;
    if text {
        say(&asked.text())?;
        if let Some(point) = to_point {
            say(&format!(
                "each PVC is restored from its newest recovery point at or before {point}; several PVCs are not of one moment\n"
            ))?;
        }
    }
    let Asked { client, drpc, plan, act, .. } = asked;
    if !plan.blockers.is_empty() && !manner.even_if_blocked {
        if !text {
            say(&(json!({"plan": plan, "begun": false}).to_string() + "\n"))?;
        }
        return refused(
            "something stands in the way; --even-if-blocked begins all the same, and the hub waits for it",
        );
    }
    let namespace = drpc.metadata.namespace.clone().unwrap_or_default();
    let name = drpc.metadata.name.clone().unwrap_or_default();
    if !manner.yes && !confirmed(&words::question(&plan, &format!("{namespace}/{name}")))? {
        say("nothing was changed\n")?;
        return Ok(ExitCode::from(4));
    }
    let api: Api<DRPlacementControl> = Api::namespaced(client, &namespace);
    let spec = match act {
        Act::Failover => json!({"action": DRAction::Failover, "failoverCluster": plan.to}),
        Act::Relocate => json!({"action": DRAction::Relocate, "preferredCluster": plan.to}),
        Act::Deploy => bail!("invariant: nobody asks for a deployment here"),
    };
    let Some(changed) = order(&api, drpc, &spec, to_point).await? else {
        return refused(
            "nothing was begun: somebody else changed the DRPlacementControl meanwhile; look at the plan and ask again",
        );
    };
    if manner.no_wait {
        let line = if text {
            format!("asked for {}\n", plan.action)
        } else {
            json!({"plan": plan, "begun": true}).to_string() + "\n"
        };
        say(&line)?;
        return Ok(ExitCode::SUCCESS);
    }
    // An application that had no pods where it ran needs none where it goes. One that stays has to have them.
    let told = follow::pods(&changed.status.clone().unwrap_or_default());
    let moves = plan.from.as_deref() != Some(plan.to.as_str());
    let had_pods = !(moves && matches!(told, follow::Pods::Missing(_)));
    let came = follow::follow(&api, &changed, act, had_pods, manner.timeout, text).await?;
    if !text {
        let (done, deleted) = (came.is_done(), came.deleted);
        let told =
            json!({"plan": plan, "begun": true, "done": done, "deleted": deleted, "status": came.status});
        say(&(told.to_string() + "\n"))?;
    } else {
        say(&words::end(&came, act))?;
    }
    Ok(if came.is_done() { ExitCode::SUCCESS } else { ExitCode::from(3) })
}

/// Asks the hub for it, only on what the plan was made from: a change of the spec meanwhile is somebody else's order, one of the status is not.
async fn order(
    api: &Api<DRPlacementControl>,
    mut seen: DRPlacementControl,
    spec: &Value,
    to_point: Option<Timestamp>,
) -> anyhow::Result<Option<DRPlacementControl>> {
    let name = seen.metadata.name.clone().unwrap_or_default();
    let (uid, generation) = (seen.metadata.uid.clone(), seen.metadata.generation);
    let annotations = json!({annotations::TO_POINT: to_point.map(|point| point.to_string())});
    loop {
        let meta = json!({
            "uid": uid, "resourceVersion": seen.metadata.resource_version, "annotations": annotations,
        });
        let patch = Patch::Merge(json!({"metadata": meta, "spec": spec}));
        match api.patch(&name, &patched(), &patch).await {
            Ok(changed) => return Ok(Some(changed)),
            Err(error) if is_lost_race(&error) => {}
            Err(error) => return Err(error).context("changing the DRPlacementControl"),
        }
        let now = api.get_opt(&name).await.context("reading the DRPlacementControl")?;
        match now {
            Some(now) if now.metadata.uid == uid && now.metadata.generation == generation => seen = now,
            _ => return Ok(None),
        }
    }
}

/// Asks the person at the terminal.
pub fn confirmed(question: &str) -> anyhow::Result<bool> {
    if !std::io::stdin().is_terminal() {
        bail!("nobody can be asked here; --yes does it without asking");
    }
    say(&format!("{question} [y/N] "))?;
    std::io::stdout().flush().context("writing to the terminal")?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer).context("reading the answer")?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::embedded;
    use kube::api::{DeleteParams, PatchParams, PostParams};

    async fn protected(client: &kube::Client) -> (Api<DRPlacementControl>, DRPlacementControl) {
        let api = Api::namespaced(client.clone(), "default");
        let object = json!({
            "apiVersion": "ramendr.openshift.io/v1alpha1", "kind": "DRPlacementControl",
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {"placementRef": {}, "drPolicyRef": {}, "pvcSelector": {}},
        });
        let object = serde_json::from_value(object).unwrap();
        let made = api.create(&PostParams::default(), &object).await.unwrap();
        (api, made)
    }

    fn west() -> Value {
        json!({"action": "Failover", "failoverCluster": "west"})
    }

    #[tokio::test]
    async fn an_order_is_given_only_on_the_spec_that_was_seen() {
        let server = embedded::server();
        let (api, seen) = protected(&embedded::client(&server)).await;
        let status = Patch::Merge(json!({"status": {"phase": "Deployed"}}));
        api.patch_status("web", &PatchParams::default(), &status).await.unwrap();
        let given = order(&api, seen.clone(), &west(), None).await.unwrap().expect("a status is no order");
        assert_eq!(given.spec.failover_cluster.as_deref(), Some("west"));
        let writers = given.metadata.managed_fields.unwrap_or_default();
        assert!(writers.iter().any(|one| one.manager.as_deref() == Some("lifeboat")), "{writers:?}");

        let lost = order(&api, seen.clone(), &west(), None).await.unwrap();
        assert!(lost.is_none(), "the spec changed");
        api.delete("web", &DeleteParams::default()).await.unwrap();
        let lost = order(&api, seen.clone(), &west(), None).await.unwrap();
        assert!(lost.is_none(), "it is gone");
        let (_, another) = protected(&embedded::client(&server)).await;
        assert_eq!(another.metadata.generation, seen.metadata.generation);
        let lost = order(&api, seen, &west(), None).await.unwrap();
        assert!(lost.is_none(), "it is another one of the name");
    }
}
