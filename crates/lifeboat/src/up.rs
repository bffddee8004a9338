//! `lifeboat up`: embedded clusters, each with its own data, authority and address, the controllers that a bare API server
//! lacks, and one kubeconfig for all of them. A cluster called `hub` leads the others.

pub mod control;
pub mod fleet;
pub mod hubside;
mod managed;
pub mod site;
pub mod storage;

use anyhow::{Context as _, bail};
use fleet::{Fleet, Part, Plan};
use lifeboat_api::Interval;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Options of `lifeboat up`.
#[derive(clap::Args)]
pub struct Args {
    /// Names of the clusters to start.
    #[arg(long, value_delimiter = ',', default_value = "hub,east,west")]
    clusters: Vec<String>,
    /// The cluster that leads the others; none of them leads where it is not among them.
    #[arg(long, value_name = "NAME", default_value = "hub")]
    hub: String,
    /// Where to keep the clusters; without it everything is gone when the command ends.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Where to write the kubeconfig; DIR/kubeconfig when not given.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Start plain Kubernetes API servers: neither Lifeboat's definitions nor its controllers.
    #[arg(long)]
    bare: bool,
    /// Leave these parts out, for clusters where others do their work.
    #[arg(long, value_name = "PART", value_delimiter = ',')]
    without: Vec<Part>,
    /// How often applications of the policy that is there are copied: a number and s, m, h or d. The policy is called every-minute, or every-30s
    /// and the like.
    #[arg(long, value_name = "INTERVAL", default_value = "1m", value_parser = interval)]
    interval: String,
    /// Address of the first cluster; the others take the ports after it. Port 0 picks free ones.
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
}

/// An interval that a policy can have.
fn interval(text: &str) -> Result<String, String> {
    match Interval::parse(text) {
        Ok(Some(_)) => Ok(text.to_owned()),
        Ok(None) => Err("an embedded fleet copies at an interval: write one such as 1m".to_owned()),
        Err(bad) => Err(bad.to_string()),
    }
}

/// Starts the clusters and waits for Ctrl-C.
pub fn run(args: Args) -> anyhow::Result<()> {
    check_names(&args.clusters)?;
    let (home, _scratch) = home(args.data.as_deref())?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().context("starting the runtime")?;
    runtime.block_on(serve(&args, &home))
}

/// The folder that is asked for, or one that goes when the answer is dropped.
pub fn home(data: Option<&Path>) -> anyhow::Result<(PathBuf, Option<tempfile::TempDir>)> {
    match data {
        Some(data) => {
            std::fs::create_dir_all(data).with_context(|| format!("making {}", data.display()))?;
            // Pods are told where their volumes are, and start in folders of their own.
            let data = std::path::absolute(data).with_context(|| format!("finding {}", data.display()))?;
            Ok((data, None))
        }
        None => {
            let scratch = tempfile::Builder::new().prefix("lifeboat-").tempdir();
            let scratch = scratch.context("making a temporary folder")?;
            Ok((scratch.path().to_owned(), Some(scratch)))
        }
    }
}

fn check_names(names: &[String]) -> anyhow::Result<()> {
    let mut seen = std::collections::BTreeSet::new();
    for name in names {
        let plain = !name.is_empty()
            && name.len() <= 63
            && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
            && !name.starts_with('-')
            && !name.ends_with('-');
        if !plain {
            bail!(
                "{name:?} is no cluster name: use up to 63 lower-case letters, digits and hyphens, such as `east`"
            );
        }
        if !seen.insert(name) {
            bail!("cluster {name:?} is named twice");
        }
    }
    Ok(())
}

async fn serve(args: &Args, home: &Path) -> anyhow::Result<()> {
    let plan = Plan {
        names: args.clusters.clone(),
        hub: args.clusters.contains(&args.hub).then(|| args.hub.clone()),
        home: home.to_owned(),
        keep: args.data.is_some(),
        listen: args.listen,
        without: args.without.iter().copied().collect(),
        bare: args.bare,
        lease_seconds: 10,
        interval: args.interval.clone(),
    };
    let mut fleet = Fleet::start(plan).await?;
    let path = args.kubeconfig.clone().unwrap_or_else(|| home.join("kubeconfig"));
    fleet.write_kubeconfig(&path)?;
    announce(&fleet, &path, args.data.as_deref())?;
    match args.data.is_some() {
        true => {
            let control = control::open(home)?;
            tokio::select! {
                ended = interrupted() => ended?,
                () = control::serve(&control, &mut fleet) => {}
            }
        }
        false => interrupted().await?,
    }
    // Whoever read the first lines may be gone by now.
    let _ = say("stopping");
    tokio::task::block_in_place(|| fleet.stop());
    Ok(())
}

/// Returns at Ctrl-C or SIGTERM.
pub async fn interrupted() -> anyhow::Result<()> {
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())
        .context("waiting for SIGTERM")?;
    tokio::select! {
        result = tokio::signal::ctrl_c() => result.context("waiting for Ctrl-C"),
        _ = terminate.recv() => Ok(()),
    }
}

fn say(line: &str) -> anyhow::Result<()> {
    writeln!(std::io::stdout(), "{line}").context("writing to the terminal")
}

/// Says how to get in.
pub fn announce(fleet: &Fleet, kubeconfig: &Path, data: Option<&Path>) -> anyhow::Result<()> {
    say("")?;
    for site in fleet.sites() {
        say(&format!("  {:<12} https://{}", site.name, site.address()))?;
    }
    say("")?;
    say(&format!("  export KUBECONFIG={}", kubeconfig.display()))?;
    for site in fleet.sites() {
        say(&format!("  kubectl --context {} get namespaces", site.name))?;
    }
    say("")?;
    say(&match data {
        Some(data) => format!("  data is kept in {}; Ctrl-C stops the clusters", data.display()),
        None => {
            "  nothing is kept: Ctrl-C stops the clusters and removes them (--data DIR keeps them)".to_owned()
        }
    })
}
