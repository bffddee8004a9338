//! What every long-running command shares: its identity, its signals, and leading while a lease is held.

use crate::cluster::Target;
use crate::connect::connect;
use anyhow::{Context as _, bail};
use lifeboat_engine::lease::LeaseConfig;
use lifeboat_engine::{Clock, Election, Metrics, Outcome};
use tokio_util::sync::CancellationToken;

/// Runs a controller to its end, on all cores.
pub fn block_on(work: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().context("starting the runtime")?;
    runtime.block_on(work)
}

/// Runs a controller to its end, on one thread: one that does nothing but read, decide and write over its connections would spend a third of
/// its time, and keep more memory, on handing things from thread to thread.
pub fn block_on_one_thread(work: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("starting the runtime")?;
    runtime.block_on(work)
}

/// A client of a cluster that answers.
pub async fn client(target: &Target) -> anyhow::Result<kube::Client> {
    let config = target.config().await?;
    let address = config.cluster_url.clone();
    let client = connect(config)?;
    client.apiserver_version().await.with_context(|| format!("reaching the cluster at {address}"))?;
    Ok(client)
}

/// Work of which several processes are ready for, and one does it.
pub struct Lead {
    /// Where the lease is.
    pub client: kube::Client,
    /// Namespace of the lease.
    pub namespace: String,
    /// Name of the lease.
    pub name: &'static str,
    /// Without a lease: the user says that there is no other.
    pub alone: bool,
    /// Told of the lease.
    pub metrics: Metrics,
}

impl Lead {
    /// Works while the lease is held, until a signal: the first stops the work, the second gives up on it.
    pub async fn run<F>(self, work: impl FnOnce(CancellationToken) -> F) -> anyhow::Result<()>
    where
        F: Future<Output = ()>,
    {
        let stop = CancellationToken::new();
        let signals = signals(stop.clone())?;
        tokio::select! {
            done = self.hold(stop, work) => done,
            () = signals => Ok(()),
        }
    }

    async fn hold<F>(
        self,
        stop: CancellationToken,
        work: impl FnOnce(CancellationToken) -> F,
    ) -> anyhow::Result<()>
    where
        F: Future<Output = ()>,
    {
        if self.alone {
            work(stop).await;
            return Ok(());
        }
        let election = Election {
            client: self.client,
            namespace: self.namespace,
            name: self.name.to_owned(),
            me: identity(),
            config: LeaseConfig::default(),
            clock: Clock::system(),
            metrics: self.metrics,
        };
        match election.run(stop, work).await {
            // Whoever started this starts it again, with nothing left over from before.
            Outcome::Lost => bail!("the lease {}/{} was lost", election.namespace, election.name),
            Outcome::NeverLed | Outcome::Finished => Ok(()),
        }
    }
}

/// Different for each process, also for one that is started again under the same number.
pub fn identity() -> String {
    let host = std::env::var("HOSTNAME").unwrap_or_else(|_| "lifeboat".to_owned());
    let started = std::time::UNIX_EPOCH.elapsed().unwrap_or_default().as_millis();
    format!("{host}_{}_{started}", std::process::id())
}

/// Stops the work at the first signal and gives up on it at the second.
pub fn signals(stop: CancellationToken) -> anyhow::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate()).context("listening for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("listening for Ctrl-C")?;
    Ok(async move {
        for _ in 0..2 {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            stop.cancel();
        }
    })
}
