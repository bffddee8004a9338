//! `lifeboat demo`: three clusters on this machine, an application that keeps writing, the loss of a cluster, and the way back; proved by
//! counting the records.

mod app;
mod disk;
mod narrate;
mod proof;
mod story;
mod wait;

use crate::status::{Format, say};
use crate::up::fleet::{Fleet, Plan};
use crate::up::{announce, home, interrupted, storage};
use anyhow::Context as _;
use narrate::Narrator;
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;
use story::Story;

/// Options of `lifeboat demo`.
#[derive(clap::Args)]
#[command(
    after_help = "Exit code: 0 every promise was kept, 1 the demo could not be played to its end, 2 wrong usage, 3 a promise was broken."
)]
pub struct Args {
    /// How volumes get to the other cluster.
    #[arg(long, value_name = "WAY", default_value = "volsync")]
    storage: Way,
    /// Leave the clusters running at the end, for kubectl.
    #[arg(long)]
    keep: bool,
    /// Where to keep the clusters; without it everything is gone when the command ends.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// How to print it.
    #[arg(long, short, value_name = "FORMAT", default_value = "text")]
    output: Format,
}

/// What a reader should know.
const OPENING: &str = "Three clusters on this machine: hub, east and west. Each has an API server, its own controllers and its own disks, which";

/// How volumes get to the other cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Way {
    /// A mover copies snapshots: ReplicationSource and ReplicationDestination.
    Volsync,
    /// The storage mirrors volumes: VolumeReplication.
    Volrep,
}

impl Way {
    fn class(self) -> &'static str {
        match self {
            Self::Volsync => storage::CLASS,
            Self::Volrep => storage::MIRRORED,
        }
    }

    fn told(self) -> &'static str {
        match self {
            Self::Volsync => {
                "are folders; east and west have an object store each. A mover copies snapshots of volumes over an encrypted stream."
            }
            Self::Volrep => {
                "are folders; east and west have an object store each. The storage mirrors volumes over an encrypted stream."
            }
        }
    }
}

/// Plays the demo.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let (home, _scratch) = home(args.data.as_deref())?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().context("starting the runtime")?;
    let mut narrator = Narrator::new(args.output == Format::Json);
    runtime.block_on(async {
        let plan = Plan {
            names: ["hub", "east", "west"].map(str::to_owned).to_vec(),
            hub: Some("hub".to_owned()),
            home: home.clone(),
            keep: true,
            listen: ([127, 0, 0, 1], 0).into(),
            without: [].into(),
            bare: false,
            lease_seconds: 2,
            interval: "1m".to_owned(),
        };
        narrator.tell(OPENING);
        narrator.tell(args.storage.told());
        let begun = narrator.step("starting the clusters");
        let mut fleet = Fleet::start(plan).await?;
        let kubeconfig = home.join("kubeconfig");
        fleet.write_kubeconfig(&kubeconfig)?;
        narrator.done(begun, &format!("they answer; KUBECONFIG={}", kubeconfig.display()));
        let told = tokio::select! {
            told = tell(&mut fleet, &mut narrator, args.storage) => told,
            stopped = interrupted() => stopped.and_then(|()| Err(anyhow::anyhow!("it was interrupted"))),
        };
        match &told {
            Ok(()) => narrator.conclude(),
            Err(error) => narrator.tell(&format!("          it went wrong: {error:#}")),
        }
        if args.output == Format::Json {
            let kept = told.is_ok() && narrator.all_kept();
            let document = json!({"kept": kept, "promises": narrator.promises, "steps": narrator.steps, "error": told.as_ref().err().map(|error| format!("{error:#}"))});
            say(&format!("{document}\n"))?;
        }
        if args.keep {
            announce(&fleet, &kubeconfig, args.data.as_deref())?;
            interrupted().await?;
        }
        tokio::task::block_in_place(|| fleet.stop());
        told?;
        Ok(if narrator.all_kept() { ExitCode::SUCCESS } else { ExitCode::from(3) })
    })
}

async fn tell(fleet: &mut Fleet, narrator: &mut Narrator, way: Way) -> anyhow::Result<()> {
    Story::new(fleet, narrator, way.class()).await?.tell().await
}
