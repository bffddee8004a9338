//! `lifeboat plan`, `failover` and `relocate`: what would be done and lost, the question, the change of one field, and the way
//! there as it is gone. The hub's own rules make the plan; nothing is decided here.

pub mod abort;
pub mod follow;
pub mod look;
pub mod words;

use crate::cluster::Target;
use crate::status::{Format, missing, say};
use anyhow::{Context as _, bail};
use jiff::Timestamp;
use kube::api::{Api, Patch, PatchParams};
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
    /// How long to follow it, such as 90s, 10m or 1h; a bare number is seconds.
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = words::duration)]
    timeout: Duration,
    /// How to print it.
    #[arg(long, short, value_name = "FORMAT", default_value = "text")]
    output: Format,
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
        let Some(asked) = ask(&args.subject, act).await? else {
            return missing(&format!("DRPlacementControl {}", args.subject.name));
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
        let Some(asked) = ask(&args.subject, act).await? else {
            return missing(&format!("DRPlacementControl {}", args.subject.name));
        };
        carry_out(asked, &args.manner, to_point).await
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

async fn ask(subject: &Subject, act: Act) -> anyhow::Result<Option<Asked>> {
    let config = subject.target.config().await?;
    let namespace = subject.namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
    let client = kube::Client::try_from(config).context("making a client of the hub")?;
    let key = ObjectKey::new(namespace, subject.name.clone());
    let Some(world) = look::world(&client, &key).await? else { return Ok(None) };
    let now = Clock::system().now();
    let to = match &subject.to {
        Some(to) => to.clone(),
        None => words::other(&world)
            .context("the policy does not say which cluster is the other one; name it with --to")?,
    };
    let wish = Wish { act, target: to };
    let plan = lifeboat_hub::drpc::plan(&world, &wish, now);
    let moves = plan.from.as_deref() != Some(plan.to.as_str());
    let gentle = Wish { act: Act::Relocate, ..wish };
    let could_relocate = moves && lifeboat_hub::drpc::plan(&world, &gentle, now).blockers.is_empty();
    Ok(Some(Asked { client, drpc: DRPlacementControl::clone(&world.drpc), plan, act, could_relocate }))
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
        let hint =
            "something stands in the way; --even-if-blocked begins all the same, and the hub waits for it";
        writeln!(std::io::stderr(), "{hint}").context("writing to the terminal")?;
        return Ok(ExitCode::from(4));
    }
    let namespace = drpc.metadata.namespace.clone().unwrap_or_default();
    let name = drpc.metadata.name.clone().unwrap_or_default();
    if !manner.yes && !confirmed(&format!("{} {namespace}/{name} to {}?", plan.action, plan.to))? {
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
        let hint = "nothing was begun: somebody else changed the DRPlacementControl meanwhile; look at the plan and ask again";
        writeln!(std::io::stderr(), "{hint}").context("writing to the terminal")?;
        return Ok(ExitCode::from(4));
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
        say(&(json!({"plan": plan, "begun": true, "done": came.is_done(), "status": came.status})
            .to_string()
            + "\n"))?;
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
    let manager = PatchParams { field_manager: Some("lifeboat".to_owned()), ..PatchParams::default() };
    loop {
        let meta = json!({
            "uid": uid, "resourceVersion": seen.metadata.resource_version, "annotations": annotations,
        });
        let patch = Patch::Merge(json!({"metadata": meta, "spec": spec}));
        match api.patch(&name, &manager, &patch).await {
            Ok(changed) => return Ok(Some(changed)),
            Err(kube::Error::Api(status)) if status.code == 409 => {}
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
